"""How good candidates, recovered chains and verdicts are: judged by gold, summarised, compared between two sources."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from rechain.errors import QuestionError
from rechain.evaluation.statistics import Figure, mean_with_interval, means_with_intervals, paired_difference
from rechain.schema import UNORDERED, VERDICTS, Chain, Gold, GoldChain, Question, Recovered, Same, Shape, Verdict
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import Candidate, Candidates, CandidateSettings, find_candidates
from rechain.text.collection import Statistics
from rechain.text.words import phrase, strip_suffix

CONFIDENCES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_ARTICLES = ("the", "a", "an")


def is_unambiguous(question: Question, gold: Gold) -> bool:
    """Return whether exactly one gold passage contains the answer, the paper's condition for knowing head and tail."""
    answer = AnswerMatcher(question)
    on_gold = {passage for chain in gold.chains for passage in chain.passages}
    return sum(passage.id in on_gold and answer.is_held_by(passage) for passage in question.passages) == 1


def is_correct(passages: Sequence[str], links: Sequence[str], gold: Gold, shape: Shape = "chain") -> bool:
    """Return whether a chain is one of the gold chains, by what counts as the same chain in its data set."""
    return any(_is_same_chain(passages, links, shape, chain, gold.same) for chain in gold.chains)


def _is_same_chain(
    passages: Sequence[str], links: Sequence[str], shape: Shape, gold: GoldChain, same: Same | None
) -> bool:
    """Return whether a chain is a gold chain; a parallel, which has no order, is one by its passages alone."""
    if same == "passages" or gold.shape in UNORDERED:
        return sorted(passages) == sorted(gold.passages)
    if shape in UNORDERED:  # it names no links, so it is not a chain whose links count
        return sorted(passages) == sorted(gold.passages) and not gold.links
    return list(passages) == gold.passages and (gold.links is None or _are_same(links, gold.links))


def _are_same(links: Sequence[str], gold: Sequence[str]) -> bool:
    return len(links) == len(gold) and all(map(is_same_entity, links, gold))


def is_same_entity(one: str, two: str) -> bool:
    """Return whether two names are the same but for case, accents, punctuation, article and bracketed suffix."""
    return one == two or _bare(one) == _bare(two) != []


def _bare(name: str) -> list[str]:
    words = phrase(strip_suffix(name)).split()
    return words[1:] if len(words) > 1 and words[0] in _ARTICLES else words


@dataclass(frozen=True, slots=True)
class JudgedChain:
    """What is right about a question's best chain; None where gold cannot decide it."""

    has_chain: bool
    correct: bool
    ordered: bool | None = None
    head: bool | None = None
    tail: bool | None = None
    links: bool | None = None
    confidence: float | None = None
    with_links: bool | None = None


def judge(chain: Chain | None, gold: Gold) -> JudgedChain:
    """Compare a question's best chain with its gold; a parallel states no order, so none of it is in order."""
    ordered = [candidate for candidate in gold.chains if candidate.has_order]
    names_links = any(map(_names_links, ordered))
    if chain is None:
        wrong = False if ordered else None
        return JudgedChain(False, False, wrong, wrong, wrong, with_links=False if names_links else None)
    links = [link.entity for link in chain.links]
    stated = [] if chain.shape in UNORDERED else chain.passages
    in_order = [candidate for candidate in ordered if candidate.passages == stated]
    named = [candidate.links or [] for candidate in in_order if _names_links(candidate)]
    agree = any(_are_same(links, gold_links) for gold_links in named) if named else None
    return JudgedChain(
        has_chain=True,
        correct=is_correct(chain.passages, links, gold, chain.shape),
        ordered=bool(in_order) if ordered else None,
        head=any(c.passages[:1] == stated[:1] for c in ordered) if ordered else None,
        tail=any(c.passages[-1:] == stated[-1:] for c in ordered) if ordered else None,
        links=agree,
        with_links=bool(agree) if names_links else None,
        confidence=chain.confidence,
    )


def _names_links(gold: GoldChain) -> bool:
    """Return whether gold names the entities that link its passages; a single has none."""
    return gold.links is not None and len(gold.passages) > 1


FIGURES = {
    "chain accuracy": "correct",
    "ordered accuracy": "ordered",
    "head recall": "head",
    "tail recall": "tail",
    "ordered accuracy with links": "with_links",
    "links, where passages are right": "links",
    "coverage": "has_chain",
}
"""the figures of verdicts, each a share of those of which it is known, and what they are of a verdict"""


def summarise(verdicts: Sequence[JudgedChain]) -> dict[str, Figure]:
    """Return every figure that the verdicts allow, by name."""
    columns: dict[str, list[bool]] = {
        name: [value for v in verdicts if (value := getattr(v, field)) is not None] for name, field in FIGURES.items()
    }
    columns["accuracy, best half"] = [v.correct for v in most_confident(verdicts, 1 / 2)]
    columns["accuracy, best three quarters"] = [v.correct for v in most_confident(verdicts, 3 / 4)]
    return means_with_intervals(columns)


def most_confident(verdicts: Sequence[JudgedChain], share: float) -> list[JudgedChain]:
    """Return the verdicts on the most confident chains, a share of all; nothing for models without confidence.

    The share is one of all questions, so that chains which were dropped do not change it: they come last.
    """
    if not _have_confidence(verdicts):
        return []
    ranked = sorted(verdicts, key=lambda v: -1.0 if v.confidence is None else v.confidence, reverse=True)
    return ranked[: ceil(share * len(ranked))]


def _have_confidence(verdicts: Iterable[JudgedChain]) -> bool:
    return any(verdict.confidence is not None for verdict in verdicts)


class AtConfidence(NamedTuple):
    """What is left, and how much of it is right, when less confident chains are dropped."""

    min_confidence: float
    kept: float
    accuracy: Figure | None


def accuracy_at_confidence(verdicts: Sequence[JudgedChain]) -> list[AtConfidence]:
    """Return accuracy among the chains of at least each confidence; nothing for models without confidence."""
    if not _have_confidence(verdicts):
        return []
    rows = []
    for least in CONFIDENCES:
        kept = [v.correct for v in verdicts if v.confidence is not None and v.confidence >= least]
        rows.append(AtConfidence(least, len(kept) / len(verdicts), mean_with_interval(kept)))
    return rows


class Comparison(NamedTuple):
    """On how many questions both sources are right, only one, or neither."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> "Comparison":
        """Count pairs: whether the first is right, and whether the second is."""
        counted = list(pairs)
        kinds = ((True, True), (True, False), (False, True), (False, False))
        return cls(*(counted.count(kind) for kind in kinds))

    @property
    def gain(self) -> Figure | None:
        """By how much the second is more often right, with its 95 % interval; None without questions."""
        return paired_difference(self.only_second, self.only_first, sum(self))


def compare(first: Sequence[JudgedChain], second: Sequence[JudgedChain]) -> dict[str, Comparison]:
    """Return, by the name of the figure, how the verdicts of two sources on the same questions compare."""
    comparisons = {}
    for name, field in FIGURES.items():
        pairs = [(getattr(one, field), getattr(other, field)) for one, other in zip(first, second, strict=True)]
        # What gold cannot decide, it cannot decide for either; but links are those of different questions.
        if field != "links" and (decided := [pair for pair in pairs if None not in pair]):
            comparisons[name] = Comparison.of(decided)
    return comparisons


class JudgedAnswer(NamedTuple):
    """The verdict on an answer, None if there is none, its probability, and the right one."""

    verdict: Verdict | None
    probability: float | None
    gold: Verdict

    @classmethod
    def of(cls, recovered: Recovered | None, gold: Verdict) -> "JudgedAnswer":
        """Compare what was recovered, if anything was, with the right verdict."""
        if recovered is None:
            return cls(None, None, gold)
        return cls(recovered.verdict, recovered.verdict_probability, gold)

    @property
    def is_right(self) -> bool:
        """Whether the verdict is the right one."""
        return self.verdict == self.gold


def summarise_verdicts(answers: Sequence[JudgedAnswer]) -> dict[str, Figure]:
    """Return every figure that verdicts allow, by name; nothing for models that give none."""
    if all(answer.verdict is None for answer in answers):
        return {}
    columns: dict[str, list[bool]] = {"verdict accuracy": [answer.is_right for answer in answers]}
    for verdict, words in VERDICTS.items():
        columns[f"verdict accuracy, {words}"] = [answer.is_right for answer in answers if answer.gold == verdict]
    # A doubtful answer that is only "partly" supported is looked at too; the harm is one that passes for supported.
    columns["unsupported flagged"] = [a.verdict != "supported" for a in answers if a.gold == "unsupported"]
    return means_with_intervals(columns)


@dataclass(frozen=True, slots=True)
class CandidateCount:
    """The size of one question's C, and if there is gold how many of its chains are right."""

    chains: int
    tails: int
    correct: int | None
    error: QuestionError | None = None
    """why the question has no chain or cannot be read"""
    is_cut: bool = False


def count_candidates(
    question: Question,
    gold: Gold | None = None,
    settings: CandidateSettings | None = None,
    collection: Statistics | None = None,
) -> CandidateCount:
    """Build C of a question and count its chains, tails and correct chains."""
    try:
        candidates = find_candidates(question, settings, collection)
    except QuestionError as error:
        holds_answer = AnswerMatcher(question).is_held_by
        tails = 0 if error.code == "no_tail" else sum(map(holds_answer, question.passages))
        return CandidateCount(0, tails, None if gold is None else 0, error)
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
