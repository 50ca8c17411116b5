"""Manual pages: roff with the macros of man(7) and mdoc(7), read by what they mean and not by how they are set.

Only what is common in pages is understood; of other requests the text is kept. Nothing is run or included.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from rechain.errors import InputError
from rechain.formats.documents.layout import MOST_HEADINGS, Builder, Document, Table, one_line
from rechain.formats.documents.plain_text import read_plain

_BEGINS = re.compile(r"\.(?:TH|Dd|SH|Sh|so)\b")  # what a page has before its text
_BEFORE = 400  # lines of comments and definitions in which that must come
_MACRO = re.compile(r"[.'][ \t]*([^\s\"]{1,20})[ \t]*(.*)")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|(\S+)')
# What is not text: sizes, fonts and registers; then signs, by their names.
_SETTINGS = re.compile(
    r"\\(?:f(?:\[[^\]\n]{0,20}\]|\(..|.)|s[-+]?\d{1,2}|[mMFgkn](?:\[[^\]\n]{0,40}\]|\(..|.)|[&/,|^)!:%~]|"
    r"[hvwbozDlLxHSNXYZ]'[^'\n]{0,80}'|\".*|#.*|c|d|u|p|a)"
)
_SIGN = re.compile(r"\\(?:\((..)|\[([^\]\n]{1,20})\]|\*\((..)|\*\[([^\]\n]{1,20})\]|\*(.)|(.))")
_SIGNS = {
    **{"aq": "'", "dq": '"', "lq": "“", "rq": "”", "oq": "‘", "cq": "’", "em": "—", "en": "–", "hy": "-", "bu": "•"},
    **{"co": "©", "rg": "®", "tm": "™", "mu": "×", "ha": "^", "ti": "~", "rs": "\\", "ga": "`", "aa": "´", "pl": "+"},
    **{"mi": "-", "eq": "=", "<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "->": "→", "<-": "←", "Fo": "«", "Fc": "»"},
    **{"at": "@", "sh": "#", "Do": "$", "ul": "_", "sl": "/", "ba": "|", "br": "|", "lB": "[", "rB": "]", "de": "°"},
    **{"ss": "ß", ":a": "ä", ":o": "ö", ":u": "ü", "'e": "é", 'L"': "“", 'R"': "”", "-": "-", "e": "\\", " ": " "},
    **{"0": " ", "t": "\t", "'": "'", "`": "`", ".": ".", "S": "®", "R": "®"},
}
_ALTERNATING = frozenset(("BR", "BI", "RB", "RI", "IB", "IR"))
_FONTS = _ALTERNATING | frozenset(("B", "I", "R", "SM", "SB", "UR", "MT"))
_CODE_BEGINS, _CODE_ENDS = frozenset(("nf", "EX", "Bd")), frozenset(("fi", "EE", "Ed"))
_BULLET = re.compile(r"[^\w\s]|o|\(?\d{1,3}[.)]")
_DEEPEST_INDENT = 6
_PARAGRAPHS = frozenset(("PP", "P", "LP", "HP", "sp", "Pp", "Lp", "br"))
# Macros of mdoc(7), and what they put before and after their words.
_AROUND = {
    **{"Op": ("[", "]"), "Dq": ("“", "”"), "Qq": ('"', '"'), "Sq": ("‘", "’"), "Aq": ("<", ">"), "Pq": ("(", ")")},
    **{"Bq": ("[", "]"), "Brq": ("{", "}"), "Ql": ("‘", "’")},
}
_MACROS_OF_WORDS = """Ar Cm Pa Va Vt Ev Em Sy Li Ic Fa Fn Ft Fl Nm Xr No Ns Er Dv Sx Ad An Ms Tn St Lk Mt Ux Bx Fx
Nx Ox"""
_WORDS = frozenset(_MACROS_OF_WORDS.split())
_CLOSING = frozenset(",.;:)]?!")
_WITHOUT_TEXT = """AT DT Ac Ao Bk Dt El IX It ME OP Oc Oo Os PD RE RS Re Rs SY Sm TE TH TS UC UE Xc Xo YS Dd"""
_SILENT = frozenset(_WITHOUT_TEXT.split())


def read_manual(text: str) -> Document:
    """Return a document of a manual page; a file that only has such a name is read as plain text."""
    before = text.split("\n", _BEFORE)[:_BEFORE]
    if text[:1] not in (".", "'", "\n") or not any(map(_BEGINS.match, before)):
        return read_plain(text)
    page = _Page()
    for line in _lines(text):
        page.read(line)
    document = page.close()
    if not document.text and (other := re.search(r"^\.so[ \t]+(\S{1,200})", text, re.MULTILINE)):
        raise InputError(f"only refers to {other[1]}")
    return document


def _lines(text: str) -> Iterator[str]:
    """Yield the lines, those that a backslash continues as one, without definitions of macros."""
    ends = ""  # what ends the definition that is open
    part: list[str] = []
    for line in text.split("\n"):
        if line.endswith("\\") and not line.endswith("\\\\") and not ends:
            part.append(line[:-1])
            continue
        line, part = "".join([*part, line]), []
        if ends:
            ends = "" if line.startswith(ends) else ends
        elif match := re.match(r"[.'][ \t]*(?:de1?|am|ig)\b[ \t]*(?:\S+[ \t]+)?(\S*)", line):
            ends = "." + (match[1] if not match[0].lstrip(".' ").startswith("ig") else "") if match[1] else ".."
        else:
            yield line


def _plain(text: str) -> str:
    """Return a text with signs in place of their names, and without what only sets type."""
    if "\\" not in text:
        return text
    text = _SETTINGS.sub("", text)
    return _SIGN.sub(lambda match: _sign(next(filter(None, match.groups()), "")), text)


def _sign(name: str) -> str:
    if name.startswith("u") and len(name) in (5, 6) and name[1:].isalnum():
        try:
            return chr(int(name[1:], 16))
        except ValueError:
            return ""
    return _SIGNS.get(name, name if len(name) == 1 and not name.isalnum() else "")


@dataclass
class _Entry:
    """A definition or an item, and how many there were before it in its list."""

    items: int = 0
    start: int | None = None
    body: int | None = None
    terms: list[str] = field(default_factory=list)


class _Page:
    """Takes the lines of a page in their order, and puts its document together."""

    def __init__(self) -> None:
        self._builder = Builder()
        self._title = self._name = ""
        self._words: list[str] = []  # of the paragraph that is open
        self._code = False
        self._awaits_term = False  # the next line is the term of a definition
        self._mark = ""  # of the item of a list that follows
        self._entries = [_Entry()]
        """the definition that is open at each indentation"""
        self._table: Table | None = None
        self._introduction: int | None = None
        self._headings = 0

    def read(self, line: str) -> None:
        """Take a line: a request, or text."""
        if self._table is not None and not line.startswith(".TE"):
            self._read_row(line)
        elif line[:1] in (".", "'") and (match := _MACRO.fullmatch(line)):
            self._read_macro(match[1], match[2])
        elif line[:1] not in (".", "'"):
            self._add_text(_plain(line))

    def _read_macro(self, name: str, rest: str) -> None:
        if name.startswith("\\"):
            return
        arguments = [_plain(a.replace('""', '"') if a else b) for a, b in islice(_ARGUMENT.findall(rest), 200)]
        words = " ".join(arguments)
        if name in ("SH", "SS", "Sh", "Ss"):
            self._add_heading(words, 2 if name[1] in "Hh" else 3)
        elif name in ("TH", "Dt") and arguments:
            self._title = f"{arguments[0]}({arguments[1]})" if len(arguments) > 1 else arguments[0]
        elif name in _PARAGRAPHS:
            self._flush()
            if name not in ("br", "sp"):
                self._end_entry()
        elif name in ("TP", "TQ"):
            self._start_entry(goes_on=name == "TQ")
        elif name == "IP" and words:
            self._start_entry()
            self._add_text(arguments[0])
        elif name == "It":
            self._start_entry()
            self._add_text(self._of_mdoc(arguments) if arguments else "•")
        elif name in ("RS", "Bl"):
            self._flush()
            self._entries.append(_Entry())
        elif name in ("RE", "El") and len(self._entries) > 1:
            self._flush()
            self._end_entry()
            self._entries.pop()
        elif name in _CODE_BEGINS or name in _CODE_ENDS:
            self._flush()
            self._introduction = self._builder.last if name in _CODE_BEGINS else None
            self._code = name in _CODE_BEGINS
        elif name == "TS":
            self._flush()
            self._table = Table()
            self._in_format = True
        elif name == "TE":
            self._end_table()
        elif name == "Nd":
            self._add_text(f"- {words}")
        elif name in _FONTS:
            self._add_text(("" if name in _ALTERNATING else " ").join(arguments))
        elif name in _WORDS or name in _AROUND:
            self._add_text(self._of_mdoc([name, *arguments]))
        elif name not in _SILENT and not name[0].islower():
            self._add_text(words)

    def _of_mdoc(self, arguments: list[str]) -> str:
        """Return the words of a line of mdoc(7), whose arguments may be macros as well."""
        parts: list[str] = []
        closings: list[str] = []
        flag = glued = False
        for place, word in enumerate(arguments):
            if word in _AROUND:
                before, after = _AROUND[word]
                parts.append(f" {before}")
                closings.append(after)
                glued = True
            elif word in _WORDS:
                glued |= word == "Ns"
                flag = word == "Fl"
                if word == "Nm" and not any(
                    a not in _WORDS and a not in _CLOSING for a in arguments[place + 1 : place + 2]
                ):
                    parts.append(f" {self._name}")
            else:
                is_section = word.isdigit() and "Xr" in arguments[max(place - 2, 0) : place]
                word = f"({word})" if is_section else f"-{word}" if flag and word not in _CLOSING else word
                parts.append(word if glued or is_section or word in _CLOSING else f" {word}")
                glued = False
                if "Nm" in arguments[:place] and not self._name:
                    self._name = word
        return "".join([*parts, *reversed(closings)]).strip()

    def _add_heading(self, words: str, level: int) -> None:
        self._flush()
        while len(self._entries) > 1:
            self._end_entry()
            self._entries.pop()
        self._end_entry()
        self._code = False
        if self._headings < MOST_HEADINGS:
            self._builder.add_heading(words.capitalize() if words.isupper() and len(words) > 4 else words, level)
            self._headings += 1

    def _start_entry(self, goes_on: bool = False) -> None:
        self._flush()
        if not goes_on:
            self._end_entry()
        self._awaits_term = True

    def _end_entry(self) -> None:
        entry = self._entries[-1]
        self._builder.add_unit(entry.start, entry.body, ", ".join(entry.terms))
        self._entries[-1] = _Entry(entry.items)

    def _add_text(self, text: str) -> None:
        """Add a line of text to the paragraph, or as a line of code; a blank one ends the paragraph."""
        if self._awaits_term and text.strip():
            self._awaits_term = False
            self._add_term(one_line(text))
        elif self._code:
            self._words.append(text)
        elif text.strip():
            self._words.append(one_line(text))
        elif not self._awaits_term:
            self._flush()

    def _add_term(self, text: str) -> None:
        entry = self._entries[-1]
        if _BULLET.fullmatch(text):
            self._mark = f"{text if text[0].isalnum() else '-'} "
            return
        place = self._builder.add(self._indented(text), "\n" if entry.items else "\n\n")
        entry.start = place if entry.start is None else entry.start
        entry.terms.append(text)
        entry.items += 1
        self._builder.last = None

    def _indented(self, text: str) -> str:
        return "  " * min(len(self._entries) - 1, _DEEPEST_INDENT) + text

    def _flush(self) -> None:
        text = ("\n" if self._code else " ").join(self._words)
        self._words.clear()
        if not text.strip():
            return
        entry = self._entries[-1]
        is_first = bool(entry.terms) and entry.body is None
        indent = "  " * bool(entry.terms)
        gap = "\n" if is_first or (self._mark and entry.items) else "\n\n"
        place = self._builder.add(text if self._code else self._indented(f"{indent}{self._mark}{text}"), gap)
        if self._code:
            self._builder.add_unit(self._introduction, place)
            self._builder.add_unit(place, place)
        if self._mark:
            entry.start = entry.body = place
            entry.items += 1
        elif is_first:
            entry.body = place
        self._mark = ""

    def _read_row(self, line: str) -> None:
        """Take a line of a table; its format ends with a full stop."""
        if self._in_format:
            self._in_format = not line.rstrip().endswith(".")
        elif self._table is not None and not line.startswith(".") and line.strip(" _=-"):
            for cell in line.split("\t"):
                self._table.start_cell(not self._table.rows)
                self._table.end_cell(one_line(_plain(cell).removeprefix("T{").removesuffix("T}")))
            self._table.end_row()

    def _end_table(self) -> None:
        if self._table is not None:
            self._builder.add_table(self._table)
            self._table = None

    def close(self) -> Document:
        """Return the document, once all of the page has been taken."""
        self._end_table()
        self._flush()
        while self._entries:
            self._end_entry()
            self._entries.pop()
        document = self._builder.document(self._title)
        name, _, section = self._title.partition("(")
        first = document.headings[0].end if document.headings else 0
        if name.isupper() and (match := re.search(re.escape(name), document.text[first : first + 200], re.IGNORECASE)):
            document.title = f"{match[0]}({section}" if section else match[0]
        return document
