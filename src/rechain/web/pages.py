"""The explorer: a list of questions, a page for each, a form for one's own, and two sources compared."""

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Annotated, Any, get_args
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse

from rechain.errors import QuestionError
from rechain.evaluation.judging import judge
from rechain.evaluation.statistics import Figure, paired_difference
from rechain.schema import LinkKind, Question, Recovered
from rechain.web.filters import filter_query, read_filter, read_number
from rechain.web.index import COMPARISONS, PAGE_SIZE, Filter, Order, Stored
from rechain.web.pasted import pasted_entry
from rechain.web.responses import page
from rechain.web.service import BusyError
from rechain.web.site import EVERYTHING, NotThereError, Site, Source, ask
from rechain.web.views import QuestionView, chain_steps, question_view

_PATIENCE = 0.1
"""seconds for which a page waits for a model"""
_LONG = 100_000
"""characters that take long enough to draw for others to be answered meanwhile"""

router = APIRouter(include_in_schema=False)


def site_of(request: Request) -> Site:
    """Return what the server serves."""
    site: Site = request.app.state.site
    return site


AtSite = Annotated[Site, Depends(site_of)]


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that a browser has sent."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True))


@router.get("/")
async def explore(request: Request, site: AtSite) -> HTMLResponse:
    """List the questions that a filter lets through."""
    source, wanted = _source(site, request), read_filter(request.query_params)
    number = read_number(request.query_params, "page", 1, least=1)
    listing = site.index.select(source.number, wanted, number)
    return page(
        "explore.html",
        here="explore",
        site=site,
        source=source,
        wanted=wanted,
        query=filter_query(wanted) | _told_source(source),
        listing=listing,
        looked=site.index.count_found(source.number),
        accuracy=site.index.accuracy(source.number),
        questions=len(site.index),
        page=number,
        pages=max(ceil(listing.total / PAGE_SIZE), 1),
        kinds=get_args(LinkKind),
        orders=get_args(Order),
        is_filtered=wanted != Filter(order=wanted.order),
    )


@router.get("/question")
async def question_page(request: Request, site: AtSite) -> HTMLResponse:
    """Show a question and one of its chains."""
    source, stored = _source(site, request), asked_question(site, request)
    wanted = read_filter(request.query_params)
    before, after = site.index.neighbours(source.number, wanted, stored.position)
    query = filter_query(wanted) | _told_source(source)
    shown: dict[str, Any] = {"here": "explore", "site": site, "source": source, "query": query}
    shown |= {"stored": stored, "before": before, "after": after}
    if isinstance(stored.content, QuestionError):
        return page("unreadable.html", **shown)
    recovered = await _soon(site, source, stored)
    chosen = read_number(request.query_params, "chain", 1, least=1) - 1
    shown["is_late"] = source.service is not None and recovered is None
    shown["shows_others"] = request.query_params.get("passages") == "all"
    look = partial(question_view, stored.content, recovered, chosen, stored.gold, site.settings)
    return await _drawn("question.html", shown, stored.content, look)


@router.get("/try")
async def try_page(site: AtSite) -> HTMLResponse:
    """Offer a form for a question of one's own."""
    return page("try.html", here="try", site=site, form={}, problem=None, view=None)


@router.post("/try")
async def try_question(request: Request, site: AtSite) -> HTMLResponse:
    """Show the chain of a question that somebody has pasted."""
    form = await read_form(request)
    shown: dict[str, Any] = {"here": "try", "site": site, "form": form}
    chosen = read_number(form, "chain", 1, least=1) - 1
    try:
        entry = pasted_entry(form)
        if isinstance(entry.content, QuestionError):
            raise entry.content
        (recovered,) = await ask(site.recovery, [entry], EVERYTHING)
    except (QuestionError, BusyError) as error:
        status = 422 if isinstance(error, QuestionError) else 429
        return page("try.html", status, **shown, problem=str(error), view=None)
    shown["problem"] = recovered.error.message if recovered.error else None
    look = partial(question_view, entry.content, recovered, chosen, None, site.settings)
    return await _drawn("try.html", shown, entry.content, look)


@router.get("/compare")
async def compare(request: Request, site: AtSite) -> HTMLResponse:
    """Show where the chains of two sources differ."""
    one, two = _two_sources(site, request)
    wanted = request.query_params.get("show") or "different"
    if wanted not in COMPARISONS:
        raise NotThereError(f"there is no comparison '{wanted[:40]}'; there are {', '.join(COMPARISONS)}.")
    number = read_number(request.query_params, "page", 1, least=1)
    pairs, total = site.index.compare(one.number, two.number, wanted, number)
    counts = site.index.verdicts(one.number, two.number)
    return page(
        "compare.html",
        here="compare",
        site=site,
        one=one,
        two=two,
        wanted=wanted,
        choices=COMPARISONS if site.has_gold else ("different", "same", "all"),
        pairs=pairs,
        total=total,
        counts=counts,
        gain=_gain(counts),
        looked=[site.index.count_found(source.number) for source in (one, two)],
        questions=len(site.index),
        page=number,
        pages=max(ceil(total / PAGE_SIZE), 1),
        query={"one": one.number + 1, "two": two.number + 1, "show": wanted},
    )


@router.get("/compare/question")
async def compare_question(request: Request, site: AtSite) -> HTMLResponse:
    """Show the best chains of two sources beside each other."""
    stored = asked_question(site, request)
    question = site.readable(stored)
    columns = []
    for source in _two_sources(site, request):
        recovered = await _soon(site, source, stored)
        chain = recovered.chains[0] if recovered else None
        is_right = None if stored.gold is None or recovered is None else judge(chain, stored.gold).correct
        columns.append((source, recovered, chain_steps(question, chain), is_right))
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


async def _drawn(
    template: str, shown: dict[str, Any], question: Question, look: Callable[[], QuestionView]
) -> HTMLResponse:
    """Draw one of a question's chains; long texts take a while, so others are answered meanwhile."""

    def draw() -> HTMLResponse:
        return page(template, **shown, view=look())

    if sum(len(passage.text) for passage in question.passages) < _LONG:
        return draw()
    return await run_in_threadpool(draw)


async def _soon(site: Site, source: Source, stored: Stored) -> Recovered | None:
    """Return what a source has found, if that does not keep people waiting; the page then asks again by itself."""
    try:
        return await site.found(source, stored, _PATIENCE)
    except BusyError:
        return None


def _gain(counts: dict[tuple[str, str], int]) -> Figure | None:
    """Return by how much the second source is more often right, where both are judged."""
    told = {verdicts: count for verdicts, count in counts.items() if "" not in verdicts}
    lost, won = (told.get(verdicts, 0) for verdicts in (("right", "wrong"), ("wrong", "right")))
    return paired_difference(won, lost, sum(told.values()))


def _source(site: Site, request: Request, name: str = "source", default: int = 1) -> Source:
    return site.source(read_number(request.query_params, name, default, least=1))


def _two_sources(site: Site, request: Request) -> tuple[Source, Source]:
    if len(site.sources) < 2:
        raise NotThereError("to compare needs two sources: give `rechain serve` two of --chains and --model.")
    return _source(site, request, "one", 1), _source(site, request, "two", 2)


def _told_source(source: Source) -> dict[str, int]:
    return {"source": source.number + 1} if source.number else {}


def asked_question(site: Site, request: Request) -> Stored:
    """Return the question whose id a page's address names."""
    return site.question(request.query_params.get("id", ""))
