"""What users see in place of identifiers: names of passages and entities, and a chain in one line."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from rechain.schema import Chain, Passage, Question, Shape
from rechain.text.highlights import join_words
from rechain.text.passage_views import PassageView
from rechain.text.rarity import naming_words, phrase_idf
from rechain.text.words import Text

_SHOWN_WORDS, _SHOWN_TITLE, _SHOWN_ANSWER = 40, 48, 80
"""characters of a text without a title, of a title (abstracts have sentences for titles), and of a chatbot's answer"""
NO_NAME = "the question"
"""the start of a chain whose first passage has no name in the question"""
_TYPE = re.compile(r"[a-z_]+:(?=.)")
"""the type of an entity, before its id: "gene:" of "gene:CACNA1D" """


def short(text: str, most: int) -> str:
    """Return a text on one line, cut after a word where it is longer than it may be."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut[most // 2 :] else cut}…"


def passage_name(passage: Passage) -> str:
    """Return a passage's title; where it has none the first words of its text, as ids like "0" tell nobody anything."""
    return passage.title.strip() or f"“{short(passage.text, _SHOWN_WORDS)}”"


class Names:
    """The names of a question's passages and entities."""

    def __init__(self, question: Question) -> None:
        self._passages = {passage.id: passage for passage in question.passages}
        self._mentioned = {mention.entity for passage in question.passages for mention in passage.mentions}
        self._entities: dict[tuple[str, tuple[str, ...]], str] = {}

    def passage(self, name: str) -> str:
        """Return the name of the passage with an id; a chain of a file may have one that is not there."""
        passage = self._passages.get(name)
        return name if passage is None else passage_name(passage)

    def mentions(self, entity: str) -> bool:
        """Return whether the data says where an entity stands."""
        return entity in self._mentioned

    def has_title(self, name: str) -> bool:
        """Return whether the passage with an id has a title of its own."""
        return name in self._passages and bool(self._passages[name].title.strip())

    def link(self, chain: Chain, number: int) -> str:
        """Return the name of a chain's link, counted from 0, as the passages that it links have it."""
        return self.entity(chain.links[number].entity, chain.passages[number : number + 2])

    def entity(self, entity: str, near: Sequence[str] = ()) -> str:
        """Return an entity as it is most often written in some passages, or else in any; as it is if it is a name."""
        key = entity, tuple(near)
        if entity not in self._mentioned:
            return _TYPE.sub("", entity, count=1)
        if key not in self._entities:
            found = self._most_frequent(entity, near) or self._most_frequent(entity, list(self._passages))
            self._entities[key] = found or _TYPE.sub("", entity, count=1)
        return self._entities[key]

    def _most_frequent(self, entity: str, names: Sequence[str]) -> str | None:
        counts = Counter(
            short(passage.text[mention.start : mention.end], _SHOWN_WORDS * 2)
            for passage in (self._passages[name] for name in names if name in self._passages)
            for mention in passage.mentions
            if mention.entity == entity
        )
        # of two spellings that are as frequent the longer tells more, as "Ca(v)1.2" beside "CaV1.2"
        return max(counts, key=lambda text: (counts[text], len(text), text), default=None)


class Stop(NamedTuple):
    """One thing on the way from question to answer."""

    kind: Literal["question", "passage", "link", "answer"]
    name: str
    number: int = 0
    """of a passage or a link, from 1"""
    is_brief: bool = False
    """whether a passage shows its number alone: its title is long or lacking, or says again what stands before it"""


class StripView(NamedTuple):
    """A chain in one line."""

    shape: Shape
    stops: Sequence[Stop]


def strip_of(
    question: Question, chain: Chain, names: Names | None = None, numbers: Mapping[str, int] | None = None
) -> StripView:
    """Return the strip of a chain; `numbers` are those of its passages where several chains are shown together."""
    names, numbers = names or Names(question), numbers or number_passages([chain.passages])
    stops = [Stop("question", _start(question, chain, names))]
    links = len(chain.links_in_order)
    for place, passage in enumerate(chain.passages):
        title = names.passage(passage)
        is_telling = names.has_title(passage) and len(title) <= _SHOWN_TITLE
        is_brief = not is_telling or title.casefold() == stops[-1].name.casefold()
        stops.append(Stop("passage", title, numbers[passage], is_brief))
        if place < links:
            stops.append(Stop("link", names.link(chain, place), place + 1))
    stops.append(Stop("answer", short(question.answer, _SHOWN_ANSWER) or "no answer"))
    return StripView(chain.shape, stops)


def number_passages(ways: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return a number for every passage of some chains, from 1, in the order in which they are read."""
    return {name: number for number, name in enumerate(dict.fromkeys(name for way in ways for name in way), start=1)}


def _start(question: Question, chain: Chain, names: Names) -> str:
    """Return the name in the question from which the chain sets out."""
    if chain.shape == "parallel":  # it sets out from several
        return NO_NAME
    head = next((passage for passage in question.passages if passage.id == chain.passages[0]), None)
    if question.question_entities:
        held = {mention.entity for mention in head.mentions} if head else set()
        entity = next((one for one in question.question_entities if one in held), question.question_entities[0])
        return names.entity(entity, chain.passages[:1])
    return NO_NAME if head is None else name_in_question(question, head)


def name_in_question(question: Question, head: Passage) -> str:
    """Return what the question calls a passage by: its title, or else the rarest words that name something in both."""
    query, view = Text(question.question), PassageView(head)
    if view.title.words and (place := query.find(view.title.joined)) is not None:
        start, end = query.span(place, len(view.title.words))
        return query.original[start:end]
    naming = naming_words(query) & view.terms
    spans = join_words(query, (number for number, word in enumerate(query.words) if word in naming))
    found = [query.original[start:end] for start, end in spans]
    return max(found, key=lambda name: phrase_idf(Text(name).words), default=NO_NAME)
