"""What pages show of passages: names, places, excerpts, snippets, and a chain in one line."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from rechain.schema import UNORDERED, Chain, Passage, Question, Shape
from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Mark, Piece, cut, join_words, link_role
from rechain.text.languages import naming_words, phrase_idf
from rechain.text.passage_views import HEADINGS, PassageView, stretches
from rechain.text.words import Span, Text, phrase
from rechain.web.markup import plain

_SHOWN_WORDS, _SHOWN_TITLE, _SHOWN_ANSWER = 40, 48, 80
"""characters of a text without a title, of a title (abstracts have sentences for titles), and of a chatbot's answer"""
NO_NAME = "the question"
"""the start of a chain whose first passage has no name in the question"""
_TYPE = re.compile(r"\A[a-z_]+:(?=.)")
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
    return unescape(passage.title.strip()) or f"“{short(passage.text, _SHOWN_WORDS)}”"


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

    def link(self, chain: Chain, number: int) -> str:
        """Return the name of a chain's link, counted from 0, as the passages that it links have it."""
        return self.entity(chain.links[number].entity, [chain.passages[place] for place in chain.between[number]])

    def entity(self, entity: str, near: Sequence[str] = ()) -> str:
        """Return an entity as it is most often written in some passages, or else in any; as it is if it is a name."""
        key = entity, tuple(near)
        if key not in self._entities:
            is_known = entity in self._mentioned
            found = is_known and (self._most_frequent(entity, near) or self._most_frequent(entity, self._passages))
            self._entities[key] = found or _TYPE.sub("", entity, count=1)
        return self._entities[key]

    def _most_frequent(self, entity: str, names: Iterable[str]) -> str | None:
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
    passages = {passage.id: passage for passage in question.passages}
    stops = [Stop("question", _start(question, chain, names, passages.get(chain.passages[0])))]
    links, shown = {ends: number for number, ends in enumerate(chain.between)}, set[str]()
    for line in chain.lines:
        for place, after in zip_longest(line, line[1:]):
            name = chain.passages[place]
            title, has_title = names.passage(name), name in passages and bool(passages[name].title.strip())
            is_said = name in shown or title.casefold() == stops[-1].name.casefold()
            stops.append(Stop("passage", title, numbers[name], is_said or not has_title or len(title) > _SHOWN_TITLE))
            shown.add(name)
            if (number := links.get((place, after))) is not None:
                stops.append(Stop("link", names.link(chain, number), number + 1))
    stops.append(Stop("answer", short(plain(question.answer), _SHOWN_ANSWER) or "no answer"))
    return StripView(chain.shape, stops)


def number_passages(ways: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return a number for every passage of some chains, from 1, in the order in which they are read."""
    return {name: number for number, name in enumerate(dict.fromkeys(name for way in ways for name in way), start=1)}


def _start(question: Question, chain: Chain, names: Names, head: Passage | None) -> str:
    """Return the name in the question from which a chain sets out, whose first passage is `head`.

    It is an entity that the data names, the title of that passage, or the rarest words that name something in both.
    """
    if chain.shape in UNORDERED:  # it sets out from several
        return NO_NAME
    if question.question_entities:
        mentioned = {mention.entity for mention in head.mentions} if head else set()
        entity = next((one for one in question.question_entities if one in mentioned), question.question_entities[0])
        return names.entity(entity, chain.passages[:1])
    if head is None:
        return NO_NAME
    query, view = Text(question.question), PassageView(head)
    if view.title.words and (place := query.find(view.title.joined)) is not None:
        start, end = query.span(place, len(view.title.words))
        return query.original[start:end]
    naming = naming_words(query) & view.terms
    spans = join_words(query, (number for number, word in enumerate(query.words) if word in naming))
    found = [query.original[start:end] for start, end in spans]
    return max(found, key=lambda name: phrase_idf(Text(name).words), default=NO_NAME)


_STEP = " › "
"""between a document and the headings above a passage, for people"""


class Place(BaseModel):
    """A stretch of a document's text."""

    model_config = ConfigDict(frozen=True)

    source: str
    """the document, by its name in the index"""
    start: int
    end: int
    page: int | None = None
    """of a PDF, from 1"""

    def path(self, title: str) -> str:
        """Return the document and the headings above a passage in one line; a title may be the document's own name."""
        headings = [] if title == PurePosixPath(self.source).stem else title.split(HEADINGS)
        return _STEP.join(part for part in (self.source, *headings) if part)

    @property
    def words(self) -> str:
        """The page, where it is known, and the characters, in words."""
        page = "" if self.page is None else f"page {self.page}, "
        return f"{page}characters {self.start:,}–{self.end:,}"


def place_of(passage: Passage) -> Place | None:
    """Return where a passage of an index stands in its document; None for one of a collection, which has no document.

    Rows of a collection may have fields of the same names that mean anything, so that all must fit together.
    """
    fields = passage.model_extra or {}
    source, start, end, page = (fields.get(name) for name in ("source", "start", "end", "page"))
    if not (isinstance(source, str) and type(start) is int and type(end) is int):
        return None
    if start < 0 or end - start != len(passage.text) or not passage.id.startswith(f"{source}#"):
        return None
    return Place(source=source, start=start, end=end, page=page if type(page) is int else None)


_SHORT = 320
"""characters that are read at a glance: a shorter text is shown whole"""
_PART = 300
"""characters from which a sentence, or a part of one that is very long, is cut around what matters"""
_FRAGMENT = 12
"""characters of a sentence that is none"""
_AROUND = 110
"""characters that are left on each side of what matters in a long sentence"""


def roles_of_step(place: int, between: Sequence[tuple[int, int]]) -> list[str]:
    """Return what matters in a passage, by its place and what each link joins: what leads to it, what leads on, claims.

    Where nothing leads to it or on, the question or the answer is what matters.
    """
    before = [link_role(number) for number, (_, after) in enumerate(between) if after == place]
    after = [link_role(number) for number, (before_it, _) in enumerate(between) if before_it == place]
    return [*(before or [QUESTION]), *(after or [ANSWER]), CLAIM]


def excerpt(view: PassageView, marks: Sequence[Mark], roles: Sequence[str]) -> list[list[Piece]] | None:
    """Return the sentences that matter, cut where something is highlighted; None where the whole text is short."""
    text = view.passage.text
    if len(text) <= _SHORT:
        return None
    spans = list[Span]()
    for sentence in telling_sentences(view, marks, roles):
        start, end = _without_edges(text, sentence, marks, roles)
        if spans and start <= spans[-1][1] + 1:  # sentences that follow or overlap one another are one
            start, end = spans[-1][0], max(spans.pop()[1], end)
        spans.append((start, end))
    return None if spans == [(0, len(text))] else [cut_stretch(text, span, marks) for span in spans]


def telling_sentences(view: PassageView, marks: Sequence[Mark], roles: Sequence[str]) -> list[Span]:
    """Return few sentences that together hold all roles that the text has; the first one where it has none."""
    spans = _without_fragments(stretches(view))
    held = [[mark.role for mark in marks if mark.role in roles and _overlap(mark, span)] for span in spans]
    missing, chosen = {role for found in held for role in found}, list[Span]()
    while missing:
        # the one that holds most of what is missing; then the one that says it most often, then the first
        best = max(range(len(spans)), key=lambda n: (len(missing.intersection(held[n])), len(held[n]), -n))
        missing.difference_update(held[best])
        chosen.append(spans[best])
    return sorted(chosen) or spans[:1]


def _without_fragments(spans: Iterable[Span]) -> list[Span]:
    """Return sentences of which none is a fragment, such as an initial ("J."): it belongs to what follows."""
    whole = list[Span]()
    for start, end in spans:
        if whole and whole[-1][1] - whole[-1][0] < _FRAGMENT:
            start = whole.pop()[0]
        whole.append((start, end))
    return whole


def _overlap(mark: Mark, span: Span) -> bool:
    return mark.start < span[1] and span[0] < mark.end


def _without_edges(text: str, span: Span, marks: Sequence[Mark], roles: Sequence[str]) -> Span:
    """Return a sentence without what stands far from anything that matters, where it is long."""
    start, end = span
    inside = [mark for mark in marks if mark.role in roles and mark.role != CLAIM and _overlap(mark, span)]
    if end - start < _PART or not inside:
        return span
    first, last = min(mark.start for mark in inside), max(mark.end for mark in inside)
    start, end = max(start, first - _AROUND), min(end, last + _AROUND)
    if start < first and _is_inside_word(text, start):
        start = text.find(" ", start, first) + 1 or start
    if last < end and _is_inside_word(text, end) and " " in text[last:end]:
        end = text.rfind(" ", last, end)
    return start, end


def _is_inside_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and not text[place - 1].isspace() and not text[place].isspace()


def cut_stretch(text: str, span: Span, marks: Iterable[Mark]) -> list[Piece]:
    """Return a stretch of a text, cut where something is highlighted."""
    start, end = span
    inside = [Mark(max(m.start - start, 0), min(m.end, end) - start, m.role) for m in marks if _overlap(m, span)]
    return cut(text[start:end], inside)


MATCH = "match"
"""the role of a word that was searched for"""
_LENGTH, _BEFORE = 300, 60
"""characters of a snippet: about three lines; and of those before its first match"""

Found = tuple[Span, str]
"""where a word stands that was searched for, and the word"""


def whole_words(text: str, words: Iterable[str]) -> list[Found]:
    """Return where some words stand in a text."""
    read = Text(text)
    return sorted((span, word) for word in words for span in read.spans(phrase(word)))


def beginnings(text: str, words: Sequence[str]) -> list[Found]:
    """Return where words stand in a text that begin like some folded words."""
    read = Text(text)
    places = ((number, word) for number, one in enumerate(read.words) for word in words if one.startswith(word))
    return [(read.places[number], word) for number, word in places]


def marked(text: str, spans: Sequence[Found]) -> list[Piece]:
    """Return a whole text, cut where words stand."""
    return cut(text, {Mark(*span, MATCH) for span, _ in spans})


def snippet(text: str, spans: Sequence[Found]) -> list[Piece]:
    """Return the stretch of a text with most different words, the first of several, cut where they stand.

    It begins and ends at blanks.
    """
    first = max(_counts(spans), key=lambda one: (one[1], -one[0]), default=(0, 0))[0]
    start, end = 0, len(text)
    if end > _LENGTH and first > _BEFORE:
        start = first - _BEFORE + text[first - _BEFORE : first].find(" ") + 1
    if end - start > _LENGTH:
        blank = text.rfind(" ", start + _LENGTH // 2, start + _LENGTH)
        end = start + _LENGTH if blank < 0 else blank
    marks = {Mark(left - start, right - start, MATCH) for (left, right), _ in spans if start <= left and right <= end}
    return [
        *([Piece("… ", ())] if start else []),
        *cut(text[start:end], marks),
        *([Piece(" …", ())] if end < len(text) else []),
    ]


def _counts(spans: Sequence[Found]) -> Iterator[tuple[int, int]]:
    """Yield every place of a word, with how many different words stand within a snippet from there."""
    for number, ((start, _), _) in enumerate(spans):
        words = set()
        for (_, end), word in spans[number:]:
            if end > start + _LENGTH - _BEFORE:
                break
            words.add(word)
        yield start, len(words)
