"""HTML: what a reader of the page came for, without navigation, forms and scripts. Nothing is fetched or run.

lxml reports tags one after the other, and no tree is built: its time and memory grow with the file alone, while parsers
that build one, such as lexbor's, take minutes for 100,000 nested tags, and Python's own for 20,000 quotation marks.
"""

import re
from typing import Any

from rechain.errors import MissingExtraError
from rechain.formats.documents.layout import Builder, Document, one_line

_NEVER_TAGS = """script style noscript template svg iframe object audio video canvas map select option textarea
button"""
_NEVER = frozenset(_NEVER_TAGS.split())  # what holds no text, or none that is read in a row
_FURNITURE = frozenset(("nav", "form", "dialog", "menu"))
# of the page when outside of its main part; within it, of the article
_OUTER_FURNITURE = frozenset(("header", "footer", "aside"))
_MAIN = frozenset(("main", "article"))
# have no end tag, and so must not count as open
_VOID_TAGS = "area base br col embed hr img input link meta param source track wbr"
_VOID = frozenset(_VOID_TAGS.split())
_BLOCK_TAGS = """address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure
footer form header hr html legend li main nav ol p pre section summary table tbody tfoot thead tr ul"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LINES = frozenset(("li", "dt", "dd"))
_LISTS = frozenset(("ul", "ol", "dl"))
_CHARSET = re.compile(rb"""<meta[^<>]{0,200}?charset\s*=\s*["']?([\w-]{2,40})""", re.IGNORECASE)
_HEAD = 4096  # bytes in which a page must name its encoding, four times what the standard asks
_CHUNK = 1 << 16
_CELL = " | "
_BREAK = "\x00"  # stands for a line break that is shown; texts that are clean do not hold it
_DEEPEST_INDENT = 6
"""levels of nested lists that are shown; deeper ones are a trap, or made by a program for nobody to read"""


def declared_encoding(content: bytes) -> str:
    """Return the encoding that a page says it is in, or nothing."""
    match = _CHARSET.search(content, 0, _HEAD)
    return match[1].decode("ascii", "ignore") if match else ""


def read_html(text: str) -> Document:
    """Return a document of the text of an HTML page.

    A page of which nothing remains, since all of it stands in one form, is read with its furniture.
    """
    document = _parse(text, _FURNITURE | _OUTER_FURNITURE)
    return document if document.text else _parse(text, frozenset())


def _parse(text: str, furniture: frozenset[str]) -> Document:
    try:
        from lxml import etree
    except ImportError as error:
        raise MissingExtraError("Reading HTML", "documents") from error
    parser = etree.HTMLParser(target=_Page(furniture), encoding="utf-8", no_network=True, huge_tree=True)
    for start in range(0, len(text), _CHUNK):
        parser.feed(text[start : start + _CHUNK].encode())
    document: Document = parser.close() if text else Document("")
    return document


class _Page:
    """Takes the tags and texts of a page in their order, and puts its document together."""

    def __init__(self, furniture: frozenset[str]) -> None:
        self._furniture = furniture
        self._builder = Builder()
        self._inline: list[str] = []  # text since the last block began
        self._title: list[str] = []
        self._cells: list[str] | None = None  # of the row of a table that is open
        self._lists: list[str] = []  # the tag of each open list
        self._items: list[int] = []  # how many items each of them has had
        self._gap, self._mark = "\n\n", ""
        self._depth = self._skipped_from = self._main = self._pre = 0
        self._in_title = self._is_done = False

    def start(self, tag: str, attributes: Any) -> None:
        """Take a tag that begins."""
        if tag not in _VOID:
            self._depth += 1
        if self._skipped_from or self._is_done:
            return
        if tag == "title" and not self._title:
            self._in_title = True
        elif self._is_skipped(tag, attributes):
            self._flush()
            self._skipped_from = self._depth
        elif tag == "br":
            self._inline.append(_BREAK)
        else:
            if tag == "main" and not self._main and self._furniture:
                # Forget what is before the main part of the page, such as menus that are not marked as such.
                self._builder = Builder()
                self._inline.clear()
                self._cells, self._gap, self._mark = None, "\n\n", ""
            self._start_block(tag)

    def _is_skipped(self, tag: str, attributes: Any) -> bool:
        if tag in _VOID:
            return False
        if tag in _NEVER or "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        is_outer = tag in _OUTER_FURNITURE and self._main
        is_menu = attributes.get("role") in ("navigation", "search") and bool(self._furniture)
        return (tag in self._furniture and not is_outer) or is_menu

    def _start_block(self, tag: str) -> None:
        self._main += tag in _MAIN
        if tag in ("td", "th"):
            self._end_cell()
        elif tag == "tr":
            self._end_row()
            self._flush()
            self._cells = []
        elif tag in _HEADINGS or tag == "table":
            self._end_row()
            self._flush()
            self._gap = "\n\n"
        elif tag in _BLOCKS:
            self._break()
        if tag in _LISTS:
            self._lists.append(tag)
            self._items.append(0)
        elif tag in _LINES:
            self._start_line(tag)
        self._pre += tag == "pre"

    def _start_line(self, tag: str) -> None:
        """Mark the text that follows as an item of a list."""
        if not self._lists:
            self._lists, self._items = ["ul"], [0]
        self._items[-1] += 1
        number = self._items[-1]
        marks = {"dt": "", "dd": "  ", "li": f"{number}. " if self._lists[-1] == "ol" else "- "}
        self._mark = "  " * (min(len(self._lists), _DEEPEST_INDENT) - 1) + marks[tag]
        if number > 1 or len(self._lists) > 1:
            self._gap = "\n"

    def end(self, tag: str) -> None:
        """Take a tag that ends."""
        if tag in _VOID:
            return
        depth, self._depth = self._depth, self._depth - 1
        if self._is_done:
            return
        if self._skipped_from:
            self._skipped_from = 0 if depth == self._skipped_from else self._skipped_from
            return
        if tag == "title":
            self._in_title = False
            return
        if tag in _HEADINGS:
            self._builder.add_heading(self._take(), _HEADINGS[tag])
            self._gap, self._mark = "\n\n", ""
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag in ("tr", "table"):
            self._end_row()
            self._gap = "\n" if tag == "tr" else "\n\n"
        elif tag in _BLOCKS:
            self._break()
        if tag in _LISTS and self._lists:
            self._lists.pop()
            self._items.pop()
            self._gap = "\n" if self._lists else "\n\n"
        self._main -= tag in _MAIN
        self._is_done = tag == "main" and bool(self._furniture)
        self._pre -= tag == "pre"

    def data(self, text: str) -> None:
        """Take a text between tags."""
        if self._in_title:
            self._title.append(text)
        elif not self._skipped_from and not self._is_done:
            self._inline.append(text)

    def comment(self, text: str) -> None:
        """Pass a comment over."""

    def close(self) -> Document:
        """Return the document, once all of the page has been taken."""
        self._end_row()
        self._flush()
        return self._builder.document("".join(self._title))

    def _break(self) -> None:
        """End a paragraph; within a cell of a table it is only a blank, so that a row stays a line."""
        if self._cells is None:
            self._flush()
        else:
            self._inline.append(" ")

    def _end_cell(self) -> None:
        if self._cells is not None and (text := one_line(self._take())):
            self._cells.append(text)

    def _end_row(self) -> None:
        """Add the row of a table that is open; also one that a table or a heading within a cell cuts short."""
        self._end_cell()
        if self._cells:
            self._builder.add(_CELL.join(self._cells), self._gap)
            self._gap = "\n"
        self._cells = None

    def _flush(self) -> None:
        text = self._take()
        if not text.strip():
            return
        self._builder.add(self._mark + text, self._gap)
        self._gap, self._mark = ("\n" if self._lists else "\n\n"), ""

    def _take(self) -> str:
        """Return the text since the last block, with blanks as they are shown."""
        text = "".join(self._inline)
        self._inline.clear()
        if self._pre:
            return text.replace(_BREAK, "\n")
        return "\n".join(one_line(line) for line in text.split(_BREAK)).strip()
