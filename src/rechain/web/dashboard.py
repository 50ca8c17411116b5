"""The figures of the questions that pass a filter, as tables of bars, each of which adds a filter or takes it off."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rechain.evaluation.statistics import Figure, share_with_interval
from rechain.schema import SHAPES, VERDICTS
from rechain.text.linking import KINDS
from rechain.web.filters import CANNOT, NOT_SOUGHT, REASON, TABLES, Order, PageFilters

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

    @classmethod
    def sum(cls, counts: Iterable["Count"]) -> "Count":
        """Return some counts together."""
        return cls(*map(sum, zip(cls(), *counts, strict=True)))


Figures = Mapping[str, Mapping[Any, Count]]
"""for every property the questions with each of its values; None is the value of those that have none"""


def sum_up(alike: Iterable[tuple[Any, ...]], types: Iterable[tuple[Any, ...]]) -> Figures:
    """Return the figures, given the rows of both queries."""
    figures: dict[str, dict[Any, Count]] = {name: {} for name in FACETS}
    for *values, questions, right, judged, confidence in alike:
        count = Count(questions, int(right), judged, confidence)
        for facet, value in zip(FACETS, values, strict=True):
            # a chain may have links of several kinds, as in "|name||mention|", and counts with each of them
            for one in [value] if facet != "kind" else value.strip("|").split("||") if value else ():
                figures[facet][one] = Count.sum((figures[facet].get(one, Count()), count))
    by_type = {kind: Count(questions, int(right), *rest) for kind, questions, right, *rest in types}
    return {**figures, "type": by_type}


REASONS = {
    "unreadable": "invalid record",
    "no_answer": "no answer is given",
    "too_few_passages": "fewer passages than a chain has",
    "no_tail": "no passage contains the answer",
    "no_head": "no passage mentions the question's entity",
    "no_link": "no linked passages lead to the answer",
    "low_confidence": "confidence too low",
    "other_hops": "this model finds chains of another length",
    "other_entities": "this model needs entities in the data",
    "no_chain": "not in the file",
    "failed": "server error",
    NOT_SOUGHT: "pending",
}
"""why a question has no chain, in words for people"""


class Bar(NamedTuple):
    """Questions that are alike: a row of a table and a filter."""

    label: str
    sums: Count
    query: Mapping[str, Any]
    """of the address that lists them too, or, if they are listed already, without them"""
    is_on: bool
    """whether the filter is one for them already"""
    right: float
    """the part of the bar that is right, and so on, of 100"""
    wrong: float
    other: float
    accuracy: Figure | None

    @property
    def confidence(self) -> float | None:
        """The mean confidence of those that were judged."""
        return self.sums.confidence / self.sums.judged if self.sums.judged else None


class Facet(NamedTuple):
    """A property, with a bar for each of its values."""

    name: str
    title: str
    bars: list[Bar]
    note: str = ""
    is_judged: bool = True
    """whether it makes sense to say how many of each are right"""


@dataclass(frozen=True)
class Dashboard:
    """What is known of some questions."""

    total: int
    found: Count
    """questions with a chain"""
    able: Count
    """questions that have a chain or could have one, and that were looked at"""
    cannot: int
    not_sought: int
    accuracy: Figure | None
    """None without gold, and where the filter itself is for what is right or wrong"""
    coverage: Figure | None
    calibration_error: float | None
    """the mean distance of confidence from accuracy, by tenths"""


def dashboard(figures: Figures, filters: PageFilters) -> Dashboard:
    """Return the dashboard of a filter."""
    reasons = figures["reason"]
    able = Count.sum(count for reason, count in reasons.items() if reason not in (*CANNOT, NOT_SOUGHT))
    found = reasons.get(None, Count())
    return Dashboard(
        total=sum(count.questions for count in reasons.values()),
        found=found,
        able=able,
        cannot=sum(count.questions for reason, count in reasons.items() if reason in CANNOT),
        not_sought=reasons.get(NOT_SOUGHT, Count()).questions,
        accuracy=None if filters.judgement else share_with_interval(able.right, able.judged),
        coverage=share_with_interval(found.questions, able.questions),
        calibration_error=None if filters.judgement else _calibration_error(figures["tenth"]),
    )


def facets(figures: Figures, filters: PageFilters) -> list[Facet]:
    """Return a facet for every property that some questions have."""
    return [facet for facet in _facets(figures, filters) if facet.bars]


def _facets(figures: Figures, filters: PageFilters) -> Iterable[Facet]:

    def bars(name: str, labels: Mapping[Any, str] | None = None, order: Iterable[Any] | None = None) -> list[Bar]:
        counts = {value: count for value, count in figures[name].items() if value is not None}
        values = [one for one in (sorted(counts) if order is None else order) if one in counts]
        return _bars({one: counts[one] for one in values}, name, labels or {}, filters)

    frequent = list(figures["type"])[:MOST_TYPES]
    failures = sorted(reason for reason in figures["reason"] if reason is not None and reason not in CANNOT)
    yield Facet("judgement", "Right or wrong", bars("judgement", order=("right", "wrong")), is_judged=False)
    yield Facet("verdict", "Verdict", bars("verdict", VERDICTS, VERDICTS))
    yield Facet("tenth", "Confidence", bars("tenth", _TENTHS))
    note = f"{MOST_TYPES} most frequent" if len(figures["type"]) > MOST_TYPES else ""
    yield Facet("type", "Type", bars("type", order=frequent), note)
    yield Facet("hops", "Hops expected", bars("hops"), "passages in the gold chain")
    yield Facet("length", "Passages in the chain", bars("length"))
    yield Facet("kind", "Links", bars("kind", order=KINDS), "a chain may count more than once")
    yield Facet("shape", "Shape", bars("shape", SHAPES, SHAPES))
    yield Facet("reason", "Without a chain", bars("reason", REASONS, failures), is_judged=False)
    yield Facet(
        "cannot", "Not applicable", bars("reason", REASONS, CANNOT), "excluded from percentages", is_judged=False
    )


_TENTHS = {tenth: f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}" for tenth in range(10)}


def _bars(counts: Mapping[Any, Count], name: str, labels: Mapping[Any, str], filters: PageFilters) -> list[Bar]:
    """Return a bar for every value; the longest is of those with most questions."""
    unit = 100 / max((count.questions for count in counts.values()), default=1)
    chosen = getattr(filters, name)
    return [
        Bar(
            label=labels.get(value, str(value)),
            sums=count,
            query=filters.but(**{name: tuple(one for one in (*chosen, value) if one != value or value not in chosen)}),
            is_on=value in chosen,
            right=round(unit * count.right, 2),
            wrong=round(unit * (count.judged - count.right), 2),
            other=round(unit * (count.questions - count.judged), 2),
            accuracy=share_with_interval(count.right, count.judged),
        )
        for value, count in counts.items()
    ]


def _calibration_error(tenths: Mapping[int | None, Count]) -> float | None:
    judged = [count for tenth, count in tenths.items() if tenth is not None and count.judged]
    if not judged:
        return None
    return sum(abs(count.confidence - count.right) for count in judged) / sum(count.judged for count in judged)


class Column(NamedTuple):
    """A way to order the list."""

    label: str
    query: Mapping[str, Any]
    """of the address in this order, or, where the list is in it already, in the opposite one"""
    direction: str | None
    """"up" or "down" where the list is in this order"""


def columns(filters: PageFilters, has_gold: bool, has_confidence: bool) -> list[Column]:
    """Return the columns of the table of questions, each with the way to sort by it."""

    def column(label: str, up: Order, down: Order | None = None) -> Column:
        # confidence has a name for each direction
        is_here = filters.order in (up, down)
        is_down = is_here and (filters.order == down or filters.reverse)
        if down:
            query = filters.but(order=down if is_here and not is_down else up, reverse=False)
        else:
            query = filters.but(order=up, reverse=is_here and not is_down)
        return Column(label, query, ("down" if is_down else "up") if is_here else None)

    return [
        column("#", "file"),
        column("Question", "question"),
        column("Chain", "chain"),
        column("Verdict", "verdict"),
        *([column("Confidence", "least confident", "most confident")] if has_confidence else []),
        *([column("Right", "judgement")] if has_gold else []),
    ]


class Choice(NamedTuple):
    """A filter that is on, in words, and the query of the address without it."""

    label: str
    query: Mapping[str, Any]


def choices(filters: PageFilters) -> list[Choice]:
    """Return the filters that are on."""
    single: dict[str, str] = {
        "text": f"“{filters.text}”" + (" (passages too)" if filters.scope == "passages" else ""),
        "min_confidence": f"confidence from {filters.min_confidence}",
        "max_confidence": f"confidence to {filters.max_confidence}",
        "has_chain": "with a chain" if filters.has_chain else "without a chain",
    }
    several: dict[str, tuple[str, Mapping[Any, str]]] = {
        "tenth": ("confidence ", _TENTHS),
        "judgement": ("", {}),
        "verdict": ("", VERDICTS),
        "type": ("type ", {}),
        "hops": ("hops expected: ", {}),
        "length": ("passages: ", {}),
        "kind": ("link: ", {}),
        "shape": ("", SHAPES),
        "reason": ("no chain: ", REASONS),
    }
    defaults = PageFilters()
    on = [
        Choice(text, filters.but(**{name: getattr(defaults, name)}))
        for name, text in single.items()
        if getattr(filters, name) != getattr(defaults, name)
    ]
    for name, (text, words) in several.items():
        values = getattr(filters, name)
        on += [
            Choice(f"{text}{words.get(value, value)}", filters.but(**{name: tuple(v for v in values if v != value)}))
            for value in values
        ]
    return on
