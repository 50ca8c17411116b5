"""The links between the passages of one question, strongest first."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from rechain.linking import anchors, identifiers, names, spacy_names, titles
from rechain.linking.edges import Edge
from rechain.linking.entities import Entity
from rechain.linking.matching import find_holders
from rechain.linking.weights import BONUS
from rechain.text.passages import PassageView
from rechain.text.rarity import words_below

LINKERS = frozenset(("anchors", "identifiers", "titles", "names"))
EXTRA_LINKERS = frozenset(("spacy",))


class LinkGraph:
    """Which passages share which entities."""

    def __init__(
        self,
        views: Sequence[PassageView],
        min_weight: float,
        linkers: frozenset[str] = LINKERS,
        ends: Collection[int] | None = None,
        links_a_pair: int = 1,
        most_partners: int | None = None,
        spacy_model: str = spacy_names.DEFAULT_MODEL,
    ) -> None:
        """Find all links, or those that have one of `ends` at one end.

        Of the links that are names found in the texts, `links_a_pair` different ones between two passages are kept. An
        entity links a passage to no more than `most_partners` others.
        """
        self._views = views
        self._ends = range(len(views)) if ends is None else ends
        self._links_a_pair = links_a_pair
        self._most_partners = most_partners
        self._spacy_model = spacy_model
        self._edges: dict[tuple[int, int, int], Edge] = {}
        self._entities: list[list[Entity]] = [[] for _ in views]
        for entity in sorted(self._find(min_weight, linkers), key=_by_weight):
            if entity.weight < min_weight:
                break
            for holder in entity.holders:
                self._entities[holder].append(entity)

    def _find(self, min_weight: float, linkers: frozenset[str]) -> Iterator[Entity]:
        if "anchors" in linkers:
            yield from anchors.find(self._views)
        if "identifiers" in linkers:
            yield from identifiers.find(self._views)
        if not linkers.isdisjoint(("titles", "names", "spacy")):
            yield from self._find_in_words(min_weight, linkers)

    def _find_in_words(self, min_weight: float, linkers: frozenset[str]) -> Iterator[Entity]:
        views, ends = self._views, [self._views[end] for end in self._ends]
        whole_titles = titles.titles_of(views) if "titles" in linkers else {}
        phrases = names.pairs_of(ends, min_weight) if "names" in linkers else []
        phrases += spacy_names.names_of(ends, self._spacy_model) if "spacy" in linkers else []
        holders = find_holders([*whole_titles, *phrases], views)
        yield from titles.find(whole_titles, holders)
        yield from names.find_phrases(views, phrases, holders)
        word_holders = self._word_holders(min_weight)
        if "titles" in linkers:
            yield from titles.find_parts(views, word_holders)
        if "names" in linkers:
            yield from names.find_words(views, word_holders, min_weight)

    def _word_holders(self, min_weight: float) -> dict[str, list[int]]:
        """Return which passages hold the words that can be a link: the rare ones, and those of titles."""
        in_titles = frozenset().union(*(view.title_words for view in self._views))
        in_titles -= words_below(min_weight - BONUS["title part"])
        at_ends = frozenset().union(*(self._views[end].vocabulary for end in self._ends))
        wanted = (at_ends - words_below(min_weight)) | (at_ends & in_titles)
        holders: dict[str, list[int]] = {}
        for number, view in enumerate(self._views):
            for word in wanted.intersection(view.words):
                holders.setdefault(word, []).append(number)
        return holders

    def entities(self, passage: int) -> Sequence[Entity]:
        """Return the entities that a passage shares with others, heaviest first."""
        return self._entities[passage]

    def edges(self, after: int, allowed: Collection[int] | None = None, used: Collection[str] = ()) -> Iterator[Edge]:
        """Yield the links to passage `after` from earlier passages, strongest first.

        Only from passages that are allowed, and by entities whose keys are not used yet.
        """
        earlier: dict[int, list[Edge]] = {}
        for entity in self._entities[after]:
            if entity.is_given and entity.name in used:
                continue
            may_be_used = entity.may_have_key_among(used)
            for before in islice(entity.partners(after, allowed), self._most_partners):
                known = earlier.setdefault(before, [])
                if len(known) < self._links_a_pair or entity.is_given:
                    edge = self._edge(entity, before, after)
                    if not (may_be_used and edge.key in used) and not edge.is_one_of([other.key for other in known]):
                        known.append(edge)
                        yield edge

    def _edge(self, entity: Entity, before: int, after: int) -> Edge:
        """Return a link. In chains of three or more it is looked at again and again, so that it is worth keeping."""
        if self._links_a_pair == 1:
            return Edge(entity, before, self._views[before], self._views[after])
        place = id(entity), before, after
        if place not in self._edges:
            self._edges[place] = Edge(entity, before, self._views[before], self._views[after])
        return self._edges[place]

    def neighbours(self, passages: Collection[int]) -> frozenset[int]:
        """Return the passages that are linked to one of some passages."""
        entities = {id(entity): entity for passage in passages for entity in self._entities[passage]}
        return frozenset(holder for entity in entities.values() for holder in entity.linked_to(passages))


def _by_weight(entity: Entity) -> tuple[float, str, str]:
    return -entity.weight, entity.name, entity.kind
