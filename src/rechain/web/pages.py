"""The explorer: addresses of the list of questions, of a page for each, and of two sources compared."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, StreamingResponse

from rechain.web.download import FORMATS, Format, download
from rechain.web.explorer import (
    ComparisonQuery,
    ListQuery,
    QuestionQuery,
    draw_compared_question,
    draw_comparison,
    draw_list,
    draw_question,
)
from rechain.web.queries import PageFilters
from rechain.web.site import AtSite
from rechain.web.threads import iterate_long

_PATIENCE = 0.1
"""seconds for which a page waits for a model: hardly felt, and enough for most questions"""

router = APIRouter(include_in_schema=False)

# Pages are drawn in other processes or in a thread (see `drawing`), and nothing is read here but what was kept.


@router.get("/")
async def explore(site: AtSite, query: Annotated[ListQuery, Query()]) -> HTMLResponse:
    """List the questions that pass the filters."""
    key = site.index.marks.change, query
    html = site.lists.find(key)
    if html is None:
        html = await site.drawers.draw("", draw_list, query)
        site.lists.add(key, html)
    return HTMLResponse(html)


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


@router.get("/question")
async def question_page(site: AtSite, query: Annotated[QuestionQuery, Query()]) -> HTMLResponse:
    """Show a question and one of its chains."""
    html = await site.drawers.draw(query.id, draw_question, query, True)
    if not html:  # a model has yet to look for them: most pages need not wait, and are drawn at once
        stored = await run_in_threadpool(site.question, query.id)
        await site.chains_of(site.source(query.source), stored, _PATIENCE)
        html = await site.drawers.draw(query.id, draw_question, query)
    return HTMLResponse(html)


@router.get("/compare")
async def compare(site: AtSite, query: Annotated[ComparisonQuery, Query()]) -> HTMLResponse:
    """Show where the chains of two sources differ."""
    return HTMLResponse(await site.drawers.draw("", draw_comparison, query))


@router.get("/compare/question")
async def compare_question(site: AtSite, query: Annotated[ComparisonQuery, Query()]) -> HTMLResponse:
    """Show the best chains of two sources beside each other."""
    stored = await run_in_threadpool(site.question, query.id)
    site.readable(stored)
    for source in query.sources(site):
        await site.chains_of(source, stored, _PATIENCE)
    return HTMLResponse(await site.drawers.draw(query.id, draw_compared_question, query))
