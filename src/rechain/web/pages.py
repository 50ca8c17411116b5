"""The explorer: the list of questions, also as a file, a page for each, and two sources compared."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import orjson
from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from pydantic import Field

from rechain.errors import QuestionError
from rechain.evaluation.judging import Comparison
from rechain.schema import Question
from rechain.text.highlights import Piece
from rechain.text.words import Text
from rechain.web.chains import best_chain
from rechain.web.dashboard import choices, columns, dashboard, facets
from rechain.web.filters import Filters, PageFilters, PageNumber, PageQuery, SourceNumber, match
from rechain.web.passages import beginnings, marked, snippet
from rechain.web.question_index import COMPARISONS, PAGE_SIZE, Index, Row, page_of
from rechain.web.question_rows import Stored
from rechain.web.responses import draw, iterate_long, link, page
from rechain.web.site import AtSite, NotThereError, Site, Source
from rechain.web.views import OwnPassages, comparison_view, question_view

_PATIENCE = 0.1
"""seconds for which a page waits for a model: hardly felt, and enough for most questions"""
_AT_ONCE = 100
"""questions of a file that are read together"""
_ASKED = ("id", "question", "answer", "type", "hops")
_COLUMNS = (*_ASKED, "chain", "passages", "links", "confidence", "verdict", "judgement", "error")
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")
"""with what a text begins, maybe after blanks, that spreadsheets take for a formula"""

router = APIRouter(include_in_schema=False)


class ListQuery(PageFilters):
    """Which page of which questions."""

    page: PageNumber = 1


@router.get("/")
async def explore(site: AtSite, query: Annotated[ListQuery, Query()]) -> Response:
    """List the questions that pass the filters."""
    if query.scope == "documents" and site.corpus is not None:
        return RedirectResponse(link("/find", q=query.text), 303)
    key = site.index.change, query
    html = site.lists.find(key)
    if html is None:
        html = await run_in_threadpool(_draw_list, site, query)
        site.lists.add(key, html)
    return HTMLResponse(html)


def _draw_list(site: Site, query: ListQuery) -> bytes:
    source, index = site.source(query.source), site.index
    figures = dashboard(index.figures(source.number, query), query)
    by_property = facets(index.facets(source.number, query), query)
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
        facets=by_property,
        choices=choices(query),
        columns=columns(query, site.has_gold, has_confidence),
        recovered=index.count_found(source.number),
        questions=len(index),
        **paging,
    )
    return html.encode()


class ProgressQuery(PageQuery):
    """Of which source."""

    source: SourceNumber = 1


@router.get("/progress")
def progress(site: AtSite, query: Annotated[ProgressQuery, Query()]) -> dict[str, int]:
    """Return how many questions a source has looked at, which a page shows while a model recovers them."""
    return {"recovered": site.index.count_found(site.source(query.source).number), "questions": len(site.index)}


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
    title, text = "", ""
    passages = index.passages(row.position)
    if place is not None:
        title, text = passages[place]
    elif counts := [len({word for _, word in beginnings(title, sorted(missing))}) for title, _ in passages]:
        # the title with most of the missing words, the first of several
        title = passages[counts.index(max(counts))][0] if any(counts) else ""
    in_text = beginnings(text, words)
    return hit._replace(title=marked(title, beginnings(title, words)), text=snippet(text, in_text) if in_text else ())


class DownloadQuery(PageFilters):
    """Which questions, and whether as JSON lines for programs or as CSV for tables."""

    format: Literal["jsonl", "csv"] = "jsonl"


@router.get("/download")
def download_page(site: AtSite, query: Annotated[DownloadQuery, Query()]) -> StreamingResponse:
    """Send the questions that pass the filters, in the order of the list, as a file."""
    source, is_table = site.source(query.source).number, query.format == "csv"
    parts = _download(site.index, source, site.index.positions(source, query), is_table)
    headers = {"Content-Disposition": f'attachment; filename="questions.{query.format}"'}
    media_type = "text/csv; charset=utf-8" if is_table else "application/x-ndjson"
    return StreamingResponse(iterate_long(parts), media_type=media_type, headers=headers)


def _download(index: Index, source: int, positions: Sequence[int], is_table: bool) -> Iterator[bytes]:
    """Yield a file of the questions at some positions, some at a time, so that it is never whole in memory.

    JSON lines have the fields of a chains file with the best chain alone, and before them what is listed.
    """
    part = io.StringIO()
    table = csv.DictWriter(part, _COLUMNS, extrasaction="ignore")
    if is_table:
        table.writeheader()
    for first in range(0, max(len(positions), 1), _AT_ONCE):
        for row in index.rows(source, positions[first : first + _AT_ONCE]):
            content, recovered = index.at(row.position).content, index.recovered(source, row.position)
            fields: dict[str, Any] = {**row._asdict(), "chain": row.summary}
            if isinstance(content, Question):  # a list cuts them
                fields |= {"question": content.question, "answer": content.answer}
            if is_table:
                chain = best_chain(recovered)
                fields["passages"] = " | ".join(chain.passages) if chain else ""
                fields["links"] = " | ".join(link.entity for link in chain.links) if chain else ""
                table.writerow({name: _without_formula(value) for name, value in fields.items()})
            else:
                fields = {name: fields[name] for name in (*_ASKED, "judgement")}
                if recovered is not None:
                    fields |= recovered.model_copy(update={"id": row.id, "chains": recovered.chains[:1]}).to_dict()
                part.write(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE).decode())
        yield part.getvalue().encode("utf-8", "surrogatepass")
        part.seek(0)
        part.truncate()


def _without_formula(value: Any) -> Any:
    """Return a value of a table, with an apostrophe before what a spreadsheet would take for a formula."""
    is_formula = isinstance(value, str) and (value.startswith(_FORMULA) or value.lstrip().startswith(_FORMULA))
    return f"'{value}" if is_formula else value


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
    around = site.index.neighbours(source.number, query, stored.position)
    context: dict[str, Any] = {"here": "explore", "site": site, "source": source, "query": query.address}
    context |= {"filters": query, "stored": stored, "around": around}
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
            raise NotThereError("comparing needs two sources: give `rechain serve` two of --chains and --model.")
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
    kinds = (("right", "right"), ("right", "wrong"), ("wrong", "right"), ("wrong", "wrong"))
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
        # by how much the second source is more often right, over the questions on which both are judged
        gain=Comparison(*(counts.get(judgements, 0) for judgements in kinds)).gain,
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
