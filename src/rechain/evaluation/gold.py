"""Gold chains, for evaluation alone: from a gold file, a questions file, or MedHop's labelled pairs."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from rechain.errors import InputError
from rechain.formats.datasets.questions import read_gold_of_questions
from rechain.formats.datasets.records import read_by_id, read_records, read_rows
from rechain.schema import UNORDERED, WHOLE, Gold, GoldChain, NotBlank, Question, Same
from rechain.system.files import path_of
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import CandidateSettings
from rechain.text.label_units import Units, find_units

_ALL = CandidateSettings(limit=1_000_000)
"""every candidate chain, as the pairs of all of them were labelled"""


class PairLabel(BaseModel):
    """Whether a passage describes an interaction of two entities, as MedHop's chains were labelled."""

    id: NotBlank
    support: Annotated[int, Field(strict=True, ge=0, lt=2**53), WHOLE] | NotBlank
    """the passage's id"""
    a: str
    b: str
    interacts: bool = Field(strict=True)
    evidence: str | None = None
    """why, in words"""


def read_gold(path: str | Path, questions: Iterable[Question], same: Same = "links") -> Mapping[str, Gold]:
    """Read gold from a gold file, from pair labels on the questions' candidate chains, or from a questions file.

    `same` is what counts as the same chain if a gold file does not define it.
    """
    path = path_of(path)
    fields = _first_fields(path)
    if "chains" in fields:
        golds: Iterable[Gold] = (with_default(gold, same) for gold in read_by_id(path, Gold).values())
    elif "interacts" in fields:
        golds = gold_from_pairs((label for _, label in read_rows(path, PairLabel)), questions)
    else:
        golds = (_with_tail(gold, question) for gold, question in read_gold_of_questions(path))
    return {gold.id: gold for gold in golds}


def read_label_rows(path: Path) -> Iterator[tuple[str, PairLabel | Gold]]:
    """Yield every row of a file of labelled pairs or gold chains, and where it stands."""
    fields = _first_fields(path)
    if "chains" in fields:
        yield from read_rows(path, Gold)
    elif "interacts" in fields:
        yield from read_rows(path, PairLabel)
    else:
        raise InputError(f"{path} holds neither labelled pairs (field interacts) nor gold chains (field chains).")


def _first_fields(path: Path) -> frozenset[str]:
    """Return the fields of a file's first record, by which its kind is recognised."""
    return frozenset(next((value for _, value, *_ in read_records(path) if isinstance(value, dict)), {}))


def with_default(gold: Gold, same: Same) -> Gold:
    """Return gold that compares chains by `same` unless it has its own rule."""
    return gold.model_copy(update={"same": same}) if gold.same is None and same == "passages" else gold


def _with_tail(gold: Gold, question: Question | None) -> Gold:
    """Order gold passages by the question's answer, if that decides: if just one contains it, it is last.

    So the paper orders the two gold passages of HotpotQA (Section 4.1).
    """
    if question is None or gold.chains[0].shape in UNORDERED:
        return gold
    answer, names = AnswerMatcher(question), gold.chains[0].passages
    tails = {passage.id for passage in question.passages if passage.id in names and answer.is_held_by(passage)}
    chain = GoldChain(passages=sorted(names, key=tails.__contains__), ordered=len(tails) == 1)
    return gold.model_copy(update={"chains": [chain]})


def candidate_as_gold(units: Units, number: int) -> GoldChain:
    """Return a candidate chain in the form of gold."""
    candidate = units.candidates.chains[number]
    passages = [units.question.passages[place].id for place in candidate.passages]
    if candidate.shape != "chain":
        return GoldChain(shape=candidate.shape, passages=passages)
    return GoldChain(passages=passages, links=units.links(number))


def gold_from_pairs(labels: Iterable[PairLabel], questions: Iterable[Question]) -> Iterator[Gold]:
    """Yield the candidate chains on which every passage describes the interaction of its two entities."""
    interacting: dict[str, list[PairLabel]] = {}
    for label in labels:
        if label.interacts:
            interacting.setdefault(label.id, []).append(label)
    for question in questions:
        if not question.question_entities or question.answer_entity is None:
            continue
        units, of_question = find_units(question, _ALL), interacting.get(question.id, ())
        right = {pair for label in of_question for pair in units.pairs_named(str(label.support), label.a, label.b)}
        chains = [
            candidate_as_gold(units, number)
            for number, pairs in enumerate(units.pairs_of)
            if pairs and right.issuperset(pairs)
        ]
        if units.pairs_of:
            yield Gold(id=question.id, chains=chains)
