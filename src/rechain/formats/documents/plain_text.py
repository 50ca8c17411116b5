"""Plain text, Markdown and reStructuredText: pages without headers and footers, and headings that are surely some."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from rechain.formats.documents.layout import MOST_HEADINGS, Document, Heading, Unit, find_repeated, one_line

_FORM_FEED = "\f"
_PAGE_END = re.compile(r"(?<=\n)[^\n]{0,80}\[Page \d{1,4}\][^\S\n]*+\n")
"""the footer of a text whose form feeds are lost"""
_LEADERS = re.compile(r"(?<![ .])(?=(?: ?\.){4})[ .]++(?:\d{1,4}|[ivxlc]{1,6})[^\S\n]*+$", re.MULTILINE)
"""the dots and the page of an entry of a table of contents"""
_LONGEST_ENTRY = 200  # characters
_ENDS_A_SENTENCE = (".", "!", "?", ":", "。", "！", "？")
_MIDDLES = range(28, 44)  # columns in which the middle of a line is that is centred, of lines of 65 to 80 characters
_TITLE_LINES = 60  # of a text, among which its title is
_LONGEST_TITLE = 4  # lines
_WIDE_GAP = re.compile(r"\S {3,}\S")  # between an author and a date on one line
_WORD = re.compile(r"[^\W\d_]{2,}")
_ALL_INDENTED = 0.6  # of the lines: then lines that are not are headings
# A line of up to 80 characters, as a longer one is prose, at the start or after a blank line; and the line below it.
_FIRST_LINE = re.compile(
    r"(?:\A|(?<=\n)[^\S\n]*+\n)(?P<line>[^\S\n]{0,20}[^\s][^\n]{0,79})(?=\n(?P<below>[^\n]{0,100})|\Z)"
)
_NUMBERED = re.compile(r"(?P<number>(?:\d{1,2}|[A-Z](?=\.\d))(?:\.\d{1,2}){0,4})\.?[ \t]+[^\W\d_].*")
_NAMED = re.compile(
    r"(?:chapter|part|section|appendix|kapitel|teil|abschnitt|anhang)\s+(?:\d+|[ivxlc]+|[a-z])\b.*", re.IGNORECASE
)
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|~{3,}|\*{3,}|\^{3,})\s*")
_NO_HEADING_ENDS = (".", ",", ";", ":", "!", "|", "。", "，", "；", "！")
_NOTHING_BETWEEN = 3  # characters: line breaks alone
_LEVELS_OF_UNDERLINES = "=-~*^"  # as most texts nest them; what matters is that the same sign gives the same level


def read_plain(text: str) -> Document:
    """Return a document of the text of a file, whose pages form feeds may part."""
    text, lines = _without_furniture(text)
    filled = text.count("\n") - text.count("\n\n") + 1
    is_indented = sum(1 for _ in _INDENTED.finditer(text)) > _ALL_INDENTED * filled
    candidates = list(islice(_candidates(text, is_indented), MOST_HEADINGS))
    in_a_row: set[int] = set()  # with nothing between, they are the items of a list
    for heading, following in pairwise(candidates):
        if heading.level == following.level and following.start - heading.end <= _NOTHING_BETWEEN:
            in_a_row |= {heading.start, following.start}
    headings = [heading for heading in candidates if heading.start not in in_a_row]
    return Document(text, headings, _find_title(text), units=_units(text), lines=lines, navigation=list(_entries(text)))


def _entries(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the entries of a table of contents are, and how many letters and digits they have."""
    for match in _LEADERS.finditer(text):
        start = text.rfind("\n", max(match.start() - _LONGEST_ENTRY, 0), match.start()) + 1
        yield start, sum(map(str.isalnum, text[start : match.end()]))


def _without_furniture(text: str) -> tuple[str, Sequence[int]]:
    """Return a text without headers and footers of its pages, and the number that each line has in the file."""
    if _FORM_FEED not in text:
        if not _PAGE_END.search(text):
            return text, range(1, text.count("\n") + 2)
        text = _PAGE_END.sub(lambda match: match[0][:-1] + _FORM_FEED + "\n", text)
    pages = [page.split("\n") for page in text.split(_FORM_FEED)]
    lines: list[str] = []
    numbers: list[int] = []
    number = 1
    for page, repeated in zip(pages, find_repeated(pages), strict=True):
        filled = [at for at, line in enumerate(page) if line.strip() and at not in repeated]
        if filled:
            if lines and not _continues(lines, page[filled[0]]):
                lines.append("")
                numbers.append(number)
            kept = [at for at in range(filled[0], filled[-1] + 1) if at not in repeated]
            lines += (page[at] for at in kept)
            numbers += (number + at for at in kept)
        number += len(page) - 1  # the next page begins on the line of the form feed
    return "\n".join(lines), numbers or [1]


def _continues(lines: Sequence[str], following: str) -> bool:
    """Return whether a page goes on within the paragraph in which the page before ends."""
    last = lines[-1]
    is_alone = len(lines) < 2 or not lines[-2].strip()  # a heading at the foot of a page, or a term
    same = _indent(last) == _indent(following) or not is_alone
    return same and not last.rstrip().endswith(_ENDS_A_SENTENCE) and not _ITEM.match(following)


def _find_title(text: str) -> str:
    """Return the title of a text: lines that are centred, or else a first line that stands alone."""
    blocks: list[list[str]] = [[]]
    for line in text.split("\n", _TITLE_LINES)[:_TITLE_LINES]:
        if line.strip():
            blocks[-1].append(line.rstrip())
        elif blocks[-1]:
            blocks.append([])
    for block in blocks:
        is_short = 0 < len(block) <= _LONGEST_TITLE and not any(map(_WIDE_GAP.search, block))
        is_centred = all(_indent(line) >= 8 and (_indent(line) + len(line)) // 2 in _MIDDLES for line in block)
        if is_short and is_centred and sum(len(_WORD.findall(line)) for line in block) > 1:
            return one_line(" ".join(block))
    first = " ".join(blocks[0]).strip()
    is_line = len(blocks) > 1 and len(blocks[0]) == 1 and len(first) <= 80 and not _WIDE_GAP.search(first)
    return first if is_line and _WORD.search(first) and not first.endswith(_NO_TITLE_ENDS) else ""


def _candidates(text: str, is_indented: bool) -> Iterator[Heading]:
    """Yield lines that look like headings: first after a blank line, and alone or above a line of signs."""
    for match in _FIRST_LINE.finditer(text):
        line, below = match["line"], match["below"] or ""
        if below.strip():
            if _UNDERLINE.fullmatch(below) and abs(len(below.strip()) - len(line.strip())) <= 2:
                level = 1 + _LEVELS_OF_UNDERLINES.index(below[0])
                yield Heading(match.start("line"), match.end("below"), level, one_line(line))
        elif level := _level(line.strip(), is_indented and not line[0].isspace()):
            yield Heading(*match.span("line"), level, one_line(line))


def _level(line: str, stands_out: bool = False) -> int:
    """Return the level of a heading that stands alone: numbered, named as one, or in capitals; 0 for other lines.

    So is one that stands out, as all others are indented.
    """
    if line.endswith(_NO_HEADING_ENDS) or _LEADERS.search(line):
        return 0
    if match := _NUMBERED.fullmatch(line):
        return 1 + match["number"].count(".")
    # abbreviations and codes in capitals have few letters in a row
    is_shouted = line.isupper() and line[0].isalnum() and sum(map(str.isalpha, line)) * 2 > len(line) > 3
    return 1 if _NAMED.fullmatch(line) or is_shouted or (stands_out and line[0].isalnum()) else 0


_INDENTED = re.compile(r"^[ \t]++\S", re.MULTILINE)
_NO_TITLE_ENDS = (*_NO_HEADING_ENDS, "?")
_LINE = re.compile(r"^([ \t]*+)(?=[^\s])[^\n]*+", re.MULTILINE)
_ITEM = re.compile(r"[ \t]*+(?:[-*+•o]|\(?\d{1,3}[.)]|\(?[a-z][.)])[ \t]")
_SHOWN = re.compile(r"[ \t]*+(?:```|~~~|\||\+-)")  # code between fences, and tables
_TAB = 8
_LONGEST_TERM = 80  # characters


def _indent(line: str) -> int:
    """Return in which column a line begins."""
    blanks = line[: len(line) - len(line.lstrip(" \t"))]
    return len(blanks.expandtabs(_TAB)) if "\t" in blanks else len(blanks)


@dataclass
class _Open:
    """Lines that more indented ones may belong to."""

    indent: float
    start: int
    end: int
    """of the first line"""
    first: float
    """the indentation of the first line, of which a book has more than of others"""
    body: int | None = None


def _units(text: str) -> list[Unit]:
    """Return what the indentation of a text keeps together: terms, items and sentences with what is below them.

    What follows a colon belongs to it as well if it is a list, a table or code that is not indented.
    """
    units: list[Unit] = []
    stack: list[_Open] = []
    before = 0  # where the last line ends

    def close(indent: float) -> None:
        while stack and stack[-1].indent >= indent:
            done = stack.pop()
            if done.body is not None:
                term = text[done.start : done.end].strip()
                is_term = done.body == done.end + 1 and len(term) <= _LONGEST_TERM
                is_term = is_term and not term.endswith(_NO_HEADING_ENDS) and not _ITEM.match(f"{term} ")
                units.append(Unit(done.start, done.body, before, term if is_term else ""))

    for match in _LINE.finditer(text):
        start, indent = match.start(), _indent(match[0])
        follows = start == before + 1  # without a blank line
        is_item = bool(_ITEM.match(match[0]))
        top = stack[-1] if stack else None
        if top and follows and top.body is None and indent <= top.indent and not is_item:
            top.indent = min(top.indent, indent)  # another line of the paragraph
        elif top and follows and indent == top.indent and not is_item and _SHOWN.match(match[0]):
            pass  # another row
        else:
            is_shown = is_item or bool(_SHOWN.match(match[0]))
            if top and top.body is None and indent == top.first:
                if is_shown and text[before - 1] == ":":
                    top.indent = indent - _HALF
                else:  # the next paragraph, of which the first line may be indented more than the others
                    close(top.indent)
            close(indent if is_shown else indent - _HALF)
            if stack and stack[-1].body is None:
                stack[-1].body = start
            stack.append(_Open(indent, start, match.end(), indent))
        before = match.end()
    close(0 - _HALF)
    return units


_HALF = 0.5
"""of a column: so much less is a sentence indented than the list that it introduces, though they begin in the same"""
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")


_ROLE = re.compile(r"(?::[\w:+.-]{1,40}:)?`{1,2}~?([^`<>]{1,200}?)\s*(?:<[^`<>]{0,200}>)?`{1,2}_{0,2}")
"""a role, a reference, or code, such as :mod:`os.path`"""


def _without_roles(title: str) -> str:
    return one_line(_ROLE.sub(r"\1", title[:_LONGEST_LINE]))


def read_restructured(text: str) -> Document:
    """Return a document of the text of a reStructuredText file, in which any sign may underline headings."""
    levels: dict[tuple[str, bool], int] = {}
    headings: list[Heading] = []
    start, before, over = 0, (0, ""), (0, "")
    for line in text.split("\n"):
        if headings and len(headings) >= MOST_HEADINGS:
            break
        place, title = before
        end = start + len(line)
        is_title = bool(title.strip()) and not _ADORNMENT.fullmatch(title) and len(line.rstrip()) >= len(title.strip())
        if is_title and _ADORNMENT.fullmatch(line):
            is_over = over[1].rstrip() == line.rstrip()
            level = levels.setdefault((line[0], is_over), len(levels) + 1)
            headings.append(Heading(over[0] if is_over else place, end, level, _without_roles(title)))
            line = ""
        over = before if _ADORNMENT.fullmatch(title) else (0, "")
        before, start = (start, line), end + 1
    return Document(text, headings, units=_units(text), lines=range(1, text.count("\n") + 2))


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
    front, title, skipped = _FRONT_MATTER.match(text, 0, _LONGEST_FRONT_MATTER), "", 0
    if front and ":" in front[1]:
        match = _FRONT_TITLE.search(front[1])
        title = one_line(_unquoted(match[1].strip())) if match else ""
        skipped = front[0].count("\n")
        text = text[front.end() :]  # what it says of author or layout is no part of the text
    headings = list(islice(_find_headings(text), MOST_HEADINGS))
    lines = range(skipped + 1, skipped + text.count("\n") + 2)
    return Document(text, headings, title, units=_units(text), lines=lines)


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
