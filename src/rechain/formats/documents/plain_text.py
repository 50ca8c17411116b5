"""Plain text and Markdown: pages without headers and footers, and headings where they cannot be mistaken."""

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from rechain.formats.documents.layout import MOST_HEADINGS, Document, Heading, drop_repeated, one_line

_FORM_FEED = "\f"
# A line of up to 80 characters, as a longer one is prose, at the start or after a blank line; and the line below it.
_FIRST_LINE = re.compile(
    r"(?:\A|(?<=\n)[^\S\n]*+\n)(?P<line>[^\S\n]{0,20}[^\s][^\n]{0,79})(?=\n(?P<below>[^\n]{0,100})|\Z)"
)
_NUMBERED = re.compile(r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,4})\.?[ \t]+[^\W\d_].*")
_NAMED = re.compile(
    r"(?:chapter|part|section|appendix|kapitel|teil|abschnitt|anhang)\s+(?:\d+|[ivxlc]+|[a-z])\b.*", re.IGNORECASE
)
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|~{3,}|\*{3,}|\^{3,})\s*")
_NO_HEADING_ENDS = (".", ",", ";", ":", "!", "?", "|", "。", "，", "；", "！", "？")
_NOTHING_BETWEEN = 3
"""characters: line breaks alone"""
_LEVELS_OF_UNDERLINES = "=-~*^"
"""as most texts nest them; what matters is that the same sign gives the same level"""


def read_plain(text: str) -> Document:
    """Return a document of the text of a file, whose pages form feeds may part."""
    if _FORM_FEED in text:
        pages = drop_repeated([page.split("\n") for page in text.split(_FORM_FEED)])
        text = "\n\n".join("\n".join(page) for page in pages)
    return Document(text, list(_safe(list(islice(_candidates(text), MOST_HEADINGS)))))


def _candidates(text: str) -> Iterator[Heading]:
    """Yield lines that look like headings: first after a blank line, and alone or above a line of signs."""
    for match in _FIRST_LINE.finditer(text):
        line, below = match["line"], match["below"] or ""
        if below.strip():
            if _underlines(below, line):
                level = 1 + _LEVELS_OF_UNDERLINES.index(below[0])
                yield Heading(match.start("line"), match.end("below"), level, one_line(line))
        elif level := _level(line.strip()):
            yield Heading(*match.span("line"), level, one_line(line))


def _underlines(signs: str, line: str) -> bool:
    return _UNDERLINE.fullmatch(signs) is not None and abs(len(signs.strip()) - len(line.strip())) <= 2


def _level(line: str) -> int:
    """Return the level of a heading that stands alone: numbered, named as one, or in capitals; 0 for other lines."""
    if line.endswith(_NO_HEADING_ENDS):
        return 0
    if match := _NUMBERED.fullmatch(line):
        return 1 + match["number"].count(".")
    return 1 if _NAMED.fullmatch(line) or _is_shouted(line) else 0


def _is_shouted(line: str) -> bool:
    """Return whether a line is words in capitals; abbreviations and codes have few letters in a row."""
    return line.isupper() and line[0].isalnum() and sum(character.isalpha() for character in line) * 2 > len(line) > 3


def _safe(candidates: list[Heading]) -> Iterator[Heading]:
    """Yield the candidates that text follows: in a row, with nothing between, they are the items of a list."""
    in_a_row: set[int] = set()
    for heading, following in pairwise(candidates):
        if heading.level == following.level and following.start - heading.end <= _NOTHING_BETWEEN:
            in_a_row |= {heading.start, following.start}
    yield from (heading for heading in candidates if heading.start not in in_a_row)


_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
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
    if before and (match := _SETEXT.fullmatch(line)):
        words = _plain(before)
        level = 1 if match[1][0] == "=" else 2
        return Heading(start - len(before) - 1, end, level, words) if words else None
    return None


def _plain(heading: str) -> str:
    """Return the words of a heading without marks."""
    return one_line(_MARKS.sub("", _LINK.sub(r"\1", heading)))
