"""The links between the passages of one question, strongest first."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import NamedTuple, Self

from rechain.schema import Link
from rechain.text.collection import Statistics
from rechain.text.linking.content import (
    FEWEST_PARTS,
    are_parts,
    find_overlaps,
    is_common_in_parts,
    is_everywhere,
    is_nearly_all,
    less_where_shared,
    read_contents,
)
from rechain.text.linking.linkers import DEFAULT_LINKERS, DEFAULT_SPACY_MODEL, LINKERS, Context, Entity, find_entities
from rechain.text.passage_views import PassageView
from rechain.text.words import Span, Text, lazy

DEFAULT_MIN_WEIGHT = 7.0
"""Below it C grows faster than it gains gold chains: at 7.0 it has 98.7 % of HotpotQA's (docs/measured/results.md)."""


class LinkGraph:
    """Which passages share which entities."""

    def __init__(
        self,
        views: Sequence[PassageView],
        min_weight: float,
        linkers: Collection[str] = DEFAULT_LINKERS,
        ends: Collection[int] | None = None,
        links_a_pair: int = 1,
        most_partners: int | None = None,
        spacy_model: str = DEFAULT_SPACY_MODEL,
        collection: Statistics | None = None,
    ) -> None:
        """Find all links, or those that have one of `ends` at one end.

        Of the links that are names found in the texts, `links_a_pair` different ones between two passages are kept. An
        entity links a passage to no more than `most_partners` others. Nor does what is everywhere in `collection` link.
        """
        chosen = [linker for name, linker in LINKERS.items() if name in linkers]
        self._are_parts = len(views) >= FEWEST_PARTS and are_parts(views)
        if not all(linker.is_given for linker in chosen):  # else the texts need not be read
            views = read_contents(views, collection)
        self._overlaps = find_overlaps(views)
        self._rests: dict[tuple[int, bool, int], str] = {}
        self._views = views
        self._links_a_pair = links_a_pair
        self._most_partners = most_partners
        # In chains of three or more a link is looked at again and again, and its key takes time to find.
        self._edges: dict[tuple[int, int, int], Edge] = {}
        self._known_partners: dict[tuple[int, int, frozenset[int] | None], list[int]] = {}
        self._entities: list[list[Entity]] = [[] for _ in views]
        context = Context(views, range(len(views)) if ends is None else ends, min_weight, spacy_model)
        found = (e for e in find_entities(chosen, context) if not _is_everywhere(e, len(views), self._are_parts))
        if collection is not None:  # weights only fall, and counting takes time
            weighty = [entity for entity in found if entity.weight >= min_weight]
            kept = (entity for entity in weighty if not is_everywhere(entity, collection, self._are_parts))
            found = (less_where_shared(entity, collection) for entity in kept)
        for entity in sorted(found, key=lambda entity: (-entity.weight, entity.name, entity.kind)):
            if entity.weight < min_weight:
                break
            for holder in entity.holders:
                self._entities[holder].append(entity)

    def with_links_a_pair(self, number: int) -> Self:
        """Return the same links, of which so many names between two passages are kept."""
        graph = copy(self)
        graph._links_a_pair = number
        return graph

    def entities(self, passage: int) -> Sequence[Entity]:
        """Return the entities that a passage shares with others, heaviest first."""
        return self._entities[passage]

    def edges(self, after: int, allowed: frozenset[int] | None = None, used: Collection[str] = ()) -> Iterator["Edge"]:
        """Yield the links to passage `after` from earlier passages, strongest first.

        Only from passages that are allowed, and by entities whose keys are not used yet.
        """
        earlier: dict[int, list[Edge]] = {}
        used_keys = "\n".join(used)
        for entity in self._entities[after]:
            if entity.is_given and entity.name in used:
                continue
            # A key takes time to find. A name is widened only to one that contains it, so that most need none here.
            may_be_used = entity.name in used_keys
            for before in self._partners(entity, after, allowed):
                known = earlier.setdefault(before, [])
                if len(known) < self._links_a_pair or entity.is_given:
                    edge = self._edge(entity, before, after)
                    keys = [other.key for other in known]
                    is_known = any(entity.name in key for key in keys) and edge.key in keys
                    if not is_known and not (may_be_used and edge.key in used):
                        known.append(edge)
                        yield edge

    def _edge(self, entity: Entity, before: int, after: int) -> "Edge":
        place = id(entity), before, after
        edge = self._edges.get(place)
        if edge is None:
            edge = self._edges[place] = Edge(entity, before, after, self._views[before], self._views[after])
        return edge

    def _partners(self, entity: Entity, after: int, allowed: frozenset[int] | None) -> Iterable[int]:
        """Return the earlier passages that an entity links to passage `after`.

        In chains of three or more they are sought again and again; in chains of two once, and seldom all of them.
        """
        if self._most_partners is None:
            return self._find_partners(entity, after, allowed)
        place = id(entity), after, allowed
        known = self._known_partners.get(place)
        if known is None:
            found = self._find_partners(entity, after, allowed)
            known = self._known_partners[place] = list(islice(found, self._most_partners))
        return known

    def _find_partners(self, entity: Entity, after: int, allowed: frozenset[int] | None) -> Iterator[int]:
        is_free = entity.titled is None or after in entity.titled
        for holder in entity.holders if is_free else entity.titled or ():
            is_allowed = holder != after and (allowed is None or holder in allowed)
            if is_allowed and not self._is_title_of(entity, holder, after) and not self._is_cut(entity, holder, after):
                yield holder

    def _is_cut(self, entity: Entity, one: int, two: int) -> bool:
        """Return whether one of two passages has an entity only in the text that both were cut from."""
        for first, second in ((one, two), (two, one)) if self._overlaps and not entity.is_given else ():
            if length := self._overlaps.get((first, second)):
                name = entity.name
                return not (name in self._without(first, length, at_end=True) and name in self._without(second, length))
        return False

    def _without(self, passage: int, length: int, at_end: bool = False) -> str:
        """Return the words of a passage but for what another ends or begins with."""
        place = passage, at_end, length
        if place not in self._rests:
            view = self._views[passage]
            text = view.text.original[:-length] if at_end else view.text.original[length:]
            title = view.title.joined if view.passage.title.startswith(view.title.original) else ""  # not a first line
            self._rests[place] = f"{title}\n{Text(text).joined}"
        return self._rests[place]

    def _is_title_of(self, entity: Entity, one: int, two: int) -> bool:
        """Return whether two parts of documents share no more than a title: that of the document both are from."""
        titled = entity.titled
        return self._are_parts and titled is not None and one in titled and two in titled

    def neighbours(self, passages: Collection[int]) -> frozenset[int]:
        """Return the passages that are linked to one of some passages."""
        entities = {id(entity): entity for passage in passages for entity in self._entities[passage]}
        linked: set[int] = set()
        for entity in entities.values():
            titled = entity.titled
            is_free = titled is None or any(holder in titled for holder in entity.holders if holder in passages)
            linked.update(entity.holders if is_free else titled or ())
        return frozenset(linked)


class Edge:
    """An entity that links passage `before` to the passage after it."""

    def __init__(self, entity: Entity, before: int, after: int, first: PassageView, second: PassageView) -> None:
        self.before = before
        self.after = after
        self.weight = entity.weight
        self.kind = entity.kind
        self.is_given = entity.is_given
        self.name = entity.name
        """the entity's name as its linker found it, not widened"""
        self._entity = entity
        self._first = first
        self._second = second

    @property
    def forms(self) -> tuple[str, str]:
        """The words that stand for it in each of the two passages."""
        forms = self._entity.forms
        return (self.name, self.name) if forms is None else (forms[self.before], forms[self.after])

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
        if self.is_given or self._entity.kind == "title" or self._entity.forms is not None:
            return self.name
        one, two = _Occurrence.first(self._first, self.name), _Occurrence.first(self._second, self.name)
        start, end = 0, self.name.count(" ") - 1
        if _share_name(one, two, start):
            while _share_name(one, two, start - 1):
                start -= 1
            while _share_name(one, two, end):
                end += 1
        return f" {' '.join(one.text.words[one.word + start : one.word + end])} "

    @lazy
    def link(self) -> Link:
        """The link as it is written out; finding its offsets takes time that most chains never need."""
        name, first, second = self.key, self._first, self._second
        if self.is_given:
            text, spans = name, (_first_mention(first, name), _first_mention(second, name))
        else:
            names = self.forms if self._entity.forms is not None else (name, name)
            one, two = _Occurrence.first(first, names[0]), _Occurrence.first(second, names[1])
            words = name.count(" ") - 1
            start, end = one.text.span(one.word, words)
            text = one.text.original[start:end]
            spans = ((start, end) if one.in_text else None, two.text.span(two.word, words) if two.in_text else None)
        return Link(entity=text, kind=self._entity.kind, weight=self.weight, mentions=spans)


def _is_everywhere(entity: Entity, passages: int, are_parts: bool) -> bool:
    """Return whether too many passages hold an entity that the data does not give, or have it in their titles.

    Of entries of an encyclopaedia these are nearly all. Parts of documents share the names of their maker and subject.
    """
    sharing = entity.holders if entity.titled is None else entity.titled
    is_common = is_common_in_parts if are_parts else is_nearly_all
    return not entity.is_given and is_common(len(sharing), passages)


class _Occurrence(NamedTuple):
    """Where a name stands first: in a passage's text, or in its title."""

    text: Text
    word: int
    in_text: bool

    @classmethod
    def first(cls, view: PassageView, name: str) -> "_Occurrence":
        text, word = view.text, view.text.find(name)
        if word is None and text.original != view.passage.text:  # what does not link may hold it too
            text = Text(view.passage.text)
            word = text.find(name)
        return cls(view.title, view.title.find(name) or 0, False) if word is None else cls(text, word, True)


def _share_name(one: _Occurrence, two: _Occurrence, offset: int) -> bool:
    """Return whether the words that stand `offset` words after two occurrences are the same and capitalised in both."""
    first, second = one.word + offset, two.word + offset
    if not (0 <= first < len(one.text.words) and 0 <= second < len(two.text.words)):
        return False
    is_capitalised = one.text.raw_words[first][0].isupper() and two.text.raw_words[second][0].isupper()
    return is_capitalised and one.text.words[first] == two.text.words[second]


def _first_mention(view: PassageView, entity: str) -> Span | None:
    return next(iter(view.mentions(entity)), None)
