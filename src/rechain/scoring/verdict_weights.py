"""Whether passages support what an answer says: a probability for every claim, and the verdict that follows.

A claim is described by a few numbers, which a logistic function weighs. A short answer that stands word for word in an
entry of an encyclopaedia is judged by what the judge, if the model has one, says of it; any other claim by its values
and names: whether they stand anywhere, and whether they stand where the question asks for them, or rivals do.

"EUR 210 in Zurich" is wrong where 210 is the limit of London and the row of Zurich has another amount: the rival's
context fits question and answer better than that of the claimed value. Rivals are looked for in the passage that holds
the claimed value: what other passages say is mostly about something else.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from math import exp, fsum, log
from typing import NamedTuple

import numpy as np
import orjson

from rechain.schema import UNORDERED, Verdict
from rechain.scoring.contexts import Contexts, find_names, terms
from rechain.system.tensors import Array
from rechain.text.answers.claims import Claim
from rechain.text.answers.matcher import HeldClaim
from rechain.text.candidates import Candidate, Candidates
from rechain.text.languages import stem
from rechain.text.linking.content import are_parts, is_entry
from rechain.text.passage_views import PassageView
from rechain.text.values import Item, ValueIndex
from rechain.text.values.normal import read_items
from rechain.text.words import Text

_NEIGHBOURS = 0.3
"""what words are worth that stand beside a rare word of the question, which may lead on to the value's row or clause:
"Zone Mitte" beside the street that the question names"""
_MOST_WITH, _MOST_NEIGHBOURS = 4, 8
"""sentences with a rare word of the question, and with a word beside it: more lead nowhere"""
_MOST_WORDS = 200
"""of question and answer that are looked for, those that tell most"""
_MOST_VALUES, _MOST_CLAIMED = 200, 20
"""values of a question or answer, and values or names of a claim, that are compared: one with more is a document"""
_ONE = frozenset("one first a an ein eine einen einer einem erste ersten erster zuerst 一".split())  # noqa: SIM905
"""ways to write 1 that are seldom meant as a value"""
_YEAR = re.compile(r"=(?:1[89]|20)\d\d")
_DATE = re.compile(r"=(?:\d{4})?-\d")


class Margins(NamedTuple):
    """How much better than a claimed name its best rival fits; below 0 the claimed one fits best."""

    context: float
    """fits question and answer"""
    question: float
    """fits the question alone"""


class Rivals:
    """Compares what the claims of an answer give with what else the passages have of its kind."""

    def __init__(self, candidates: Candidates) -> None:
        question = candidates.question
        self._contexts = Contexts(candidates.views)
        self._asked = terms(question.question)
        self._answered = terms(question.answer)
        self._question_words = frozenset(map(stem, Text(question.question).words))
        self._asked_values = ValueIndex((value, 0) for value in _values(question.question))
        answered = ValueIndex((value, 0) for value in _values(question.answer))
        self._values = ValueIndex(self._contexts.values)
        # what question and answer give is no rival of what the answer gives
        self._rivals = [
            (_kinds(value), unit)
            for value, unit in self._contexts.values
            if not (answered.says(value) or answered.is_said_by(value) or self._asked_values.is_said_by(value))
        ]
        self._names = [(terms(name), len(name.split()), unit) for name, unit in self._contexts.names]
        self._neighbours = self._find_neighbours()
        self._question_fits = self._contexts.fits(self._contexts.weigh(sorted(self._asked)) | self._neighbours)

    def _find_neighbours(self) -> dict[str, float]:
        """Return words beside the rare words of the question, the more telling the more of the question is beside."""
        asked = self._contexts.weigh(sorted(self._asked))  # sums are the same in every process
        total, known = sum(asked.values()), self._asked | self._answered
        shares: dict[str, float] = {}
        for term, weight in asked.items():
            if (count := self._contexts.count(term)) > _MOST_WITH:
                continue
            units = self._contexts.units_with(term)
            for word, _ in {(word, unit.sentence) for unit in units for word in unit.terms - known}:
                if not word.isdigit():
                    shares[word] = shares.get(word, 0.0) + weight / total / count
        few = (word for word in sorted(shares) if self._contexts.count(word) <= _MOST_NEIGHBOURS)
        return {
            word: _NEIGHBOURS * min(shares[word], 1.0) * weight for word, weight in self._contexts.weigh(few).items()
        }

    @cached_property
    def _known(self) -> dict[str, float]:
        """What question and answer say that tells sentences apart, and how much each word does."""
        known = self._contexts.weigh(sorted(self._asked | self._answered))
        return dict(sorted(known.items(), key=lambda one: -one[1])[:_MOST_WORDS]) | self._neighbours

    @cached_property
    def _known_fits(self) -> Array:
        return self._contexts.fits(self._known)

    def _fits(self, without: frozenset[str]) -> Array:
        """Return how well units fit question and answer, but for the claimed thing itself."""
        taken = {word: self._known[word] for word in sorted(without & self._known.keys())}
        all_words, taken_words = fsum(self._known.values()), fsum(taken.values())
        if taken_words == all_words:
            return np.zeros_like(self._known_fits)
        fits: Array = all_words * self._known_fits - taken_words * self._contexts.fits(taken)
        return fits / (all_words - taken_words)

    # --- Values -------------------------------------------------------------------------------------------------------

    def claimed_values(self, claim: Claim) -> list[Item]:
        """Return the values of a claim that the question does not give."""
        return [
            value
            for value in _values(claim.text)[:_MOST_CLAIMED]
            if claim.text[value.start : value.end].casefold() not in _ONE and not self._asked_values.says(value)
        ]

    def stands_nowhere(self, value: Item) -> bool:
        """Return whether no passage has a value."""
        return not self._places(value)

    def compare_values(self, claim: Claim) -> float:
        """Return how much better than a value of a claim its best rival fits: of that value which fits worst."""
        found = []
        for value in self.claimed_values(claim):
            places = self._places(value)
            if not places:
                continue
            fits = self._fits(terms(claim.text[value.start : value.end]))
            own, _ = max(places, key=lambda place: fits[place[1]])
            kinds = _kinds(value) & _kinds(own) or _kinds(own)  # "28 days" stands as 28 below "Days of leave"
            rivals = [unit for others, unit in self._rivals if not kinds.isdisjoint(others)]
            found.append(self._margin([unit for _, unit in places], rivals, fits))
        return _worst(found)

    def _places(self, value: Item) -> list[tuple[Item, int]]:
        """Return where a value stands; of opening hours also where they begin and where they end."""
        whole = self._values.find(value)
        if whole or ".." not in value.key or not value.implied:
            return whole
        ends = [self._values.find(Item(key, 0, 0)) for key in value.implied]
        return [place for places in ends for place in places] if all(ends) else []

    # --- Names --------------------------------------------------------------------------------------------------------

    def compare_names(self, claim: Claim) -> Margins:
        """Return how much better than a name of a claim its best rival fits: of that name which fits worst."""
        by_context, by_question = [], []
        for name in find_names(claim.text)[:_MOST_CLAIMED]:
            words = terms(name)
            told, shared = words - self._question_words, words & self._question_words
            own = told and self._places_of_name(told)
            if not own:
                continue
            size = len(name.split())
            rivals = [
                unit
                for other, other_size, unit in self._names
                if (shared or other_size == size) and self._is_rival(other, shared)
            ]
            by_context.append(self._margin(own, rivals, self._fits(told)))
            by_question.append(self._margin(own, rivals, self._question_fits))
        return Margins(_worst(by_context), _worst(by_question))

    def _places_of_name(self, told: frozenset[str]) -> list[int]:
        named = [unit for other, _, unit in self._names if told <= other]
        return named or [number for number, unit in enumerate(self._contexts.units) if told <= unit.terms]

    def _is_rival(self, other: frozenset[str], shared: frozenset[str]) -> bool:
        """Return whether a name has what the claimed one shares with the question, and nothing else that is known."""
        rest = other - shared
        return bool(rest) and shared <= other and rest.isdisjoint(self._answered | self._question_words)

    # --- Rows ---------------------------------------------------------------------------------------------------------

    def compare_rows(self, claim: Claim) -> float:
        """Return how much better another row of the table fits the question than that with the claim's words."""
        told = {stem(word) for word in Text(" ".join(claim.words)).terms if not word.isdigit()} - self._asked
        weights = self._contexts.weigh(sorted(told))
        if not weights:
            return 0.0
        fits, units = self._contexts.fits(weights), self._contexts.units
        best = max(range(len(units)), key=lambda number: (round(float(fits[number]), 9), self._question_fits[number]))
        rows = [number for number, unit in enumerate(units) if unit.table == units[best].table]
        return 0.0 if units[best].table is None else self._lead(rows, [best], self._question_fits)

    def _margin(self, own: Collection[int], rivals: Sequence[int], fits: Array) -> float | None:
        """Return the lead of rivals in the passages in which the claimed thing fits best; None without rivals."""
        top = max(fits[unit] for unit in own)
        passages = {self._contexts.units[unit].passage for unit in own if fits[unit] >= top - 1e-9}
        near = [unit for unit in rivals if self._contexts.units[unit].passage in passages]
        return self._lead(near, own, fits) if near else None

    def _lead(self, some: Iterable[int], others: Iterable[int], fits: Array) -> float:
        return float(max(fits[unit] for unit in some) - max(fits[unit] for unit in others))


def _worst(margins: Iterable[float | None]) -> float:
    """Return the margin of what fits worst; 0 where nothing has rivals."""
    return max((margin for margin in margins if margin is not None), default=0.0)


def has_quantities(text: str) -> bool:
    """Return whether a text has an amount, a measure or a time of day."""
    return any(item.units for item in read_items(text))


def _values(text: str) -> list[Item]:
    return [item for item in read_items(text) if item.is_value][:_MOST_VALUES]


def _kinds(value: Item) -> frozenset[str]:
    """Return of what kinds a value may be, one for each of its readings."""
    return frozenset(map(_kind, (value.key, *value.others)))


def _kind(key: str) -> str:
    """Return a value's unit, or that it is a time, a date, an ordinal, a year or a bare number."""
    if " " in key:
        return key.rpartition(" ")[2]
    if key.startswith("=T"):
        return "time"
    if _DATE.match(key):
        return "date"
    if key.endswith("."):
        return "ordinal"
    return "year" if _YEAR.fullmatch(key) else "number"


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

    @property
    def is_supported(self) -> bool:
        """Whether it is as likely supported as not."""
        return self.probability >= _EVEN


@cache
def weights() -> Mapping[str, float]:
    """Return what each number of a claim weighs (benchmarks/verdicts.py fits them)."""
    numbers: dict[str, float] = orjson.loads(files("rechain").joinpath("data/verdicts.json").read_bytes())
    return numbers


def judge_claims(
    candidates: Candidates, chain: Candidate, confidence: float, support: Sequence[float] | None
) -> list[ClaimVerdict]:
    """Return for every claim of an answer how likely a chain and its passages support it."""
    described = describe_claims(candidates, chain, confidence, support)
    verdicts = []
    for held, numbers in zip(candidates.holdings.claims, described, strict=True):
        logit = fsum(weights().get(name, 0.0) * value for name, value in numbers.items())
        probability = 1 / (1 + exp(-max(min(logit, 30.0), -30.0)))
        verdicts.append(ClaimVerdict(held, probability, best_passage(held, chain)))
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
        "claim: side by side": float(chain.shape in UNORDERED),  # what is compared has more values than are asked for
        "claim: value stands nowhere": float(any(map(rivals.stands_nowhere, rivals.claimed_values(claim)))),
        "claim: rival value": _ramp(rivals.compare_values(claim)),
        "claim: rival name": _ramp(names.context),
        "claim: rival name by the question": _ramp(names.question),
        "claim: rival row": min(rivals.compare_rows(claim) / _LEAD, 1.0),
    }


def _ramp(margin: float) -> float:
    """Return what it counts that a rival fits so much better."""
    return min(max(margin / _LEAD, _BEHIND), 1.0)
