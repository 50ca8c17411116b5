"""All chains of a question, as its page counts them: those that a source has scored, then the other candidates."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.schema import Chain, Gold, Question, Recovered
from rechain.system.caches import BoundedCache
from rechain.text.candidates import Candidates, CandidateSettings
from rechain.text.collection import Statistics
from rechain.text.evidence.search import find_evidence, worth_showing
from rechain.text.label_units import Units, find_units
from rechain.text.passage_views import PassageView

T = TypeVar("T")


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
    lambda question, settings, collection: worth_showing(find_evidence(question, settings, collection=collection))
)
recent_units: Find[Units] = remember(find_units)


class ChainList:
    """A source's chains of a question, best first, and then the candidates that it has not scored, by cheap evidence.

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
        """those that the conditions allow and people should look at; None if they allow nothing"""
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

    @property
    def joined(self) -> list[list[frozenset[str]]]:
        """The passages that each link of every chain joins."""
        found = [(chain.passages, chain.between) for chain in self.scored]
        found += [(way, list(candidate.between)) for candidate, way in self._unscored]
        return [[frozenset((way[before], way[after])) for before, after in between] for way, between in found]

    @property
    def has_links(self) -> bool:
        """Whether any of them has a link."""
        return any(self.joined)

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
