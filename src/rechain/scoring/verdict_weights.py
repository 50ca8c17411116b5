"""Whether passages support what an answer says: a probability for every claim, and the verdict that follows.

A claim is described by a few numbers, which a logistic function weighs. A short answer that stands word for word in an
entry of an encyclopaedia is judged by what the judge, if the model has one, says of it; any other claim by its values
and names: whether they stand anywhere, and whether they stand where the question asks for them, or rivals do.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp, fsum, log
from typing import NamedTuple

import orjson

from rechain.schema import Verdict
from rechain.scoring.rivals import Rivals, has_quantities
from rechain.text.answers.claims import Claim
from rechain.text.answers.matcher import HeldClaim, Holding
from rechain.text.candidates import Candidate, Candidates
from rechain.text.linking.content import are_parts, is_entry
from rechain.text.passage_views import PassageView

_EVEN = 0.5
_CERTAIN = 1e-4
"""confidence is never taken for more certain than this"""
_ODDS = 6.0
"""to 1, for an answer to be supported beforehand, beside the weights: these were fitted as if half of all answers were
wrong and wrong ones counted half as much again, so that most of them are flagged; of logged answers one in five is"""
_LEAD = 0.2
"""by which a rival fits better that counts as 1; one that fits far better is no surer to be right"""
_BEHIND = -0.25
"""what a rival counts at least, however badly it fits: a question with few words tells little"""


class ClaimVerdict(NamedTuple):
    """A claim, the probability that it is supported, and the passage that holds it best."""

    held: HeldClaim
    probability: float
    passage: int | None
    holding: Holding | None

    @property
    def is_supported(self) -> bool:
        """Whether it is as likely supported as not."""
        return self.probability >= _EVEN


@cache
def weights() -> Mapping[str, float]:
    """Return what each number weighs, as `benchmarks/verdicts.py` fitted them."""
    table: dict[str, float] = orjson.loads(files("rechain").joinpath("data/verdicts.json").read_bytes())
    return table


def judge_claims(
    candidates: Candidates, chain: Candidate, confidence: float, support: Sequence[float] | None
) -> list[ClaimVerdict]:
    """Return for every claim of an answer how likely a chain and its passages support it."""
    described = describe_claims(candidates, chain, confidence, support)
    verdicts = []
    for held, numbers in zip(candidates.holdings.claims, described, strict=True):
        logit = fsum(weights().get(name, 0.0) * value for name, value in numbers.items())
        passage = best_passage(held, chain)
        holding = None if passage is None else held.holdings[passage]
        verdicts.append(ClaimVerdict(held, 1 / (1 + exp(-max(min(logit, 30.0), -30.0))), passage, holding))
    return verdicts


def best_passage(held: HeldClaim, chain: Candidate) -> int | None:
    """Return the passage that holds a claim best: one of the chain's, if any of these does."""
    inside = [passage for passage in chain.passages if passage in held.holdings]
    return max(inside or held.holdings, key=lambda passage: held.holdings[passage].strength, default=None)


def conclude(claims: Sequence[ClaimVerdict]) -> tuple[Verdict, float]:
    """Return the verdict on an answer and the probability that it is right.

    Claims of one answer stand or fall together, so that the weakest decides whether all are supported.
    """
    least = min(claim.probability for claim in claims)
    most = max(claim.probability for claim in claims)
    if least >= _EVEN:
        return "supported", _as_in_logs(least)
    if most < _EVEN:
        return "unsupported", 1 - _as_in_logs(most)
    return "partly", min(_as_in_logs(most), 1 - _as_in_logs(least))


def _as_in_logs(probability: float) -> float:
    """Return how likely a claim is supported where most answers are."""
    return _ODDS * probability / (_ODDS * probability + 1 - probability)


def describe_claims(
    candidates: Candidates, chain: Candidate, confidence: float, support: Sequence[float] | None
) -> list[dict[str, float]]:
    """Return the numbers that tell for or against each claim, by their names."""
    rivals: Rivals | None = None
    of_documents = are_parts(candidates.views)
    described = []
    for number, held in enumerate(candidates.holdings.claims):
        passage = best_passage(held, chain)
        holding = None if passage is None else held.holdings[passage]
        is_phrase = holding is not None and holding.match == "phrase" and not of_documents
        if is_phrase and passage is not None and not _is_of_list(held.claim, candidates.views[passage]):
            described.append(_describe_phrase(confidence, support[number] if support else None))
        else:
            rivals = rivals or Rivals(candidates)
            described.append(_describe(rivals, held.claim, chain))
    return described


def _is_of_list(claim: Claim, view: PassageView) -> bool:
    """Return whether a claim is an amount in a passage that is about no single thing, as prices and limits stand in.

    Years, dates and numbers of an encyclopaedia are better judged by the judge also there.
    """
    return not is_entry(view) and has_quantities(claim.text)


def _describe_phrase(confidence: float, judged: float | None) -> dict[str, float]:
    """Return the numbers of an answer that stands word for word in an entry of an encyclopaedia."""
    odds = min(max(confidence, _CERTAIN), 1 - _CERTAIN)
    numbers = {"phrase": 1.0, "phrase: confidence": log(odds / (1 - odds)) / 5}
    return numbers if judged is None else numbers | {"phrase: judge": judged / 5}


def _describe(rivals: Rivals, claim: Claim, chain: Candidate) -> dict[str, float]:
    """Return the numbers of any other claim."""
    names = rivals.compare_names(claim)
    return {
        "claim": 1.0,
        "claim: side by side": float(chain.shape == "parallel"),  # what is compared has more values than are asked for
        "claim: value stands nowhere": float(any(map(rivals.stands_nowhere, rivals.claimed_values(claim)))),
        "claim: rival value": _ramp(rivals.compare_values(claim)),
        "claim: rival name": _ramp(names.context),
        "claim: rival name by the question": _ramp(names.question),
        "claim: rival row": min(rivals.compare_rows(claim) / _LEAD, 1.0),
    }


def _ramp(margin: float) -> float:
    """Return what it counts that a rival fits so much better."""
    return min(max(margin / _LEAD, _BEHIND), 1.0)
