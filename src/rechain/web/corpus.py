"""The index behind a server: passages found for questions and by words, and documents shown part by part.

It loads the search engine, so that only a server with an index imports it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rechain.errors import RechainError
from rechain.formats.datasets import Entry
from rechain.index.engine import Ask, read_passage
from rechain.index.index import Document, Index, read_info
from rechain.index.search import FindSettings, add_named, fill_entries, query_words
from rechain.schema import Passage, Question, Recovered
from rechain.text.highlights import Piece
from rechain.web.passages import Place, place_of, snippet, whole_words
from rechain.web.service import State

_PART = 20_000
"""characters of a document on one page: some minutes of reading, drawn in a few milliseconds"""


class SearchHit(NamedTuple):
    """A passage that holds words that were searched for."""

    passage: Passage
    score: float
    place: Place | None
    pieces: Sequence[Piece]
    """the stretch of its text that holds most of the words, cut where they stand"""

    @property
    def snippet(self) -> str:
        """The same stretch as one text."""
        return "".join(piece.text for piece in self.pieces)


class DocumentPart(NamedTuple):
    """A part of a document's text, cut where a passage that should be shown in it begins and ends."""

    name: str
    kind: str
    length: int
    """characters of the whole document"""
    number: int
    """of the part, from 1"""
    parts: int
    start: int
    before: str
    passage: str
    after: str


class Corpus:
    """An index, and how many passages are sought in it for a question."""

    def __init__(self, index: Index, most: int | None = None) -> None:
        self._index, self.most = index, most
        self._settings = None if most is None else FindSettings(most)

    @property
    def index(self) -> Index:
        """The index as it is now: if it was built again, the new generation is opened."""
        self._index = self._index.newest()
        return self._index

    @property
    def state(self) -> State:
        """Whether the index, or a newer one in its place, can be opened."""
        try:
            read_info(self.index.folder)
        except RechainError:
            return "failed"
        return "ok"

    def fill(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return questions with the passages that the index has for them."""
        return fill_entries(self.index, entries, self._settings)

    def with_chains(self, question: Question, recovered: Recovered) -> Question:
        """Return a question with all passages that its chains name."""
        return add_named(self.index, question, recovered)

    def search(self, text: str, most: int) -> list[SearchHit]:
        """Return the passages that hold most of the words of a text, the rarer ones counting more."""
        words = query_words(text)
        return [
            SearchHit(passage, hit.score, place_of(passage), snippet(passage.text, whole_words(passage.text, words)))
            for hit in self.index.search([Ask(words, limit=most)])[0]
            for passage in [read_passage(hit.record)]
        ]

    def document(self, name: str) -> Document | None:
        """Return a document by its name, or None."""
        try:
            return self.index.document(name)
        except KeyError:
            return None

    def part(self, name: str, start: int, end: int, number: int | None = None) -> DocumentPart | None:
        """Return a part of a document: that in which a stretch begins, unless its number, from 1, is given.

        None where there is no such document.
        """
        document = self.document(name)
        return None if document is None else cut_part(document, start, end, number)


def cut_part(document: Document, start: int, end: int, number: int | None) -> DocumentPart:
    """Return a part of a document's text; a stretch that begins in it and ends in the next one is shown whole."""
    text, starts = document.text, [0]
    while len(text) - starts[-1] > _PART:  # parts begin after a line's end, if one is in reach
        end_of_part = starts[-1] + _PART
        line_end = text.rfind("\n", starts[-1] + _PART // 2, end_of_part)
        starts.append(end_of_part if line_end < 0 else line_end + 1)
    number = bisect_right(starts, start) if number is None else min(number, len(starts))
    first = starts[number - 1]
    last = starts[number] if number < len(starts) else len(text)
    if first <= start < last < end:
        last = min(end, last + _PART, len(text))
    left, right = max(start, first), min(end, last)
    if left >= right:
        left = right = last
    return DocumentPart(
        name=document.name,
        kind=document.kind,
        length=len(text),
        number=number,
        parts=len(starts),
        start=first,
        before=text[first:left],
        passage=text[left:right],
        after=text[right:last],
    )
