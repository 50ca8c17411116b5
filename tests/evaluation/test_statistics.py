"""Means, kappa, AUC and calibration by hand, their intervals, and that published numbers do not change."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.evaluation.statistics import (
    BINS,
    auc,
    auc_with_interval,
    expected_calibration_error,
    kappa_with_interval,
    mean_over_runs,
    mean_with_interval,
    paired_difference,
    share_with_interval,
)

VALUES = st.lists(st.tuples(*[st.sampled_from(["yes", "no", "unsure"])] * 2), min_size=1, max_size=30)


def test_published_intervals_do_not_change() -> None:
    # what the separate bootstraps of means, kappa and AUC gave before they became one
    scores = np.random.default_rng(5).random(30)
    one, two = ["yes", "no", "unsure", "no"] * 9, ["yes", "no", "no", "yes"] * 9
    questions = [str(number // 3) for number in range(36)]
    assert mean_with_interval([True, False, True, True, False, True, True]) == (
        0.7142857142857143,
        0.42857142857142855,
        1.0,
        7,
    )
    assert paired_difference(7, 3, 40) == (0.1, -0.05, 0.25, 40)
    assert kappa_with_interval(one, two, questions) == (0.2, 0.07692307692307693, 0.32710280373831774, 12)
    expected = (0.655, 0.4444444444444444, 0.8373205741626795, 30)
    assert auc_with_interval(scores, np.arange(30) % 3 == 0) == expected


def test_a_mean_comes_with_its_interval_and_number() -> None:
    figure = mean_with_interval([True, True, True, False])
    assert figure is not None
    assert (figure.value, figure.questions) == (0.75, 4)
    assert 0.0 <= figure.low <= 0.75 <= figure.high == 1.0
    assert mean_with_interval([True, True, True, False]) == figure
    assert mean_with_interval([]) is None
    assert mean_with_interval([2.0, 2.0]) == (2.0, 2.0, 2.0, 2)


def test_the_interval_of_a_mean_is_about_two_standard_errors_on_either_side() -> None:
    figure = mean_with_interval([True] * 300 + [False] * 100)
    assert figure
    error = (0.75 * 0.25 / 400) ** 0.5
    assert figure.low == pytest.approx(0.75 - 1.96 * error, abs=0.006)
    assert figure.high == pytest.approx(0.75 + 1.96 * error, abs=0.006)


def test_intervals_cover_the_truth_in_about_95_of_100_samples() -> None:
    draw = random.Random(7).random
    figures = [mean_with_interval([draw() < 0.7 for _ in range(100)]) for _ in range(60)]
    covering = sum(figure.low <= 0.7 <= figure.high for figure in figures if figure)
    assert 52 <= covering < 60


def cohens_kappa(one: list[str], two: list[str]) -> float | None:
    """Return kappa of items of one question."""
    kappa = kappa_with_interval(one, two, ["q"] * len(one))
    return None if kappa is None else kappa.value


def test_kappa_by_hand() -> None:
    # the textbook case: 20 times both yes, 15 both no, 5 yes and no, 10 no and yes: equal 0.7, by chance 0.5
    one = ["yes"] * 25 + ["no"] * 25
    two = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohens_kappa(one, two) == pytest.approx(0.4)
    # three values: equal 4 of 6; rows 2, 2, 2, columns 3, 2, 1: by chance 12 of 36
    one, two = ["yes", "yes", "no", "no", "unsure", "unsure"], ["yes", "yes", "no", "yes", "no", "unsure"]
    assert cohens_kappa(one, two) == pytest.approx((4 / 6 - 12 / 36) / (1 - 12 / 36))
    assert cohens_kappa(["yes", "no"], ["no", "yes"]) == -1
    assert cohens_kappa(["yes", "no"], ["yes", "no"]) == 1
    assert cohens_kappa(["yes", "yes"], ["yes", "no"]) == 0
    assert cohens_kappa([], []) is cohens_kappa(["yes"] * 3, ["yes"] * 3) is None  # chance is certain


def test_lists_of_different_length_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="shorter"):
        cohens_kappa(["yes", "no"], ["yes"])


@given(VALUES)
def test_kappa_is_symmetric_and_at_most_1(items: list[tuple[str, str]]) -> None:
    one, two = (list(column) for column in zip(*items, strict=True))
    kappa = cohens_kappa(one, two)
    assert kappa == cohens_kappa(two, one)
    assert kappa is None or -1 <= kappa <= 1
    assert cohens_kappa(one, one) in (None, 1.0)


def test_the_interval_is_one_over_questions() -> None:
    one, two = ["yes", "no"] * 50, ["yes", "no"] * 40 + ["no", "yes"] * 10
    alone = kappa_with_interval(one, two, [str(n) for n in range(100)])
    together = kappa_with_interval(one, two, [str(n // 20) for n in range(100)])
    assert alone is not None
    assert together is not None
    assert alone.value == together.value == pytest.approx(0.6)
    assert (alone.questions, together.questions) == (100, 5)
    assert alone.low is not None
    assert alone.high is not None
    assert alone.low < 0.6 < alone.high
    assert (together.low, together.high) == pytest.approx((-0.2, 1.0))
    for few in (1, 4):
        assert kappa_with_interval(one, two, [str(n % few) for n in range(100)]) == (alone.value, None, None, few)
    assert kappa_with_interval(one, two, [str(n) for n in range(100)]) == alone


@pytest.mark.parametrize(
    ("scores", "positives", "expected"),
    [
        ([1, 2, 3, 4], [0, 0, 1, 1], 1.0),
        ([4, 3, 2, 1], [0, 0, 1, 1], 0.0),
        ([1, 3, 2, 4], [0, 0, 1, 1], 3 / 4),
        ([5, 5, 5], [0, 1, 0], 1 / 2),
        ([1, 2, 2, 3], [0, 1, 0, 1], (1 + 0.5 + 1 + 1) / 4),
        ([0, 0, 1], [1, 0, 0], (0.5 + 0) / 2),
    ],
)
def test_auc_counts_pairs_in_the_right_order_and_ties_by_half(
    scores: list[float], positives: list[int], expected: float
) -> None:
    assert auc(np.array(scores), np.array(positives, bool)) == pytest.approx(expected)


def test_the_calibration_error_is_the_weighted_gap_of_the_bins() -> None:
    chains = [(0.95, True), (0.97, True), (0.99, False), (0.41, False), (None, False)]
    gaps = 3 / 4 * abs((0.95 + 0.97 + 0.99) / 3 - 2 / 3) + 1 / 4 * 0.41
    assert expected_calibration_error(chains) == pytest.approx(gaps)


def test_gaps_cancel_within_a_bin_and_not_between_bins() -> None:
    low, high = 0.5 - 0.4 / BINS, 0.5 + 0.4 / BINS
    assert expected_calibration_error([(low, False), (high, True)]) == pytest.approx(0.0)
    assert expected_calibration_error([(0.25, True), (0.75, False)]) == pytest.approx(0.75)
    assert [expected_calibration_error([one]) for one in ((1.0, True), (1.0, False), (0.0, False))] == [0.0, 1.0, 0.0]


def test_confidence_that_is_as_often_right_as_it_says_has_hardly_an_error() -> None:
    draw = random.Random(3).random
    honest = [(confidence, draw() < confidence) for confidence in (draw() for _ in range(20_000))]
    boastful = [(min(1.0, confidence + 0.2), correct) for confidence, correct in honest]
    assert expected_calibration_error(honest) == pytest.approx(0.0, abs=0.02)
    assert expected_calibration_error(boastful) == pytest.approx(0.18, abs=0.02)


def test_without_confidence_there_is_no_calibration_error() -> None:
    assert expected_calibration_error([(None, True), (None, False)]) is None
    assert expected_calibration_error([]) is None


@pytest.mark.parametrize(
    ("count", "total", "low", "high"), [(8, 10, 0.4902, 0.9433), (3, 3, 0.4385, 1.0), (0, 4, 0.0, 0.4899)]
)
def test_the_interval_of_a_share_says_something_of_few_too(count: int, total: int, low: float, high: float) -> None:
    figure = share_with_interval(count, total)
    assert figure is not None
    assert figure == (count / total, pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4), total)
    assert share_with_interval(0, 0) is None


def test_the_interval_over_runs_is_students() -> None:
    figure = mean_over_runs([1.0, 2.0, 3.0, 4.0])
    assert figure is not None
    reach = 3.182 * (5 / 3) ** 0.5 / 2  # three degrees of freedom; the variance is 5/3
    assert figure == pytest.approx((2.5, 2.5 - reach, 2.5 + reach, 4))
    assert mean_over_runs([1.0]) is None
    assert mean_over_runs([]) is None


def test_students_quantile_falls_to_the_normal_ones() -> None:
    reaches = []
    for runs in (2, 11, 21, 22, 61, 2001):
        values = [(-1.0) ** number for number in range(runs)]
        figure = mean_over_runs(values)
        assert figure is not None
        reaches.append((figure.high - figure.value) / (np.std(values, ddof=1) / runs**0.5))
    assert reaches == pytest.approx([12.706, 2.228, 2.086, 2.080, 2.000, 1.961], abs=0.001)
