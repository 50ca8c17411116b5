"""What a dashboard counts: the questions that pass a filter, by each of their properties, summed by the database."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rechain.web.selection import REASON, TABLES

MOST_TYPES = 12
"""types that are counted one by one, the most frequent first: data may have a type of its own for every question"""
FACETS = ("judgement", "verdict", "tenth", "hops", "length", "shape", "kind", "reason")
"""properties that have few values, in the order of the columns of `ALIKE`"""
_SUMS = "count(*), total(f.judgement = 'right'), count(f.judgement), total(iif(f.judgement IS NULL, 0, f.confidence))"
# One pass over some positions: questions that are alike in all properties are few kinds, summed up by each in Python.
_CHOSEN = "(q.position IN (SELECT value FROM json_each(?)))"
ALIKE = (
    f"SELECT f.judgement, f.verdict, f.tenth, q.hops, f.length, f.shape, f.kinds, {REASON}, {_SUMS} "
    f"FROM {TABLES} WHERE {_CHOSEN} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8"
)
TYPES = (
    f"SELECT q.type, {_SUMS} FROM {TABLES} WHERE q.type IS NOT NULL AND {_CHOSEN} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?"
)


class Count(NamedTuple):
    """Some questions that are alike, and how many of them are right."""

    questions: int = 0
    right: int = 0
    judged: int = 0
    """those whose best chain, or lack of one, is known to be right or wrong"""
    confidence: float = 0.0
    """the sum over the judged ones"""

    def plus(self, other: "Count") -> "Count":
        """Return both together."""
        return Count(
            self.questions + other.questions,
            self.right + other.right,
            self.judged + other.judged,
            self.confidence + other.confidence,
        )


Figures = Mapping[str, Mapping[Any, Count]]
"""for every property the questions with each of its values; None is the value of those that have none"""


def sum_up(alike: Iterable[tuple[Any, ...]], types: Iterable[tuple[Any, ...]]) -> Figures:
    """Return the figures, given the rows of both queries."""
    figures: dict[str, dict[Any, Count]] = {name: {} for name in FACETS}
    for *values, questions, right, judged, confidence in alike:
        count = Count(questions, int(right), judged, confidence)
        for facet, value in zip(FACETS, values, strict=True):
            for one in _kinds(value) if facet == "kind" else (value,):
                figures[facet][one] = figures[facet].get(one, Count()).plus(count)
    by_type = {kind: Count(questions, int(right), *rest) for kind, questions, right, *rest in types}
    return {**figures, "type": by_type}


def _kinds(kinds: str | None) -> list[str]:
    """Return the kinds of a chain's links; a question counts with each of them."""
    return kinds.strip("|").split("||") if kinds else []
