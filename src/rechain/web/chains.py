"""All candidate chains of a question, as its page counts them: those that a source has scored, then the others."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.schema import Chain, Gold, Question, Recovered
from rechain.text.candidates import Candidate, Candidates, CandidateSettings, find_of_any_shape
from rechain.text.candidates.label_units import Units, find_units
from rechain.text.collection import Statistics
from rechain.text.passage_views import PassageView
from rechain.web.temporary import BoundedCache

_MOST = 500_000
"""characters of the passages of all questions that are remembered: some ten megabytes with what was read out of them"""

Result = TypeVar("Result")
Find = Callable[[Question, CandidateSettings, Statistics | None], Result]


Query = tuple[Question, CandidateSettings, Statistics | None]


def remember(find: Find[Result], most: int = _MOST) -> Find[Result]:
    """Return a function that keeps its results for the latest questions.

    Two questions that are equal but not the same object are two: to compare all passages takes long.
    """
    # the arguments are kept next to the result, so that no other object has their ids
    cache: BoundedCache[tuple[Query, Result]] = BoundedCache(
        most, size=lambda kept: 1000 + sum(len(passage.text) for passage in kept[0][0].passages)
    )

    def find_once(*query: *Query) -> Result:
        return cache.get(tuple(map(id, query)), lambda: (query, find(*query)))[1]

    return find_once


recent_candidates: Find[Candidates] = remember(
    lambda question, settings, collection: find_of_any_shape(question, settings, collection=collection)
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
        names = [passage.id for passage in question.passages]
        known, found = {chain.identity for chain in scored}, self.candidates.chains if self.candidates else ()
        ways = ((candidate, [names[place] for place in candidate.passages]) for candidate in found)
        self._unscored = [(candidate, way) for candidate, way in ways if _identity(candidate, way) not in known]

    @property
    def is_cut(self) -> bool:
        """Whether there are more candidates than the settings' limit."""
        return self.candidates is not None and self.candidates.is_cut

    def __len__(self) -> int:
        return len(self.scored) + len(self._unscored)

    def at(self, number: int) -> Chain:
        """Return a chain, counted from 0."""
        if number < len(self.scored):
            return self.scored[number]
        candidate, way = self._unscored[number - len(self.scored)]
        return Chain(shape=candidate.shape, passages=way, links=candidate.links, score=candidate.weight)

    def first(self, most: int) -> list[Chain]:
        """Return the first chains."""
        return [self.at(number) for number in range(min(most, len(self)))]

    @property
    def ways(self) -> list[Sequence[str]]:
        """The passages of every chain."""
        return [*(chain.passages for chain in self.scored), *(way for _, way in self._unscored)]

    def find(self, gold: Gold) -> int | None:
        """Return the number of the first chain that is a gold chain, among all of them."""
        wanted = {tuple(sorted(chain.passages)) for chain in gold.chains}
        alike = (number for number, way in enumerate(self.ways) if tuple(sorted(way)) in wanted)
        return next((number for number in alike if is_gold(self.at(number), gold)), None)


def _identity(candidate: Candidate, way: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what `Chain.identity` would, without looking for places in texts, which takes time."""
    given = tuple(edge.name if edge.is_given else "" for edge in candidate.edges)
    return tuple(sorted(way) if candidate.shape == "parallel" else way), given


def best_chain(recovered: Recovered | None) -> Chain | None:
    """Return the best chain of a question, if there is one."""
    return recovered.chains[0] if recovered and recovered.chains else None


def is_gold(chain: Chain, gold: Gold) -> bool:
    """Return whether a chain is a gold chain."""
    return is_correct(chain.passages, [link.entity for link in chain.links], gold, chain.shape)
