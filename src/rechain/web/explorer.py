"""The pages of the explorer, drawn: a list of questions, a page for each, and two sources compared.

Each is a function of contents and a query, and can be called in any process that has the contents (see `drawing`).
"""

from math import ceil
from typing import Any

from pydantic import Field

from rechain.errors import QuestionError
from rechain.evaluation.comparison import Comparison
from rechain.evaluation.statistics import Figure
from rechain.web.contents import Contents, NotThereError, Source
from rechain.web.dashboard import choices, columns, dashboard
from rechain.web.hits import find_hits
from rechain.web.index import COMPARISONS, PAGE_SIZE
from rechain.web.queries import PageFilters, PageNumber, PageQuery, SourceNumber
from rechain.web.responses import draw
from rechain.web.views import OwnPassages, comparison_view, question_view


class ListQuery(PageFilters):
    """Which page of which questions."""

    page: PageNumber = 1


def draw_list(contents: Contents, query: ListQuery) -> str:
    """Draw the questions that pass the filters, with their figures."""
    source, index = contents.source(query.source), contents.index
    figures = dashboard(index.figures(source.number, query), query)
    pages = max(ceil(figures.total / PAGE_SIZE), 1)
    number = min(query.page, pages)  # an address may be older than what is listed
    listing = index.select(source.number, query, number)
    has_confidence = index.has_confidence(source.number)
    return draw(
        "explore.html",
        here="explore",
        site=contents,
        source=source,
        filters=query,
        query=query.address,
        listing=listing,
        hits=find_hits(index, query, listing.rows),
        figures=figures,
        choices=choices(query),
        columns=columns(query, figures, has_confidence),
        has_confidence=has_confidence,
        questions=len(index),
        page=number,
        pages=pages,
    )


class QuestionQuery(PageFilters):
    """Which question, and which of its candidates; the filters choose the questions before and after it."""

    id: str = ""
    number: PageNumber | None = Field(default=None, alias="chain")
    """which candidate, from 1; None: the best chain of the source"""
    passages: str = ""
    """all: show also those that are not on the chain"""


def draw_question(contents: Contents, query: QuestionQuery, waits: bool = False) -> str | None:
    """Draw a question and one of its chains; with `waits`, None where a model has yet to look for them."""
    source, stored = contents.source(query.source), contents.question(query.id)
    recovered = contents.index.recovered(source.number, stored.position)
    is_late = source.is_model and recovered is None
    before, after = contents.index.neighbours(source.number, query, stored.position)
    context: dict[str, Any] = {"here": "explore", "site": contents, "source": source, "query": query.address}
    context |= {"filters": query, "stored": stored, "before": before, "after": after}
    if isinstance(stored.content, QuestionError):
        return draw("unreadable.html", **context)
    if is_late and waits:
        return None
    question = contents.with_chains(stored.content, recovered)
    own = None if stored.own is None else OwnPassages(stored.own)
    collection = None if contents.corpus is None else contents.corpus.index
    number = query.number and query.number - 1
    view = question_view(question, recovered, number, stored.gold, contents.settings, own, collection)
    return draw("question.html", **context, view=view, is_late=is_late, shows_others=query.passages == "all")


class ComparisonQuery(PageQuery):
    """Which two sources, and which of their questions."""

    one: SourceNumber = 1
    two: SourceNumber = 2
    show: str = "different"
    page: PageNumber = 1
    id: str = ""

    def sources(self, contents: Contents) -> tuple[Source, Source]:
        """Return the two sources."""
        if len(contents.sources) < 2:
            raise NotThereError("to compare needs two sources: give `rechain serve` two of --chains and --model.")
        if self.show not in COMPARISONS:
            raise NotThereError(f"there is no comparison '{self.show[:40]}'; there are {', '.join(COMPARISONS)}.")
        return contents.source(self.one), contents.source(self.two)

    @property
    def address(self) -> dict[str, Any]:
        """The query of an address that shows the same comparison."""
        return {"one": self.one, "two": self.two, "show": self.show}


def draw_comparison(contents: Contents, query: ComparisonQuery) -> str:
    """Draw where the chains of two sources differ."""
    (one, two), index = query.sources(contents), contents.index
    total = index.count_compared(one.number, two.number, query.show)
    pages = max(ceil(total / PAGE_SIZE), 1)
    number = min(query.page, pages)  # an address may be older than what is listed
    counts = index.judgements(one.number, two.number)
    return draw(
        "compare.html",
        here="compare",
        site=contents,
        one=one,
        two=two,
        show=query.show,
        choices=_choices(contents, one, two),
        pairs=index.compare(one.number, two.number, query.show, number),
        total=total,
        counts=counts,
        gain=_gain(counts),
        looked=[index.count_found(source.number) for source in (one, two)],
        questions=len(index),
        page=number,
        pages=pages,
        query=query.address,
    )


def draw_compared_question(contents: Contents, query: ComparisonQuery) -> str:
    """Draw the best chains of two sources beside each other."""
    stored, sources = contents.question(query.id), query.sources(contents)
    question = contents.readable(stored)
    found = [(source, contents.index.recovered(source.number, stored.position)) for source in sources]
    for _, recovered in found:
        question = contents.with_chains(question, recovered)
    own = None if stored.own is None else OwnPassages(stored.own)
    collection = None if contents.corpus is None else contents.corpus.index
    view = comparison_view(question, found, stored.gold, contents.settings, own, collection)
    one, two = sources
    around = contents.index.compare_neighbours(one.number, two.number, query.show, stored.position)
    return draw(
        "compare_question.html",
        here="compare",
        site=contents,
        stored=stored,
        question=question,
        views=view.sources,
        golds=view.golds,
        graph=view.graph,
        is_late=any(one.is_late for one in view.sources),
        around=around,
        page=around.earlier // PAGE_SIZE + 1,
        query=query.address,
        show=_choices(contents, one, two)[query.show],
    )


def _choices(contents: Contents, one: Source, two: Source) -> dict[str, str]:
    """Return the ways to compare two sources, in words that name them."""
    judged = {
        "only the first right": f"only {one.name} right",
        "only the second right": f"only {two.name} right",
        "both right": "both right",
        "both wrong": "both wrong",
    }
    return {"different": "different", "same": "same", **(judged if contents.has_gold else {}), "all": "all"}


def _gain(counts: dict[tuple[str, str], int]) -> Figure | None:
    """Return by how much the second source is more often right, over the questions on which both are judged."""
    kinds = (("right", "right"), ("right", "wrong"), ("wrong", "right"), ("wrong", "wrong"))
    return Comparison(*(counts.get(judgements, 0) for judgements in kinds)).gain
