"""A chain picked at random from C: the paper's first baseline."""

from collections.abc import Sequence
from random import Random as Generator

from rechain.candidates import Candidates
from rechain.scoring.model import Contributions


class Random:
    """Draws by seed and question id, so that a question's chain does not depend on its neighbours."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return a random number for every chain."""
        draw = Generator(f"{self._seed} {candidates.question.id}").random
        return [{"chance": draw()} for _ in candidates.chains]
