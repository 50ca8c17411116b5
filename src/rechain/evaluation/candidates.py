"""What is measured of C: how many chains, how many of them are right, and why there are none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rechain.candidates import Candidate, Candidates, CandidateSettings, find_candidates
from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.evaluation.statistics import Figure, mean_with_interval
from rechain.schema import Gold, Question
from rechain.text.answers import AnswerMatcher


@dataclass(frozen=True, slots=True)
class CandidateCount:
    """What is known of one question's C: its size, and how many of its chains are right where gold tells."""

    chains: int
    tails: int
    correct: int | None
    error: QuestionError | None = None
    is_cut: bool = False


def count_candidates(question: Question, settings: CandidateSettings, gold: Gold | None) -> CandidateCount:
    """Build C of a question and count its chains, its tails and its correct chains."""
    try:
        found = find_candidates(question, settings)
    except QuestionError as error:
        answer = AnswerMatcher(question)
        tails = 0 if error.code == "no_tail" else sum(map(answer.is_held_by, question.passages))
        return CandidateCount(0, tails, None if gold is None else 0, error)
    correct = None if gold is None else sum(is_gold_chain(found, chain, gold) for chain in found.chains)
    return CandidateCount(len(found.chains), len(found.tails), correct, is_cut=found.is_cut)


def is_gold_chain(found: Candidates, chain: Candidate, gold: Gold) -> bool:
    """Return whether a candidate chain is one of the gold chains."""
    passages = [found.question.passages[number].id for number in chain.passages]
    links = [link.entity for link in chain.links] if gold.same != "passages" else []
    return is_correct(passages, links, gold)


def summarise_candidates(counts: Sequence[CandidateCount]) -> dict[str, Figure]:
    """Return the statistics of C that the paper gives, over all questions."""
    told = [count for count in counts if count.correct is not None]
    columns: dict[str, Sequence[float]] = {
        "chains a question": [count.chains for count in counts],
        "tails a question": [count.tails for count in counts],
        "gold chain in C": [bool(count.correct) for count in told],
        "accuracy of a random pick": [(count.correct or 0) / max(count.chains, 1) for count in told],
        "questions without a chain": [count.chains == 0 for count in counts],
    }
    figures = {name: mean_with_interval(values) for name, values in columns.items()}
    return {name: figure for name, figure in figures.items() if figure is not None}


def errors_of(counts: Iterable[CandidateCount]) -> Mapping[str, int]:
    """Return how many questions have no chain, by why."""
    reasons: dict[str, int] = {}
    for count in counts:
        if count.error is not None:
            reasons[count.error.code] = reasons.get(count.error.code, 0) + 1
    return reasons
