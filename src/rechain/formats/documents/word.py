"""Word: paragraphs, headings by their styles, lists and tables of a .docx file. Macros, pictures and links stay unread.

A .docx file is a packed folder of XML, which can be a trap: its unpacked size is limited before anything is parsed, and
python-docx neither resolves entities nor opens anything else.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from rechain.errors import InputError
from rechain.formats.documents.layout import Builder, Document, Table, one_line

_LARGEST_XML = 50_000_000  # bytes of text and layout unpacked: thousands of pages, and their tree takes half a gigabyte
_LARGEST_UNPACKED = 300_000_000
"""bytes of all parts, which are in memory as well: pictures pack little, so that much more unpacked is a trap"""
_MOST_PARTS = 50_000
_XML = (".xml", ".rels")
_OLD_WORD = b"\xd0\xcf\x11\xe0"  # how .doc files begin, and .docx files that are locked by a password
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_LEVELS = frozenset("012345678")
_NAMESPACE = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NUMBERED = f"{_NAMESPACE}pPr/{_NAMESPACE}numPr"
_REPEATED = f"{_NAMESPACE}trPr/{_NAMESPACE}tblHeader"
_WRAPPERS = frozenset(f"{_NAMESPACE}{name}" for name in ("sdt", "sdtContent", "ins", "customXml", "smartTag"))
_SHOWN = tuple(f"{_NAMESPACE}{name}" for name in ("t", "tab", "br", "cr", "noBreakHyphen"))
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""the same text once more, for old programs"""
_DEEPEST_TABLE = 5  # levels of tables within tables; deeper ones are a trap


def read_word(content: bytes) -> Document:
    """Return the document of the bytes of a .docx file."""
    import docx

    if content.startswith(_OLD_WORD):
        raise InputError("is locked by a password, or an old .doc file; save it as .docx without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            parts = file.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"is a damaged Word file, or none ({error})") from error
    xml = sum(part.file_size for part in parts if part.filename.lower().endswith(_XML))
    if xml > _LARGEST_XML or sum(part.file_size for part in parts) > _LARGEST_UNPACKED or len(parts) > _MOST_PARTS:
        raise InputError(f"is too large when it is unpacked (over {_LARGEST_XML // 1_000_000} MB of text); split it")
    document = docx.Document(io.BytesIO(content))
    builder = _WordBuilder(document)
    builder.add_blocks(document.element.body, 0)
    return builder.document(builder.title or one_line(document.core_properties.title or ""))


class _WordBuilder(Builder):
    """Puts the paragraphs and tables of a Word file together."""

    def __init__(self, document: Any) -> None:
        super().__init__()
        self.title = ""  # the paragraph in the style Title
        self._names = {style.style_id: style.name or "" for style in document.styles}
        headings = {key: _HEADING.fullmatch(name) for key, name in self._names.items()}
        self._levels = {key: int(match[1]) for key, match in headings.items() if match}
        self._was_item = False

    def add_blocks(self, container: Any, depth: int) -> None:
        """Add what a body, a cell or a field of content holds, in its order."""
        for block in _children(container, "p", "tbl"):
            if block.tag == f"{_NAMESPACE}p":
                self._add_paragraph(block)
            elif depth < _DEEPEST_TABLE:
                self._add_table(block, depth)

    def _add_paragraph(self, paragraph: Any) -> None:
        text = _text_of(paragraph)
        if not text.strip():
            return
        style, outline = _value(paragraph, "pPr/pStyle"), _value(paragraph, "pPr/outlineLvl")
        name = self._names.get(style, style).lower()
        is_item = False
        if name == "title" and not self.title:
            self.title = one_line(text)
            self.add_heading(text, 1)
        elif level := self._levels.get(style):
            self.add_heading(text, level)
        elif outline in _LEVELS:
            self.add_heading(text, int(outline) + 1)
        elif is_item := name.startswith("list") or paragraph.find(_NUMBERED) is not None:
            introduction = None if self._was_item else self.last
            self.add_unit(introduction, self.add(f"- {text}", "\n" if self._was_item else "\n\n"))
        else:
            self.add(text)
        self._was_item = is_item

    def _add_table(self, table: Any, depth: int) -> None:
        """Add the rows of a table as lines; a row of one cell is layout, and what it holds is added as it is."""
        rows = Table()
        for row in _children(table, "tr"):
            cells = list(_children(row, "tc"))
            if len(cells) == 1:
                self.add_table(rows)
                rows = Table()
                self.add_blocks(cells[0], depth + 1)
                continue
            # Word marks the row that it repeats on every page; most authors leave that, and the first row has the names
            is_head = row.find(_REPEATED) is not None or not rows.rows
            for cell in cells:
                rows.start_cell(is_head)
                rows.end_cell(one_line(" ".join(_text_of(p) for p in cell.iter(f"{_NAMESPACE}p"))))
            rows.end_row()
        self.add_table(rows)
        self._was_item = False


def _children(container: Any, *names: str) -> Iterator[Any]:
    """Yield the elements of these names within another, also those in fields of content, and insertions."""
    tags = {f"{_NAMESPACE}{name}" for name in names}
    stack = [container.iterchildren()]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
        elif child.tag in tags:
            yield child
        elif child.tag in _WRAPPERS:
            stack.append(child.iterchildren())


def _text_of(paragraph: Any) -> str:
    """Return what a paragraph shows: its runs and links, insertions but not deletions, tabs and line breaks."""
    for fallback in list(paragraph.iter(_FALLBACK)):
        fallback.getparent().remove(fallback)
    parts: list[str] = []
    for node in paragraph.iter(*_SHOWN):
        name = node.tag.removeprefix(_NAMESPACE)
        if name == "t":
            parts.append(node.text or "")
        elif name != "tab" or node.getparent().tag == f"{_NAMESPACE}r":  # else one of the tab stops of a paragraph
            parts.append({"tab": "\t", "noBreakHyphen": "-"}.get(name, "\n"))
    return "".join(parts).strip()


def _value(paragraph: Any, path: str) -> str:
    node = paragraph.find("/".join(f"{_NAMESPACE}{name}" for name in path.split("/")))
    return "" if node is None else str(node.get(f"{_NAMESPACE}val") or "")
