"""PDF: the lines of its pages put together to paragraphs, without headers and footers; bookmarks give the headings."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ctypes import byref, c_int, create_string_buffer
from typing import IO, Any, NamedTuple

from rechain.errors import InputError
from rechain.formats.documents.characters import LARGEST_PACKED, clean, open_source, unpacked
from rechain.formats.documents.layout import Document, Heading, Unit, drop_repeated, one_line
from rechain.formats.documents.source_files import Source

MOST_PAGES = 20_000
MOST_CHARACTERS = 20_000_000
_MOST_BOOKMARKS = 10_000
# pdfium writes U+FFFE in place of hyphen and line break within a word; the line breaks are needed to find paragraphs.
_JOINED_HYPHEN = "\ufffe"
_HYPHEN_AT_END = re.compile(r"(?<=[^\W\d_])[-\u2010]$")
# The dots of a table of contents, which would count as words.
_LEADERS = re.compile(r"(?: ?[.·…]){5,} ?")
_ENTRY = re.compile(r".{1,200} … (?:\d{1,5}|[ivxlc]{1,7})", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"[-–— ]*(?:\d{1,4}|[ivxlc]{1,7})[-–— ]*", re.IGNORECASE)
_CHAPTER = re.compile(
    r"^[\divxlc]{0,5}\s*(?:chapter|section|part|appendix|kapitel|teil|anhang|abschnitt)\s+[\dA-Z.]{1,8}[:.]?\s|^\d+ ",
    re.IGNORECASE,
)
_LINE = re.compile(r"^[^\n]+", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_HEADING_NUMBER = re.compile(r"[\dIVXA-Z.]+[ \t]+")
_LONGEST_TITLE, _LONGEST_LINE = 100, 500  # characters of a line that is compared with titles
_TYPEWRITER = re.compile(
    rb"mono|courier|consol|menlo|inconsolata|typewriter|fixed|lettergothic|cm(?:sl|i|c)?tt|lmtt|ectt|sftt|txtt|code",
    re.IGNORECASE,
)
_FIXED_PITCH = 1
_LONGEST_FONT = 128  # characters of a name
_FULL_LINE = 0.75  # of the longest lines of a page: a shorter line ends a paragraph, or is an item, a heading or a row
_LONGEST_LINES = 0.9  # so many lines are not longer than what counts as a full line; a few run over
_SHORTEST_PROSE = 30  # characters: narrower columns are tables
_BEGINS_A_BLOCK = re.compile(r"[•‣◦▪–—*-]\s|\(?\d{1,3}[.)]\s|\d+(?:\.\d+)+\.?\s|\(?[a-z]\)\s")
"""an item of a list or a numbered heading"""
_ENDS_A_SENTENCE = (".", "!", "?", ":", "。", "！", "？", ".”", '."', ".)")
_NO_WORD = re.compile(r"[\W_]+")
# What programs write as the title of a document that has none.
_NO_TITLE = re.compile(
    r"untitled|microsoft \w+ - .*|.*\.(?:docx?|pdf|tex|dvi|indd|qxd|p65|xlsx?|pptx?|rtf|odt)|\W*", re.IGNORECASE
)


class Bookmark(NamedTuple):
    """An entry of the outline that viewers show next to the pages."""

    level: int  # from 0, as is the page
    words: str
    page: int


class Line(str):
    """A line of a page."""

    is_code = False
    is_entry = False
    """of a table of contents"""


class Contents(NamedTuple):
    """What is read of a PDF."""

    pages: list[list[Line]]
    title: str
    bookmarks: list[Bookmark]


def read_pdf(source: Source) -> Document:
    """Return the document of a PDF; raises InputError if it is damaged or locked."""
    with open_source(source) as file:
        try:
            contents = _read(unpacked(source, file, LARGEST_PACKED))
        except (InputError, MemoryError, ImportError):
            raise
        except Exception as error:
            words = " ".join(str(error).split())[:200]
            if "password" in words.lower():
                raise InputError("is locked by a password; save it without one") from error
            raise InputError(f"is a damaged PDF, or none ({words.rstrip('.') or type(error).__name__})") from error
    pages = _drop_heads(drop_repeated(contents.pages), contents.bookmarks)
    headings = frozenset(_letters(bookmark.words) for bookmark in contents.bookmarks)
    document = _join_pages(list(pages), headings)
    title = one_line(clean(contents.title))
    document.title = _first_line(contents.pages) if _NO_TITLE.fullmatch(title) else title
    document.headings = list(_find_headings(document.text, document.pages, contents.bookmarks))
    return document


def _drop_heads(pages: Sequence[list[Line]], bookmarks: Sequence[Bookmark]) -> Iterator[list[Line]]:
    """Yield pages without the titles of chapters above and below them, which the bookmarks name, and page numbers."""
    first: dict[str, int] = {}
    for bookmark in bookmarks:
        first.setdefault(_letters(bookmark.words), bookmark.page)
    for number, lines in enumerate(pages):
        filled = [at for at, line in enumerate(lines) if line]
        edge = {*filled[:1], *filled[-1:]} if len(pages) > 1 else set()
        drop = {at for at in edge if _PAGE_NUMBER.fullmatch(lines[at])}
        drop |= {at for at in edge if first.get(_head(lines[at]), number) < number}
        yield [line for at, line in enumerate(lines) if at not in drop]


def _head(line: str) -> str:
    """Return what a line at the edge of a page has in common with the bookmark of its chapter."""
    return _letters(_CHAPTER.sub("", line)).rstrip("0123456789")


def _first_line(pages: Sequence[Sequence[Line]]) -> str:
    """Return the first line of a document that names no title, if it may be one."""
    line = next((line for page in pages[:1] for line in page if line), Line())
    is_title = not line.is_code and len(line) <= _LONGEST_TITLE and not line.endswith(_ENDS_A_SENTENCE)
    return line if is_title and _WORD.search(line) else ""


def _letters(line: str) -> str:
    """Return what a bookmark and the heading that it leads to have in common: neither blanks nor the number before."""
    return _NO_WORD.sub("", line).lstrip("0123456789").casefold()


def _join_pages(pages: Sequence[Sequence[Line]], headings: frozenset[str]) -> Document:
    """Return the text of all pages, and where each begins; a paragraph that continues on the next page stays one."""
    parts: list[str] = []
    document = Document("")
    length = paragraph = 0
    code: int | None = None  # where the code that is open begins
    last = Line()
    for page in pages:
        filled = [line for line in page if line]
        gap = _gap_between_pages(last, filled[0]) if filled and length else ""
        document.pages.append(length + len(gap))
        for place, (line, text, after) in enumerate(_join_lines(filled, headings)):
            if not place:
                parts.append(gap)
                length += len(gap)
            if line.is_code and code is None:
                code = length
            elif not line.is_code and code is not None:
                document.units += [Unit(paragraph, code, length), Unit(code, code, length)]
                code, paragraph = None, length
            if line.is_entry:
                document.navigation.append((length, sum(map(str.isalnum, text))))
            parts += (text, after)
            length += len(text) + len(after)
            paragraph = length if after == "\n\n" and not _code_follows(filled, place) else paragraph
            last = line
    document.text = "".join(parts)
    return document


def _code_follows(lines: Sequence[Line], place: int) -> bool:
    return place + 1 < len(lines) and lines[place + 1].is_code


def _gap_between_pages(last: Line, following: Line) -> str:
    if last.is_code and following.is_code:
        return "\n"
    return " " if following[:1].islower() and not last.endswith(_ENDS_A_SENTENCE) else "\n\n"


def _join_lines(lines: Sequence[Line], headings: frozenset[str]) -> Iterator[tuple[Line, str, str]]:
    """Yield the lines of a page and what parts them: a blank within a paragraph, else one line break or two."""
    lengths = sorted(len(line) for line in lines if not line.is_code)
    full = _FULL_LINE * lengths[int(_LONGEST_LINES * (len(lengths) - 1))] if lengths else 0
    for line, following in zip(lines, [*lines[1:], Line()], strict=False):
        is_full, ends_sentence = len(line) >= max(full, _SHORTEST_PROSE), line.endswith(_ENDS_A_SENTENCE)
        text, after = str(line), "\n"
        if not following:
            after = ""
        elif headings and (_letters(line) in headings or _letters(following) in headings):
            after = "\n\n"
        elif line.is_code or following.is_code:
            after = "\n" if line.is_code and following.is_code else "\n\n"
        elif line.is_entry or _BEGINS_A_BLOCK.match(following):
            pass
        elif _HYPHEN_AT_END.search(line) and following[0].islower():
            text, after = line[:-1], ""
        elif is_full or (following[0].islower() and not ends_sentence):
            after = " "
        elif ends_sentence:
            after = "\n\n"
        yield line, text, after


def _find_headings(text: str, starts: Sequence[int], bookmarks: Sequence[Bookmark]) -> Iterator[Heading]:
    """Yield the bookmarks whose words begin a line of the page that they lead to, in the order of the text."""
    ends = [*starts[1:], len(text)]
    place = 0
    lines: dict[int, list[tuple[str, int]]] = {}  # of a page: what they have in common with bookmarks, and their starts
    for bookmark in bookmarks:
        words, page = one_line(clean(bookmark.words)), bookmark.page
        key = _letters(words)
        if not key or not 0 <= page < len(starts):
            continue
        if page not in lines:
            matches = _LINE.finditer(text, starts[page], ends[page])
            lines[page] = sorted((_letters(match[0][:_LONGEST_LINE]), match.start()) for match in matches)
        number = bisect_left(lines[page], (key, place))
        if number < len(lines[page]):  # of lines that begin with it, the first one of those that are alike
            number = bisect_left(lines[page], (lines[page][number][0], place))
        letters, start = lines[page][number] if number < len(lines[page]) else ("", 0)
        if letters.startswith(key) and start >= place:
            place = _end_of(text, start, key) if letters != key else _line_end(text, start)
            yield Heading(start, place, bookmark.level + 1, words)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _end_of(text: str, start: int, key: str) -> int:
    """Return where a heading ends that is only the beginning of a line."""
    number = _HEADING_NUMBER.match(text, start)
    end, letters = (number.end() if number else start), 0
    while letters < len(key) and end < len(text):
        letters += text[end].isalnum()
        end += 1
    return end


def _read(file: IO[bytes]) -> Contents:
    import pypdfium2

    with pypdfium2.PdfDocument(file) as document:
        count = len(document)
        if count > MOST_PAGES:
            raise InputError(f"has {count:,} pages; the most are {MOST_PAGES:,}: split it")
        pages: list[list[Line]] = []
        length = 0
        for number in range(count):
            pages.append(_read_page(document, number))
            length += sum(map(len, pages[-1]))
            if length > MOST_CHARACTERS:
                raise InputError(f"has more than {MOST_CHARACTERS // 1_000_000} million characters of text; split it")
        if count and not any(pages):
            return Contents([], "", [])
        title, bookmarks = "", []
        with suppress(Exception):  # what says little about the text, and is often damaged
            title = document.get_metadata_dict().get("Title", "")
            bookmarks = _read_bookmarks(document)
        return Contents(pages, title, bookmarks)


def _read_page(document: Any, number: int) -> list[Line]:
    """Return the lines of a page; none of one that is damaged among others that are not."""
    import pypdfium2

    lines: list[Line] = []
    try:
        page = document[number]
        text_page = page.get_textpage()
        place = 0
        for line in text_page.get_text_range().split("\n"):
            lines += _lines(line, _is_code(text_page, line, place))
            place += len(line) + 1
        text_page.close()
        page.close()
    except pypdfium2.PdfiumError:
        return []
    return lines


def _lines(line: str, is_code: bool) -> Iterator[Line]:
    """Yield a line, or the two that a hyphen parts; wide gaps, which part the cells of tables, stay."""
    for part in clean(line.replace(_JOINED_HYPHEN, "-\n")).split("\n"):
        part = part.strip()
        shown = Line(_LEADERS.sub(" … ", part) if "   " in part or is_code else one_line(_LEADERS.sub(" … ", part)))
        shown.is_code, shown.is_entry = is_code, not is_code and bool(_ENTRY.fullmatch(shown))
        yield shown


def _is_code(text_page: Any, line: str, place: int) -> bool:
    """Return whether a line begins and ends in a font of typewriters."""
    from pypdfium2 import raw

    filled = line.strip()
    if not filled:
        return False
    first = place + line.index(filled[0])
    name, flags = create_string_buffer(_LONGEST_FONT), c_int()
    for at in (first, first + len(filled) - 1):
        length = raw.FPDFText_GetFontInfo(text_page.raw, at, name, _LONGEST_FONT, byref(flags))
        if not 0 < length <= _LONGEST_FONT or not (flags.value & _FIXED_PITCH or _TYPEWRITER.search(name.value)):
            return False
    return True


def _read_bookmarks(document: Any) -> list[Bookmark]:
    bookmarks = []
    for bookmark, _ in zip(document.get_toc(max_depth=6), range(_MOST_BOOKMARKS), strict=False):
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            bookmarks.append(Bookmark(bookmark.level, bookmark.get_title(), page))
    return bookmarks
