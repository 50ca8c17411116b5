"""Statistics of C: how many chains, how many of them are right, and why there are none."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.evaluation.statistics import Figure, means_with_intervals
from rechain.schema import Gold, Question
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import Candidate, Candidates


@dataclass(frozen=True, slots=True)
class CandidateCount:
    """The size of one question's C, and if there is gold how many of its chains are right."""

    chains: int
    tails: int
    correct: int | None
    error: QuestionError | None = None
    is_cut: bool = False


def count_candidates(question: Question, candidates: Candidates | QuestionError, gold: Gold | None) -> CandidateCount:
    """Count the chains, tails and correct chains of a question's C, or of what find_candidates raised instead."""
    if isinstance(candidates, QuestionError):
        holds_answer = AnswerMatcher(question).is_held_by
        tails = 0 if candidates.code == "no_tail" else sum(map(holds_answer, question.passages))
        return CandidateCount(0, tails, None if gold is None else 0, candidates)
    correct = None if gold is None else sum(is_gold_chain(candidates, chain, gold) for chain in candidates.chains)
    return CandidateCount(len(candidates.chains), len(candidates.tails), correct, is_cut=candidates.is_cut)


def is_gold_chain(candidates: Candidates, chain: Candidate, gold: Gold) -> bool:
    """Return whether a candidate chain is one of the gold chains."""
    passages = [candidates.question.passages[number].id for number in chain.passages]
    links = [link.entity for link in chain.links] if gold.same != "passages" else []
    return is_correct(passages, links, gold, chain.shape)


def summarise_candidates(counts: Sequence[CandidateCount]) -> dict[str, Figure]:
    """Return the statistics of C that the paper gives, over all questions."""
    judged = [count for count in counts if count.correct is not None]
    columns: dict[str, Sequence[float]] = {
        "chains a question": [count.chains for count in counts],
        "tails a question": [count.tails for count in counts],
        "gold chain in C": [bool(count.correct) for count in judged],
        "accuracy of a random pick": [(count.correct or 0) / max(count.chains, 1) for count in judged],
        "questions without a chain": [count.chains == 0 for count in counts],
    }
    return means_with_intervals(columns)


def errors_of(counts: Iterable[CandidateCount]) -> Counter[str]:
    """Return how many questions have no chain, by the code of the error."""
    return Counter(count.error.code for count in counts if count.error is not None)
