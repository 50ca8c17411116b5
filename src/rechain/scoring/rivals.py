"""Whether the value or name that a claim gives stands where the question asks for it, or a rival of its kind does.

"EUR 210 in Zurich" is wrong where 210 is the limit of London and the row of Zurich has another amount: the rival's
context fits question and answer better than that of the claimed value. Rivals are looked for in the passage that holds
the claimed value: what other passages say is mostly about something else.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from rechain.answers.claims import Claim
from rechain.answers.telling import stem
from rechain.candidates import Candidates
from rechain.scoring.contexts import Contexts, find_names, terms
from rechain.system.tensors import Array
from rechain.text.words import Text
from rechain.values.normal import Item, NormalText, same

_NEIGHBOURS = 0.3
"""what words are worth that stand beside a rare word of the question, which may lead on to the value's row or clause:
"Zone Mitte" beside the street that the question names"""
_MOST_WITH, _MOST_NEIGHBOURS = 4, 8
"""sentences with a rare word of the question, and with a word beside it: more lead nowhere"""
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
        self._asked_values = _values(question.question)
        self._answered_values = _values(question.answer)
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
            units = [unit for unit in self._contexts.units if term in unit.terms]
            for word, _ in {(word, unit.sentence) for unit in units for word in unit.terms - known}:
                if not word.isdigit():
                    shares[word] = shares.get(word, 0.0) + weight / total / count
        few = (word for word in sorted(shares) if self._contexts.count(word) <= _MOST_NEIGHBOURS)
        return {
            word: _NEIGHBOURS * min(shares[word], 1.0) * weight for word, weight in self._contexts.weigh(few).items()
        }

    def _fits(self, without: frozenset[str]) -> Array:
        """Return how well units fit question and answer, but for the claimed thing itself."""
        known = sorted((self._asked | self._answered) - without)
        return self._contexts.fits(self._contexts.weigh(known) | self._neighbours)

    # --- Values -------------------------------------------------------------------------------------------------------

    def claimed_values(self, claim: Claim) -> list[Item]:
        """Return the values of a claim that the question does not give."""
        return [
            value
            for value in _values(claim.text)
            if claim.text[value.start : value.end].casefold() not in _ONE and not _any_same(value, self._asked_values)
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
            rivals = [
                unit
                for other, unit in self._contexts.values
                if not kinds.isdisjoint(_kinds(other))
                and not any(same(known, other) or same(other, known) for known in self._answered_values)
                and not any(same(known, other) for known in self._asked_values)
            ]
            found.append(self._margin([unit for _, unit in places], rivals, fits))
        return _worst(found)

    def _places(self, value: Item) -> list[tuple[Item, int]]:
        """Return where a value stands; of opening hours also where they begin and where they end."""
        whole = [place for place in self._contexts.values if same(value, place[0])]
        if whole or ".." not in value.key or not value.implied:
            return whole
        ends = [[p for p in self._contexts.values if same(Item(key, 0, 0), p[0])] for key in value.implied]
        return [place for places in ends for place in places] if all(ends) else []

    # --- Names --------------------------------------------------------------------------------------------------------

    def compare_names(self, claim: Claim) -> Margins:
        """Return how much better than a name of a claim its best rival fits: of that name which fits worst."""
        by_context, by_question = [], []
        for name in find_names(claim.text):
            words = terms(name)
            told, shared = words - self._question_words, words & self._question_words
            own = told and self._places_of_name(told)
            if not own:
                continue
            size = len(name.split())
            rivals = [
                unit
                for other, unit in self._contexts.names
                if (shared or len(other.split()) == size) and self._is_rival(terms(other), shared)
            ]
            by_context.append(self._margin(own, rivals, self._fits(told)))
            by_question.append(self._margin(own, rivals, self._question_fits))
        return Margins(_worst(by_context), _worst(by_question))

    def _places_of_name(self, told: frozenset[str]) -> list[int]:
        named = [unit for other, unit in self._contexts.names if told <= terms(other)]
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


def _values(text: str) -> list[Item]:
    return [item for item in NormalText(text).items if item.is_value]


def _any_same(value: Item, others: Iterable[Item]) -> bool:
    return any(same(value, other) for other in others)


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
