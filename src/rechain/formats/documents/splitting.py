"""Passages of a document: cut at headings, and within long sections near-evenly at paragraphs and sentences.

A passage is always a stretch of the document's text, so that it can be shown in its place. Its title is the path of
headings above it: that is how a passage about "Opening hours" tells whose they are.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from rechain.errors import RechainError
from rechain.formats.documents.layout import Document, Heading, Unit, shorten
from rechain.text.passage_views import HEADINGS, find_sentences
from rechain.text.words import Span

_ROUND_UP = 0.6  # of a passage: 1.4 times the target is cut in two, so that passages have 0.7 to 1.4 times the target
_SHORT = 4  # sections shorter than a quarter of the target, such as the entries of a list of contacts, are joined
_REACH = 1 / 3  # of the target: so far from an even cut a paragraph's end is looked for
_COSTS = (0.0, 0.3, 0.7)
"""of a cut after a paragraph, after a sentence and within one, in targets: uneven parts are better than broken ones"""
_PARAGRAPH, _SENTENCE, _WITHIN = range(3)
_LONGEST_WORD = 12  # characters on average: what has fewer blanks is code or data, and is measured by its characters
# Scripts without blanks; two characters are a word there, more or less.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_UNSPACED_IN_WORD = 2
_PARAGRAPH_BREAK = re.compile(r"\n[^\S\n]*+\n\s*+")
_LONGEST_PARAGRAPH = 20_000
"""characters: one that is longer, such as a file on one line, is cut into such pieces before sentences are sought"""
_LEAST_ATOM = 0.5
"""characters for each word of the target, about a twelfth of it: nothing is gained by more places to cut"""
_LETTER = re.compile(r"[^\W_]")
_BLANKS = re.compile(r"\s*+")
_LARGEST_UNIT = 1.4  # of the target: what belongs together, such as a definition with its term, is not cut up to that
_NAVIGATION = 0.8
"""of the letters of a passage: of one that has more in links, or in a table of contents, nobody learns anything"""


@dataclass(frozen=True)
class SplitSettings:
    """How documents are cut into passages."""

    passage_words: int = 150
    """words of a passage, more or less: enough that a statement keeps what it refers to, but about one thing, as are
    the paragraphs of 60 to 130 words that the models have learned from"""

    def __post_init__(self) -> None:
        if not isinstance(self.passage_words, int) or not 20 <= self.passage_words <= 5_000:
            raise RechainError(f"passage_words is {self.passage_words!r}; it should be a whole number from 20 to 5000.")


class Piece(NamedTuple):
    """A passage to be: its title and where it stands in the document."""

    title: str
    start: int
    end: int


@dataclass
class _Section:
    """A heading, the text up to the next heading, and the sections below it."""

    path: tuple[str, ...]
    parent: int  # its number among the sections; -1 of the document itself
    heading: Heading | None
    body: Span
    has_children: bool = False

    @property
    def span(self) -> Span:
        """Where it stands with its heading."""
        return (self.heading.start if self.heading else self.body[0]), self.body[1]


def split(document: Document, name: str, settings: SplitSettings) -> Iterator[Piece]:
    """Yield the pieces of a document in order; `name` is its title if it has none."""
    sections = _sections(document, _title_of(document) or name)
    has_any = False
    units = _Units(document.units)
    for run, owner in _runs(document.text, sections, settings):
        path = run[0].path if len(run) == 1 else sections[owner].path
        for start, end in _cut(document.text, *_stretch(document.text, run), settings, units):
            has_any = True
            term = shorten(units.name_at(start, end))
            yield Piece(HEADINGS.join((*path, term) if term and term not in path else path), start, end)
    if not has_any and (span := _stripped(document.text, 0, len(document.text))):
        yield Piece(HEADINGS.join(sections[0].path), *span)


def is_navigation(document: Document, piece: Piece) -> bool:
    """Return whether a piece is hardly more than links, or entries of a table of contents."""
    first = bisect_left(document.navigation, (piece.start,))
    last = bisect_left(document.navigation, (piece.end,))
    linked = sum(characters for _, characters in document.navigation[first:last])
    return linked > 0 and linked >= _NAVIGATION * len(_LETTER.findall(document.text, piece.start, piece.end))


class _Units:
    """The units of a document by where they begin, outer ones first."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = sorted(units, key=lambda unit: (unit.start, -unit.end))
        self._named: list[Unit] = []  # those that are open at the last place asked for
        self._next = 0

    def within(self, start: int, end: int) -> Sequence[Unit]:
        """Return the units that begin in a stretch."""
        first, last = (bisect_left(self._units, place, key=attrgetter("start")) for place in (start, end))
        return self._units[first:last]

    def name_at(self, start: int, end: int) -> str:
        """Return the term of the definition of which a piece is a later part. Pieces come in the order of the text."""
        while self._next < len(self._units) and self._units[self._next].start < start:
            unit = self._units[self._next]
            self._next += 1
            while unit.name and self._named and self._named[-1].end <= unit.start:
                self._named.pop()
            self._named += [unit] * bool(unit.name)
        while self._named and self._named[-1].end <= start:
            self._named.pop()
        # what begins with the term needs none, and what is mostly text after the definition is not about it
        is_part = bool(self._named) and self._named[-1].body <= start and 2 * self._named[-1].end > start + end
        return self._named[-1].name if is_part else ""


def _title_of(document: Document) -> str:
    """Return the document's title: its only top heading, where its given title says no more than that and the site."""
    top = [heading.words for heading in document.headings if heading.level == 1]
    heading = top[0] if len(top) == 1 else ""  # of several, none is the title of the others
    says_more = heading.casefold() not in document.title.casefold()
    return document.title if document.title and (says_more or not heading) else heading


def _sections(document: Document, title: str) -> list[_Section]:
    """Return the sections in order; the first is what stands before any heading."""
    ends = [*(heading.start for heading in document.headings), len(document.text)]
    sections = [_Section((shorten(title),), -1, None, (0, ends[0]))]
    open_ones = [(0, 0)]
    """level and number of the sections above the next"""
    for heading, end in zip(document.headings, ends[1:], strict=True):
        while open_ones[-1][0] >= heading.level:
            open_ones.pop()
        parent = open_ones[-1][1]
        sections[parent].has_children = True
        open_ones.append((heading.level, len(sections)))
        path, words = sections[parent].path, shorten(heading.words)
        if words.casefold() not in map(str.casefold, path):  # else it says the same as one above it
            path = (*path, words)
        sections.append(_Section(path, parent, heading, (heading.end, end)))
    return sections


def _runs(text: str, sections: Sequence[_Section], settings: SplitSettings) -> Iterator[tuple[list[_Section], int]]:
    """Yield sections that become passages together, and the number of the section that all of them are in.

    Very short ones under the same heading are together, up to the target, others by themselves. What stands between a
    heading and the first heading below it may begin such a run.
    """
    run: list[_Section] = []
    owner, words = -1, 0.0
    for number, section in enumerate(sections):
        size = measure(text, *section.span)
        is_short = _SHORT * size < settings.passage_words
        fits = is_short and not section.has_children and words + size <= settings.passage_words
        if run and fits and section.parent == owner:
            run.append(section)
            words += size
            continue
        if run:
            yield run, owner
        run, owner, words = [], -1, 0.0
        if not is_short:
            yield [section], number
        elif not section.has_children or _LETTER.search(text, *section.body):
            run, owner, words = [section], number if section.has_children else section.parent, size
    if run:
        yield run, owner


def _stretch(text: str, run: Sequence[_Section]) -> Span:
    """Return the stretch of a run: a lone section without its heading, which is in its title, unless that is all."""
    section = run[0]
    if len(run) > 1:  # what begins with the text of the heading above all is without that heading as well
        return (section.body if section.has_children else section.span)[0], run[-1].span[1]
    is_bare = not section.has_children and not _LETTER.search(text, *section.body)
    return section.span if is_bare else section.body


def _cut(text: str, start: int, end: int, settings: SplitSettings, units: "_Units") -> Iterator[Span]:
    """Yield the parts of a stretch, of about the same length; none for one without letters or digits."""
    span = _stripped(text, start, end)
    if span is None:
        return
    target = settings.passage_words
    words = measure(text, *span)
    count = int(words / target + _ROUND_UP)
    if count < 2:
        yield span
        return
    inner = units.within(*span)
    atoms, begin = _joined(list(_atoms(text, *span, target, inner)), inner, target), span[0]
    for last in _last_atoms(atoms, count, target):
        if part := _stripped(text, begin, atoms[last].end):
            yield part
        begin = atoms[last].end


class _Atom(NamedTuple):
    """A stretch that is not cut, and what ends with it: a paragraph, a sentence, or neither."""

    start: int
    end: int
    ends: int
    words: float


def _last_atoms(atoms: Sequence[_Atom], count: int, target: int) -> Iterator[int]:
    """Yield the number of the last atom of each part: near an even cut, the one where a cut does least harm."""
    sums = list(accumulate(atom.words for atom in atoms))
    previous = -1
    for part in range(1, count):
        ideal = part * sums[-1] / count
        low = max(bisect_left(sums, ideal - _REACH * target), previous + 1)
        high = max(bisect_right(sums, ideal + _REACH * target), low + 1)
        choices = range(low, min(high, len(atoms) - 1))
        if not choices:
            continue
        previous = min(choices, key=lambda at: abs(sums[at] - ideal) / target + _COSTS[atoms[at].ends])
        yield previous
    yield len(atoms) - 1


def _joined(atoms: Sequence[_Atom], units: Sequence[Unit], target: int) -> Sequence[_Atom]:
    """Return atoms with those of each unit as one if they fit, or else what introduces it with its first."""
    if not units:
        return atoms
    starts = [atom.start for atom in atoms]
    sums = [0.0, *accumulate(atom.words for atom in atoms)]
    is_tied = bytearray(len(atoms) + 1)  # whether an atom belongs to the one before it
    whole = 0  # where the last unit that fits ends: those within it need no look
    for unit in units:
        if unit.end <= whole:
            continue
        first, last = bisect_left(starts, unit.start), bisect_left(starts, unit.end)
        if sums[last] - sums[first] <= _LARGEST_UNIT * target:
            whole = unit.end
            is_tied[first + 1 : last] = b"\1" * max(last - first - 1, 0)
        elif unit.body > unit.start:
            is_tied[bisect_left(starts, unit.body)] = True
    joined: list[_Atom] = []
    for atom, tied in zip(atoms, is_tied, strict=False):
        # a chain of things that introduce each other may be as long as the document
        if tied and joined and joined[-1].words + atom.words <= 2 * target:
            atom = _Atom(joined[-1].start, atom.end, atom.ends, joined.pop().words + atom.words)
        joined.append(atom)
    return joined


def _atoms(text: str, start: int, end: int, target: int, units: Sequence[Unit]) -> Iterator[_Atom]:
    """Yield the paragraphs of a stretch, those over half the target by sentences, and longer sentences in pieces."""
    for paragraph_start, paragraph_end, ends in _paragraphs(text, start, end, units):
        words = measure(text, paragraph_start, paragraph_end)
        if 2 * words <= target:
            yield _Atom(paragraph_start, paragraph_end, ends, words)
            continue
        sentences = _grouped(find_sentences(text[paragraph_start:paragraph_end]), target)
        for number, (first, last) in enumerate(sentences, 1):
            rank = ends if number == len(sentences) else _SENTENCE
            yield from _pieces(text, paragraph_start + first, paragraph_start + last, rank, target)


def _grouped(sentences: Sequence[Span], target: int) -> list[Span]:
    """Return sentences, tiny ones together: data such as a column of numbers would have millions."""
    least = _LEAST_ATOM * target
    groups: list[Span] = []
    for start, end in sentences:
        if groups and groups[-1][1] - groups[-1][0] < least:
            groups[-1] = groups[-1][0], end
        else:
            groups.append((start, end))
    return groups


def _paragraphs(text: str, start: int, end: int, units: Sequence[Unit]) -> Iterator[tuple[int, int, int]]:
    """Yield the paragraphs of a stretch and what ends with each; very long ones in windows. Units end paragraphs."""
    breaks = [match.span() for match in _PARAGRAPH_BREAK.finditer(text, start, end)]
    if units:
        places = {place for unit in units for place in (unit.start, unit.body, _after_blanks(text, unit.end))}
        places = {place for place in places if start < place < end}
        places -= {place for span in breaks for place in span}
        breaks = sorted((*breaks, *((place, place) for place in places)))
    starts = [start, *(after for _, after in breaks)]
    ends = [*(before for before, _ in breaks), end]
    for first, last in zip(starts, ends, strict=True):
        while last - first > _LONGEST_PARAGRAPH:
            cut = _blank_before(text, first, first + _LONGEST_PARAGRAPH)
            yield first, cut, _WITHIN
            first = cut
        yield first, last, _PARAGRAPH


def _pieces(text: str, start: int, end: int, rank: int, target: int) -> Iterator[_Atom]:
    """Yield a sentence or, of one longer than half the target, such as data on one line, pieces of that length."""
    words = measure(text, start, end)
    step = int((end - start) * target / max(2 * words, 1))
    while end - start > step > 0:
        cut = _blank_before(text, start, start + step)
        yield _Atom(start, cut, _WITHIN, measure(text, start, cut))
        start = cut
    yield _Atom(start, end, rank, measure(text, start, end))


def _blank_before(text: str, start: int, end: int) -> int:
    """Return where to cut: at the last blank in the second half of a stretch, or else at its end."""
    blank = max(text.rfind(sign, start + (end - start) // 2, end) for sign in (" ", "\n"))
    return blank + 1 if blank > start else end


def _after_blanks(text: str, place: int) -> int:
    match = _BLANKS.match(text, place)
    return match.end() if match else place


def _stripped(text: str, start: int, end: int) -> Span | None:
    """Return a stretch without blanks around it; None if it has no letter and no digit, such as a rule."""
    if not _LETTER.search(text, start, end):
        return None
    part = text[start:end]
    left = len(part) - len(part.lstrip())
    return start + left, start + len(part.rstrip())


def measure(text: str, start: int, end: int) -> float:
    """Return how many words a stretch has, also in scripts without blanks, and in data that has hardly any."""
    part = text[start:end]
    words = float(len(part.split()))
    if not part.isascii():
        words += len(_UNSPACED.findall(part)) / _UNSPACED_IN_WORD
    return max(words, len(part) / _LONGEST_WORD)
