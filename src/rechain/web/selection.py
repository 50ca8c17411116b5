"""Which questions pass a filter and in which order, as conditions of SQL on the tables of `index`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rechain.text.words import Text
from rechain.web.queries import Filters, Order

CANNOT = ("unreadable", "no_answer", "too_few_passages")
"""reasons for which a question cannot have a chain, whatever looks for it"""
NOT_SOUGHT = "not_sought"
"""the reason where a source has not looked at a question yet"""

TABLES = "questions q LEFT JOIN found f ON f.source = ? AND f.position = q.position"
REASON = (
    f"CASE WHEN f.position IS NULL THEN coalesce(q.obstacle, '{NOT_SOUGHT}') "
    "WHEN f.error IS NOT NULL THEN coalesce(q.obstacle, f.code) END"
)
"""why a question has no chain; NULL where it has one"""

_KEYS: dict[Order, str] = {
    "file": "q.position",
    "id": "q.id",
    "question": "q.question COLLATE NOCASE",
    "answer": "q.answer COLLATE NOCASE",
    "chain": "f.summary COLLATE NOCASE",
    "verdict": "f.verdict",
    "least confident": "f.confidence",
    "most confident": "-f.confidence",
    "judgement": "f.judgement",
    "type": "q.type COLLATE NOCASE",
    "hops": "coalesce(q.hops, f.length)",
}


class Condition(NamedTuple):
    """A condition on a question `q` and what a source found for it `f`, and its values."""

    where: str
    values: Sequence[Any]


def condition(filters: Filters) -> Condition:
    """Return the condition that a filter is."""
    demands = list(_demands(filters))
    where = " AND ".join(f"({demand.where})" for demand in demands)
    return Condition(where or "1", [value for demand in demands for value in demand.values])


def ordering(filters: Filters) -> str:
    """Return what questions are ordered by: what has no value comes last, what is equal as in the file."""
    key = _KEYS[filters.order]
    direction = " DESC" if filters.reverse else ""
    return f"q.position{direction}" if filters.order == "file" else f"{key} IS NULL, {key}{direction}, q.position"


def match(text: str) -> str:
    """Return the full-text query of a text's words; the beginnings of words are enough."""
    return " ".join(f'"{word}"*' for word in _telling(Text(text).words))


def _telling(words: Iterable[str]) -> list[str]:
    """Leave out words that others begin with, or repeat: what begins with "parental" begins with "par" too."""
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    telling: list[str] = []
    for word in longest_first:
        if not any(longer.startswith(word) for longer in telling):
            telling.append(word)
    return telling


_EQUAL = {
    "judgement": "f.judgement",
    "verdict": "f.verdict",
    "shape": "f.shape",
    "tenth": "f.tenth",
    "length": "f.length",
    "hops": "q.hops",
    "type": "q.type",
    "reason": REASON,
}
"""filters that demand a value, each with what has it"""


def _demands(filters: Filters) -> Iterator[Condition]:
    if query := match(filters.text):
        yield _holds(query, filters.scope == "passages")
    if filters.min_confidence is not None:
        yield Condition("f.confidence >= ?", [filters.min_confidence])
    if filters.max_confidence is not None:
        yield Condition("f.confidence <= ?", [filters.max_confidence])
    for name, column in _EQUAL.items():
        if (value := getattr(filters, name)) is not None:
            yield Condition(f"{column} = ?", [value])
    if filters.kind is not None:
        yield Condition("instr(f.kinds, ?)", [f"|{filters.kind}|"])
    if filters.has_chain is not None:
        yield Condition(
            "f.error IS NULL AND f.position IS NOT NULL" if filters.has_chain else "f.error IS NOT NULL", []
        )


def _holds(query: str, in_passages: bool) -> Condition:
    """Demand words of the question itself, or else of one of its passages."""
    own = "q.position IN (SELECT rowid FROM search WHERE search MATCH ?)"
    if not in_passages:
        return Condition(own, [query])
    passages = "SELECT rowid FROM passage_search WHERE passage_search MATCH ?"
    return Condition(f"{own} OR q.position IN (SELECT position FROM holds WHERE passage IN ({passages}))", [query] * 2)
