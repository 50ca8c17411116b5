"""Gold chains, for evaluation alone: from a gold file, a questions file, or MedHop's labelled pairs."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel

from rechain.candidates import Candidate, Candidates, CandidateSettings, find_candidates
from rechain.datasets.files import read_records
from rechain.datasets.reading import read_gold_of_questions
from rechain.datasets.rows import read_by_id, read_rows
from rechain.errors import QuestionError
from rechain.schema import Gold, GoldChain, Question, Same

_ALL = CandidateSettings(limit=1_000_000)


class PairLabel(BaseModel):
    """Whether a passage describes an interaction of two entities, as MedHop's chains were labelled."""

    id: str
    support: int
    a: str
    b: str
    interacts: bool


def read_gold(path: str | Path, questions: Iterable[Question], same: Same = "links") -> Mapping[str, Gold]:
    """Read gold from a gold file, from pair labels on the questions' candidate chains, or from a questions file.

    `same` says what counts as the same chain where a gold file does not.
    """
    path = Path(path)
    first = next((value for _, value, _ in read_records(path) if isinstance(value, dict)), {})
    if "chains" in first:
        golds: Iterable[Gold] = (_with_default(gold, same) for gold in read_by_id(path, Gold).values())
    elif "interacts" in first:
        golds = gold_from_pairs((label for _, label in read_rows(path, PairLabel)), questions)
    else:
        golds = read_gold_of_questions(path)
    return {gold.id: gold for gold in golds}


def _with_default(gold: Gold, same: Same) -> Gold:
    return gold.model_copy(update={"same": same}) if gold.same is None and same == "passages" else gold


def gold_from_pairs(labels: Iterable[PairLabel], questions: Iterable[Question]) -> Iterator[Gold]:
    """Yield the candidate chains on which every passage describes the interaction of its two entities."""
    interacting = {(label.id, str(label.support), frozenset((label.a, label.b))) for label in labels if label.interacts}
    for question in questions:
        if not question.question_entities or question.answer_entity is None:
            continue
        try:
            candidates = find_candidates(question, _ALL)
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
