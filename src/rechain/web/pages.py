"""The explorer: a list of questions, a page for each, and two sources compared."""

from collections.abc import Sequence
from math import ceil
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import Field

from rechain.errors import QuestionError
from rechain.evaluation.comparison import Comparison
from rechain.evaluation.statistics import Figure
from rechain.schema import Gold, Question, Recovered
from rechain.web.dashboard import choices, columns, dashboard
from rechain.web.download import FORMATS, Format, download
from rechain.web.hits import find_hits
from rechain.web.index import COMPARISONS, PAGE_SIZE, Stored
from rechain.web.queries import PageFilters, PageNumber, PageQuery, SourceNumber
from rechain.web.responses import draw, page
from rechain.web.site import AtSite, NotThereError, Site, Source
from rechain.web.threads import iterate_long
from rechain.web.views import OwnPassages, compared_views, question_view

_PATIENCE = 0.1
"""seconds for which a page waits for a model: hardly felt, and enough for most questions"""

router = APIRouter(include_in_schema=False)


class ListQuery(PageFilters):
    """Which page of which questions."""

    page: PageNumber = 1


# What reads the database or draws a page runs in a thread (see `threads`): plain functions by FastAPI itself, parts of
# coroutines, which wait for a model in between, by `run_in_threadpool`.


@router.get("/")
def explore(site: AtSite, query: Annotated[ListQuery, Query()]) -> HTMLResponse:
    """List the questions that pass the filters."""
    return HTMLResponse(site.lists.get((site.index.state, query), lambda: _draw_list(site, query)))


def _draw_list(site: Site, query: ListQuery) -> str:
    source = site.source(query.source)
    figures = dashboard(site.index.figures(source.number, query), query)
    pages = max(ceil(figures.total / PAGE_SIZE), 1)
    number = min(query.page, pages)  # an address may be older than what is listed
    listing = site.index.select(source.number, query, number)
    has_confidence = site.index.has_confidence(source.number)
    return draw(
        "explore.html",
        here="explore",
        site=site,
        source=source,
        filters=query,
        query=query.address,
        listing=listing,
        hits=find_hits(site.index, query, listing.rows),
        figures=figures,
        choices=choices(query),
        columns=columns(query, figures, has_confidence),
        has_confidence=has_confidence,
        questions=len(site.index),
        page=number,
        pages=pages,
    )


class DownloadQuery(PageFilters):
    """Which questions, in which form."""

    format: Format = "jsonl"


@router.get("/download")
def download_page(site: AtSite, query: Annotated[DownloadQuery, Query()]) -> StreamingResponse:
    """Send the questions that pass the filters, in the order of the list, as a file."""
    source = site.source(query.source)
    parts = download(site.index, source.number, site.index.positions(source.number, query), query.format)
    headers = {"Content-Disposition": f'attachment; filename="questions.{query.format}"'}
    return StreamingResponse(iterate_long(parts), media_type=FORMATS[query.format][0], headers=headers)


class QuestionQuery(PageFilters):
    """Which question, and which of its candidates; the filters choose the questions before and after it."""

    id: str = ""
    number: PageNumber | None = Field(default=None, alias="chain")
    """which candidate, from 1; None: the best chain of the source"""
    passages: str = ""
    """all: show also those that are not on the chain"""


@router.get("/question")
async def question_page(site: AtSite, query: Annotated[QuestionQuery, Query()]) -> HTMLResponse:
    """Show a question and one of its chains."""
    drawn = await run_in_threadpool(_draw_known_question, site, query)
    if isinstance(drawn, HTMLResponse):
        return drawn
    source, stored = drawn
    recovered = await site.chains_of(source, stored, _PATIENCE)
    return await run_in_threadpool(_draw_question, site, query, source, stored, recovered)


def _draw_known_question(site: Site, query: QuestionQuery) -> HTMLResponse | tuple[Source, Stored]:
    """Draw a question whose chains need not be waited for, else return what is asked for.

    Most pages are drawn so, with one turn in a thread: each turn more would wait behind all other pages once more.
    """
    source, stored = site.source(query.source), site.question(query.id)
    recovered = site.index.recovered(source.number, stored.position)
    if recovered is None and source.service is not None and not isinstance(stored.content, QuestionError):
        return source, stored
    return _draw_question(site, query, source, stored, recovered)


def _draw_question(
    site: Site, query: QuestionQuery, source: Source, stored: Stored, recovered: Recovered | None
) -> HTMLResponse:
    before, after = site.index.neighbours(source.number, query, stored.position)
    context: dict[str, Any] = {"here": "explore", "site": site, "source": source, "query": query.address}
    context |= {"filters": query, "stored": stored, "before": before, "after": after}
    if isinstance(stored.content, QuestionError):
        return page("unreadable.html", **context)
    context["is_late"] = source.service is not None and recovered is None
    context["shows_others"] = query.passages == "all"
    question = site.with_chains(stored.content, recovered)
    own = None if stored.own is None else OwnPassages(stored.own)
    return _draw("question.html", context, question, recovered, query.number, own, stored.gold)


class ComparisonQuery(PageQuery):
    """Which two sources, and which of their questions."""

    one: SourceNumber = 1
    two: SourceNumber = 2
    show: str = "different"
    page: PageNumber = 1
    id: str = ""

    def sources(self, site: Site) -> tuple[Source, Source]:
        """Return the two sources."""
        if len(site.sources) < 2:
            raise NotThereError("to compare needs two sources: give `rechain serve` two of --chains and --model.")
        if self.show not in COMPARISONS:
            raise NotThereError(f"there is no comparison '{self.show[:40]}'; there are {', '.join(COMPARISONS)}.")
        return site.source(self.one), site.source(self.two)

    @property
    def address(self) -> dict[str, Any]:
        """The query of an address that shows the same comparison."""
        return {"one": self.one, "two": self.two, "show": self.show}


@router.get("/compare")
def compare(site: AtSite, query: Annotated[ComparisonQuery, Query()]) -> HTMLResponse:
    """Show where the chains of two sources differ."""
    one, two = query.sources(site)
    total = site.index.count_compared(one.number, two.number, query.show)
    pages = max(ceil(total / PAGE_SIZE), 1)
    number = min(query.page, pages)  # an address may be older than what is listed
    counts = site.index.judgements(one.number, two.number)
    return page(
        "compare.html",
        here="compare",
        site=site,
        one=one,
        two=two,
        show=query.show,
        choices=_choices(site, one, two),
        pairs=site.index.compare(one.number, two.number, query.show, number),
        total=total,
        counts=counts,
        gain=_gain(counts),
        looked=[site.index.count_found(source.number) for source in (one, two)],
        questions=len(site.index),
        page=number,
        pages=pages,
        query=query.address,
    )


@router.get("/compare/question")
async def compare_question(site: AtSite, query: Annotated[ComparisonQuery, Query()]) -> HTMLResponse:
    """Show the best chains of two sources beside each other."""
    stored = await run_in_threadpool(site.question, query.id)
    site.readable(stored)
    found = [(source, await site.chains_of(source, stored, _PATIENCE)) for source in query.sources(site)]
    return await run_in_threadpool(_draw_comparison, site, query, stored, found)


def _draw_comparison(
    site: Site, query: ComparisonQuery, stored: Stored, found: Sequence[tuple[Source, Recovered | None]]
) -> HTMLResponse:
    question = site.readable(stored)
    for _, recovered in found:
        question = site.with_chains(question, recovered)
    own = None if stored.own is None else OwnPassages(stored.own)
    views, golds = compared_views(question, found, stored.gold, own)
    one, two = (source for source, _ in found)
    around = site.index.compare_neighbours(one.number, two.number, query.show, stored.position)
    return page(
        "compare_question.html",
        here="compare",
        site=site,
        stored=stored,
        question=question,
        views=views,
        golds=None if stored.gold is None else golds,
        is_late=any(view.is_late for view in views),
        around=around,
        page=around.earlier // PAGE_SIZE + 1,
        query=query.address,
        show=_choices(site, one, two)[query.show],
    )


def _choices(site: Site, one: Source, two: Source) -> dict[str, str]:
    """Return the ways to compare two sources, in words that name them."""
    judged = {
        "only the first right": f"only {one.name} right",
        "only the second right": f"only {two.name} right",
        "both right": "both right",
        "both wrong": "both wrong",
    }
    return {"different": "different", "same": "same", **(judged if site.has_gold else {}), "all": "all"}


def _draw(
    template: str,
    context: dict[str, Any],
    question: Question,
    recovered: Recovered | None,
    number: int | None,
    own: OwnPassages | None,
    gold: Gold | None = None,
) -> HTMLResponse:
    """Draw one of a question's chains."""
    site: Site = context["site"]
    collection = None if site.corpus is None else site.corpus.index
    view = question_view(question, recovered, number and number - 1, gold, site.settings, own, collection)
    return page(template, **context, view=view)


def _gain(counts: dict[tuple[str, str], int]) -> Figure | None:
    """Return by how much the second source is more often right, over the questions on which both are judged."""
    kinds = (("right", "right"), ("right", "wrong"), ("wrong", "right"), ("wrong", "wrong"))
    return Comparison(*(counts.get(judgements, 0) for judgements in kinds)).gain
