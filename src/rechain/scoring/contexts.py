"""What stands around a value or name in passages: its clause or row, the head of its column, its sentence, its heading.

A context fits a question the better, the more of the question's telling words it holds, and the closer. How much a word
tells is counted among the sentences of the question's own passages, so that it needs no table of any language.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import fsum, log
from typing import NamedTuple

import numpy as np

from rechain.system.tensors import Array
from rechain.text.answers import wrapping
from rechain.text.languages import stem
from rechain.text.passage_views import PassageView
from rechain.text.values import Item
from rechain.text.words import Span, Text

_MOST_SENTENCES = 2000
"""of a passage that are read; a longer one is a whole book, of which other sentences would take seconds"""
_SENTENCE, _NEAR, _PASSAGE = 0.6, 0.35, 0.15
"""what a word is worth beside one of the clause: in the sentence, in heading, title or next sentence, in the passage"""
_CLAUSE_END = re.compile(
    r"[,;:()，；：、（）]\s|[，；：、（）。]|\s[–—-]\s"
    r"|\s(?:and|but|while|whereas|or|than|und|aber|während|sowie|oder|als|dagegen)\s|而|但"
)
_CELL_END = re.compile(r"(?:(?<!\s)\s++)?\|\s*|\t+|(?<=\S) {2,}(?=\S)")  # blanks are tried once, from the first on
_RULE = re.compile(r"[\s|:+=-]+")
"""a line below the head of a table"""
_ITEM = re.compile(r"\s*(?:[-*•]\s+)?[^:：.|]{1,50}[:：]\s*\S")
"""a line that says something about what it names first: "Zurich: 180 euros" """
_ITEM_END = re.compile(r"(?<=[:：])\s*")
_LONGEST_HEADING = 80
"""characters"""
_NO_HEADING = (".", "!", "?", ",", ";", "。", "！", "？", "；")
_CAPITALISED = r"[^\W\d_a-zß-ÿ][\w’'-]{0,60}+"  # bounded, as each capital of 150,000 begins a word
_NAME = re.compile(rf"(?:{_CAPITALISED}[ ]){{1,3}}{_CAPITALISED}")
"""several words with capitals: a person, an office; also in German, which gives all nouns a capital"""
_FUNCTION = wrapping.words("function")


class Unit(NamedTuple):
    """A clause, or a cell of a table or of a list whose items begin with a name."""

    passage: int
    sentence: int
    """its number among the sentences of all passages"""
    start: int
    end: int
    terms: frozenset[str]
    """of the clause; of a cell those of its row and of the head of its column"""
    table: int | None = None
    """number of the table or list, of a cell"""


class _Sentence(NamedTuple):
    """A sentence or row: its terms, and those of heading, title and the sentences next to it."""

    passage: int
    terms: frozenset[str]
    near: frozenset[str]


def _holders(some: Iterable[frozenset[str]]) -> dict[str, list[int]]:
    """Return the numbers of the sets that hold each term: to look through all of them for each takes far longer."""
    holders: dict[str, list[int]] = {}
    for number, of_one in enumerate(some):
        for term in of_one:
            holders.setdefault(term, []).append(number)
    return holders


def terms(text: str) -> frozenset[str]:
    """Return the words of a text that say something, without their endings."""
    return _terms(Text(text))


def _terms(text: Text) -> frozenset[str]:
    return frozenset(stem(word) for word in text.terms if word not in _FUNCTION)


def find_names(text: str) -> list[str]:
    """Return the names of several words in a text."""
    found = (match[0] for match in _NAME.finditer(text))
    return [name for name in found if _FUNCTION.isdisjoint(Text(name).words)]


class Contexts:
    """The clauses and cells of some passages, and how well each fits some words."""

    def __init__(self, views: Sequence[PassageView]) -> None:
        self._views = views
        self.units: list[Unit] = []
        self._sentences: list[_Sentence] = []
        for number, view in enumerate(views):
            read = _PassageReader(number, view, len(self._sentences), self._tables)
            self.units += read.units
            self._sentences += read.sentences
        self._passages = [frozenset(map(stem, view.terms)) for view in views]
        self._holders = _holders(sentence.terms for sentence in self._sentences)
        self._near = _holders(sentence.near for sentence in self._sentences)
        self._inside = _holders(unit.terms for unit in self.units)
        self._passage_of = np.array([sentence.passage for sentence in self._sentences], dtype=int)
        self._sentence_of = np.array([unit.sentence for unit in self.units], dtype=int)
        self._closeness: dict[str, Array] = {}

    @property
    def _tables(self) -> int:
        """The number of tables so far."""
        return max((unit.table + 1 for unit in self.units if unit.table is not None), default=0)

    def count(self, term: str) -> int:
        """Return how many sentences hold a term."""
        return len(self._holders.get(term, ()))

    def units_with(self, term: str) -> list[Unit]:
        """Return the units that hold a term."""
        return [self.units[number] for number in self._inside.get(term, ())]

    def weigh(self, some: Iterable[str]) -> dict[str, float]:
        """Return those of some terms that stand in a sentence, and how much each tells the sentences apart."""
        counts = {term: count for term in some if (count := self.count(term))}
        return {term: log((len(self._sentences) + 1) / count) for term, count in counts.items()}

    def fits(self, weights: Mapping[str, float]) -> Array:
        """Return how well each unit fits some terms, 0 to 1."""
        fits = np.zeros(len(self.units))
        for term, weight in weights.items():
            fits += weight * self._close(term)
        return fits / (fsum(weights.values()) or 1.0)

    def _close(self, term: str) -> Array:
        """Return how close a term is to each unit; a question's and an answer's terms are asked for many times."""
        if term not in self._closeness:
            passages = np.array([term in passage for passage in self._passages], dtype=float)
            sentences = _PASSAGE * passages[self._passage_of]
            sentences[self._near.get(term, [])] = _NEAR
            sentences[self._holders.get(term, [])] = _SENTENCE
            close = self._closeness[term] = sentences[self._sentence_of]
            close[self._inside.get(term, [])] = 1.0
        return self._closeness[term]

    @cached_property
    def values(self) -> list[tuple[Item, int]]:
        """The values of all passages, each with the number of its unit."""
        return list(self._locate_values())

    def _locate_values(self) -> Iterator[tuple[Item, int]]:
        number = 0
        for passage, view in enumerate(self._views):
            for item in view.items:
                if not item.is_value:
                    continue
                while number + 1 < len(self.units) and self._is_before(number, passage, item.start):
                    number += 1
                yield item, number

    def _is_before(self, number: int, passage: int, start: int) -> bool:
        """Return whether a unit ends before a place, and the next one is not in a later passage."""
        unit, following = self.units[number : number + 2]
        return following.passage <= passage and (unit.passage < passage or unit.end <= start)

    @cached_property
    def names(self) -> list[tuple[str, int]]:
        """The names of several words in all passages, each with the number of its unit."""
        texts = (self._views[unit.passage].passage.text[unit.start : unit.end] for unit in self.units)
        return [(name, number) for number, text in enumerate(texts) for name in find_names(text)]


class _PassageReader:
    """Cuts a passage into clauses and cells."""

    def __init__(self, number: int, view: PassageView, first_sentence: int, first_table: int) -> None:
        self._number, self._view = number, view
        self._text = view.passage.text
        self._first, self._table = first_sentence, first_table - 1
        self._head: list[frozenset[str]] | None = None
        """of the columns of the table in which the reader is; None outside of one"""
        self.units: list[Unit] = []
        self._terms = [_terms(text) for text in view.sentence_texts[:_MOST_SENTENCES]]
        self._rows: set[int] = set()
        for place, span in enumerate(view.sentences[:_MOST_SENTENCES]):
            self._read(place, *span)
        self.sentences = list(self._sentences())

    def _read(self, place: int, start: int, end: int) -> None:
        line = self._text[start:end]
        if _RULE.fullmatch(line):
            self._add(place, start, (0, len(line)), frozenset())
            return
        is_item = self._is_item(start, end)
        cells = _split(line, _ITEM_END if is_item else _CELL_END)
        if len(cells) == 1:
            self._head = None
            for a, b in _split(line, _CLAUSE_END):
                self._add(place, start, (a, b), terms(line[a:b]))
            return
        self._rows.add(place)
        if self._head is None:
            self._table += 1
            # A table that was cut in two begins with a row like all others: with digits, and no rule below.
            is_head = self._is_ruled(end) or not (is_item or any(map(str.isdigit, line)))
            self._head = [terms(line[a:b]) for a, b in cells] if is_head else []
        heads = self._head if len(self._head) == len(cells) else [frozenset[str]()] * len(cells)
        for cell, head in zip(cells, heads, strict=True):
            self._add(place, start, cell, self._terms[place] | head, self._table)

    def _add(self, place: int, start: int, span: Span, some: frozenset[str], table: int | None = None) -> None:
        self.units.append(Unit(self._number, self._first + place, start + span[0], start + span[1], some, table))

    def _is_item(self, start: int, end: int) -> bool:
        """Return whether this is one of several lines that each name something and say something about it."""
        is_item = _ITEM.match(self._text, start, end) is not None
        return is_item and any(map(_ITEM.match, self._lines_around(start, end)))

    def _lines_around(self, start: int, end: int) -> Iterator[str]:
        """Yield the lines before and after what is a line of its own."""
        before, after = self._text[max(start - _LONGEST_HEADING, 0) : start], self._text[end : end + _LONGEST_HEADING]
        if before.endswith("\n"):
            yield before.rstrip().rpartition("\n")[2]
        if after.startswith("\n"):
            yield after.lstrip().partition("\n")[0]

    def _is_ruled(self, end: int) -> bool:
        following = self._text[end : end + _LONGEST_HEADING].lstrip("\n").partition("\n")[0]
        return bool(following.strip()) and _RULE.fullmatch(following) is not None

    def _sentences(self) -> Iterator[_Sentence]:
        """Yield the sentences with what stands near them: of a row, neither the row before nor the one after."""
        title = terms(self._view.passage.title)
        heading = title
        for place, some in enumerate(self._terms):
            if self._is_heading(*self._view.sentences[place]):
                heading = title | some
            around = self._terms[max(place - 1, 0) : place] + self._terms[place + 1 : place + 2]
            if place in self._rows:
                around = []
            yield _Sentence(self._number, some, heading.union(*around))

    def _is_heading(self, start: int, end: int) -> bool:
        line = self._text[start:end].strip()
        begins = start == 0 or self._text[start - 1] == "\n"
        is_marked = line.startswith(("-", "*", "•")) or "|" in line or "  " in line
        return begins and len(line) <= _LONGEST_HEADING and not is_marked and not line.endswith(_NO_HEADING)


def _split(line: str, ends: re.Pattern[str]) -> list[Span]:
    """Return the parts of a line that have something in them; the whole line if none has."""
    cuts = [0, *(match.end() for match in ends.finditer(line)), len(line)]
    return [(a, b) for a, b in pairwise(cuts) if line[a:b].strip(" |\t")] or [(0, len(line))]
