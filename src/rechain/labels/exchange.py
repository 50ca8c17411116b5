"""Labels as rows: exported as gold or as labelled pairs like MedHop's, and made from either."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from rechain.errors import InputError
from rechain.evaluation.gold import PairLabel, candidate_as_gold
from rechain.formats.datasets.formats import describe
from rechain.labels.agreement import by_unit, decided
from rechain.labels.store import Label, LabelStore, checked_annotator
from rechain.schema import VERDICTS, Gold, Question, Verdict
from rechain.text.candidates import CandidateSettings
from rechain.text.collection import Statistics
from rechain.text.label_units import VERDICT_VALUES, Unit, Units, Value, find_units
from rechain.text.passage_views import identifier

UNTOUCHED, UNDECIDED = "untouched", "undecided"
"""why a question, or a pair, is left out of an export: nobody labelled it, or not all of it is decided"""
_NUMBER = re.compile("0|[1-9][0-9]{0,17}")
"""an id that is exported as a number, as MedHop's are; JSON writers have 64 bits for it"""


def gold_from_labels(
    question: Question,
    labels: Sequence[Label],
    settings: CandidateSettings | None = None,
    collection: Statistics | None = None,
) -> Gold | None:
    """Return the evidence of a question that annotators picked and agree on; None if that is not decided.

    A question of which pairs alone are labelled has the candidate chains of which all pairs are right. It is decided
    once every candidate is: one that nobody was asked about, as it has no pairs, leaves it undecided.
    """
    answers = [label for label in labels if label.unit.mode == "answers"]
    if answers:
        label = decided(answers)
        if label is None:
            return None
        return Gold(id=question.id, chains=list(label.evidence), verdict=_verdict(label.value))
    units = find_units(question, settings, collection)
    values = {unit: label and label.value for unit, of_unit in by_unit(labels).items() for label in [decided(of_unit)]}
    of_chains = [{values.get(pair) for pair in pairs} for pairs in units.pairs_of]
    if not of_chains or not all("no" in one or one == {"yes"} for one in of_chains):
        return None
    right = [candidate_as_gold(units, number) for number, one in enumerate(of_chains) if "no" not in one]
    return Gold(id=question.id, chains=right)


def _verdict(value: Value) -> Verdict | None:
    return next((verdict for verdict in VERDICTS if verdict == value), None)


def export_gold(
    questions: Iterable[Question],
    store: LabelStore,
    settings: CandidateSettings | None = None,
    left_out: Counter[str] | None = None,
    collection: Statistics | None = None,
) -> Iterator[Gold]:
    """Yield gold of the questions that labels decide; `left_out` counts the others by reason."""
    left_out = Counter() if left_out is None else left_out
    touched = store.questions()
    for question in questions:
        labels = store.of_question(question.id) if question.id in touched else []
        gold = gold_from_labels(question, labels, settings, collection) if labels else None
        if gold is not None:
            yield gold
        else:
            left_out[UNDECIDED if labels else UNTOUCHED] += 1


def export_pairs(
    questions: Iterable[Question],
    store: LabelStore,
    settings: CandidateSettings | None = None,
    left_out: Counter[str] | None = None,
    collection: Statistics | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the pairs that are decided as rows; `left_out` counts the labelled ones that are not.

    The entities of a pair are in the order of the chain, from the question to the answer.
    """
    left_out = Counter() if left_out is None else left_out
    touched = store.questions()
    for question in questions:
        if question.id in touched:
            units = find_units(question, settings, collection)
            for unit, labels in by_unit(store.of_question(question.id)).items():
                if unit.mode == "pairs" and (label := decided(labels)):
                    yield _row(units, unit, label.value == "yes", _evidence(labels, label.value))
                elif unit.mode == "pairs":
                    left_out[UNDECIDED] += 1


def _row(units: Units, pair: Unit, is_right: bool, evidence: str | None) -> dict[str, Any]:
    one, two = map(_without_kind, units.in_order(pair))
    passage = pair.passages[0]
    support = int(passage) if _NUMBER.fullmatch(passage) else passage
    row = {"id": pair.question, "support": support, "a": one, "b": two}
    return row | {"interacts": is_right} | ({} if evidence is None else {"evidence": evidence})


def _evidence(labels: list[Label], decision: Value) -> str | None:
    """Return the first note of the labels that agree with the decision, those that settle first."""
    agreeing = sorted((label for label in labels if label.value == decision), key=lambda label: not label.settles)
    return next((label.note for label in agreeing if label.note), None)


def _without_kind(entity: str) -> str:
    """Return an entity's id without its kind ("drug:DB00072") where an import can put the kind back."""
    bare = entity.partition(":")[2]
    return bare if identifier(bare) == entity else entity


@dataclass
class Imported:
    """Labels made from rows, and what was unusual about the rows."""

    labels: list[Label] = field(default_factory=list)
    other_questions: int = 0
    """rows of questions that were not given, which are kept as they stand"""
    other_pairs: int = 0
    """pairs on no candidate chain, which are kept as they stand"""


def labels_from_rows(
    rows: Iterable[tuple[str, PairLabel | Gold]],
    questions: Iterable[Question],
    annotator: str,
    settings: CandidateSettings | None = None,
    collection: Statistics | None = None,
) -> Imported:
    """Make labels of one annotator from rows, each with its place for error messages: pairs or gold chains, not both.

    The gold chains of a question are its evidence; without any, nothing supports its answer unless the row has another
    verdict.
    """
    importer = _Importer(checked_annotator(annotator))
    pairs: dict[str, list[tuple[str, PairLabel]]] = {}
    golds: dict[str, tuple[str, Gold]] = {}
    for where, row in rows:
        if golds if isinstance(row, PairLabel) else pairs:
            raise InputError(f"{where}: gold chains stand among labelled pairs; import the two apart.")
        if isinstance(row, PairLabel):
            pairs.setdefault(row.id, []).append((where, row))
        elif row.id in golds:
            raise InputError(f"{where}: the id '{row.id}' stands there twice.")
        else:
            golds[row.id] = where, row
    for where, gold in golds.values():
        importer.add_gold(where, gold)
    for question in questions:
        golds.pop(question.id, None)
        if question.id in pairs:
            importer.add_pairs(pairs.pop(question.id), find_units(question, settings, collection))
    for others in pairs.values():
        importer.add_pairs(others, None)
    importer.imported.other_questions = sum(map(len, pairs.values())) + len(golds)
    return importer.imported


class _Importer:
    """Turns rows into labels, question by question."""

    def __init__(self, annotator: str) -> None:
        self._annotator = annotator
        self.imported = Imported()

    def add_pairs(self, rows: Iterable[tuple[str, PairLabel]], units: Units | None) -> None:
        """Add the labelled pairs of a question, which has units where it is known; repeated pairs count once."""
        labels: dict[Unit, Label] = {}
        for where, row in rows:
            for label in self._labels_of_pair(where, row, units):
                first = labels.setdefault(label.unit, label)
                if first.value != label.value:
                    raise InputError(f"{where}: an earlier line says the opposite of this pair; remove one of them.")
                if first.note is None:
                    labels[label.unit] = label
        self.imported.labels += labels.values()

    def _labels_of_pair(self, where: str, row: PairLabel, units: Units | None) -> list[Label]:
        passage = str(row.support)
        pairs: Sequence[Unit | dict[str, Any]] = units.pairs_named(passage, row.a, row.b) if units else ()
        if not pairs:
            self.imported.other_pairs += units is not None
            entities = [identifier(name) or name for name in (row.a, row.b)]
            pairs = [{"question": row.id, "passages": [passage], "entities": entities}]
        return [self._label(where, "yes" if row.interacts else "no", pair, row.evidence) for pair in pairs]

    def add_gold(self, where: str, gold: Gold) -> None:
        """Add the label of an answer."""
        is_verdict = gold.verdict in VERDICT_VALUES
        value = str(gold.verdict) if is_verdict else "supported" if gold.chains else "unsupported"
        label = self._label(f"{where}, question '{gold.id}'", value, {"question": gold.id}, evidence=gold.chains)
        self.imported.labels.append(label)

    def _label(
        self, where: str, value: str, unit: Unit | dict[str, Any], note: str | None = None, **others: Any
    ) -> Label:
        fields = {"annotator": self._annotator, "unit": unit, "value": value, "note": note, **others}
        try:
            return Label.model_validate(fields)
        except ValidationError as error:
            raise InputError(f"{where}: {describe(error)[1]}.") from error
