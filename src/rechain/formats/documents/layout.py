"""What every converter makes of a file: its text without headers and footers, and where its headings and pages are."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from rechain.formats.documents.characters import clean

_LONGEST_HEADING = 200  # characters that a heading gives to a title; what is longer is a paragraph in the wrong style
MOST_HEADINGS = 100_000  # of a document; whatever has more is no document, and each takes memory
_MOST_UNITS = 200_000  # of a document; further ones are cut like any text
_TABLE_WORDS = 100  # after which the names of the columns are repeated: fewer than a passage has
_ROWS_TO_HEAD = 3  # a head is repeated after so many times its own words at least
_BLANKS = re.compile(r"\s+")


class Heading(NamedTuple):
    """A heading: where it stands in the text, its level (1 is the highest), and its words without markup."""

    start: int
    end: int
    level: int
    words: str


class Unit(NamedTuple):
    """A stretch that is one thing: a definition with its term, a table with its header, code with what introduces it.

    It is not cut at `body`, and not at all if it fits into a passage.
    """

    start: int
    body: int
    """where the definition, the first row or the code begins"""
    end: int
    name: str = ""
    """the term, which later parts of a long definition have in their title"""


@dataclass
class Document:
    """The readable text of a file. Blank lines part its paragraphs; rows of tables and items of lists are lines."""

    text: str
    headings: list[Heading] = field(default_factory=list)
    """in the order of the text"""
    title: str = ""
    """what the file itself gives as its title"""
    pages: list[int] = field(default_factory=list)
    """where each page begins; none where the format has no pages"""
    units: list[Unit] = field(default_factory=list)
    """in any order"""
    anchors: list[tuple[int, str]] = field(default_factory=list)
    """where the parts of an HTML page begin that have an id, and the id, in the order of the text"""
    lines: Sequence[int] = ()
    """the line of the file that each line of the text was, from 1; none where the file is no text"""
    navigation: list[tuple[int, int]] = field(default_factory=list)
    """where the text has links or entries of a table of contents, and how many of its characters are theirs"""


@dataclass
class Table:
    """The rows of a table, as far as they have been read."""

    in_head: bool = False
    """whether the rows that follow are marked as the names of the columns"""
    in_cell: bool = False
    rows: list[list[str]] = field(default_factory=list)
    heads: int = 0
    """how many of the first rows have the names of the columns"""
    linked: list[int] = field(default_factory=list)
    """the number of characters of links in each row"""
    _cells: list[str] = field(default_factory=list)
    _bodies: int = 0
    """cells of the row that is open that are no heads"""

    @property
    def is_layout(self) -> bool:
        """Whether it may well be no table but what parts a page, or code and the numbers of its lines."""
        return not self.rows and not self.in_head

    def start_cell(self, is_head: bool) -> None:
        """Start a cell."""
        self.in_cell = True
        self._bodies += not is_head

    def end_cell(self, text: str) -> None:
        """Add the text of the cell that is open to its row."""
        self._cells.append(text)
        self.in_cell = False

    def end_row(self, linked: int = 0) -> None:
        """End a row; one without any words is none."""
        if any(self._cells):
            self.heads += (self.in_head or not self._bodies) and self.heads == len(self.rows)
            self.rows.append(self._cells)
            self.linked.append(linked)
        self._cells, self._bodies = [], 0

    def lines(self) -> list[str]:
        """Return the rows as lines. Empty cells stay, as they mean something, but not columns that are all empty."""
        columns = max(map(len, self.rows), default=0)
        filled = bytearray(columns)
        for row in self.rows:
            for place, cell in enumerate(row):
                filled[place] |= bool(cell)
        rows = ([cell for cell, is_filled in zip(row, filled, strict=False) if is_filled] for row in self.rows)
        # what parts a page, such as a picture and the text next to it, has a cell of its own
        return [" | ".join(row) if sum(map(bool, row)) > 1 or self.heads else "".join(row) for row in rows]


class Builder:
    """A document put together from blocks: paragraphs, headings, and lines of lists and tables."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = 0
        self._headings: list[Heading] = []
        self._units: list[Unit] = []
        self._anchors: list[tuple[int, str]] = []
        self._navigation: list[tuple[int, int]] = []
        self.last: int | None = None
        """where the last block begins, if it is a paragraph: it may introduce what follows"""

    def add(self, text: str, gap: str = "\n\n", linked: int = 0) -> int | None:
        """Add a block after a gap, and return where it begins; one without any words adds nothing.

        `linked` is how many of its characters are links.
        """
        text = clean(text).rstrip().lstrip("\n")  # converters make characters of references such as &shy;
        if not text:
            return None
        gap = gap if self.length else ""
        self._parts += (gap, text)
        self.last = self.length + len(gap)
        self.length = self.last + len(text)
        if linked:
            self._navigation.append((self.last, linked))
        return self.last

    def add_heading(self, text: str, level: int, anchor: str = "") -> None:
        """Add a heading, which is one line whatever its file has; sites put an anchor behind it."""
        words = one_line(clean(text)).rstrip(" ¶")
        start = self.add(words) if words else None
        if start is not None:
            self._headings.append(Heading(start, self.length, level, words))
            self.add_anchor(start, anchor)
            self.last = None

    def add_table(self, table: Table, gap: str = "\n\n") -> int | None:
        """Add a table, and return where it begins. A long one is several, each with the names of the columns."""
        introduction, lines = self.last, table.lines()
        head, rest = "\n".join(lines[: table.heads]), lines[table.heads :]
        most = max(_TABLE_WORDS, _ROWS_TO_HEAD * len(head.split()))
        first = start = self.add(head, gap, sum(table.linked[: table.heads])) if head else None
        body, words = None, 0
        for line, linked in zip(rest, table.linked[table.heads :], strict=True):
            if head and words + len(line.split()) > most and words:
                self.add_unit(start, body)
                start, body, words = self.add(head), None, 0
            place = self.add(line, gap if first is None else "\n", linked)
            first, start, body = (place if at is None else at for at in (first, start, body))
            words += len(line.split())
        self.add_unit(start, body)
        self.add_unit(introduction, first)
        self.last = None
        return first

    def add_anchor(self, start: int, anchor: str) -> None:
        """Name the place of the text from which an anchor counts."""
        if anchor:
            self._anchors.append((start, anchor))

    def add_unit(self, start: int | None, body: int | None, name: str = "") -> None:
        """Keep what was added since `start` together."""
        if start is not None and body is not None and body < self.length and len(self._units) < _MOST_UNITS:
            self._units.append(Unit(start, body, self.length, name))

    def document(self, title: str = "") -> Document:
        """Return all that was added."""
        return Document(
            "".join(self._parts),
            self._headings,
            one_line(title),
            units=self._units,
            anchors=self._anchors,
            navigation=self._navigation,
        )


def one_line(text: str) -> str:
    """Return a text with single blanks in place of line breaks and runs of blanks."""
    return _BLANKS.sub(" ", text).strip()


def shorten(heading: str) -> str:
    """Return as much of a heading as a title shows."""
    return heading if len(heading) <= _LONGEST_HEADING else f"{heading[:_LONGEST_HEADING].rstrip()}…"


_EDGE = 3  # lines at the top and at the bottom of a page that may be header and footer
_FEWEST_PAGES = 3  # of two pages it cannot be told whether what both begin with is a header
_MOST_PAGES = 20_000  # of more, form feeds part something else than pages
_FEWEST_FOR_BODY = 4  # pages: a line amid the text must repeat on more before it counts as a stamp or a copyright line
_LONGEST = 160  # characters: a longer line is prose, whatever repeats it
_NEARBY = 4  # pages before and after: chapters have running heads of their own, every second page one of two
_FEWEST_LETTERS = 3  # of a running head; brackets that close code begin many pages
_NUMBER = re.compile(r"\d{1,6}")
_MOST_NUMBERS = 4  # of a line that are tried as the page's; a row of a table has more

Pages = Sequence[Sequence[str]]
AnyLine = TypeVar("AnyLine", bound=str)
Key = tuple[str, int | None]  # a line as it is; or without one number, and what that number is beyond the page's


def drop_repeated(pages: Sequence[Sequence[AnyLine]]) -> list[list[AnyLine]]:
    """Return the lines of pages without headers and footers, page numbers and what else stands on half of the pages."""
    return [
        [line for at, line in enumerate(page) if at not in repeated]
        for page, repeated in zip(pages, find_repeated(pages), strict=True)
    ]


def find_repeated(pages: Pages) -> list[Set[int]]:
    """Return the numbers of the lines of each page that repeat: headers, footers, page numbers and running heads."""
    if not _FEWEST_PAGES <= len(pages) <= _MOST_PAGES:
        return [frozenset() for _ in pages]
    edges = [_edge(page) for page in pages]
    keys = [
        {at: list(_keys(one_line(page[at]), number)) for at in edge}
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]
    on_pages: dict[Key, list[int]] = {}
    for number, of_page in enumerate(keys):
        for key in {key for of_line in of_page.values() for key in of_line}:
            on_pages.setdefault(key, []).append(number)
    fewest = max(_FEWEST_PAGES - 1, (len(pages) + 1) // 2)  # half, since left and right pages may differ
    lines = Counter(line for page in pages for line in {line.strip() for line in page if 0 < len(line) <= _LONGEST})
    anywhere = {
        line
        for line, count in lines.items()
        # with letters, as a column of tables may hold the same number on all pages
        if 2 * count > len(pages) >= _FEWEST_FOR_BODY and any(map(str.isalpha, line))
    }

    def repeats(key: Key, number: int, is_outermost: bool) -> bool:
        others = on_pages[key]
        return len(others) >= fewest or (is_outermost and _is_running(others, number, key))

    return [
        {at for at, line in enumerate(page) if line.strip() in anywhere}
        | {
            at
            for at, of_line in of_page.items()
            if any(repeats(key, number, at in (edge[0], edge[-1])) for key in of_line)
        }
        for number, (page, edge, of_page) in enumerate(zip(pages, edges, keys, strict=True))
    ]


def _is_running(on_pages: Sequence[int], number: int, key: Key) -> bool:
    """Return whether a line at the very edge of a page is the title of a chapter, which pages nearby have as well."""
    first, last = bisect_left(on_pages, number - _NEARBY), bisect_right(on_pages, number + _NEARBY)
    return last - first >= _FEWEST_PAGES and sum(map(str.isalpha, key[0])) >= _FEWEST_LETTERS


def _edge(page: Sequence[str]) -> Sequence[int]:
    """Return where in a page its first and last lines stand, blank ones not counted."""
    filled = [at for at, line in enumerate(page) if line.strip()]
    return filled if len(filled) <= 2 * _EDGE else [*filled[:_EDGE], *filled[-_EDGE:]]


def _keys(line: str, page: int) -> Iterator[Key]:
    """Yield what a line may share with those of other pages: all of it, or all but a number that grows by page."""
    if not line or len(line) > _LONGEST:
        return
    yield line, None
    for match in islice(_NUMBER.finditer(line), _MOST_NUMBERS):
        yield f"{line[: match.start()]}#{line[match.end() :]}", int(match.group()) - page
