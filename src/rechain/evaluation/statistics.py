"""Means, paired differences, kappa and AUC with their bootstrap intervals, and calibration. Plain numbers only."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from rechain.system.tensors import Array

RESAMPLES = 2000
"""from seed to seed the ends of an interval vary by about 2 % of its width"""
BINS = 15
"""bins of the calibration error, as in Guo et al. 2017, so that figures compare with published ones"""
FEWEST_QUESTIONS = 5
"""an interval over fewer questions says nothing: four can be drawn in only 35 different ways"""
_ENDS = (2.5, 97.5)
_Z = 1.959964
"""95 % of a normal distribution lie within this many standard deviations of its mean"""
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""the same of Student's distribution with 1, 2, … degrees of freedom"""


class Figure(NamedTuple):
    """A mean, its 95 % bootstrap interval, and the number of questions it was taken over."""

    value: float
    low: float
    high: float
    questions: int


class Kappa(NamedTuple):
    """Cohen's kappa, its 95 % bootstrap interval (None for too few questions), and the number of questions."""

    value: float
    low: float | None
    high: float | None
    questions: int


def bootstrap(statistic: Callable[[Array], float], count: int) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a statistic of `count` items.

    `statistic` takes the numbers of the items that were drawn; resamples for which it is not a number do not count.
    """
    generator = np.random.default_rng(0)
    return _interval([statistic(generator.integers(count, size=count)) for _ in range(RESAMPLES)])


def _interval(values: Sequence[float] | Array) -> tuple[float, float]:
    low, high = np.nanpercentile(values, _ENDS)
    return float(low), float(high)


def mean_with_interval(values: Sequence[bool] | Sequence[float]) -> Figure | None:
    """Return the mean of some values with its 95 % interval; None without values."""
    if not values:
        return None
    data = np.asarray(values, dtype=float)
    return Figure(float(data.mean()), *bootstrap(lambda draw: data[draw].mean(), len(data)), len(data))


def means_with_intervals(columns: Mapping[str, Sequence[bool] | Sequence[float]]) -> dict[str, Figure]:
    """Return the mean of every column that has values."""
    return {name: figure for name, values in columns.items() if (figure := mean_with_interval(values))}


def mean_over_runs(values: Sequence[float]) -> Figure | None:
    """Return the mean of one value a run with Student's 95 % interval over runs; None of fewer than two.

    A bootstrap over questions knows nothing of how much another training would differ; this does.
    """
    if len(values) < 2:
        return None
    data = np.asarray(values, dtype=float)
    mean, reach = float(data.mean()), _student(len(data) - 1) * float(data.std(ddof=1)) / sqrt(len(data))
    return Figure(mean, mean - reach, mean + reach, len(data))


def _student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's distribution."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    # the first terms of Cornish and Fisher's expansion; off by less than 0.001 from here on
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)


def share_with_interval(count: int, total: int) -> Figure | None:
    """Return a share with its 95 % interval after Wilson, which says something of 3 of 3 as well; None of nothing."""
    if not total:
        return None
    share, weight = count / total, _Z**2 / total
    middle = (share + weight / 2) / (1 + weight)
    reach = _Z / (1 + weight) * sqrt(share * (1 - share) / total + weight / (4 * total))
    return Figure(share, max(middle - reach, 0.0), min(middle + reach, 1.0), total)


def paired_difference(won: int, lost: int, questions: int) -> Figure | None:
    """Return by how much one is more often right than another on the same questions, with its 95 % interval.

    `won` and `lost` count the questions on which only the first, or only the second, is right.
    """
    if not questions:
        return None
    # Of three outcomes only the counts matter, so all resamples are drawn at once from their multinomial: the page that
    # compares two sources has counts from its database, not a list of questions.
    shares = [won / questions, lost / questions, max(questions - won - lost, 0) / questions]
    counts = np.random.default_rng(0).multinomial(questions, shares, size=RESAMPLES)
    return Figure((won - lost) / questions, *_interval((counts[:, 0] - counts[:, 1]) / questions), questions)


def kappa_with_interval(
    one: Sequence[str], two: Sequence[str], questions: Sequence[str], counts: Sequence[int] | None = None
) -> Kappa | None:
    """Return Cohen's kappa with a 95 % interval over questions, as units of one question depend on one another.

    `questions` has the question of each item, `counts` how often each item counts (default: once). None without items,
    or if agreement by chance is certain.
    """
    tables = _tables(one, two, questions, [1] * len(one) if counts is None else counts)
    kappa, count = _kappa(tables.sum(0)), len(tables)
    if np.isnan(kappa):
        return None
    if count < FEWEST_QUESTIONS:
        return Kappa(kappa, None, None, count)
    flat = tables.reshape(count, -1).astype(float)  # a product of floats is far quicker, and exact for counts

    def resampled(draw: Array) -> float:
        # a product with how often each question was drawn: far quicker than a sum over the tables drawn
        return _kappa((np.bincount(draw, minlength=count) @ flat).reshape(tables.shape[1:]))

    return Kappa(kappa, *bootstrap(resampled, count), count)


def _tables(one: Sequence[str], two: Sequence[str], questions: Sequence[str], counts: Sequence[int]) -> Array:
    """Return for every question how often each pair of values was given: [questions, values, values]."""
    values = {value: number for number, value in enumerate(sorted({*one, *two}))}
    places = {question: number for number, question in enumerate(dict.fromkeys(questions))}
    tables = np.zeros((len(places), len(values), len(values)), dtype=np.int64)
    for first, second, question, count in zip(one, two, questions, counts, strict=True):
        tables[places[question], values[first], values[second]] += count
    return tables


def _kappa(table: Array) -> float:
    """Return kappa of one table [values, values]; NaN if it is not defined."""
    total, equal = int(table.sum()), int(np.trace(table))
    by_chance = int(table.sum(1) @ table.sum(0))
    room = total**2 - by_chance
    return (equal * total - by_chance) / room if room > 0 else np.nan


def auc(scores: Array, is_positive: Array) -> float:
    """Return how often the positive of a positive and a negative has the higher score, ties counting half."""
    positives, negatives = int(is_positive.sum()), int((~is_positive).sum())
    if not positives or not negatives:
        return np.nan
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    return float((rank[is_positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def auc_with_interval(scores: Array, is_positive: Array) -> Figure:
    """Return the AUC of some scores with its 95 % interval over items."""
    interval = bootstrap(lambda draw: auc(scores[draw], is_positive[draw]), len(scores))
    return Figure(auc(scores, is_positive), *interval, len(scores))


def expected_calibration_error(chains: Iterable[tuple[float | None, bool]]) -> float | None:
    """Return how far confidence lies from accuracy: the mean gap of the bins, weighted by the chains in each.

    `chains` has the confidence of each chain and whether it is correct. The bins are of equal width; a value between
    two counts with the upper. Without confidence a chain does not count, and without such chains there is no error.
    """
    bins: dict[int, list[tuple[float, bool]]] = {}
    for confidence, correct in chains:
        if confidence is not None:
            bins.setdefault(min(int(confidence * BINS), BINS - 1), []).append((confidence, correct))
    gaps = [abs(sum(confidence - correct for confidence, correct in members)) for members in bins.values()]
    return sum(gaps) / sum(map(len, bins.values())) if bins else None
