"""What a model is: something that scores candidate chains, and how scores become confidences."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import exp, log
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, Self, runtime_checkable

from rechain.text.candidates import Candidates

Contributions = Mapping[str, float]
"""What each kind of evidence adds to a chain's score; the score is their sum."""


BUNDLED = "default"
"""the name of the model that comes with the package"""


def bundled_folder() -> Path:
    """Return the folder of the model that comes with the package."""
    return Path(str(files("rechain").joinpath("data/default")))


class Model(Protocol):
    """Scores the candidate chains of a question; the greatest score is the chain to recover."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return for every candidate chain, in their order, what contributes to its score."""
        ...


class PlayerStep(NamedTuple):
    """What one of the two players says on the way to a chain."""

    player: Literal["ranker", "reasoner"]
    probability: float
    """of the passage that the Ranker selects, or of the link that the Reasoner names"""
    passage: int | None = None
    """which passage of the chain is selected or read, from 0; None: the chain as a whole"""
    link: int | None = None
    """which link of the chain is named, from 0"""


class Scores(NamedTuple):
    """What a model says of the candidate chains of a question, in their order."""

    contributions: Sequence[Contributions]
    confidences: Sequence[float]
    """the calibrated probability of each chain to be correct; empty: the model has no confidence"""
    steps: Sequence[Sequence[PlayerStep]] | None = None
    """what the two players say of each chain, if the model has them"""
    support: Sequence[float] | None = None
    """how well the best chain supports each claim of the answer, as a logit, if the model has a judge"""
    shares: Sequence[float] | None = None
    """the probability of each chain as if no more than one were right, where that is not what confidences say"""


@runtime_checkable
class StepwiseModel(Protocol):
    """A model of one question at a time whose two players say something at every step."""

    def steps(self, candidates: Candidates) -> Sequence[Sequence[PlayerStep]]:
        """Return for every candidate chain, in their order, what the players say on the way to it."""
        ...


@runtime_checkable
class BatchModel(Protocol):
    """Scores the candidate chains of many questions together, and says how confident it is of each."""

    @property
    def chooses_hops(self) -> bool:
        """Whether it compares evidence of different shapes, and chains of different lengths."""
        ...

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        """Return the scores of every question, in their order; they do not depend on the others in the batch."""
        ...

    def to(self, device: str) -> Self:
        """Return the model on a device."""
        ...


_LEAST_SHARE = 1e-4
"""shares nearer to 0 or 1 than this count as this: that of a question's only chain says nothing of how right it is"""


class Calibration(NamedTuple):
    """The confidence of a chain from its share among those of its question, if the data names entities.

    Several chains of such a question are often right, and a model divides the probability among them as if no more than
    one were, so that each share is too small. Two numbers turn a share into the probability that the chain is right.
    They were fitted to gold of DrugHop open (docs/measured/default_model.md, docs/measured/joint.md), and never change
    which chain is best.
    """

    slope: float
    offset: float

    def confidence(self, share: float) -> float:
        """Return the probability that a chain of this share is right."""
        return 1 / (1 + exp(-(self.slope * log_odds(share) + self.offset)))


ALONE = Calibration(0.40, 0.83)
"""of the default model by itself (benchmarks/default_model.py judge)"""
JOINTLY = Calibration(0.34, 0.31)
"""of its chains weighed by what other questions tell (benchmarks/joint.py)"""


def log_odds(share: float) -> float:
    """Return the log-odds of a share."""
    share = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    return log(share / (1 - share))
