"""All chains of a question, as its page counts them: those that a source has scored, then the other candidates."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Generic, TypeVar

from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.schema import Chain, Gold, Question, Recovered
from rechain.text.candidates import Candidates, CandidateSettings
from rechain.text.collection import Statistics
from rechain.text.evidence.search import find_evidence
from rechain.text.label_units import Units, find_units
from rechain.text.passage_views import PassageView

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """Values by key, of limited size in all; those that nobody asked for longest are dropped first."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        """Take how much may be kept, and what says how much a value is."""
        self._most, self._size_of = most, size
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def find(self, key: Hashable) -> T | None:
        """Return the value of a key if it is there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def add(self, key: Hashable, value: T) -> None:
        """Keep a value, unless it is too large or there is one."""
        size = self._size_of(value)
        with self._lock:
            if key not in self._values and size <= self._most:
                self._values[key] = value, size
                self._size += size
            while self._size > self._most:
                self._size -= self._values.popitem(last=False)[1][1]

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, which is made where it is not there. Two threads may make it at once."""
        value = self.find(key)
        if value is None:
            value = make()
            self.add(key, value)
        return value


_MOST = 500_000
"""characters of the passages of all questions that are remembered: some ten megabytes with what was read out of them"""

Find = Callable[[Question, CandidateSettings, Statistics | None], T]


def remember(find: Find[T], most: int = _MOST) -> Find[T]:
    """Return a function that keeps its results for the latest questions.

    Two questions that are equal but not the same object are two: to compare all passages takes long.
    """
    # the arguments are kept next to the result, so that no other object has their ids
    cache: BoundedCache[tuple[Any, T]] = BoundedCache(
        most, size=lambda kept: 1000 + sum(len(passage.text) for passage in kept[0][0].passages)
    )
    return lambda *query: cache.get(tuple(map(id, query)), lambda: (query, find(*query)))[1]


recent_candidates: Find[Candidates] = remember(
    lambda question, settings, collection: find_evidence(question, settings, collection=collection)
)
recent_units: Find[Units] = remember(find_units)


class ChainList:
    """A source's chains of a question, best first, and then the candidates that it has not scored, by link weight.

    There may be thousands: a chain is written out when somebody looks at it.
    """

    def __init__(
        self,
        question: Question,
        scored: Sequence[Chain],
        settings: CandidateSettings,
        collection: Statistics | None = None,
    ) -> None:
        self.question, self.scored, self.settings, self.collection = question, scored, settings, collection
        self.candidates: Candidates | None = None
        """all that the conditions allow; None if they allow nothing"""
        with suppress(QuestionError):
            self.candidates = recent_candidates(question, settings, collection)
        self.views = self.candidates.views if self.candidates else [PassageView(one) for one in question.passages]
        """the question's passages, as linking sees them"""
        known = {chain.identity for chain in scored}
        found = self.candidates
        self._unscored = [
            (candidate, [question.passages[place].id for place in candidate.passages])
            for candidate in (found.chains if found else ())
            if found and found.identity(candidate) not in known
        ]

    def __len__(self) -> int:
        return len(self.scored) + len(self._unscored)

    def at(self, number: int) -> Chain:
        """Return a chain, counted from 0."""
        if number < len(self.scored):
            return self.scored[number]
        candidate, way = self._unscored[number - len(self.scored)]
        return Chain(shape=candidate.shape, passages=way, links=candidate.links, score=candidate.weight)

    @property
    def ways(self) -> list[Sequence[str]]:
        """The passages of every chain."""
        return [*(chain.passages for chain in self.scored), *(way for _, way in self._unscored)]

    def find(self, gold: Gold) -> int | None:
        """Return the number of the first chain that is a gold chain, among all of them."""
        wanted = {tuple(sorted(chain.passages)) for chain in gold.chains}
        alike = (number for number, way in enumerate(self.ways) if tuple(sorted(way)) in wanted)
        return next((number for number in alike if is_gold(self.at(number), gold)), None)


def best_chain(recovered: Recovered | None) -> Chain | None:
    """Return the best chain of a question, if there is one."""
    return recovered.chains[0] if recovered and recovered.chains else None


def is_gold(chain: Chain, gold: Gold) -> bool:
    """Return whether a chain is a gold chain."""
    return is_correct(chain.passages, [link.entity for link in chain.links], gold, chain.shape)
