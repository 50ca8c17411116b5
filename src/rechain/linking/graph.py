"""The links between the passages of one question, strongest first."""

from collections.abc import Collection, Iterator, Sequence
from itertools import count

from rechain.linking import anchors, identifiers, names, titles
from rechain.linking.edges import Edge
from rechain.linking.entities import Entity
from rechain.linking.matching import find_holders
from rechain.linking.weights import BONUS, words_below
from rechain.passages import PassageView

LINKERS = ("anchors", "identifiers", "titles", "names")


class LinkGraph:
    """Which passages share which entities."""

    def __init__(
        self,
        views: Sequence[PassageView],
        min_weight: float,
        linkers: Collection[str] = LINKERS,
        ends: Collection[int] | None = None,
        links_a_pair: int = 1,
    ) -> None:
        """Find all links, or those that have one of `ends` at one end.

        Of the links that are names found in the texts, `links_a_pair` different ones between two passages are kept.
        """
        self._views = views
        self._ends = range(len(views)) if ends is None else ends
        self._links_a_pair = links_a_pair
        self._edges: dict[int, _Shared] = {}
        self._entities: list[list[Entity]] = [[] for _ in views]
        self.max_weight = 0.0
        for entity in sorted(self._find(min_weight, linkers), key=_by_weight):
            if entity.weight < min_weight:
                break
            self.max_weight = max(self.max_weight, entity.weight)
            for holder in entity.holders if entity.hub is None else (entity.hub, *entity.holders):
                self._entities[holder].append(entity)

    def _find(self, min_weight: float, linkers: Collection[str]) -> Iterator[Entity]:
        if "anchors" in linkers:
            yield from anchors.find(self._views)
        if "identifiers" in linkers:
            yield from identifiers.find(self._views)
        if "titles" in linkers or "names" in linkers:
            yield from self._find_in_words(min_weight, linkers)

    def _find_in_words(self, min_weight: float, linkers: Collection[str]) -> Iterator[Entity]:
        views, common = self._views, words_below(min_weight)
        wanted = titles.titles_of(views) if "titles" in linkers else []
        pairs = names.pairs_of([views[end] for end in self._ends], min_weight) if "names" in linkers else []
        phrase_holders = find_holders([*wanted, *pairs], views)
        word_holders = self._word_holders(min_weight)
        if "titles" in linkers:
            yield from titles.find(views, phrase_holders)
            yield from titles.find_parts(views, word_holders)
        if "names" in linkers:
            yield from names.find_pairs(views, pairs, phrase_holders)
            yield from names.find_words(views, {w: n for w, n in word_holders.items() if w not in common})

    def _word_holders(self, min_weight: float) -> dict[str, list[int]]:
        """Return which passages hold the words that can be a link: the rare ones, and those of titles."""
        in_titles = frozenset().union(*(view.title_words for view in self._views))
        in_titles -= words_below(min_weight - BONUS["title part"])
        at_ends = frozenset().union(*(self._views[end].vocabulary for end in self._ends))
        wanted = (at_ends - words_below(min_weight)) | (at_ends & in_titles)
        holders: dict[str, list[int]] = {}
        for number, view in enumerate(self._views):
            for word in view.vocabulary & wanted:
                holders.setdefault(word, []).append(number)
        return holders

    def edges(self, after: int) -> Iterator[Edge]:
        """Yield the links from earlier passages to passage `after`, strongest first."""
        if after not in self._edges:
            self._edges[after] = _Shared(self._edges_to(after))
        return iter(self._edges[after])

    def _edges_to(self, after: int) -> Iterator[Edge]:
        earlier: dict[int, list[Edge]] = {}
        for entity in self._entities[after]:
            for before in _partners(entity, after):
                known = earlier.setdefault(before, [])
                if len(known) < self._links_a_pair or entity.is_given:
                    edge = Edge(entity, before, self._views[before], self._views[after])
                    if not known or not edge.is_one_of([other.key for other in known]):
                        known.append(edge)
                        yield edge


class _Shared:
    """An iterator that several readers go through, each from the start; nothing is computed before it is needed."""

    def __init__(self, source: Iterator[Edge]) -> None:
        self._source = source
        self._known: list[Edge] = []

    def __iter__(self) -> Iterator[Edge]:
        for number in count():
            if number == len(self._known):
                if (edge := next(self._source, None)) is None:
                    return
                self._known.append(edge)
            yield self._known[number]


def _by_weight(entity: Entity) -> tuple[float, str, int]:
    return -entity.weight, entity.name, -1 if entity.hub is None else entity.hub


def _partners(entity: Entity, passage: int) -> Sequence[int]:
    if entity.hub is None:
        return [holder for holder in entity.holders if holder != passage]
    return entity.holders if passage == entity.hub else (entity.hub,)
