"""Markdown: its text stays as it is written, since people read it so; its headings are found line by line.

Not by a full parser such as markdown-it, which takes a second and 100 MB of memory for every MB.
"""

import re
from collections.abc import Iterator
from itertools import islice

from rechain.documents.layout import MOST_HEADINGS, Document, Heading, one_line

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}(?:[-*+>|]|\d{1,9}[.)]\s)")
"""a line that cannot be a heading above an underline: blank, code, an item, a quotation or a row of a table"""
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*([\"']?)(.+?)\1[ \t]*$", re.MULTILINE)
_LONGEST_FRONT_MATTER = 1 << 16
"""characters: a longer block between two rules is text"""
_LONGEST_LINE = 1_000
"""characters: no heading is longer, and the patterns need not look at what is"""
# Marks within a heading: pictures, links, references, emphasis, code, anchors that sites put behind headings.
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_MARKS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)|<[^<>]*>|\{[#.:][^{}]*\}\s*$|¶\s*$")


def read_markdown(text: str) -> Document:
    """Return a document of the text of a Markdown file."""
    title, start = _read_front_matter(text)
    # what the front matter says of author or layout is no part of the text
    text = text[start:]
    return Document(text, list(islice(_find_headings(text), MOST_HEADINGS)), title)


def _read_front_matter(text: str) -> tuple[str, int]:
    """Return the title that the front matter gives, and where the text begins behind it."""
    match = _FRONT_MATTER.match(text, 0, _LONGEST_FRONT_MATTER)
    if match is None or ":" not in match[1]:
        return "", 0
    title = _FRONT_TITLE.search(match[1])
    return one_line(title[2]) if title else "", match.end()


def _find_headings(text: str) -> Iterator[Heading]:
    """Yield headings of both styles: marked by number signs, or underlined; none within code."""
    fence, start, before = "", 0, ""
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start : min(end, start + _LONGEST_LINE)]
        if mark := _FENCE.match(line):
            fence = _next_fence(fence, mark[1], line)
            before = ""
        elif not fence:
            if heading := _heading(line, before, start, end):
                yield heading
            before = "" if heading or _NO_PARAGRAPH.match(line) else line
        start = end + 1


def _next_fence(fence: str, mark: str, line: str) -> str:
    """Return the fence of the code that a line is in after it: one ends with the signs that began it, or more."""
    if not fence:
        return mark
    ends = mark[0] == fence[0] and len(mark) >= len(fence) and not line.strip(" \t`~")
    return "" if ends else fence


def _heading(line: str, before: str, start: int, end: int) -> Heading | None:
    """Return the heading that a line is, or that it makes of the line before."""
    if match := _ATX.fullmatch(line):
        words = _plain(match[2] or "")
        return Heading(start, end, len(match[1]), words) if words else None
    if before and (match := _UNDERLINE.fullmatch(line)):
        words = _plain(before)
        level = 1 if match[1][0] == "=" else 2
        return Heading(start - len(before) - 1, end, level, words) if words else None
    return None


def _plain(heading: str) -> str:
    """Return the words of a heading without marks."""
    return one_line(_MARKS.sub("", _LINK.sub(r"\1", heading)))
