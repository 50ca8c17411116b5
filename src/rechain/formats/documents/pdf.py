"""PDF: the lines of its pages put together to paragraphs, without headers and footers; bookmarks give the headings."""

import os
import re
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, BinaryIO, NamedTuple

from rechain.errors import InputError, MissingExtraError, ResumableError
from rechain.formats.documents.characters import clean, open_source
from rechain.formats.documents.layout import Document, Heading, drop_repeated, one_line
from rechain.formats.documents.source_files import Source
from rechain.system.processes import Service

MOST_SECONDS = 120
"""of a core's time for one file: 100,000 pages of prose, and thirty times the longest of books. A limit by the clock
would refuse files because a machine is busy."""
MOST_MEMORY = 1_000_000_000
"""bytes of address space, of which Python and pdfium take a quarter without reading anything"""
MOST_PAGES = 20_000
MOST_CHARACTERS = 20_000_000
_MOST_BOOKMARKS = 10_000
# pdfium writes U+FFFE in place of hyphen and line break within a word; the line breaks are needed to find paragraphs.
_JOINED_HYPHEN = "\ufffe"
_HYPHEN_AT_END = re.compile(r"(?<=[^\W\d_])[-\u2010]$")
# The dots of a table of contents, which would count as words.
_LEADERS = re.compile(r"(?: ?[.·…]){5,} ?")
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


class Contents(NamedTuple):
    """What is read of a PDF."""

    pages: list[str]
    title: str
    bookmarks: list[Bookmark]


@cache
def pdf_service(seconds: int = MOST_SECONDS, memory: int = MOST_MEMORY) -> Service[Source, Contents]:
    """Return a process that reads PDFs, with limits on its time and memory.

    A PDF of a few kilobytes can keep any reader busy for years (forms that draw forms that draw forms), or crash it.
    Here that costs one process, and the next file gets another.
    """
    return Service(partial(_limited_reader, seconds, memory))


def read_pdf(source: Source, service: Service[Source, Contents] | None = None) -> Document:
    """Return the document of a PDF; raises InputError if it is damaged, locked or a trap."""
    if find_spec("pypdfium2") is None:
        raise MissingExtraError("Reading PDF", "documents")
    try:
        contents = (service or pdf_service())(replace(source, path=source.path.absolute()))
    except ResumableError as error:
        limits = f"over {MOST_SECONDS} seconds or {MOST_MEMORY // 1_000_000:,} MB"
        raise InputError(f"is damaged, or too much work to read ({limits}); print it to a new PDF") from error
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
    """Return the text of all pages, and where each begins; a paragraph that continues on the next page stays one."""
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    for page in pages:
        text = "".join(_join_lines(page, headings))
        last = parts[-1] if parts else ""
        continues = text[:1].islower() and not last.endswith(_ENDS_A_SENTENCE)
        gap = "" if not length or not text else " " if continues else "\n\n"
        parts += (gap, text) if text else ()
        starts.append(length + len(gap))
        length += len(gap) + len(text)
    return "".join(parts), starts


def _join_lines(lines: Sequence[str], headings: frozenset[str]) -> Iterator[str]:
    """Yield the lines of a page and what parts them: a blank within a paragraph, else one line break or two."""
    filled = [line for line in lines if line]
    lengths = sorted(map(len, filled))
    full = _FULL_LINE * lengths[int(_LONGEST_LINES * (len(lengths) - 1))] if lengths else 0
    for line, following in zip(filled, [*filled[1:], ""], strict=False):
        is_full, ends_sentence = len(line) >= max(full, _SHORTEST_PROSE), line.endswith(_ENDS_A_SENTENCE)
        if not following:
            yield line
        elif headings and (_letters(line) in headings or _letters(following) in headings):
            yield f"{line}\n\n"
        elif _HYPHEN_AT_END.search(line) and following[0].islower():
            yield line[:-1]
        elif _BEGINS_A_BLOCK.match(following):
            yield f"{line}\n"
        elif is_full or (following[0].islower() and not ends_sentence):
            yield f"{line} "
        else:
            yield f"{line}\n\n" if ends_sentence else f"{line}\n"


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


# What runs in the process


def _limited_reader(seconds: int, memory: int) -> Callable[[Sequence[Source]], list[Contents]]:
    """Limit the process and return the function that reads PDFs in it."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    return lambda sources: [_read_limited(source, seconds) for source in sources]


def _read_limited(source: Source, seconds: int) -> Contents:
    """Read a PDF; the system ends this process after that many more seconds of computing."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    with open_source(source) as file:
        try:
            return _read(file)
        except InputError:
            raise
        except MemoryError:
            raise InputError("takes too much memory to read; print it to a new PDF") from None
        except ImportError:
            raise InputError("cannot be read: pip install 'rechain[documents]'") from None
        except Exception as error:
            words = " ".join(str(error).split())[:200]
            if "password" in words.lower():
                raise InputError("is locked by a password; save it without one") from error
            raise InputError(f"is a damaged PDF, or none ({words.rstrip('.') or type(error).__name__})") from error


def _read(file: BinaryIO) -> Contents:
    import pypdfium2

    with pypdfium2.PdfDocument(file) as document:
        count = len(document)
        if count > MOST_PAGES:
            raise InputError(f"has {count:,} pages; the most are {MOST_PAGES:,}: split it")
        pages: list[str] = []
        length = 0
        for number in range(count):
            pages.append(_read_page(document, number))
            length += len(pages[-1])
            if length > MOST_CHARACTERS:
                raise InputError(f"has more than {MOST_CHARACTERS // 1_000_000} million characters of text; split it")
        if count and not any(pages):
            return Contents([], "", [])
        title, bookmarks = "", []
        with suppress(Exception):  # what says little about the text, and is often damaged
            title = document.get_metadata_dict().get("Title", "")
            bookmarks = _read_bookmarks(document)
        return Contents(pages, title, bookmarks)


def _read_page(document: Any, number: int) -> str:
    """Return the text of a page; nothing of one that is damaged among others that are not."""
    import pypdfium2

    try:
        page = document[number]
        text_page = page.get_textpage()
        text: str = text_page.get_text_range()
        text_page.close()
        page.close()
    except pypdfium2.PdfiumError:
        return ""
    return text


def _read_bookmarks(document: Any) -> list[Bookmark]:
    bookmarks = []
    for bookmark, _ in zip(document.get_toc(max_depth=6), range(_MOST_BOOKMARKS), strict=False):
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            bookmarks.append(Bookmark(bookmark.level, bookmark.get_title(), page))
    return bookmarks
