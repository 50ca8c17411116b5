"""Means, paired differences and their bootstrap intervals."""

from collections.abc import Sequence
from typing import NamedTuple

RESAMPLES = 2000
BINS = 15


class Figure(NamedTuple):
    """A mean, its 95 % bootstrap interval, and over how many questions it was taken."""

    value: float
    low: float
    high: float
    questions: int


def mean_with_interval(values: Sequence[bool] | Sequence[float], seed: int = 0) -> Figure | None:
    """Return the mean of some values with a 95 % bootstrap interval (percentiles of resampled means)."""
    import numpy as np

    if not values:
        return None
    data = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    means = [data[generator.integers(len(data), size=len(data))].mean() for _ in range(RESAMPLES)]
    low, high = np.percentile(means, [2.5, 97.5])
    return Figure(float(data.mean()), float(low), float(high), len(data))


def paired_difference(won: int, lost: int, questions: int, seed: int = 0) -> Figure | None:
    """Return by how much one is more often right than another on the same questions, with a 95 % bootstrap interval.

    `won` and `lost` count the questions on which it alone, or the other alone, is right.
    """
    import numpy as np

    if not questions:
        return None
    shares = [won / questions, lost / questions, max(questions - won - lost, 0) / questions]
    drawn = np.random.default_rng(seed).multinomial(questions, shares, size=RESAMPLES)
    low, high = np.percentile((drawn[:, 0] - drawn[:, 1]) / questions, [2.5, 97.5])
    return Figure((won - lost) / questions, float(low), float(high), questions)
