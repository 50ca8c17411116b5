"""The documents of an index: searched by words, and shown with a passage in its place; as pages and by REST."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field, StringConstraints

from rechain.web.api import refusals
from rechain.web.filters import PageNumber, PageQuery
from rechain.web.passages import Place
from rechain.web.responses import page
from rechain.web.site import AtSite, NotThereError

MOST_HITS, MOST_CHARACTERS = 100, 100_000
"""passages of a search, and characters of a document, that one request may ask for"""
_SHOWN_HITS = 20
"""passages of a search on its page: whoever looks further finds them sooner by other words"""
_LONGEST_QUERY = 1_000
# Beyond any document; it only keeps numbers within what a slice can hold.
_Offset = Annotated[int, Field(ge=0, le=1_000_000_000)]

router = APIRouter(responses=refusals(404))


class PassageHit(BaseModel):
    """A passage that holds words that were searched for."""

    id: str
    title: str
    snippet: str
    """the stretch of its text that holds most of the words"""
    score: float
    """BM25"""
    place: Place | None
    """where it stands in its document; null for a row of a collection"""


class SearchResults(BaseModel):
    """The best passages, best first, and the stamp of the collection that was searched."""

    collection: str
    passages: list[PassageHit]


@router.get("/search")
def search(
    site: AtSite,
    q: Annotated[str, Query(max_length=_LONGEST_QUERY, description="words of the passages")],
    k: Annotated[int, Query(ge=1, le=MOST_HITS, description="how many passages")] = 10,
) -> SearchResults:
    """Search the index: return the passages that hold most of the words, of which rare ones count more.

    A server without an index answers 404.
    """
    hits = site.documents.search(q, k)
    rows = [
        PassageHit(id=hit.passage.id, title=hit.passage.title, snippet=hit.snippet, score=hit.score, place=hit.place)
        for hit in hits
    ]
    return SearchResults(collection=site.documents.index.stamp, passages=rows)


class DocumentText(BaseModel):
    """A stretch of a document's text."""

    name: str
    kind: str
    """text, markdown, html, pdf or word"""
    length: int
    """characters of the whole document"""
    start: int
    end: int
    text: str


@router.get("/documents/{name:anything}")
def document(
    site: AtSite,
    name: str,
    start: Annotated[_Offset, Query(description="the first character, from 0")] = 0,
    end: Annotated[_Offset | None, Query(description="the character after the last; 100,000 further at most")] = None,
) -> DocumentText:
    """Return a stretch of a document of the index, which the places of passages count in.

    A passage's `place` has its `source`, `start` and `end`. A server without an index answers 404.
    """
    whole = site.documents.document(name)
    if whole is None:
        raise _no_document(name)
    length = len(whole.text)
    start = min(start, length)
    end = min(length, start + MOST_CHARACTERS, length if end is None else max(start, end))
    text = whole.text[start:end]
    return DocumentText(name=whole.name, kind=whole.kind, length=length, start=start, end=end, text=text)


class FindQuery(PageQuery):
    """The words that somebody searches for."""

    q: Annotated[str, StringConstraints(max_length=_LONGEST_QUERY, strip_whitespace=True)] = ""


@router.get("/find", include_in_schema=False)
def find_page(site: AtSite, query: Annotated[FindQuery, Query()]) -> HTMLResponse:
    """Show the passages of the index that hold some words."""
    hits = site.documents.search(query.q, _SHOWN_HITS)
    return page("find.html", here="explore", site=site, q=query.q, hits=hits, most=_SHOWN_HITS)


class DocumentQuery(PageQuery):
    """Which document, which stretch of it is highlighted, and which part is shown instead of that where it begins."""

    name: str = ""
    start: _Offset = 0
    end: _Offset = 0
    part: PageNumber | None = None


@router.get("/document", include_in_schema=False)
def document_page(site: AtSite, query: Annotated[DocumentQuery, Query()]) -> HTMLResponse:
    """Show the part of a document in which a passage stands."""
    part = site.documents.part(query.name, query.start, query.end, query.part)
    if part is None:
        raise _no_document(query.name)
    address = {"name": query.name, "start": query.start or None, "end": query.end or None}
    return page("document.html", here="explore", site=site, part=part, query=address, end=query.end)


def _no_document(name: str) -> NotThereError:
    return NotThereError(f"there is no document '{name[:80]}' in the index.")
