"""Whether passages support what an answer says: a probability for every claim, and the verdict that follows.

A claim is described by a few numbers: how much of it the evidence holds, whether a value is missing, how the sentence
that holds it fits the question beside others, and what the judge, if the model has one, says of it. A logistic function
weighs them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from itertools import islice
from math import exp, fsum, log
from typing import NamedTuple

import orjson

from rechain.answers.matching import HeldClaim, Holding
from rechain.answers.telling import stem
from rechain.candidates import Candidate, Candidates
from rechain.schema import Verdict
from rechain.text.rarity import rarities
from rechain.text.words import Span, Text
from rechain.values.normal import Item, NormalText, same

_EVEN = 0.5
_MOST_SENTENCES = 2000
"""of a passage that are compared; a longer one is a whole book, of which other sentences would take seconds"""
_MOST_VALUES = 200
"""of a question, claim or sentence that are compared"""
_CERTAIN = 1e-4
"""confidence is never taken for more certain than this"""


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
        return "supported", least
    if most < _EVEN:
        return "unsupported", 1 - most
    return "partly", min(most, 1 - least)


def describe_claims(
    candidates: Candidates, chain: Candidate, confidence: float, support: Sequence[float] | None
) -> list[dict[str, float]]:
    """Return the numbers that tell for or against each claim, by their names."""
    fits = _Fits(candidates)
    odds = min(max(confidence, _CERTAIN), 1 - _CERTAIN)
    described = []
    for number, held in enumerate(candidates.holdings.claims):
        passage = best_passage(held, chain)
        holding = None if passage is None else held.holdings[passage]
        numbers = _describe(holding, log(odds / (1 - odds)))
        tier = _tier(holding)
        sentence = None if passage is None else held.sentence(passage, candidates.views[passage])
        gap = fits.gap(passage, sentence)
        numbers[f"{tier}: gap"] = gap
        numbers[f"{tier}: gap of a single"] = gap if chain.shape == "single" else 0.0
        if chain.shape != "parallel":  # what is compared has several values
            numbers[f"{tier}: rival value"] = float(fits.has_rival_value(held.claim.text))
        if support and tier == "phrase":
            numbers["phrase: judge"] = support[number] / 5
        described.append(numbers)
    return described


class _Fits:
    """How well each sentence fits the question: by the words that few of the sentences hold."""

    def __init__(self, candidates: Candidates) -> None:
        self._question = candidates.question.question
        wanted = frozenset(map(stem, rarities(Text(self._question))))
        self._views = candidates.views
        places = ((n, span) for n, view in enumerate(candidates.views) for span in view.sentences[:_MOST_SENTENCES])
        self._places = list(places)
        texts = (text for view in candidates.views for text in view.sentence_texts[:_MOST_SENTENCES])
        held = [wanted & frozenset(map(stem, text.terms)) for text in texts]
        counts = Counter(word for words in held for word in words)
        rare = {word: log((len(held) + 1) / count) for word, count in counts.items()}
        self._total = fsum(rare.values()) or 1.0
        self._fits = [fsum(map(rare.__getitem__, words)) / self._total for words in held]

    def _text(self, place: tuple[int, Span]) -> str:
        number, (start, end) = place
        return self._views[number].passage.text[start:end]

    def gap(self, passage: int | None, sentence: Span | None) -> float:
        """Return how much better the sentence fits that fits best than that which holds the answer."""
        best = max(self._fits, default=0.0)
        if passage is None or sentence is None:
            return best
        start, end = sentence
        fits = zip(self._places, self._fits, strict=True)
        return best - max((f for (number, (at, _)), f in fits if number == passage and start <= at < end), default=0.0)

    @cached_property
    def _asked(self) -> list[Item]:
        """The values of the question."""
        return _values(self._question)

    @cached_property
    def _values_of_best(self) -> list[Item]:
        """The values of the sentence that fits best."""
        if not self._fits:
            return []
        return _values(self._text(self._places[max(range(len(self._fits)), key=self._fits.__getitem__)]))

    def has_rival_value(self, claim: str) -> bool:
        """Return whether the sentence that fits best has another value where the claim has one of that kind."""
        values = [v for v in _values(claim) if not any(same(v, other) for other in self._asked)]
        there = self._values_of_best if values else []
        return any(
            not any(same(value, other) for other in there) and any(_kind(value) == _kind(other) for other in there)
            for value in values
        )


def _values(text: str) -> list[Item]:
    """Return the values of a text, each once and not those of a whole table, as every two are compared."""
    values = (item._replace(start=0, end=0) for item in NormalText(text).items if item.is_value)
    return list(islice(dict.fromkeys(values), _MOST_VALUES))


def _kind(value: Item) -> str:
    """Return what kind of value it is: its unit, or that it is a bare number."""
    return value.key.rpartition(" ")[2] if " " in value.key else ""


def _tier(holding: Holding | None) -> str:
    """Return what a claim's numbers are named by: short answers that stand word for word are a kind of their own."""
    return "phrase" if holding is not None and holding.match == "phrase" else "other"


def _describe(holding: Holding | None, odds: float) -> dict[str, float]:
    """Return the numbers of how a claim is held."""
    tier = _tier(holding)
    numbers = {tier: 1.0, f"{tier}: confidence": odds / 5}
    if tier == "other":
        missing = holding.missing if holding else ()
        numbers["missing value"] = float(any(key.startswith("=") for key in missing))
    return numbers
