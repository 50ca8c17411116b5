"""What stands around a value or name in passages: the clause, the row and head of a table, the sentence, the heading.

A value that an answer gives is right where it stands in the context that the question asks for. Whether it does is told
beside its rivals, the other values of its kind: their contexts must not fit the question better.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from rechain.system.tensors import Array
from rechain.answers import frames
from rechain.values.normal import Item, NormalText, same
from rechain.text.passages import PassageView
from rechain.answers.telling import stem
from rechain.text.words import Span, Text

MOST_SENTENCES = 2000
"""of a passage that are compared; a longer one is a whole book, of which other sentences would take seconds"""
_SENTENCE, _NEAR, _PASSAGE = 0.6, 0.35, 0.15
"""what a word is worth beside one of the clause: in the sentence, in heading, title or next sentence, in the passage"""
_CLAUSE_END = re.compile(
    r"[,;:()，；：、（）]\s|[，；：、（）。]|\s[–—-]\s"
    r"|\s(?:and|but|while|whereas|or|than|und|aber|während|sowie|oder|als|dagegen)\s|而|但"
)
_CELL_END = re.compile(r"\s*\|\s*|\t+|(?<=\S) {2,}(?=\S)")
_RULE = re.compile(r"[\s|:+=-]+")
_LONGEST_HEADING = 80
_NAME = re.compile(r"(?:[^\W\d_a-zß-ÿ][\w’'-]*[ ]){1,3}[^\W\d_a-zß-ÿ][\w’'-]*")
_FUNCTION = frames.words("function")


class _Sentence(NamedTuple):
    passage: int
    span: Span
    terms: frozenset[str]


class _Unit(NamedTuple):
    """A clause or a cell."""

    sentence: int
    start: int
    end: int
    terms: frozenset[str]
    """of the clause; of a cell those of its row and of the head of its column"""


def terms(text: str) -> frozenset[str]:
    """Return the words of a text that say something, without their endings."""
    return frozenset(stem(word) for word in Text(text).terms if word not in _FUNCTION)


class Contexts:
    """The clauses and cells of some passages."""

    def __init__(self, views: Sequence[PassageView]) -> None:
        self.views = views
        self.sentences: list[_Sentence] = []
        self.units: list[_Unit] = []
        self.near: list[frozenset[str]] = []
        self.passage_terms = [frozenset(map(stem, view.terms)) for view in views]
        for number, view in enumerate(views):
            self._read(number, view)
        self.counts = Counter(term for sentence in self.sentences for term in sentence.terms)
        self._values: list[tuple[Item, int]] | None = None
        self._names: list[tuple[str, int]] | None = None

    def _read(self, number: int, view: PassageView) -> None:
        text = view.passage.text
        first = len(self.sentences)
        spans = view.sentences[:MOST_SENTENCES]
        heading = terms(view.passage.title)
        head: list[frozenset[str]] = []
        headings = []
        in_table = False
        for place, (start, end) in enumerate(spans):
            line = text[start:end]
            known = frozenset(map(stem, view.sentence_texts[place].terms)) - _FUNCTION
            cells = _cells(line)
            self.sentences.append(_Sentence(number, (start, end), known))
            if _is_heading(text, start, end):
                heading = terms(view.passage.title) | known
            headings.append(heading)
            sentence = len(self.sentences) - 1
            if len(cells) > 1 and not _RULE.fullmatch(line):
                cell_terms = [terms(line[a:b]) for a, b in cells]
                if not in_table:
                    head = cell_terms if not any(c.isdigit() for c in line) or _is_ruled(text, end) else []
                in_table = True
                for column, (a, b) in enumerate(cells):
                    above = head[column] if column < len(head) and len(head) == len(cells) else frozenset()
                    self.units.append(_Unit(sentence, start + a, start + b, known | above))
            elif _RULE.fullmatch(line):
                self.units.append(_Unit(sentence, start, end, frozenset()))
            else:
                in_table = False
                for a, b in _clauses(line):
                    self.units.append(_Unit(sentence, start + a, start + b, terms(line[a:b])))
        for place in range(first, len(self.sentences)):
            around = [self.sentences[n].terms for n in (place - 1, place + 1) if first <= n < len(self.sentences)]
            if _is_row(self.units, place):
                around = []
            self.near.append(headings[place - first].union(*around))

    @property
    def values(self) -> list[tuple[Item, int]]:
        """The values of the passages, each with its unit."""
        if self._values is None:
            self._values = [(item, unit) for item, unit in self._located() ]
        return self._values

    def _located(self) -> Iterator[tuple[Item, int]]:
        of: dict[int, list[int]] = {}
        for number, unit in enumerate(self.units):
            of.setdefault(self.sentences[unit.sentence].passage, []).append(number)
        for passage, numbers in of.items():
            ends = [self.units[n].end for n in numbers]
            at = 0
            for item in NormalText(self.views[passage].passage.text).items:
                if not item.is_value:
                    continue
                while at < len(ends) - 1 and ends[at] <= item.start:
                    at += 1
                yield item, numbers[at]

    @property
    def names(self) -> list[tuple[str, int]]:
        if self._names is None:
            self._names = []
            for number, unit in enumerate(self.units):
                text = self.views[self.sentences[unit.sentence].passage].passage.text[unit.start : unit.end]
                self._names += [(name, number) for name in find_names(text)]
        return self._names

    def weights(self, anchors: Iterable[str]) -> dict[str, float]:
        """Return how much each of some words tells the sentences apart."""
        return {
            word: log((len(self.sentences) + 1) / self.counts[word]) for word in anchors if self.counts.get(word)
        }

    def fits(self, weights: dict[str, float]) -> Array:
        """Return how well each unit fits some words."""
        total = sum(weights.values()) or 1.0
        wanted = weights.keys()
        fits = np.zeros(len(self.units))
        for number, unit in enumerate(self.units):
            sentence = self.sentences[unit.sentence]
            here = wanted & unit.terms
            whole = (wanted & sentence.terms) - here
            near = (wanted & self.near[unit.sentence]) - here - whole
            far = (wanted & self.passage_terms[sentence.passage]) - here - whole - near
            fits[number] = (
                sum(map(weights.__getitem__, here))
                + _SENTENCE * sum(map(weights.__getitem__, whole))
                + _NEAR * sum(map(weights.__getitem__, near))
                + _PASSAGE * sum(map(weights.__getitem__, far))
            )
        return fits / total


def _is_row(units: Sequence[_Unit], sentence: int) -> bool:
    return False


def find_names(text: str) -> list[str]:
    """Return what looks like a person's name or another of several words."""
    return [match[0] for match in _NAME.finditer(text)]


def _is_ruled(text: str, end: int) -> bool:
    following = text[end:].lstrip("\n").split("\n", 1)[0]
    return bool(following.strip()) and _RULE.fullmatch(following) is not None


def _cells(line: str) -> list[Span]:
    if "|" not in line and "\t" not in line and "  " not in line:
        return [(0, len(line))]
    return _split(line, _CELL_END)


def _clauses(line: str) -> list[Span]:
    return _split(line, _CLAUSE_END)


def _split(line: str, ends: re.Pattern[str]) -> list[Span]:
    cuts = [0, *(match.end() for match in ends.finditer(line)), len(line)]
    return [(a, b) for a, b in zip(cuts, cuts[1:]) if line[a:b].strip(" |\t")] or [(0, len(line))]


def _is_heading(text: str, start: int, end: int) -> bool:
    line = text[start:end].strip()
    return (
        len(line) <= _LONGEST_HEADING
        and not line.endswith((".", "!", "?", ",", ";", "。", "！", "？", "；"))
        and "|" not in line
        and "  " not in line
        and (start == 0 or text[start - 1] == "\n")
        and not line.startswith(("-", "*", "•"))
    )


_YEAR = re.compile(r"=(?:1[89]|20)\d\d")
_DATE = re.compile(r"=(?:\d{4})?-\d")


def kinds(value: Item) -> frozenset[str]:
    """Return of what kinds a value may be: its units, a date, a time, a number."""
    return frozenset(map(_kind, (value.key, *value.others)))


def _kind(key: str) -> str:
    if " " in key:
        return key.rpartition(" ")[2]
    if key.startswith("=T"):
        return "time"
    if _DATE.match(key):
        return "date"
    if key.endswith("."):
        return "ordinal"
    return "year" if _YEAR.fullmatch(key) else "number"


def are_alike(one: Item, two: Item) -> bool:
    """Return whether two values are of the same kind."""
    if one.counted and two.counted and one.counted != two.counted and not one.units and not two.units:
        return False
    return not kinds(one).isdisjoint(kinds(two))
