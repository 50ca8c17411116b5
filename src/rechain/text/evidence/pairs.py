"""How closely the two entities of each step of a chain stand together, where the data names the entities.

A step is a passage and the two entities by which a chain enters and leaves it. That they share a sentence, near to each
other, is evidence that the passage says something of both. A collection says what that is worth: an entity that half of
all passages mention stands beside anything.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from rechain.system.tensors import Array
from rechain.text.candidates import Candidate, Candidates
from rechain.text.collection import Statistics
from rechain.text.passage_views import PassageView
from rechain.text.words import Span

MENTION_FACTOR = 0.3
"""how often two entities stand in a passage says less than that they share a sentence"""
NEARNESS_FACTOR = 0.5
"""what e times as many words between two entities cost: half of what sharing a sentence e times as often brings"""
RARITY_FACTOR = 0.4
"""what it costs that e times as many passages of the collection mention an entity (docs/measured/default_model.md says
how this and the other factors were chosen)"""
_NO_SENTENCE = 0.1
"""counts for none, as a logarithm needs something: ten times less than one sentence"""
NEVER_TOGETHER = log(_NO_SENTENCE)
"""how closely two entities stand together that share no sentence"""


class Closeness(NamedTuple):
    """How closely two entities stand together in a passage: logarithms, so that steps add up."""

    together: float
    """of the number of sentences that they share"""
    mentions: float
    """of the number of times that both are mentioned"""
    distance: float
    """of the number of words from one to the other, where they are nearest"""


class EntityPairs:
    """What tells of the two entities of each step."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._first = candidates.question.question_entities
        self._last = candidates.question.answer_entity
        self._pairs: dict[tuple[int, str, str], Closeness] = {}

    def score(self) -> Sequence[dict[str, float]]:
        """Return for every chain how closely its pairs stand together and, with a collection, how rare they are."""
        parts = {"nearness": self.nearness()}
        if self._candidates.collection is not None:
            parts["collection"] = self.rarity()
        return [
            {
                "pairs in one sentence": sum(step.together for step in steps),
                "mentions": MENTION_FACTOR * sum(step.mentions for step in steps),
                **{name: float(values[number]) for name, values in parts.items()},
            }
            for number, steps in enumerate(map(self.steps, self._candidates.chains))
        ]

    def nearness(self) -> Array:
        """Return how near the two entities of each step stand, [chains], less that of the chain of the nearest.

        What all chains of a question lack tells nothing of which is right, nor whether one is.
        """
        distances = [[step.distance for step in self.steps(chain)] for chain in self._candidates.chains]
        return NEARNESS_FACTOR * _below_greatest(_total(distances))

    def rarity(self) -> Array:
        """Return how rare the entities are in the collection, [chains], less that of the chain of the rarest."""
        chains, collection = self._candidates.chains, self._candidates.collection
        if collection is None:
            return np.zeros(len(chains))
        pairs = [[pair for _, pair in self.entities(chain)] for chain in chains]
        # The entity of a link counts in both its steps. One that the collection does not know counts as in one.
        counts = [[sum(log_count(collection, name) for name in pair) for pair in of_chain] for of_chain in pairs]
        return RARITY_FACTOR * _below_greatest(_total(counts))

    def steps(self, chain: Candidate) -> list[Closeness]:
        """Return for each passage, where both its entities are named, how closely the two stand together."""
        return [self.pair(passage, one, two) for passage, (one, two) in self.entities(chain)]

    def entities(self, chain: Candidate) -> list[tuple[int, tuple[str, str]]]:
        """Return the passages of a chain and the two entities of each, where both are named."""
        steps = self.way(chain)
        return [(passage, (one, two)) for passage, one, two in steps if one is not None and two is not None]

    def way(self, chain: Candidate) -> Iterator[tuple[int, str | None, str | None]]:
        """Yield the passages of a chain and the two entities of each, None for one that is not named."""
        entities = [self.asked_in(chain.passages[0]), *(edge.key for edge in chain.edges), self._last]
        return zip(chain.passages, entities[:-1], entities[1:], strict=True)

    def asked_in(self, passage: int) -> str | None:
        """Return the entity of the question that a passage mentions, the first of several."""
        view = self._candidates.views[passage]
        return next((entity for entity in self._first if view.mentions(entity)), None)

    def evidence(self, passage: int, entity: str) -> float:
        """Return how closely an entity stands together with the one of the question or answer that a passage holds."""
        view = self._candidates.views[passage]
        ends = (*self._first, self._last)
        pairs = [self.pair(passage, end, entity) for end in ends if end is not None and view.mentions(end)]
        return max((pair.together + MENTION_FACTOR * pair.mentions for pair in pairs), default=0.0)

    def pair(self, passage: int, one: str, two: str) -> Closeness:
        """Return how closely two entities stand together in a passage."""
        if (passage, one, two) not in self._pairs:
            self._pairs[passage, one, two] = closeness(self._candidates.views[passage], one, two)
        return self._pairs[passage, one, two]


def _total(costs: Sequence[Sequence[float]]) -> list[float]:
    """Add up what the steps of each chain cost; one whose entities are not both named costs as the dearest of all."""
    most = max(map(len, costs), default=0)
    dearest = max((cost for of_chain in costs for cost in of_chain), default=0.0)
    return [sum(of_chain) + (most - len(of_chain)) * dearest for of_chain in costs]


def _below_greatest(costs: Sequence[float]) -> Array:
    """Return how much more each costs than the cheapest, as what tells against it."""
    below: Array = min(costs) - np.array(costs)
    return below


def log_count(collection: Statistics | None, entity: str | None) -> float:
    """Return the logarithm of how many passages of a collection mention an entity; 0 where nobody knows."""
    return 0.0 if collection is None or entity is None else log(max(collection.count_entity(entity), 1))


def closeness(view: PassageView, one: str, two: str) -> Closeness:
    """Return how closely two entities stand together.

    A mention that overlaps with one of the other entity, as of a drug within the name of a gene, shares its sentence
    with that name alone, and does not count.
    """
    ones, twos = _Mentions(view.mentions(one)), _Mentions(view.mentions(two))
    shared = _sentences(view, ones.apart_from(twos)) & _sentences(view, twos.apart_from(ones))
    return Closeness(
        together=log(len(shared) + _NO_SENTENCE),
        mentions=log(max(len(ones.spans), 1) * max(len(twos.spans), 1)),
        distance=log(1 + _words_between(view, ones, twos)),
    )


class _Mentions:
    """The mentions of an entity, sorted: a text may have 10,000, too many to compare each with each of another."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self._starts = sorted(start for start, _ in spans)
        self._ends = sorted(end for _, end in spans)

    def apart_from(self, others: "_Mentions") -> list[Span]:
        """Return the mentions that overlap with none of another entity."""
        return [span for span in self.spans if not others._overlap(span)]

    def _overlap(self, span: Span) -> bool:
        """Return whether one of them overlaps with a span: begins before its end, and does not end before its start."""
        start, end = span
        return bisect_left(self._starts, end) > bisect_right(self._ends, start)

    def nearest(self, span: Span) -> Iterable[Span]:
        """Yield what lies between a span and the nearest of them before it, and after it."""
        start, end = span
        if before := bisect_right(self._ends, start):
            yield self._ends[before - 1], start
        if (after := bisect_left(self._starts, end)) < len(self._starts):
            yield end, self._starts[after]


def _sentences(view: PassageView, spans: Iterable[Span]) -> set[int]:
    return {view.sentence_number(start) for start, _ in spans}


def _words_between(view: PassageView, ones: _Mentions, twos: _Mentions) -> int:
    """Return the words from one entity to the other where they are nearest; where they are nowhere apart, all words."""
    places = view.text.places
    between = (gap for span in ones.spans for gap in twos.nearest(span))
    numbers = (bisect_left(places, (end,)) - bisect_left(places, (start,)) for start, end in between)
    return min(numbers, default=len(places))
