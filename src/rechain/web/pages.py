"""The explorer: the list of questions, a page for each, and two sources compared."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import Field

from rechain.errors import QuestionError
from rechain.evaluation.judging import Comparison
from rechain.evaluation.statistics import Figure
from rechain.schema import Question
from rechain.text.highlights import Piece
from rechain.text.words import Text
from rechain.web.chains import best_chain
from rechain.web.dashboard import choices, columns, dashboard
from rechain.web.download import FORMATS, Format, download
from rechain.web.filters import Filters, PageFilters, PageNumber, PageQuery, SourceNumber, match
from rechain.web.passages import beginnings, marked, snippet
from rechain.web.question_index import COMPARISONS, PAGE_SIZE, Index, Row, page_of
from rechain.web.question_rows import Stored
from rechain.web.responses import draw, page
from rechain.web.site import AtSite, NotThereError, Site, Source
from rechain.web.threads import iterate_long
from rechain.web.views import OwnPassages, comparison_view, question_view

_PATIENCE = 0.1
"""seconds for which a page waits for a model: hardly felt, and enough for most questions"""

router = APIRouter(include_in_schema=False)


class ListQuery(PageFilters):
    """Which page of which questions."""

    page: PageNumber = 1


@router.get("/")
async def explore(site: AtSite, query: Annotated[ListQuery, Query()]) -> HTMLResponse:
    """List the questions that pass the filters."""
    key = site.index.change, query
    html = site.lists.find(key)
    if html is None:
        html = await run_in_threadpool(_draw_list, site, query)
        site.lists.add(key, html)
    return HTMLResponse(html)


def _draw_list(site: Site, query: ListQuery) -> bytes:
    source, index = site.source(query.source), site.index
    figures = dashboard(index.figures(source.number, query), query)
    paging = page_of(query.page, figures.total)
    listing = index.select(source.number, query, paging["page"])
    has_confidence = index.has_confidence(source.number)
    html = draw(
        "explore.html",
        here="explore",
        site=site,
        source=source,
        filters=query,
        query=query.address,
        listing=listing,
        hits=_find_hits(index, query, listing.rows),
        figures=figures,
        choices=choices(query),
        columns=columns(query, figures, has_confidence),
        has_confidence=has_confidence,
        questions=len(index),
        **paging,
    )
    return html.encode()


class Hit(NamedTuple):
    """The texts of a question in a list, cut where the words stand, and a passage that holds those not in them."""

    question: Sequence[Piece]
    answer: Sequence[Piece]
    title: Sequence[Piece] = ()
    text: Sequence[Piece] = ()
    """empty where the title alone holds them"""


def _find_hits(index: Index, filters: Filters, rows: Sequence[Row]) -> Mapping[int, Hit]:
    """Return the hits of questions that pass a filter, by their positions; none where no words are looked for."""
    words = list(dict.fromkeys(Text(filters.text).words))
    if not words:
        return {}
    places: Mapping[int, int] = {}
    if filters.scope == "passages":
        places = index.passages_with(match(filters.text), [row.position for row in rows])
    return {row.position: _hit(index, row, words, places.get(row.position)) for row in rows}


def _hit(index: Index, row: Row, words: Sequence[str], place: int | None) -> Hit:
    in_question, in_answer = beginnings(row.question, words), beginnings(row.answer, words)
    hit = Hit(marked(row.question, in_question), marked(row.answer, in_answer))
    missing = set(words) - {word for _, word in (*in_question, *in_answer)}
    if missing:
        missing -= {word for _, word in beginnings(row.id, words)}
    if place is None and not missing:
        return hit
    passages = index.passages(row.position)
    passage = _best_title(passages, sorted(missing)) if place is None else passages[place]
    if passage is None:
        return hit
    title, text = passage
    in_text = beginnings(text, words) if place is not None else []
    return hit._replace(title=marked(title, beginnings(title, words)), text=snippet(text, in_text) if in_text else ())


def _best_title(passages: Sequence[tuple[str, str]], words: Sequence[str]) -> tuple[str, str] | None:
    """Return the passage whose title has most of some words, the first of several; None where no title has any."""
    counts = [len({word for _, word in beginnings(title, words)}) for title, _ in passages]
    return passages[counts.index(max(counts))] if any(counts) else None


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
    html = await run_in_threadpool(_draw_question, site, query, waits=True)
    if html is None:
        stored = await run_in_threadpool(site.question, query.id)
        await site.chains_of(site.source(query.source), stored, _PATIENCE)
        html = await run_in_threadpool(_draw_question, site, query)
    return HTMLResponse(html)


def _draw_question(site: Site, query: QuestionQuery, waits: bool = False) -> str | None:
    """Return the page; with `waits`, None if a model has not recovered the question yet."""
    source, stored = site.source(query.source), site.question(query.id)
    recovered = site.index.recovered(source.number, stored.position)
    is_late = source.is_model and recovered is None
    before, after = site.index.neighbours(source.number, query, stored.position)
    context: dict[str, Any] = {"here": "explore", "site": site, "source": source, "query": query.address}
    context |= {"filters": query, "stored": stored, "before": before, "after": after}
    if isinstance(stored.content, QuestionError):
        return draw("unreadable.html", **context)
    if is_late and waits:
        return None
    question = site.with_chains(stored.content, recovered)
    own = None if stored.own is None else OwnPassages(stored.own)
    chains = site.chain_list(question, recovered.chains if recovered else ())
    view = question_view(chains, recovered, query.number and query.number - 1, stored.gold, own)
    return draw("question.html", **context, view=view, is_late=is_late, shows_others=query.passages == "all")


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
    (one, two), index = query.sources(site), site.index
    total = index.count_compared(one.number, two.number, query.show)
    paging = page_of(query.page, total)
    counts = index.judgements(one.number, two.number)
    return page(
        "compare.html",
        here="compare",
        site=site,
        one=one,
        two=two,
        show=query.show,
        choices=_choices(site, one, two),
        pairs=index.compare(one.number, two.number, query.show, paging["page"]),
        total=total,
        counts=counts,
        gain=_gain(counts),
        looked=[index.count_found(source.number) for source in (one, two)],
        questions=len(index),
        **paging,
        query=query.address,
    )


@router.get("/compare/question")
async def compare_question(site: AtSite, query: Annotated[ComparisonQuery, Query()]) -> HTMLResponse:
    """Show the best chains of two sources next to each other."""
    stored = await run_in_threadpool(site.question, query.id)
    question = site.readable(stored)
    for source in query.sources(site):
        await site.chains_of(source, stored, _PATIENCE)
    return await run_in_threadpool(_compared_question, site, query, stored, question)


def _compared_question(site: Site, query: ComparisonQuery, stored: Stored, question: Question) -> HTMLResponse:
    one, two = query.sources(site)
    found = [(source, site.index.recovered(source.number, stored.position)) for source in (one, two)]
    for _, recovered in found:
        question = site.with_chains(question, recovered)
    own = None if stored.own is None else OwnPassages(stored.own)
    best = [chain for _, recovered in found if (chain := best_chain(recovered))]
    view = comparison_view(site.chain_list(question, best), found, stored.gold, own)
    around = site.index.compare_neighbours(one.number, two.number, query.show, stored.position)
    return page(
        "compare_question.html",
        here="compare",
        site=site,
        stored=stored,
        question=question,
        views=view.sources,
        golds=view.golds,
        graph=view.graph,
        is_late=any(source.is_late for source in view.sources),
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


def _gain(counts: dict[tuple[str, str], int]) -> Figure | None:
    """Return by how much the second source is more often right, over the questions on which both are judged."""
    kinds = (("right", "right"), ("right", "wrong"), ("wrong", "right"), ("wrong", "wrong"))
    return Comparison(*(counts.get(judgements, 0) for judgements in kinds)).gain
