"""Where the entities of a question and its chain stand in a text: what is highlighted for people."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rechain.schema import Chain, Question
from rechain.text.passages import PassageView
from rechain.text.rarity import naming_words
from rechain.text.words import Span, Text, phrase

QUESTION, ANSWER = "question", "answer"


class Mark(NamedTuple):
    """A stretch of text and what it is: an entity of the question, the answer, or a link ("link 1", "link 2", …)."""

    start: int
    end: int
    role: str


class Piece(NamedTuple):
    """A piece of text and all that it is."""

    text: str
    roles: tuple[str, ...]


def link_role(number: int) -> str:
    """Return the role of a chain's link, counted from 0."""
    return f"link {number + 1}"


class Highlighter:
    """Marks every mention of the question's entities, the answer, and the entities that link passages."""

    def __init__(self, question: Question, links: Sequence[str] = ()) -> None:
        """Take the linking entities: ids, or names as they stand in some text."""
        self._question = question
        self._links = links
        self._told: dict[str, list[Mark]] = {}
        self._answers = [words for text in (question.answer, *question.answer_aliases) if (words := phrase(text))]
        self._names = frozenset() if question.question_entities else frozenset(naming_words(Text(question.question)))

    @classmethod
    def of_chain(cls, question: Question, chain: Chain | None) -> "Highlighter":
        """Mark the links of a chain, also where the chain itself says that they stand."""
        if chain is None:
            return cls(question)
        highlighter = cls(question, [link.entity for link in chain.links])
        for number, (ends, link) in enumerate(zip(pairwise(chain.passages), chain.links, strict=False)):
            for passage, span in zip(ends, link.mentions, strict=True):
                if span:
                    highlighter._told.setdefault(passage, []).append(Mark(*span, link_role(number)))
        return highlighter

    def marks(self, view: PassageView) -> list[Mark]:
        """Return the marks of a passage's text, in the order of their places."""
        length = len(view.passage.text)
        found = {
            *_as(ANSWER, self._answer(view)),
            *_as(QUESTION, self._question_entities(view)),
            *(
                mark
                for number, name in enumerate(self._links)
                for mark in _as(link_role(number), _mentions(view, name))
            ),
            *(mark for mark in self._told.get(view.passage.id, ()) if 0 <= mark.start < mark.end <= length),
        }
        return sorted(found)

    def pieces(self, view: PassageView) -> list[Piece]:
        """Return a passage's text cut at every mark."""
        return cut(view.passage.text, self.marks(view))

    def _answer(self, view: PassageView) -> Iterable[Span]:
        if self._question.answer_entity is not None:
            return view.mentions(self._question.answer_entity)
        return [span for words in self._answers for span in view.text.spans(words)]

    def _question_entities(self, view: PassageView) -> Iterable[Span]:
        if self._question.question_entities:
            return [span for entity in self._question.question_entities for span in view.mentions(entity)]
        return _joined(view.text, [n for n, word in enumerate(view.text.words) if word in self._names])


def _mentions(view: PassageView, entity: str) -> Iterable[Span]:
    """Return where an entity stands: by its id or, where it is a name, by its words."""
    words = phrase(entity)
    return view.mentions(entity) or (view.text.spans(words) if words else ())


def cut(text: str, marks: Iterable[Mark]) -> list[Piece]:
    """Cut a text wherever a mark begins or ends, so that marks may overlap."""
    opening: dict[int, list[str]] = {}
    closing: dict[int, list[str]] = {}
    for start, end, role in marks:
        opening.setdefault(start, []).append(role)
        closing.setdefault(end, []).append(role)
    open_roles: list[str] = []
    pieces = []
    for start, end in pairwise(sorted({0, len(text), *opening, *closing})):
        for role in closing.get(start, ()):
            open_roles.remove(role)
        open_roles += opening.get(start, ())
        pieces.append(Piece(text[start:end], tuple(dict.fromkeys(open_roles))))
    return pieces


def _as(role: str, spans: Iterable[Span]) -> Iterator[Mark]:
    return (Mark(start, end, role) for start, end in spans)


def _joined(text: Text, words: Iterable[int]) -> Iterator[Span]:
    """Yield the stretches of words that follow one another with nothing but blanks and hyphens between."""
    begun: Span | None = None
    last = -1
    for word in words:
        start, end = text.places[word]
        if begun and word == last + 1 and not text.original[begun[1] : start].strip(" -"):
            begun = begun[0], end
        else:
            if begun:
                yield begun
            begun = start, end
        last = word
    if begun:
        yield begun
