"""What every converter makes of a file: its text, and where headings and pages stand in it."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from rechain.documents.characters import clean

_LONGEST_HEADING = 200
"""characters that a heading gives to a title; what is longer is a paragraph in the wrong style"""
MOST_HEADINGS = 100_000
"""of a document; whatever has more is no document, and each takes memory"""
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

    def page_at(self, offset: int) -> int | None:
        """Return the number of the page, from 1, on which an offset lies; None without pages."""
        return bisect_right(self.pages, offset) if self.pages else None


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
