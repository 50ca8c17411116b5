"""Compare other ways to share beliefs: python research/joint_variants.py DATA OFFERS [--models lexical,default].

The first row is what `rechain` does. OFFERS is the folder of benchmarks/joint.py.

A question of one fold is told by those of the others. How well that alone predicts which chains its own model holds to
be likely is a criterion without gold: the cross-entropy of the model's probabilities under those by what is told
(lower is better; the model's are the same in all rows but those of another temperature, which do not compare).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from common import Pair, drughop_pairs, parser, print_heading, print_rows
from joint import FOLDS, offers_of

from rechain.evaluation.judging import is_correct
from rechain.paper.stage import folds_of
from rechain.schema import Chain, Question
from rechain.scoring.beliefs import Offer
from rechain.system.tensors import Array

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "as shipped: strength 1, others alone": {},
    "a question hears itself too": {"hears_itself": True},
    "strength 0.3": {"strength": 0.3},
    "strength 3": {"strength": 3.0},
    "strength 10": {"strength": 10.0},
    "prior from the two entities in any passage": {"backs_off": True},
    "the same, strength 3": {"backs_off": True, "strength": 3.0},
    "what is told weighs 0.5": {"weight": 0.5},
    "what is told weighs 1.5": {"weight": 1.5},
    "the model's scores divided by 0.7": {"temperature": 0.7},
    "the model's scores divided by 1.5": {"temperature": 1.5},
}
_ROUNDS = 30


class Variants:
    """The chains of all questions as arrays; every chain of DrugHop has three steps."""

    def __init__(self, offers: Sequence[Offer], pairs: Sequence[Pair], folds: Array) -> None:
        chains = [(n, c, steps) for n, o in enumerate(offers) for c, steps in zip(o.recovered, o.steps, strict=True)]
        self._question = np.array([n for n, _, _ in chains])
        self._starts = np.searchsorted(self._question, np.arange(len(offers)))
        self._scores = np.array([chain.score for _, chain, _ in chains])
        self._correct = np.array(
            [is_correct(c.passages, [x.entity for x in c.links], pairs[n][1]) for n, c, _ in chains]
        )
        self._folds = folds
        names, steps = np.unique([steps for _, _, steps in chains], return_inverse=True)
        self._steps = self._of_questions(steps.reshape(-1, 3), len(names))
        entities = [_entities(pairs[n][0], chain) for n, chain, _ in chains]
        names, of_step = np.unique([pair for of_chain in entities for pair in of_chain], return_inverse=True)
        self._pairs = self._of_questions(of_step.reshape(-1, 3), len(names))

    def _of_questions(self, places: Array, count: int) -> "_Shared":
        return _Shared(self._question[:, None] * count + places, count)

    def measure(self, temperature: float = 1.0, **settings: Any) -> tuple[float, float, float]:
        """Return the criterion, the accuracy across folds, and that of the whole file."""
        scores = self._scores / temperature
        own, told = self._softmax(scores), np.zeros(len(scores))
        for fold in range(int(self._folds.max()) + 1):
            mine = self._folds[self._question] == fold
            told[mine] = self._told(scores, self._folds != fold, **settings)[mine]
        surprise = -(own * np.log(self._softmax(told))).sum() / len(self._starts)
        whole = self._told(scores, np.ones(len(self._folds), dtype=bool), **settings)
        return surprise, self._accuracy(scores + told), self._accuracy(scores + whole)

    def _told(
        self,
        scores: Array,
        learns: Array,
        strength: float = 1.0,
        weight: float = 1.0,
        hears_itself: bool = False,
        backs_off: bool = False,
    ) -> Array:
        """Return what every chain is told by the questions that are learnt from."""
        told = np.zeros(len(scores))
        for _ in range(_ROUNDS):
            used = self._softmax(scores + told) * learns[self._question]
            mean: Any = (3 * used.sum()) / learns[self._steps.question].sum()
            prior = mean
            if backs_off:
                prior = self._pairs.rate(used, learns, mean, strength, hears_itself)[self._pairs.places]
            rate = self._steps.rate(used, learns, prior, strength, hears_itself, self._steps.places)
            told = weight * np.log(rate / mean).sum(1)
        return told

    def _softmax(self, scores: Array) -> Array:
        weights = np.exp(scores - np.maximum.reduceat(scores, self._starts)[self._question])
        shares: Array = weights / np.add.reduceat(weights, self._starts)[self._question]
        return shares

    def _accuracy(self, scores: Array) -> float:
        best = [int(part.argmax()) for part in np.split(scores, self._starts[1:])]
        return 100 * float(self._correct[self._starts + best].mean())


class _Shared:
    """What questions share, steps or pairs of entities, each once a question."""

    def __init__(self, keys: Array, count: int) -> None:
        offered, places = np.unique(keys, return_inverse=True)
        self.places = places.reshape(keys.shape)
        """of every step of every chain among what is offered"""
        self.question, self._which, self._count = offered // count, offered % count, count

    def rate(
        self, used: Array, learns: Array, prior: Any, strength: float, hears_itself: bool, at: Array | None = None
    ) -> Array:
        """Return how often what is offered is used, among the questions that are learnt from."""
        uses = np.bincount(self.places.ravel(), np.repeat(used, 3), len(self._which))
        offers = learns[self.question].astype(float)
        told, asked = (np.bincount(self._which, one, self._count)[self._which] for one in (uses, offers))
        if not hears_itself:
            told, asked = told - uses, asked - offers
        if at is not None:
            told, asked = told[at], asked[at]
        rates: Array = (told + strength * prior) / (asked + strength)
        return rates


def _entities(question: Question, chain: Chain) -> list[str]:
    """Return the two entities of each step of a chain, as one text."""
    links = [link.entity for link in chain.links]
    entities = [question.question_entities[0], *links, question.answer_entity or ""]
    return [" ".join(sorted(pair)) for pair in pairwise(entities)]


def setting_rows(data: Path, folder: Path, models: Sequence[str], workers: int) -> Iterator[Sequence[object]]:
    """Yield how well other folds predict what a model believes of a question, setting by setting."""
    pairs = drughop_pairs(data)
    folds = np.array(folds_of([question for question, _ in pairs], FOLDS))
    for model in models:
        variants = Variants(offers_of(data, folder, model, "open", workers), pairs, folds)
        for name, settings in VARIANTS.items():
            predicted, across, whole = variants.measure(**settings)
            yield model, name, f"{predicted:.3f}", f"{across:.1f}", f"{whole:.1f}"


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("offers", type=Path)
    options.add_argument("--models", default="lexical,default")
    options.add_argument("--workers", type=int, default=0)
    given = options.parse_args()
    print_heading()
    columns = ["model", "beliefs", "surprise", "accuracy across folds, %", "accuracy, whole file, %"]
    print_rows(columns, setting_rows(given.data, given.offers, given.models.split(","), given.workers))


if __name__ == "__main__":
    main()
