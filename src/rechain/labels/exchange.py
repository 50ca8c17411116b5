"""Labels as rows: exported as gold chains or as labelled pairs like MedHop's, and made from either."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from rechain.errors import InputError
from rechain.evaluation.gold import PairLabel, with_default
from rechain.evaluation.judging import is_correct
from rechain.formats.datasets.formats import describe
from rechain.labels.agreement import Decision, by_unit, decided
from rechain.labels.store import Label, LabelStore, checked_annotator
from rechain.schema import UNORDERED, Gold, GoldChain, Question, Same
from rechain.text.candidates import CandidateSettings
from rechain.text.collection import Statistics
from rechain.text.label_units import THE_QUESTION, Unit, Units, Value, find_units
from rechain.text.passage_views import identifier

UNTOUCHED, UNDECIDED = "untouched", "undecided"
"""why a question, or a pair, is left out of an export: nobody labelled it, or not all of it is decided"""
_NUMBER = re.compile("0|[1-9][0-9]{0,17}")
"""an id that is exported as a number, as MedHop's are; JSON writers have 64 bits for it"""


def gold_from_labels(units: Units, labels: Iterable[Label]) -> Gold | None:
    """Return the chains of a question that are right by its labels; None where not every candidate is decided.

    A chain that has no label itself is right if all its pairs are, and wrong if one of them is. Single passages and
    passages side by side have no pairs, so each needs a label of its own.
    Chains that are no candidates count if they were labelled right.
    """
    decisions = {unit: decided(of_unit) for unit, of_unit in by_unit(labels).items()}
    verdicts = [_verdict(units, number, decisions) for number in range(len(units.chains))]
    if None in verdicts:
        return None
    right = [
        _gold_chain(units.chains[number], units.links(number))
        for number, verdict in enumerate(verdicts)
        if verdict == "yes"
    ]
    for unit, decision in decisions.items():
        if decision == "yes" and unit.mode == "chains" and unit not in units.numbers:
            right.append(_gold_chain(unit, None if THE_QUESTION in unit.entities else list(unit.entities)))
    return Gold(id=units.question.id, chains=right)


def _gold_chain(unit: Unit, links: list[str] | None) -> GoldChain:
    if unit.shape == "chain":
        return GoldChain(passages=list(unit.passages), links=links)
    return GoldChain(shape=unit.shape, passages=list(unit.passages))


def _verdict(units: Units, chain: int, decisions: Mapping[Unit, Decision | None]) -> Decision | None:
    if units.chains[chain] in decisions:
        return decisions[units.chains[chain]]
    pairs = {decisions.get(pair) for pair in units.pairs_of[chain]}
    if "no" in pairs:
        return "no"
    return "yes" if pairs == {"yes"} else None


def export_gold(
    questions: Iterable[Question],
    store: LabelStore,
    settings: CandidateSettings | None = None,
    left_out: Counter[str] | None = None,
    collection: Statistics | None = None,
) -> Iterator[Gold]:
    """Yield gold of the questions whose labels decide every candidate chain; `left_out` counts the others by reason."""
    left_out = Counter() if left_out is None else left_out
    touched = store.questions()
    for question in questions:
        units = find_units(question, settings, collection) if question.id in touched else None
        gold = None if units is None else gold_from_labels(units, store.of_question(question.id))
        if units is not None and gold is not None and (units.chains or gold.chains):
            yield gold
        else:
            left_out[UNTOUCHED if units is None else UNDECIDED] += 1


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
                if unit.mode == "pairs" and (decision := decided(labels)):
                    yield _row(units, unit, decision, _evidence(labels, decision))
                elif unit.mode == "pairs":
                    left_out[UNDECIDED] += 1


def _row(units: Units, pair: Unit, decision: Decision, evidence: str | None) -> dict[str, Any]:
    one, two = map(_without_kind, units.in_order(pair))
    passage = pair.passages[0]
    support = int(passage) if _NUMBER.fullmatch(passage) else passage
    row = {"id": pair.question, "support": support, "a": one, "b": two}
    return row | {"interacts": decision == "yes"} | ({} if evidence is None else {"evidence": evidence})


def _evidence(labels: list[Label], decision: Decision) -> str | None:
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
    """rows of other questions; those of pairs are kept as they stand"""
    other_pairs: int = 0
    """pairs on no candidate chain, which are kept as they stand"""
    other_chains: int = 0
    """correct chains that are no candidates, which are kept"""
    unusable_chains: int = 0
    """correct chains that are no candidates and were not kept: in no order, and not side by side"""


def labels_from_rows(
    rows: Iterable[tuple[str, PairLabel | Gold]],
    questions: Iterable[Question],
    annotator: str,
    settings: CandidateSettings | None = None,
    same: Same = "links",
    collection: Statistics | None = None,
) -> Imported:
    """Make labels of one annotator from rows, each with its place for error messages: pairs or gold chains, not both.

    Of a question with gold chains the candidates among them are right and all others wrong. `same` says what counts as
    the same chain where a gold row does not.
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
            golds[row.id] = where, with_default(row, same)
    for question in questions:
        if question.id in pairs:
            importer.add_pairs(pairs.pop(question.id), find_units(question, settings, collection))
        elif question.id in golds:
            importer.add_gold(*golds.pop(question.id), find_units(question, settings, collection))
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

    def add_gold(self, where: str, gold: Gold, units: Units) -> None:
        """Add a label of every candidate of a question, and of its gold chains that are no candidates."""
        where = f"{where}, question '{gold.id}'"
        golds = [gold.model_copy(update={"chains": [chain]}) for chain in gold.chains]
        alike: dict[tuple[str, ...], list[int]] = {}  # each is compared only with the candidates of its passages
        for place, chain in enumerate(gold.chains):
            alike.setdefault(tuple(sorted(chain.passages)), []).append(place)
        matched: set[int] = set()
        for number, unit in enumerate(units.chains):
            links = units.links(number)
            places = alike.get(tuple(sorted(unit.passages)), ())
            same = {place for place in places if _is_same(unit, links, golds[place])}
            matched |= same
            self.imported.labels.append(self._label(where, "yes" if same else "no", unit))
        for place, chain in enumerate(gold.chains):
            if place not in matched:
                self._add_other_chain(where, gold.id, chain)

    def _add_other_chain(self, where: str, question: str, chain: GoldChain) -> None:
        steps = 0 if chain.shape in UNORDERED else len(chain.passages) - 1
        if steps and not chain.ordered:  # no unit is made of it: what is linked has an order
            self.imported.unusable_chains += 1
            return
        if steps and chain.links == []:  # which is not the same as links that are not known
            raise InputError(f"{where}: a chain of {steps + 1} passages has {steps} links, not 0.")
        entities = [THE_QUESTION] * steps if chain.links is None or not steps else chain.links
        unit = {"question": question, "passages": chain.passages, "entities": entities}
        self.imported.labels.append(self._label(where, "yes", unit))
        self.imported.other_chains += 1

    def _label(self, where: str, value: Value, unit: Unit | dict[str, Any], note: str | None = None) -> Label:
        try:
            return Label.model_validate({"annotator": self._annotator, "unit": unit, "value": value, "note": note})
        except ValidationError as error:
            raise InputError(f"{where}: {describe(error)[1]}.") from error


def _is_same(unit: Unit, links: Sequence[str], gold: Gold) -> bool:
    """Return whether a candidate is the one chain of a gold, in its order where that is known."""
    (chain,) = gold.chains
    in_order = not chain.has_order or unit.shape in UNORDERED or list(unit.passages) == chain.passages
    return in_order and is_correct(unit.passages, links, gold, unit.shape)
