"""Plain text: pages without headers and footers, and headings where they cannot be mistaken."""

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from rechain.documents.layout import MOST_HEADINGS, Document, Heading, one_line
from rechain.documents.pages import drop_repeated

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
