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
_NOTHING_BETWEEN = 3  # characters: line breaks alone
_LEVELS_OF_UNDERLINES = "=-~*^"  # as most texts nest them; what matters is that the same sign gives the same level


def read_plain(text: str) -> Document:
    """Return a document of the text of a file, whose pages form feeds may part."""
    if _FORM_FEED in text:
        pages = drop_repeated([page.split("\n") for page in text.split(_FORM_FEED)])
        text = "\n\n".join("\n".join(page) for page in pages)
    candidates = list(islice(_candidates(text), MOST_HEADINGS))
    in_a_row: set[int] = set()  # with nothing between, they are the items of a list
    for heading, following in pairwise(candidates):
        if heading.level == following.level and following.start - heading.end <= _NOTHING_BETWEEN:
            in_a_row |= {heading.start, following.start}
    return Document(text, [heading for heading in candidates if heading.start not in in_a_row])


def _candidates(text: str) -> Iterator[Heading]:
    """Yield lines that look like headings: first after a blank line, and alone or above a line of signs."""
    for match in _FIRST_LINE.finditer(text):
        line, below = match["line"], match["below"] or ""
        if below.strip():
            if _UNDERLINE.fullmatch(below) and abs(len(below.strip()) - len(line.strip())) <= 2:
                level = 1 + _LEVELS_OF_UNDERLINES.index(below[0])
                yield Heading(match.start("line"), match.end("below"), level, one_line(line))
        elif level := _level(line.strip()):
            yield Heading(*match.span("line"), level, one_line(line))


def _level(line: str) -> int:
    """Return the level of a heading that stands alone: numbered, named as one, or in capitals; 0 for other lines."""
    if line.endswith(_NO_HEADING_ENDS):
        return 0
    if match := _NUMBERED.fullmatch(line):
        return 1 + match["number"].count(".")
    # abbreviations and codes in capitals have few letters in a row
    is_shouted = line.isupper() and line[0].isalnum() and sum(map(str.isalpha, line)) * 2 > len(line) > 3
    return 1 if _NAMED.fullmatch(line) or is_shouted else 0


_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]++(.*))?")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}(?:[-*+>|]|\d{1,9}[.)]\s)")
"""a line that cannot be a heading above an underline: blank, code, an item, a quotation or a row of a table"""
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:(.+)$", re.MULTILINE)
_LONGEST_FRONT_MATTER = 1 << 16  # characters: a longer block between two rules is text
_LONGEST_LINE = 1_000  # characters: no heading is longer, and the patterns need not look at what is
# Marks within a heading: pictures, links, references, emphasis, code, anchors that sites put behind headings.
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_MARKS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)|<[^<>]*>|\{[#.:][^{}]*\}\s*$|¶\s*$")


def read_markdown(text: str) -> Document:
    """Return a document of the text of a Markdown file."""
    front, title = _FRONT_MATTER.match(text, 0, _LONGEST_FRONT_MATTER), ""
    if front and ":" in front[1]:
        match = _FRONT_TITLE.search(front[1])
        title = one_line(_unquoted(match[1].strip())) if match else ""
        text = text[front.end() :]  # what it says of author or layout is no part of the text
    return Document(text, list(islice(_find_headings(text), MOST_HEADINGS)), title)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 2 and value[0] in "\"'" and value[-1] == value[0] else value


def _find_headings(text: str) -> Iterator[Heading]:
    """Yield headings of both styles: marked by number signs, or underlined; none within code."""
    fence, start, before = "", 0, ""
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start : min(end, start + _LONGEST_LINE)]
        if match := _FENCE.match(line):
            mark, before = match[1], ""
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and not line.strip(" \t`~"):
                fence = ""  # code ends with the signs that began it, or more
        elif not fence:
            if heading := _heading(line, before, start, end):
                yield heading
            before = "" if heading or _NO_PARAGRAPH.match(line) else line
        start = end + 1


def _heading(line: str, before: str, start: int, end: int) -> Heading | None:
    """Return the heading that a line is, or that it makes of the line before."""
    if match := _ATX.fullmatch(line.rstrip(" \t")):
        title = match[2] or ""
        without_close = title.rstrip("#")  # "# A title ##"
        words = _plain(without_close if without_close.endswith((" ", "\t")) else title)
        return Heading(start, end, len(match[1]), words) if words else None
    if before and (match := _SETEXT.fullmatch(line)) and (words := _plain(before)):
        return Heading(start - len(before) - 1, end, 1 if match[1][0] == "=" else 2, words)
    return None


def _plain(heading: str) -> str:
    """Return the words of a heading without marks."""
    return one_line(_MARKS.sub("", _LINK.sub(r"\1", heading)))
