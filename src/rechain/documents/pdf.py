"""PDF: the lines of its pages put together to paragraphs, without headers and footers; bookmarks give the headings."""

import atexit
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import BinaryIO

from rechain.documents.characters import clean
from rechain.documents.layout import Document, Heading, one_line
from rechain.documents.pages import drop_repeated
from rechain.documents.pdf_process import Bookmark, PdfProcess
from rechain.errors import MissingExtraError

_PROCESS = PdfProcess()
atexit.register(_PROCESS.close)
# pdfium writes U+FFFE in place of the hyphen and the line break where a word goes on; lines tell where paragraphs end.
_JOINED_HYPHEN = "\ufffe"
_HYPHEN_AT_END = re.compile(r"(?<=[^\W\d_])[-\u2010]$")
# The dots of a table of contents, which would count as words.
_LEADERS = re.compile(r"(?: ?[.·…]){5,} ?")
_FULL_LINE = 0.75
"""of the longest lines of a page: a shorter line ends a paragraph, or is an item, a heading or a row"""
_LONGEST_LINES = 0.9
"""so many lines are not longer than what counts as a full line; a few run over"""
_SHORTEST_PROSE = 30
"""characters: narrower columns are tables"""
_BEGINS_A_BLOCK = re.compile(r"[•‣◦▪–—*-]\s|\(?\d{1,3}[.)]\s|\d+(?:\.\d+)+\.?\s|\(?[a-z]\)\s")
"""an item of a list or a numbered heading"""
_ENDS_A_SENTENCE = (".", "!", "?", ":", "。", "！", "？", ".”", '."', ".)")
_NO_WORD = re.compile(r"[\W_]+")
# What programs write as the title of a document that has none.
_NO_TITLE = re.compile(
    r"untitled|microsoft \w+ - .*|.*\.(?:docx?|pdf|tex|dvi|indd|qxd|p65|xlsx?|pptx?|rtf|odt)|\W*", re.IGNORECASE
)


def read_pdf(file: BinaryIO, process: PdfProcess = _PROCESS) -> Document:
    """Return the document of an open PDF."""
    if find_spec("pypdfium2") is None:
        raise MissingExtraError("Reading PDF", "documents")
    contents = process.read(file)
    pages = drop_repeated([_lines(page) for page in contents.pages])
    text, starts = _join_pages(pages, frozenset(_letters(bookmark.words) for bookmark in contents.bookmarks))
    title = one_line(clean(contents.title))
    headings = list(_find_headings(text, starts, contents.bookmarks))
    return Document(text, headings, "" if _NO_TITLE.fullmatch(title) else title, starts)


def _lines(page: str) -> list[str]:
    """Return the lines of a page; wide gaps, which part the cells of tables, stay."""
    lines = clean(page.replace(_JOINED_HYPHEN, "-\n")).split("\n")
    lines = [_LEADERS.sub(" … ", line) for line in lines]
    return [line.strip() if "   " in line else one_line(line) for line in lines]


def _letters(line: str) -> str:
    """Return what a bookmark and the heading that it leads to have in common: neither blanks nor the number before."""
    return _NO_WORD.sub("", line).lstrip("0123456789").casefold()


def _join_pages(pages: Sequence[Sequence[str]], headings: frozenset[str]) -> tuple[str, list[int]]:
    """Return the text of all pages, and where each begins; a paragraph that goes on overleaf stays one."""
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    for page in pages:
        text = "".join(_join_lines(page, headings))
        last = parts[-1] if parts else ""
        gap = "" if not length or not text else " " if _goes_on(last, text) else "\n\n"
        parts += (gap, text) if text else ()
        starts.append(length + len(gap))
        length += len(gap) + len(text)
    return "".join(parts), starts


def _goes_on(last: str, text: str) -> bool:
    return not last.endswith(_ENDS_A_SENTENCE) and text[:1].islower()


def _join_lines(lines: Sequence[str], headings: frozenset[str]) -> Iterator[str]:
    """Yield the lines of a page and what parts them: a blank within a paragraph, else one line break or two."""
    filled = [line for line in lines if line]
    lengths = sorted(map(len, filled))
    full = _FULL_LINE * lengths[int(_LONGEST_LINES * (len(lengths) - 1))] if lengths else 0
    for line, following in zip(filled, [*filled[1:], ""], strict=False):
        if not following:
            yield line
        elif headings and (_letters(line) in headings or _letters(following) in headings):
            yield f"{line}\n\n"
        elif _HYPHEN_AT_END.search(line) and following[0].islower():
            yield line[:-1]
        else:
            yield line + _gap(line, following, full)


def _gap(line: str, following: str, full: float) -> str:
    """Return what parts two lines."""
    is_full = len(line) >= max(full, _SHORTEST_PROSE)
    if _BEGINS_A_BLOCK.match(following):
        return "\n"
    if is_full or (following[0].islower() and not line.endswith(_ENDS_A_SENTENCE)):
        return " "
    return "\n\n" if line.endswith(_ENDS_A_SENTENCE) else "\n"


def _find_headings(text: str, starts: Sequence[int], bookmarks: Sequence[Bookmark]) -> Iterator[Heading]:
    """Yield the bookmarks whose words begin a line of the page that they lead to, in the order of the text."""
    ends = [*starts[1:], len(text)]
    place = 0
    for bookmark in bookmarks:
        words = one_line(clean(bookmark.words))
        if not words or not 0 <= bookmark.page < len(starts):
            continue
        pattern = _NO_WORD.sub(r"[\\W_]+", words.strip()).removeprefix(r"[\W_]+").removesuffix(r"[\W_]+")
        line = re.compile(rf"^(?:[\dIVXA-Z.]+[ \t]+)?{pattern}", re.MULTILINE | re.IGNORECASE)
        if pattern and (match := line.search(text, max(place, starts[bookmark.page]), ends[bookmark.page])):
            yield Heading(*match.span(), bookmark.level + 1, words)
            place = match.end()
