"""Two sources of chains compared on the same questions: how often each is right where the other is not."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rechain.evaluation.judging import JudgedChain
from rechain.evaluation.statistics import Figure, paired_difference

COMPARED = {
    "chain accuracy": "correct",
    "ordered accuracy": "ordered",
    "head recall": "head",
    "tail recall": "tail",
    "ordered accuracy with links": "with_links",
    "coverage": "has_chain",
}
"""the figures that are taken over the same questions for both sources, and what they are of a verdict"""


class Comparison(NamedTuple):
    """On how many questions both sources are right, only one, or neither."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> "Comparison":
        """Count pairs: whether the first is right, and whether the second is."""
        counted = list(pairs)
        kinds = ((True, True), (True, False), (False, True), (False, False))
        return cls(*(counted.count(kind) for kind in kinds))

    @property
    def gain(self) -> Figure | None:
        """By how much the second is more often right, with its 95 % interval; None without questions."""
        return paired_difference(self.only_second, self.only_first, sum(self))


def compare(first: Sequence[JudgedChain], second: Sequence[JudgedChain]) -> dict[str, Comparison]:
    """Return, by the name of the figure, how the verdicts of two sources on the same questions compare."""
    comparisons = {}
    for name, field in COMPARED.items():
        pairs = [(getattr(one, field), getattr(other, field)) for one, other in zip(first, second, strict=True)]
        # What gold cannot decide, it cannot decide for either.
        if decided := [pair for pair in pairs if None not in pair]:
            comparisons[name] = Comparison.of(decided)
    return comparisons
