"""All candidate chains of a question, as its page counts them: those that a source has scored, then the others."""

from collections.abc import Sequence

from rechain.candidates import Candidate, Candidates, CandidateSettings
from rechain.errors import QuestionError
from rechain.evaluation.judging import is_correct
from rechain.schema import Chain, Gold, Question
from rechain.text.collection import Statistics
from rechain.text.passages import PassageView
from rechain.web.recent import recent_candidates


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
        self.scored = scored
        self.candidates = _find(question, settings, collection)
        """all that the conditions allow; None where they allow nothing"""
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


def _find(question: Question, settings: CandidateSettings, collection: Statistics | None) -> Candidates | None:
    try:
        return recent_candidates(question, settings, collection)
    except QuestionError:
        return None


def _identity(candidate: Candidate, way: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what `Chain.identity` would, without looking for places in texts, which takes time."""
    given = tuple(edge.name if edge.is_given else "" for edge in candidate.edges)
    return tuple(sorted(way) if candidate.shape == "parallel" else way), given


def is_gold(chain: Chain, gold: Gold) -> bool:
    """Return whether a chain is a gold chain."""
    return is_correct(chain.passages, [link.entity for link in chain.links], gold, chain.shape)
