"""The chain strip: name in the question, passage, link, passage, answer, in one line that is read in three seconds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rechain.schema import Chain, Passage, Question, Shape
from rechain.text.highlights import join_words
from rechain.text.passages import PassageView
from rechain.text.rarity import naming_words, phrase_idf
from rechain.text.words import Text
from rechain.web.names import Names, short

_SHOWN_TITLE = 48
"""characters of a title that can be read in passing; abstracts have whole sentences for titles"""
_SHOWN_ANSWER = 80
"""characters of an answer; a chatbot's is a paragraph"""
NO_NAME = "the question"
"""stands for the question where no name in it tells why its chain begins where it does"""


@dataclass(frozen=True)
class Stop:
    """One thing on the way from question to answer."""

    kind: Literal["question", "passage", "link", "answer"]
    name: str
    number: int = 0
    """of a passage or a link, from 1"""
    is_brief: bool = False
    """whether a passage shows its number alone: its title is long or lacking, or says again what stands before it"""


@dataclass(frozen=True)
class StripView:
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
