"""One link between two passages: what it is called, and where it stands in each."""

from collections.abc import Collection
from itertools import count
from typing import NamedTuple

from rechain.linking.entities import Entity
from rechain.schema import Link
from rechain.text.lazy import lazy
from rechain.text.passages import PassageView
from rechain.text.words import Span, Text


class Edge:
    """An entity that links passage `before` to the passage after it."""

    def __init__(self, entity: Entity, before: int, first: PassageView, second: PassageView) -> None:
        self.before = before
        self.weight = entity.weight
        self.is_given = entity.is_given
        self._entity = entity
        self._first = first
        self._second = second

    @property
    def name(self) -> str:
        """The entity's name as linkers found it, not widened."""
        return self._entity.name

    @property
    def comes_from_title(self) -> bool:
        """Whether it is the title of the passage before, or part of it."""
        return self.before in (self._entity.titled or ())

    @property
    def leads_to_title(self) -> bool:
        """Whether it is the title of the passage after it, or part of it, and not of the one before."""
        return self._entity.titled is not None and not self.comes_from_title

    @lazy
    def key(self) -> str:
        """What tells the entities along a chain apart: an id, or the folded words of a name.

        A name is widened to the whole of what the two passages share around the entity's words.
        """
        name = self._entity.name
        if self.is_given or self._entity.kind == "title":
            return name
        one, two = _occurrence(self._first, name), _occurrence(self._second, name)
        words = name.count(" ") - 1
        left, right = _widening(one, two, words)
        return f" {' '.join(one.text.words[one.word - left : one.word + words + right])} "

    def is_one_of(self, keys: Collection[str]) -> bool:
        """Return whether the key is among some keys."""
        return self._entity.may_have_key_among(keys) and self.key in keys

    @lazy
    def link(self) -> Link:
        """The link as it is written out; finding its offsets takes time that most chains never need."""
        name, first, second = self.key, self._first, self._second
        if self.is_given:
            text, spans = name, (_first_mention(first, name), _first_mention(second, name))
        else:
            one, two = _occurrence(first, name), _occurrence(second, name)
            text = one.text.original[slice(*one.span(name))]
            spans = (one.span(name) if one.in_text else None, two.span(name) if two.in_text else None)
        return Link(entity=text, kind=self._entity.kind, weight=self.weight, mentions=spans)


class _Occurrence(NamedTuple):
    """Where a name stands first: in a passage's text, or in its title."""

    text: Text
    word: int
    in_text: bool

    def span(self, name: str) -> Span:
        return self.text.span(self.word, name.count(" ") - 1)

    def capitalised(self, offset: int) -> str:
        """Return the word so many words away, folded, if it is capitalised."""
        number = self.word + offset
        if not 0 <= number < len(self.text.raw_words):
            return ""
        return self.text.words[number] if self.text.raw_words[number][0].isupper() else ""


def _occurrence(view: PassageView, name: str) -> _Occurrence:
    word = view.text.find(name)
    if word is not None:
        return _Occurrence(view.text, word, True)
    return _Occurrence(view.title, view.title.find(name) or 0, False)


def _widening(one: _Occurrence, two: _Occurrence, words: int) -> tuple[int, int]:
    """Return by how many words to the left and right the two share the same capitalised name."""

    def is_shared(offset: int) -> bool:
        word = one.capitalised(offset)
        return word != "" and word == two.capitalised(offset)

    if not is_shared(0):
        return 0, 0
    left = next(n for n in count() if not is_shared(-n - 1))
    right = next(n for n in count() if not is_shared(n + words))
    return left, right


def _first_mention(view: PassageView, entity: str) -> Span | None:
    return next(iter(view.mentions(entity)), None)
