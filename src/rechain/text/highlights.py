"""Where the entities of a question, its answer and its chain stand in a text: what is highlighted for people."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rechain.schema import Chain, Claim, Question
from rechain.text.answers.claims import read_answer
from rechain.text.languages import naming_words
from rechain.text.passage_views import PassageView
from rechain.text.words import Span, Text, phrase

QUESTION, ANSWER, CLAIM = "question", "answer", "claim"


class Mark(NamedTuple):
    """A stretch of text and its role.

    It is an entity of the question, the answer, a sentence that holds a claim, or a link ("link 1", "link 2", …).
    """

    start: int
    end: int
    role: str


class Piece(NamedTuple):
    """A piece of text and all its roles."""

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
        self._links = [(link_role(number), entity, phrase(entity)) for number, entity in enumerate(links)]
        self._record_marks: dict[str, list[Mark]] = {}
        self._answers = [words for text in (question.answer, *question.answer_aliases) if (words := phrase(text))]
        self._names = frozenset() if question.question_entities else frozenset(naming_words(Text(question.question)))

    @classmethod
    def of_chain(cls, question: Question, chain: Chain | None, claims: Sequence[Claim] = ()) -> "Highlighter":
        """Mark the links and the answer of a chain, also at the spans that the chain itself names, and claims."""
        highlighter = cls(question, [link.entity for link in chain.links] if chain else ())
        for claim in claims:
            highlighter._add(claim.passage, claim.span, CLAIM)
        if chain is None:
            return highlighter
        for number, (ends, link) in enumerate(zip(chain.between, chain.joining_links, strict=True)):
            for place, span in zip(ends, link.mentions, strict=True):
                highlighter._add(chain.passages[place], span, link_role(number))
        if chain.answer:
            # of yes and no it is the whole sentence that decides
            is_judgement = read_answer(question.question, question.answer).kind == "judgement"
            highlighter._add(chain.answer.passage, chain.answer.span, CLAIM if is_judgement else ANSWER)
        return highlighter

    def _add(self, passage: str | None, span: Span | None, role: str) -> None:
        """Mark a span that a record names, where it names one."""
        if passage is not None and span is not None:
            self._record_marks.setdefault(passage, []).append(Mark(*span, role))

    def marks(self, view: PassageView) -> list[Mark]:
        """Return the marks of a passage's text, in the order of their places."""
        question, text = self._question, view.text
        answers: Iterable[Span] = (span for words in self._answers for span in text.spans(words))
        if question.answer_entity is not None:
            answers = view.mentions(question.answer_entity)
        names: Iterable[Span] = join_words(text, (n for n, word in enumerate(text.words) if word in self._names))
        if question.question_entities:
            names = (span for entity in question.question_entities for span in view.mentions(entity))
        marks = {Mark(*span, ANSWER) for span in answers} | {Mark(*span, QUESTION) for span in names}
        for role, entity, words in self._links:
            # an id stands where the data says, a name wherever its words do
            spans = view.mentions(entity) or (text.spans(words) if words else ())
            marks |= {Mark(*span, role) for span in spans}
        length = len(view.passage.text)  # a chain from a file may be of another text
        marks |= {mark for mark in self._record_marks.get(view.passage.id, ()) if 0 <= mark.start < mark.end <= length}
        return sorted(marks)


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


def join_words(text: Text, words: Iterable[int]) -> Iterator[Span]:
    """Yield the stretches of words that follow one another with nothing but blanks and hyphens between."""
    stretch: Span | None = None
    last = -1
    for word in words:
        start, end = text.places[word]
        if stretch and word == last + 1 and not text.original[stretch[1] : start].strip(" -"):
            stretch = stretch[0], end
        else:
            if stretch:
                yield stretch
            stretch = start, end
        last = word
    if stretch:
        yield stretch
