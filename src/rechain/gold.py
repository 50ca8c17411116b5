"""Gold chains, for evaluation alone: from a gold file, a questions file, or MedHop's labelled pairs."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from rechain.candidates import Candidate, Candidates, find_candidates
from rechain.datasets.files import read_records
from rechain.datasets.formats import bad_record
from rechain.datasets.reading import read_gold_of_questions
from rechain.errors import InputError, QuestionError
from rechain.schema import Gold, GoldChain, Question

Row = TypeVar("Row", bound=BaseModel)


class PairLabel(BaseModel):
    """Whether a passage describes an interaction of two entities, as MedHop's chains were labelled."""

    id: str
    support: int
    a: str
    b: str
    interacts: bool


def read_gold(path: str | Path, questions: Iterable[Question]) -> Mapping[str, Gold]:
    """Read gold from a gold file, from pair labels on the questions' candidate chains, or from a questions file."""
    path = Path(path)
    first = next((value for _, value, _ in read_records(path) if isinstance(value, dict)), {})
    if "chains" in first:
        golds = _read_file(path)
    elif "interacts" in first:
        golds = gold_from_pairs(_read_pairs(path), questions)
    else:
        golds = read_gold_of_questions(path)
    return {gold.id: gold for gold in golds}


def _read_file(path: Path) -> Iterator[Gold]:
    """Yield the rows of a gold file; a bad row stops it, since a figure would be wrong without it."""
    seen: set[str] = set()
    for where, value, _ in read_records(path):
        gold = _validated(Gold, where, value)
        if gold.id in seen:
            raise InputError(f"{where}: the question '{gold.id}' stands there twice.")
        seen.add(gold.id)
        yield gold


def _read_pairs(path: Path) -> Iterator[PairLabel]:
    for where, value, _ in read_records(path):
        yield _validated(PairLabel, where, value)


def _validated(kind: type[Row], where: str, value: object) -> Row:
    if isinstance(value, QuestionError):
        raise InputError(str(value))
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise InputError(str(bad_record(where, error))) from error


def gold_from_pairs(labels: Iterable[PairLabel], questions: Iterable[Question]) -> Iterator[Gold]:
    """Yield the candidate chains on which every passage describes the interaction of its two entities."""
    interacting = {(label.id, str(label.support), frozenset((label.a, label.b))) for label in labels if label.interacts}
    for question in questions:
        if not question.question_entities or question.answer_entity is None:
            continue
        try:
            candidates = find_candidates(question)
        except QuestionError:
            continue
        chains = [
            GoldChain(passages=[question.passages[p].id for p in chain.passages], links=[e.key for e in chain.edges])
            for chain in candidates.chains
            if interacting.issuperset(_pairs(candidates, chain))
        ]
        yield Gold(id=question.id, chains=chains)


def _pairs(candidates: Candidates, chain: Candidate) -> Iterator[tuple[str, str, frozenset[str]]]:
    question = candidates.question
    entities = [question.question_entities[0], *(edge.key for edge in chain.edges), question.answer_entity or ""]
    for passage, (one, two) in zip(chain.passages, pairwise(map(_without_kind, entities)), strict=True):
        yield question.id, question.passages[passage].id, frozenset((one, two))


def _without_kind(entity: str) -> str:
    return entity.partition(":")[2]
