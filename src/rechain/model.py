"""What a model is: something that scores candidate chains."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

from rechain.candidates import Candidates

Contributions = Mapping[str, float]
"""What each kind of evidence adds to a chain's score; the score is their sum."""


BUNDLED = "default"
"""the name of the model that comes with the package"""


class Model(Protocol):
    """Scores the candidate chains of a question; the greatest score is the chain to recover."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return for every candidate chain, in their order, what contributes to its score."""
        ...


class Scores(NamedTuple):
    """What a model says of the candidate chains of a question, in their order."""

    contributions: Sequence[Contributions]
    confidences: Sequence[float]
    """the calibrated probability of each chain to be correct"""


@runtime_checkable
class BatchModel(Protocol):
    """Scores the candidate chains of many questions together, and tells how confident it is of each."""

    @property
    def chooses_hops(self) -> bool:
        """Whether it compares chains of different lengths."""
        ...

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        """Return the scores of every question, in their order; they do not depend on the others in the batch."""
        ...

    def to(self, device: str) -> Self:
        """Return the model on a device."""
        ...
