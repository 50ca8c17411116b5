"""The explorer: a list of questions, a page for each, a form for one's own, and two sources compared."""

from collections.abc import Sequence
from math import ceil
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from pydantic import Field

from rechain.errors import QuestionError
from rechain.evaluation.comparison import Comparison
from rechain.evaluation.judging import judge
from rechain.evaluation.statistics import Figure
from rechain.schema import Gold, Question, Recovered
from rechain.web.forms import PastedQuestion, read_form
from rechain.web.index import COMPARISONS, PAGE_SIZE, Stored
from rechain.web.queries import Order, PageFilters, PageNumber, PageQuery, SourceNumber
from rechain.web.responses import page
from rechain.web.service import BusyError
from rechain.web.site import EVERYTHING, AtSite, NotThereError, Site, Source, ask_for
from rechain.web.views import OwnPassages, chain_steps, question_view

_PATIENCE = 0.1
"""seconds for which a page waits for a model: hardly felt, and enough for most questions"""
_NO_PASSAGES = "the question has no passages; paste some, or let the server find them: rechain serve --corpus INDEX."

router = APIRouter(include_in_schema=False)


class ListQuery(PageFilters):
    """Which page of which questions."""

    page: PageNumber = 1


# What reads the database or draws a page runs in a thread (see `threads`): plain functions by FastAPI itself, parts of
# coroutines, which wait for a model in between, by `run_in_threadpool`.


@router.get("/")
def explore(site: AtSite, query: Annotated[ListQuery, Query()]) -> HTMLResponse:
    """List the questions that pass the filters."""
    source = site.source(query.source)
    listing = site.index.select(source.number, query, query.page)
    return page(
        "explore.html",
        here="explore",
        site=site,
        source=source,
        filters=query,
        query=query.address,
        listing=listing,
        looked=site.index.count_found(source.number),
        accuracy=site.index.accuracy(source.number),
        questions=len(site.index),
        page=query.page,
        pages=max(ceil(listing.total / PAGE_SIZE), 1),
        orders=get_args(Order),
    )


class QuestionQuery(PageFilters):
    """Which question, and which of its candidates; the filters choose the questions before and after it."""

    id: str = ""
    number: PageNumber = Field(default=1, alias="chain")
    passages: str = ""
    """all: show also those that are not on the chain"""


@router.get("/question")
async def question_page(site: AtSite, query: Annotated[QuestionQuery, Query()]) -> HTMLResponse:
    """Show a question and one of its chains."""
    source, stored = site.source(query.source), await run_in_threadpool(site.question, query.id)
    is_readable = not isinstance(stored.content, QuestionError)
    recovered = await site.chains_of(source, stored, _PATIENCE) if is_readable else None
    return await run_in_threadpool(_draw_question, site, query, source, stored, recovered)


def _draw_question(
    site: Site, query: QuestionQuery, source: Source, stored: Stored, recovered: Recovered | None
) -> HTMLResponse:
    before, after = site.index.neighbours(source.number, query, stored.position)
    context: dict[str, Any] = {"here": "explore", "site": site, "source": source, "query": query.address}
    context |= {"stored": stored, "before": before, "after": after}
    if isinstance(stored.content, QuestionError):
        return page("unreadable.html", **context)
    context["is_late"] = source.service is not None and recovered is None
    context["shows_others"] = query.passages == "all"
    question = site.with_chains(stored.content, recovered)
    own = None if stored.own is None else OwnPassages(stored.own)
    return _draw("question.html", context, question, recovered, query.number, own, stored.gold)


@router.get("/try")
def try_page(site: AtSite) -> HTMLResponse:
    """Offer a form for a question of one's own."""
    return page("try.html", here="try", site=site, form=PastedQuestion(), problem=None, view=None)


@router.post("/try")
async def try_question(request: Request, site: AtSite) -> HTMLResponse:
    """Show the chain of a question that somebody has pasted."""
    form = await read_form(request, PastedQuestion)
    context: dict[str, Any] = {"here": "try", "site": site, "form": form}
    try:
        entry = await run_in_threadpool(form.entry, None if site.corpus is None else site.corpus.index)
        if isinstance(entry.content, QuestionError):
            raise entry.content
        if site.corpus is None and not entry.content.passages:
            raise QuestionError("too_few_passages", _NO_PASSAGES)
        ((entry, recovered),) = await ask_for(request, site, [entry], EVERYTHING)
    except (QuestionError, BusyError) as error:
        status = 422 if isinstance(error, QuestionError) else 429
        return await run_in_threadpool(page, "try.html", status, **context, problem=str(error), view=None)
    context["problem"] = recovered.error.message if recovered.error else None
    own = None if entry.own is None else OwnPassages(entry.own, "pasted here")
    assert isinstance(entry.content, Question)  # what could not be read was refused above
    return await run_in_threadpool(_draw, "try.html", context, entry.content, recovered, form.number, own)


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
        return site.source(self.one), site.source(self.two)


@router.get("/compare")
def compare(site: AtSite, query: Annotated[ComparisonQuery, Query()]) -> HTMLResponse:
    """Show where the chains of two sources differ."""
    one, two = query.sources(site)
    if query.show not in COMPARISONS:
        raise NotThereError(f"there is no comparison '{query.show[:40]}'; there are {', '.join(COMPARISONS)}.")
    pairs, total = site.index.compare(one.number, two.number, query.show, query.page)
    counts = site.index.judgements(one.number, two.number)
    return page(
        "compare.html",
        here="compare",
        site=site,
        one=one,
        two=two,
        show=query.show,
        choices=COMPARISONS if site.has_gold else ("different", "same", "all"),
        pairs=pairs,
        total=total,
        counts=counts,
        gain=_gain(counts),
        looked=[site.index.count_found(source.number) for source in (one, two)],
        questions=len(site.index),
        page=query.page,
        pages=max(ceil(total / PAGE_SIZE), 1),
        query={"one": query.one, "two": query.two, "show": query.show},
    )


@router.get("/compare/question")
async def compare_question(site: AtSite, query: Annotated[ComparisonQuery, Query()]) -> HTMLResponse:
    """Show the best chains of two sources beside each other."""
    stored = await run_in_threadpool(site.question, query.id)
    site.readable(stored)
    found = [(source, await site.chains_of(source, stored, _PATIENCE)) for source in query.sources(site)]
    return await run_in_threadpool(_draw_comparison, site, stored, found)


def _draw_comparison(site: Site, stored: Stored, found: Sequence[tuple[Source, Recovered | None]]) -> HTMLResponse:
    question = site.readable(stored)
    columns = []
    for source, recovered in found:
        chain = recovered.chains[0] if recovered else None
        is_right = None if stored.gold is None or recovered is None else judge(chain, stored.gold).correct
        whole, own = site.with_chains(question, recovered), None if stored.own is None else OwnPassages(stored.own)
        steps = chain_steps(whole, chain, recovered.claims if recovered else (), own)
        columns.append((source, recovered, steps, is_right))
    is_late = any(source.service is not None and recovered is None for source, recovered, *_ in columns)
    return page(
        "compare_question.html",
        here="compare",
        site=site,
        stored=stored,
        question=question,
        columns=columns,
        is_late=is_late,
    )


def _draw(
    template: str,
    context: dict[str, Any],
    question: Question,
    recovered: Recovered | None,
    number: int,
    own: OwnPassages | None,
    gold: Gold | None = None,
) -> HTMLResponse:
    """Draw one of a question's chains."""
    site: Site = context["site"]
    collection = None if site.corpus is None else site.corpus.index
    view = question_view(question, recovered, number - 1, gold, site.settings, own, collection)
    return page(template, **context, view=view)


def _gain(counts: dict[tuple[str, str], int]) -> Figure | None:
    """Return by how much the second source is more often right, over the questions on which both are judged."""
    kinds = (("right", "right"), ("right", "wrong"), ("wrong", "right"), ("wrong", "wrong"))
    return Comparison(*(counts.get(judgements, 0) for judgements in kinds)).gain
