"""What a model is: something that scores candidate chains."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from rechain.candidates import Candidates

Contributions = Mapping[str, float]
"""What each kind of evidence adds to a chain's score; the score is their sum."""


class Model(Protocol):
    """Scores the candidate chains of a question; the greatest score is the chain to recover."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return for every candidate chain, in their order, what contributes to its score."""
        ...
