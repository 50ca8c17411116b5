"""From candidates to results: the scores of a model, and from these the chains, the verdict and the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from numbers import Integral, Real
from typing import Any

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.questions import Entry
from rechain.schema import Chain, Claim, HeldAnswer, Link, PassageSource, Problem, Question, Recovered, Verdict
from rechain.scoring.beliefs import low_confidence
from rechain.scoring.interface import BatchModel, Contributions, Model, Scores, StepwiseModel
from rechain.scoring.verdict_weights import conclude, judge_claims
from rechain.text.answers.claims import read_answer
from rechain.text.candidates import Candidate, Candidates

_VERDICT_OF_ERROR: Mapping[str, Verdict] = {"no_answer": "no_answer", "no_tail": "unsupported"}
"""the verdicts that errors imply; others imply none, for example that no chain has as many passages as requested"""
_WITHOUT_CHAIN = 0.95
"""probability of these verdicts: an answer may be supported by a passage in other words, which is not recognised"""


@dataclass(frozen=True, slots=True)
class Options:
    """Which of a question's chains are returned, and with what."""

    top: int = 1
    """number of chains, best first"""
    explain: bool = False
    """whether to add what contributed to each score"""
    min_confidence: float | None = None
    """chains of less confidence are dropped"""

    def __post_init__(self) -> None:
        """Check the values."""
        if not isinstance(self.top, Integral) or self.top < 1:
            raise RechainError(f"top should be a whole number, 1 or more, not {self.top!r}.")
        least = self.min_confidence
        if least is not None and not (isinstance(least, Real) and 0 <= least <= 1):
            raise RechainError(f"min_confidence should be a number between 0 and 1, not {least!r}.")


def score(model: Model | BatchModel, batch: Sequence[Candidates], explain: bool) -> list[Scores | QuestionError]:
    """Score the candidates of questions together or, if the model refuses one of them, each question by itself."""
    try:
        if isinstance(model, BatchModel):
            scores = list(model.score_many(batch)) if batch else []
        else:
            stepwise = model if explain and isinstance(model, StepwiseModel) else None
            scores = [Scores(model.score(one), (), stepwise.steps(one) if stepwise else None) for one in batch]
    except QuestionError as error:
        return [error] if len(batch) == 1 else [each for one in batch for each in score(model, [one], explain)]
    if len(scores) != len(batch) or not all(map(_is_complete, scores, batch)):
        raise RechainError("the model did not score every candidate chain of every question.")
    return [*scores]


def _is_complete(scores: Scores, candidates: Candidates) -> bool:
    """Return whether a model says something of every candidate."""
    parts = scores.contributions, scores.confidences if len(scores.confidences) else None, scores.steps, scores.shares
    return all(part is None or len(part) == len(candidates.chains) for part in parts)


def ranking(scores: Scores) -> list[int]:
    """Return the numbers of the candidates, the greatest score first, in the order of C if scores are equal."""
    totals = list(map(_total, scores.contributions))
    return sorted(range(len(totals)), key=lambda number: -totals[number])


def probabilities(scores: Scores, order: Sequence[int]) -> list[float]:
    """Return the probability of each candidate, in some order; if the model has none, the softmax of the scores."""
    shares = scores.confidences if scores.shares is None else scores.shares
    if len(shares):
        return [shares[number] for number in order]
    totals = [_total(scores.contributions[number]) for number in order]
    weights = [exp(total - max(totals)) for total in totals]
    return [weight / sum(weights) for weight in weights]


def to_recovered(entry: Entry, candidates: Candidates, scores: Scores, options: Options) -> Recovered:
    """Return the best chains and the verdict; an error instead of chains if the best is not confident enough."""
    best = ranking(scores)[: options.top]
    chains = [_chain(candidates, number, scores, entry.own or frozenset(), options.explain) for number in best]
    error = low_confidence(chains, options.min_confidence)
    least = options.min_confidence or 0.0
    verdict, probability, claims = _judge(candidates, candidates.chains[best[0]], chains[0].confidence, scores.support)
    return Recovered(
        id=candidates.question.id,
        collection=None if candidates.collection is None else candidates.collection.stamp,
        verdict=verdict,
        verdict_probability=probability,
        claims=claims,
        chains=[chain for chain in chains if error is None and (chain.confidence or 0.0) >= least],
        error=None if error is None else Problem.of(entry.located(error)),
    )


def without_chain(entry: Entry, error: QuestionError, has_verdicts: bool, stamp: str | None) -> Recovered:
    """Return why a question has no chain and, if that implies one, the verdict on its answer."""
    question, verdict, claims = entry.content, None, list[Claim]()
    if has_verdicts and isinstance(question, Question):
        verdict = _VERDICT_OF_ERROR.get(error.code)
        if error.code == "too_few_passages" and not question.passages:
            verdict = "unsupported"
        if verdict == "unsupported":
            answer = read_answer(question.question, question.answer)
            claims = [Claim(text=claim.text, verdict=verdict) for claim in answer.claims]
    return Recovered(
        id=entry.id,
        collection=stamp,
        verdict=verdict,
        verdict_probability=None if verdict is None else _WITHOUT_CHAIN,
        claims=claims,
        chains=[],
        error=Problem.of(entry.located(error)),
    )


def _judge(
    candidates: Candidates, chain: Candidate, confidence: float | None, support: Sequence[float] | None
) -> tuple[Verdict | None, float | None, list[Claim]]:
    """Return the verdict on an answer by the best chain, its probability and the claims; without confidence none."""
    if confidence is None or candidates.question.answer_entity is not None:
        return None, None, []
    judged = judge_claims(candidates, chain, confidence, support)
    claims = [
        Claim(
            text=one.held.claim.text,
            verdict="supported" if one.is_supported else "unsupported",
            passage=None if one.passage is None else candidates.views[one.passage].passage.id,
            span=None if one.passage is None else one.held.sentence(one.passage, candidates.views[one.passage]),
        )
        for one in judged
    ]
    return *conclude(judged), claims


def _chain(candidates: Candidates, number: int, scores: Scores, own: frozenset[str], explain: bool) -> Chain:
    candidate, contributions = candidates.chains[number], scores.contributions[number]
    used = [candidates.views[position].passage for position in candidate.passages]
    passages = [passage.id for passage in used]
    confidence = float(scores.confidences[number]) if len(scores.confidences) else None
    if confidence is not None and not 0 <= confidence <= 1:
        raise RechainError(f"the model gave a chain the confidence {confidence}, which is no probability.")
    return Chain(
        shape=candidate.shape,
        passages=passages,
        links=candidate.links,
        answer=_held_answer(candidates, candidate),
        own=[passage for passage in passages if passage in own],
        sources=[] if candidates.collection is None else list(filter(None, map(PassageSource.of, used))),
        score=_total(contributions),
        confidence=confidence,
        why=_why(scores, number, passages, candidate.links) if explain else None,
    )


def _held_answer(candidates: Candidates, chain: Candidate) -> HeldAnswer | None:
    """Return which passage of a chain holds the answer best, the last if several hold it equally well."""
    holdings = [(passage, candidates.holdings.best(passage)) for passage in reversed(chain.passages)]
    held = [(passage, holding) for passage, holding in holdings if holding is not None]
    if not held:
        return None
    passage, holding = max(held, key=lambda one: one[1].strength)
    view = candidates.views[passage]
    spans = filter(None, candidates.holdings.spans(passage, view))
    return HeldAnswer(match=holding.match, passage=view.passage.id, span=next(spans, None))


def _why(scores: Scores, number: int, passages: Sequence[str], links: Sequence[Link]) -> dict[str, Any]:
    """Return what adds up to the score and, under "steps", the probabilities of the players' steps, if any."""
    steps = [
        {
            "player": step.player,
            **({} if step.passage is None else {"passage": passages[step.passage]}),
            **({} if step.link is None else {"link": links[step.link].entity}),
            "probability": min(step.probability, 1.0),  # rounding may lift it a little above
        }
        for step in (() if scores.steps is None else scores.steps[number])
    ]
    return {**scores.contributions[number], **({"steps": steps} if steps else {})}


def _total(contributions: Contributions) -> float:
    total = sum(contributions.values())
    if not isfinite(total):
        raise RechainError(f"the model gave a chain the score {total}, by {dict(contributions)}.")
    return total
