"""Sentences of a text, of prose and of the lists, tables and headings of real documents; and lines that texts share."""

import re
from collections.abc import Callable, Iterator

from rechain.text.words import Span

_CAPITALS = "A-Z" + "".join(character for character in map(chr, range(0x80, 0x590)) if character.isupper())
"""Latin, Greek, Cyrillic and Armenian"""
_CASELESS = "\u05d0-\u109f\u1100-\u1cff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""letters of scripts without capitals: Hebrew, Arabic, Indian scripts, Thai, Han, Hangul"""
_OPENING, _CLOSING = "\"'“‘„«¿¡*_", "\"'”’»*_"
"""quotes, and the asterisks and underscores of Markdown, which may stand between a full stop and the blank"""
_MONTHS = "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
# What ends no sentence although a blank and a capital may follow: "e.g. Rome" and German's "z. B. Hotels" (but "5 p.m."
# may end one), the number of a list's item ("1. Open"), the day of "14. Mai", and an initial beside a quote ('William
# E. "Bill" Myers').
_NO_STOP = (
    r"(?<!\b[b-oq-z][.][A-Za-z][.])(?<!\b[b-oq-z][.]\s[A-Za-z][.])(?!(?<=\b[b-oq-z][.])\s[A-Za-z][.])"
    r"(?<!^\d[.])(?<!^\d\d[.])(?<!\s\s\d[.])"
    rf"(?!(?:(?<=\b\d[.])|(?<=\b\d\d[.]))\s+(?:{_MONTHS})\b)"
    rf"(?<!\b[A-Z][.][{_CLOSING}])(?!(?<=\b[A-Z][.])\s+[{_OPENING}])"
)
# A capital or a bracket must follow, so that "approx. 5 km" stays whole; "Mr. Smith" is cut, which does little harm.
_STOP = re.compile(
    rf"[.!?…؟।۔][{_CLOSING}]{{0,2}}{_NO_STOP}(\s+)(?=[{_OPENING}]*[{_CAPITALS}{_CASELESS}]|[(\[])", re.MULTILINE
)
_FULL_WIDTH_STOP = re.compile(r"[。！？；][」』”’）】]?(\s*)(?=[^\s。！？；」』”’）】])")
# The cells of a table's row stay together.
_CLOSING_TAG = re.compile(r"(?:</(?:p|li|tr|h\d|dd|div)>|<br ?/?>)(\s*)(?=\S)", re.IGNORECASE)
# Possessive, as blanks at the end of a text would take quadratic time.
_LINE_BREAK = re.compile(r"(?<=\S)([^\S\n]*+\n\s*+)(?=\S)")
_BEGINS_A_LINE = re.compile(r"#{1,6}\s|[-*+•‣◦–]\s|\d{1,3}[.)]\s|[|>]|<\w")
"""a Markdown heading, an item of a list, a row of a table, a quotation, or an HTML tag"""
_CELLS = re.compile(r"\S(?:\s*\|\s*|\t+| {3,})\S")
"""what parts the cells of a table's row, also without a mark before the first"""
_SHORT_LINE = 60
"""characters: the lines of prose that is wrapped by hand are longer"""


def find_sentences(text: str) -> list[Span]:
    """Return where the sentences of a text stand, and the lines that are none: headings, items, rows of tables.

    Together they cover the text, but for the blanks between them.
    """
    gaps = set(_gaps(text))
    starts = [0, *sorted(end for _, end in gaps)]
    ends = [*sorted(start for start, _ in gaps), len(text)]
    return list(zip(starts, ends, strict=True))


def _gaps(text: str) -> Iterator[Span]:
    """Yield the blanks between sentences, often empty ones; where two rules find the same gap, both yield it."""
    yield from (match.span(1) for match in _STOP.finditer(text))
    if not text.isascii():
        yield from (match.span(1) for match in _FULL_WIDTH_STOP.finditer(text))
    if "<" in text:
        yield from (match.span(1) for match in _CLOSING_TAG.finditer(text))
    if "\n" in text:
        yield from (gap for match in _LINE_BREAK.finditer(text) if _ends_a_line(text, *(gap := match.span(1))))


def _ends_a_line(text: str, start: int, end: int) -> bool:
    """Return whether a line break parts two lines, and does not only wrap prose."""
    line = text[text.rfind("\n", 0, start) + 1 : start].lstrip()
    return (
        text.count("\n", start, end) > 1
        or _BEGINS_A_LINE.match(text, end) is not None
        or line.startswith(("#", "|"))
        or _CELLS.search(line) is not None
        or line.endswith((":", "："))
        or (len(line) < _SHORT_LINE and not text[end].islower())
    )


_LONGEST = 160
"""characters: a longer line is prose"""
_NUMBER = re.compile(r"\d+")
_LINE = re.compile(r"[^\n]+")


def find_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that may be repeated elsewhere, with all numbers alike; one line alone is a text."""
    if "\n" in text:
        yield from (_normal(match.group()) for match in _LINE.finditer(text) if len(match.group()) <= _LONGEST)


def blank_lines(text: str, is_blanked: Callable[[str], bool]) -> str:
    """Return a text with blanks in place of some lines, so that offsets stay the same."""
    return _LINE.sub(lambda match: " " * len(match[0]) if is_blanked(_normal(match[0])) else match[0], text)


def _normal(line: str) -> str:
    return _NUMBER.sub("0", line.strip())
