"""HTML: what a reader of the page came for, without navigation, forms and scripts. Nothing is fetched or run.

lxml reports tags one after the other, and no tree is built: its time and memory grow with the file alone, while parsers
that build one, such as lexbor's, take minutes for 100,000 nested tags, and Python's own for 20,000 quotation marks.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rechain.formats.documents.layout import Builder, Document, Table, one_line

_NEVER_TAGS = """script style noscript template svg iframe object audio video canvas map select option textarea
button"""
_NEVER = frozenset(_NEVER_TAGS.split())  # what holds no text, or none that is read in a row
_FURNITURE = frozenset(("nav", "form", "dialog", "menu"))
# of the page when outside of its main part; within it, of the article
_OUTER_FURNITURE = frozenset(("header", "footer", "aside"))
_ROLES = frozenset(("navigation", "search", "banner", "contentinfo"))
# Classes of navigation in what Sphinx, DocBook, gtk-doc, Texinfo, AsciiDoc, MkDocs and authors by hand make. Not
# "contents" and "sidebar", which are the text in Doxygen's pages and boxes in DocBook's.
_FURNITURE_CLASSES = """nav navbar navigation navheader navfooter navigation-header navigation-footer nav-bar nav-path
toc toctree toctree-wrapper table-of-contents list-of-tables list-of-figures list-of-examples localtoc mini-toc
shortcontents short-contents region-contents breadcrumb breadcrumbs bread-crumbs sphinxsidebar related linenos
skip-link skiplink headerlink permalink page-header page-footer site-header site-footer pagination pager prev-next
prevnext menu submenu menubar topnav bottomnav sidenav searchbox search-box footer cookie-banner toplang bottomlang"""
_CLASSES = frozenset(_FURNITURE_CLASSES.split())
_FURNITURE_IDS = "toc nav navbar navigation sidebar footer breadcrumb breadcrumbs menu sidenav searchbox"
_IDS = frozenset(_FURNITURE_IDS.split())
_BOX_CLASSES = "note tip hint important warning caution attention danger admonition seealso sidebar"
_BOXES = frozenset(_BOX_CLASSES.split())
"""classes of boxes: what they begin with is no heading of a section, and ends with them"""
_BOX_TAGS = frozenset(("div", "aside", "section", "blockquote"))
_SUBJECTS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt"))  # what an anchor leads to
_PLACES = frozenset(("section", "div", "article", "a", "span", "li", "p"))  # may have the id of the heading within
_MAIN = frozenset(("main", "article"))
# have no end tag, and so must not count as open
_VOID_TAGS = "area base br col embed hr img input link meta param source track wbr"
_VOID = frozenset(_VOID_TAGS.split())
_BLOCK_TAGS = """address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure
footer form header hr html legend li main nav ol p pre section summary table tbody tfoot thead tr ul"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_STRUCTURE = _BLOCKS | frozenset(_HEADINGS) | frozenset(("td", "th"))
_LINES = frozenset(("li", "dt", "dd"))
_CELLS = frozenset(("td", "th", "tr", "thead"))
_LISTS = frozenset(("ul", "ol", "dl"))
_CHARSET = re.compile(rb"""<meta[^<>]{0,200}?charset\s*=\s*["']?([\w-]{2,40})""", re.IGNORECASE)
_CLASS_NAMES = 4096  # that are remembered
_HEAD = 4096  # bytes in which a page must name its encoding, four times what the standard asks
_CHUNK = 1 << 16
# A line break that is shown, and the ends of what is above or below the line; no clean text has these characters.
_BREAK, _ABOVE, _BELOW, _LEVEL = "\x00", "\x01", "\x02", "\x03"
_SHIFTED = re.compile("([\x01\x02])([^\x01-\x03]{0,20})\x03")
_MARKS = re.compile("[\x01-\x03]")
_ORDINAL = re.compile("st|nd|rd|th|er|re|e|o|a|TM|SM|®|™", re.IGNORECASE)
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
    from lxml import etree

    parser = etree.HTMLParser(target=_Page(furniture), encoding="utf-8", no_network=True, huge_tree=True)
    for start in range(0, len(text), _CHUNK):
        parser.feed(text[start : start + _CHUNK].encode())
    document: Document = parser.close() if text else Document("")
    return document


@dataclass
class _List:
    """A list that is open."""

    tag: str
    introduction: int | None
    """where the paragraph before it begins"""
    items: int = 0
    first: int | None = None
    """where its first block begins"""
    entry: int | None = None
    """where the last item begins, or the first term of the last definition"""
    body: int | None = None
    """where the definition of that term begins"""
    terms: list[str] = field(default_factory=list)
    in_terms: bool = False


@dataclass
class _Box:
    """A box that is open, such as a note."""

    depth: int
    start: int | None = None
    body: int | None = None


class _Page:
    """Takes the tags and texts of a page in their order, and puts its document together."""

    def __init__(self, furniture: frozenset[str]) -> None:
        self._furniture = furniture
        self._title: list[str] = []
        self._depth = self._skipped_from = self._main = self._pre = 0
        self._in_title = self._is_done = False
        self._reset()

    def _reset(self) -> None:
        self._builder = Builder()
        self._inline: list[str] = []  # text since the last block began
        self._table: Table | None = None  # that is open
        self._lists: list[_List] = []
        self._boxes: list[_Box] = []
        self._gap, self._mark = "\n\n", ""
        self._anchor = self._subject = ""  # the id of the part that has begun, and that of its heading or term
        self._links = self._linked = 0  # links that are open, and characters of links since the last block began
        self._nested = 0  # tables that are open within a cell
        self._before_code: int | None = None  # where the paragraph before some code begins

    def start(self, tag: str, attributes: Any) -> None:
        """Take a tag that begins."""
        if tag not in _VOID:
            self._depth += 1
        if self._skipped_from or self._is_done:
            return
        if tag == "title" and not self._title:
            self._in_title = True
        elif self._is_skipped(tag, attributes):
            if tag in _BLOCKS:
                self._break()
            self._skipped_from = self._depth
        elif tag == "br":
            self._inline.append(_BREAK)
        else:
            if tag == "main" and not self._main and self._furniture:
                self._reset()  # Forget what is before the main part, such as menus that are not marked as such.
            self._start_inline(tag, attributes)
            if tag in _STRUCTURE:
                self._start_box(tag, attributes)
                self._start_block(tag)

    def _is_skipped(self, tag: str, attributes: Any) -> bool:
        if tag in _VOID:
            return False
        if tag in _NEVER or "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if not self._furniture or tag in ("html", "body", "main"):
            return False
        if tag in _OUTER_FURNITURE:
            return not self._main
        if tag in self._furniture or attributes.get("role") in _ROLES:
            return True
        if "class" in attributes:  # a heading or term with such a class is the text of a page about menus
            return _is_furniture(attributes["class"]) and tag not in _SUBJECTS
        return tag in ("div", "ul", "table") and attributes.get("id", "").lower() in _IDS

    def _start_inline(self, tag: str, attributes: Any) -> None:
        name = attributes.get("id") or (attributes.get("name") if tag == "a" else "") or ""
        if tag in _SUBJECTS:
            self._subject, self._anchor = name or self._anchor, ""
        elif name and tag in _PLACES:
            self._anchor = name
        if tag == "a" and "href" in attributes:
            self._links += 1
            if self._inline and self._inline[-1] == _ABOVE:
                self._inline.pop()  # the number of a footnote
        elif tag in ("sup", "sub") and not self._links:
            self._inline.append(_ABOVE if tag == "sup" else _BELOW)

    def _start_box(self, tag: str, attributes: Any) -> None:
        if self._table is None and (tag == "aside" or (tag in _BOX_TAGS and _is_box(attributes.get("class", "")))):
            self._break()
            self._boxes.append(_Box(self._depth))

    def _start_block(self, tag: str) -> None:
        self._main += tag in _MAIN
        if self._table is not None and self._table.heads and self._table.in_cell and (self._nested or tag == "table"):
            self._nested += tag == "table"  # a table within a cell is part of the text of its row
            self._inline.append(" ")
            return
        if tag == "table" or tag in _HEADINGS or (tag == "pre" and self._table and self._table.is_layout):
            self._end_table()
            self._flush()
            self._gap = "\n\n"
        elif tag == "tr" and self._table is None:
            self._flush()
        elif tag in _BLOCKS and tag not in _CELLS:
            self._break()
        if tag in ("table", "tr", "td", "th", "thead"):
            self._start_cells(tag)
        elif tag in _LISTS and self._table is None:
            self._lists.append(_List(tag, self._builder.last))
        elif tag in _LINES and self._table is None:
            self._start_line(tag)
        elif tag == "pre":
            self._pre += 1
            self._before_code = self._builder.last

    def _start_cells(self, tag: str) -> None:
        if tag in ("table", "tr") and self._table is None:
            self._table = Table()
        if self._table is not None:
            self._end_cell()
            if tag == "tr":
                self._end_row()
            elif tag == "thead":
                self._table.in_head = True
            elif tag in ("td", "th"):
                self._table.start_cell(tag == "th")

    def _start_line(self, tag: str) -> None:
        """Mark the text that follows as an item of a list."""
        if not self._lists:
            self._lists.append(_List("ul", self._builder.last))
        inner = self._lists[-1]
        inner.items += 1
        if tag == "li" or (tag == "dt" and not inner.in_terms):
            self._end_entry(inner)
        inner.in_terms = tag == "dt"
        marks = {"dt": "", "dd": "  ", "li": f"{inner.items}. " if inner.tag == "ol" else "- "}
        self._mark = "  " * (min(len(self._lists), _DEEPEST_INDENT) - 1) + marks[tag]
        if inner.items > 1 or len(self._lists) > 1:
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
        elif tag == "title":
            self._in_title = False
        elif tag in _STRUCTURE:
            self._end_block(tag)
            if self._boxes and depth == self._boxes[-1].depth:
                self._end_box()
        elif tag == "a" and self._links:
            self._links -= 1
        elif tag in ("sup", "sub"):
            self._inline.append(_LEVEL)

    def _end_block(self, tag: str) -> None:
        if self._nested:
            self._nested -= tag == "table"
            self._inline.append(" ")
            return
        if tag in _HEADINGS:
            self._end_heading(_HEADINGS[tag])
        elif tag in _CELLS:
            self._end_cell()
            if self._table is not None and tag in ("tr", "thead"):
                self._end_row()
                self._table.in_head &= tag == "tr"
        elif tag == "table":
            self._end_table()
            self._gap = "\n\n"
        elif tag == "dt" and self._lists and self._table is None:
            self._end_term(self._lists[-1])
        elif tag in _BLOCKS:
            self._break()
        if tag in _LISTS and self._lists and self._table is None:
            self._end_list()
        self._main -= tag in _MAIN
        self._is_done = tag == "main" and bool(self._furniture)
        self._pre -= tag == "pre"

    def _end_heading(self, level: int) -> None:
        words = one_line(_MARKS.sub("", "".join(self._inline)))
        if (self._boxes and self._boxes[-1].body is None) or words.rstrip(":").lower() in _BOXES:
            self._flush()
            self._gap = ":\n"
        else:
            self._builder.add_heading(self._take(), level, self._subject or self._anchor)
            self._gap = "\n\n"
        self._mark = self._subject = self._anchor = ""
        self._linked = 0

    def _end_term(self, inner: _List) -> None:
        anchor, term = self._subject or self._anchor, one_line(_MARKS.sub("", "".join(self._inline)))
        start = self._flush()
        if start is not None:
            inner.terms.append(term.rstrip(" ¶:"))
            self._builder.add_anchor(start, anchor)
        self._subject = ""

    def _end_entry(self, inner: _List) -> None:
        """Keep an item together, or a definition with its terms."""
        self._builder.add_unit(inner.entry, inner.body if inner.terms else inner.entry, ", ".join(inner.terms))
        inner.entry, inner.body, inner.terms = None, None, []

    def _end_list(self) -> None:
        inner = self._lists.pop()
        self._end_entry(inner)
        self._builder.add_unit(inner.introduction if inner.introduction is not None else inner.first, inner.first)
        self._builder.last = None  # the last item of a list introduces nothing
        self._gap = "\n" if self._lists else "\n\n"

    def _end_box(self) -> None:
        self._flush()
        box = self._boxes.pop()
        self._builder.add_unit(box.start, box.body)
        self._builder.last = None
        self._gap = "\n" if self._lists else "\n\n"

    def data(self, text: str) -> None:
        """Take a text between tags."""
        if self._in_title:
            self._title.append(text)
        elif not self._skipped_from and not self._is_done:
            self._inline.append(text)
            if self._links:
                self._linked += sum(map(str.isalnum, text))

    def comment(self, text: str) -> None:
        """Pass a comment over."""

    def close(self) -> Document:
        """Return the document, once all of the page has been taken."""
        self._end_table()
        self._flush()
        while self._lists:
            self._end_list()
        return self._builder.document("".join(self._title))

    def _break(self) -> None:
        """End a paragraph; within a cell of a table it is only a blank, so that a row stays a line."""
        if self._table is not None and self._table.in_cell:
            self._inline.append(" ")
        else:
            self._flush()

    def _end_cell(self) -> None:
        if self._table is not None and self._table.in_cell:
            self._table.end_cell(one_line(self._take()))

    def _end_row(self) -> None:
        if self._table is not None:
            self._table.end_row(self._linked)
            self._linked = 0

    def _end_table(self) -> None:
        """Add the rows of a table that is open; also one that a table or a heading within a cell cuts short."""
        if self._table is not None:
            self._end_cell()
            self._end_row()
            self._note_block(self._builder.add_table(self._table, self._gap))
            self._table = None

    def _flush(self) -> int | None:
        """Add the text since the last block, and return where it begins."""
        text = self._take()
        if not text.strip():
            return None
        start = self._builder.add(self._mark + text, self._gap, self._linked)
        if self._pre:
            self._builder.add_unit(self._before_code, start)
            self._builder.add_unit(start, start)
            self._builder.last = None
        self._note_block(start)
        self._gap, self._mark, self._linked, self._anchor = ("\n" if self._lists else "\n\n"), "", 0, ""
        return start

    def _note_block(self, start: int | None) -> None:
        """Take note of what begins with a block: lists and their items, definitions, boxes."""
        if start is None:
            return
        for inner in reversed(self._lists):
            if inner.entry is not None and (inner.body is not None or inner.in_terms):
                break
            if inner.entry is None:
                inner.entry = start
            elif not inner.in_terms:
                inner.body = start
            if inner.first is None:
                inner.first = start
        if self._boxes:
            box = self._boxes[-1]
            box.start, box.body = (start, None) if box.start is None else (box.start, box.body or start)

    def _take(self) -> str:
        """Return the text since the last block, with blanks as they are shown."""
        if not self._inline:
            return ""
        text = "".join(self._inline)
        self._inline.clear()
        if _LEVEL in text:
            text = _MARKS.sub("", _SHIFTED.sub(_shift, text))
        if self._pre:
            return text.replace(_BREAK, "\n")
        return "\n".join(one_line(line) for line in text.split(_BREAK)).strip()


@lru_cache(_CLASS_NAMES)
def _is_furniture(names: str) -> bool:
    """Return whether a class is that of navigation; "contents topic" is docutils' name of a table of contents."""
    classes = frozenset(names.lower().split())
    return not _CLASSES.isdisjoint(classes) or {"contents", "topic"} <= classes


@lru_cache(_CLASS_NAMES)
def _is_box(names: str) -> bool:
    return not _BOXES.isdisjoint(names.lower().split())


def _shift(match: re.Match[str]) -> str:
    """Return what stands above or below the line: 2^32, 2^(n+1), x_i, but H2O and 1st."""
    mark, words = match[1], match[2].strip()
    before = match.string[match.start() - 1 : match.start()] if match.start() else ""
    is_power = before.isalnum() or before == ")"
    if not is_power or not words or _ORDINAL.fullmatch(words) or (mark == _BELOW and words.isdigit()):
        return words
    sign = "^" if mark == _ABOVE else "_"
    return sign + (words if words.lstrip("+-−").isalnum() else f"({words})")
