"""What a model is: something that scores candidate chains; how scores become confidences; models that learn nothing."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import exp, fsum, log
from pathlib import Path
from random import Random as Generator
from typing import Literal, NamedTuple, Protocol, Self, runtime_checkable

from rechain.text.candidates import Candidates
from rechain.text.evidence.pairs import EntityPairs
from rechain.text.languages import rarities
from rechain.text.passage_views import bm25_scores
from rechain.text.words import Text

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
    """The confidences of chains from their shares among those of their question, if the data names entities.

    Several chains of such a question are often right, and a model divides the probability among them as if no more than
    one were, so that the share of the best is too small. Two numbers turn it into the probability that the chain is
    right, and the others divide what is left, so that no question's confidences add up to more than 1. The numbers were
    fitted to gold of DrugHop open (docs/measured/default_model.md, docs/measured/joint.md).
    """

    slope: float
    offset: float

    def confidence(self, share: float) -> float:
        """Return the probability that the best chain is right, which has this share."""
        return 1 / (1 + exp(-(self.slope * log_odds(share) + self.offset)))

    def confidences(self, shares: Sequence[float]) -> list[float]:
        """Return the confidence of every chain; the best of them stays the best."""
        if not shares:
            return []
        best = max(range(len(shares)), key=shares.__getitem__)
        own = self.confidence(shares[best])
        left = (1 - own) / max(1 - shares[best], _LEAST_SHARE)
        return [own if number == best else min(own, left * share) for number, share in enumerate(shares)]


ALONE = Calibration(0.43, 0.58)
"""of the default model by itself (benchmarks/default_model.py judge)"""
JOINTLY = Calibration(0.34, 0.31)
"""of its chains weighed by what other questions tell (benchmarks/joint.py)"""


def log_odds(share: float) -> float:
    """Return the log-odds of a share."""
    share = min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    return log(share / (1 - share))


# --- Models that learn nothing ----------------------------------------------------------------------------------------
#
# The lexical rule: rare words of the question in the chain's passages, and strong links between them. Where the data
# names the entities of question, links and answer, as in DrugHop and MedHop, the rule asks instead how closely the two
# entities of a step stand together in its passage and, with a collection, how rare they are. BM25 of the question
# against each passage. And a chain picked at random from C: the paper's first baseline.

LINK_FACTOR = 1.5
"""the best of 0, 0.5, …, 2 on HotpotQA; 1 and 2 are within a point of it (docs/measured/results.md)"""


class Lexical:
    """Learns nothing, and is hard to beat."""

    def __init__(self, link_factor: float = LINK_FACTOR) -> None:
        self._link_factor = link_factor

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return what words and links, or entities in one sentence, contribute to every chain."""
        if candidates.names_entities:
            return EntityPairs(candidates).score()
        query = rarities(Text(candidates.question.question))
        overlaps = [query.keys() & view.terms for view in candidates.views]
        return [
            {
                "question words": fsum(query[word] for word in set().union(*(overlaps[p] for p in chain.passages))),
                "links": self._link_factor * chain.weight,
            }
            for chain in candidates.chains
        ]


class BM25:
    """Okapi BM25, with the question's own passages as the collection."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return the sum of the passages' BM25 scores for every chain."""
        scores = bm25_scores(candidates.question, candidates.views)
        return [{"bm25": float(sum(scores[p] for p in chain.passages))} for chain in candidates.chains]


class Random:
    """Draws by seed and question id, so that a question's chain does not depend on its neighbours."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return a random number for every chain."""
        draw = Generator(f"{self._seed} {candidates.question.id}").random
        return [{"chance": draw()} for _ in candidates.chains]
