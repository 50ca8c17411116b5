"""What every converter makes of a file: its text without headers and footers, and where its headings and pages are."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from rechain.formats.documents.characters import clean

_LONGEST_HEADING = 200  # characters that a heading gives to a title; what is longer is a paragraph in the wrong style
MOST_HEADINGS = 100_000  # of a document; whatever has more is no document, and each takes memory
_BLANKS = re.compile(r"\s+")


class Heading(NamedTuple):
    """A heading: where it stands in the text, its level (1 is the highest), and its words without markup."""

    start: int
    end: int
    level: int
    words: str


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


class Builder:
    """A document put together from blocks: paragraphs, headings, and lines of lists and tables."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = 0
        self._headings: list[Heading] = []

    def add(self, text: str, gap: str = "\n\n") -> None:
        """Add a block after a gap; one without any words adds nothing."""
        text = clean(text).rstrip().lstrip("\n")  # converters make characters of references such as &shy;
        if not text:
            return
        gap = gap if self.length else ""
        self._parts += (gap, text)
        self.length += len(gap) + len(text)

    def add_heading(self, text: str, level: int) -> None:
        """Add a heading, which is one line whatever its file has; sites put an anchor behind it."""
        words = one_line(clean(text)).rstrip(" ¶")
        if words:
            self.add(words)
            self._headings.append(Heading(self.length - len(words), self.length, level, words))

    def document(self, title: str = "") -> Document:
        """Return all that was added."""
        return Document("".join(self._parts), self._headings, one_line(title))


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
_NUMBER = re.compile(r"\d{1,6}")
_MOST_NUMBERS = 4  # of a line that are tried as the page's; a row of a table has more

Pages = Sequence[Sequence[str]]
Key = tuple[str, int | None]  # a line as it is; or without one number, and what that number is beyond the page's


def drop_repeated(pages: Pages) -> list[list[str]]:
    """Return the lines of pages without headers and footers, page numbers and what else stands on half of the pages."""
    if not _FEWEST_PAGES <= len(pages) <= _MOST_PAGES:
        return [list(page) for page in pages]
    edges = [_edge(page) for page in pages]
    at_edges = Counter(
        key
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
        for key in {key for at in edge for key in _keys(page[at].strip(), number)}
    )
    fewest = max(_FEWEST_PAGES - 1, (len(pages) + 1) // 2)  # half, since left and right pages may differ
    lines = Counter(line for page in pages for line in {line.strip() for line in page if 0 < len(line) <= _LONGEST})
    anywhere = {
        line
        for line, count in lines.items()
        # with letters, as a column of tables may hold the same number on all pages
        if 2 * count > len(pages) >= _FEWEST_FOR_BODY and any(map(str.isalpha, line))
    }
    return [
        [
            line
            for at, line in enumerate(page)
            if line.strip() not in anywhere
            and not (at in edge and any(at_edges[key] >= fewest for key in _keys(line.strip(), number)))
        ]
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]


def _edge(page: Sequence[str]) -> frozenset[int]:
    """Return where in a page its first and last lines stand, blank ones not counted."""
    filled = [at for at, line in enumerate(page) if line.strip()]
    return frozenset((*filled[:_EDGE], *filled[-_EDGE:]))


def _keys(line: str, page: int) -> Iterator[Key]:
    """Yield what a line may share with those of other pages: all of it, or all but a number that grows by page."""
    if not line or len(line) > _LONGEST:
        return
    yield line, None
    for match in islice(_NUMBER.finditer(line), _MOST_NUMBERS):
        yield f"{line[: match.start()]}#{line[match.end() :]}", int(match.group()) - page
