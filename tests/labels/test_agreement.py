"""Kappa by hand, its interval, and who differs on what."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.candidates.units import Unit
from rechain.labels.agreement import agreements, cohens_kappa, decided, doubts, kappa_with_interval
from rechain.labels.store import Label

Said = Callable[..., Label]
VALUES = st.lists(st.tuples(*[st.sampled_from(["yes", "no", "unsure"])] * 2), min_size=1, max_size=30)


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


def test_kappa_is_not_defined_without_items_or_where_chance_is_certain() -> None:
    assert cohens_kappa([], []) is None
    assert cohens_kappa(["yes"] * 3, ["yes"] * 3) is None
    assert kappa_with_interval([], [], []) is None
    assert kappa_with_interval(["no"], ["no"], ["q"]) is None


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


def test_the_interval_is_quick_for_many_questions() -> None:
    one, two = ["yes", "no", "unsure"] * 6000, ["yes", "no", "no"] * 6000
    start = time.perf_counter()
    kappa_with_interval(one, two, [str(n // 3) for n in range(18000)])
    assert time.perf_counter() - start < 3


def test_every_two_annotators_with_common_units_are_compared(said: Said) -> None:
    chain = Unit(question="q", passages=("1", "2"), entities=("a",))
    labels = [
        *(said("anna", "q", n, value) for n, value in enumerate(["yes", "yes", "no", "no"])),
        *(said("bob", "r" if n == 9 else "q", n, value) for n, value in [(0, "yes"), (1, "no"), (2, "no"), (9, "no")]),
        said("bob", "q", 3, "no", settles=True),
        said("eve", "elsewhere", 1),
        *(Label(annotator=name, unit=chain, value="yes") for name in ("anna", "eve")),
    ]
    pairs, chains = agreements(labels)
    assert pairs[:5] == ("pairs", "anna", "bob", 3, 1)
    assert pairs.equal == pytest.approx(2 / 3)
    assert pairs.kappa is not None
    assert pairs.kappa.value == pytest.approx(0.4)
    assert chains == ("chains", "anna", "eve", 1, 1, 1.0, None)


@pytest.mark.parametrize(
    ("values", "settling", "decision"),
    [
        (["yes"], [], "yes"),
        (["no", "no"], [], "no"),
        (["yes", "no"], [], None),
        (["yes", "unsure"], [], None),
        (["unsure"], [], None),
        (["yes", "no"], ["no"], "no"),
        (["no", "no"], ["yes"], "yes"),
        (["yes", "yes"], ["unsure"], None),
        (["yes", "no"], ["no", "yes"], "yes"),
        ([], [], None),
    ],
)
def test_what_is_decided_of_a_unit(said: Said, values: list[str], settling: list[str], decision: str | None) -> None:
    labels = [said(f"annotator {n}", "q", 1, value) for n, value in enumerate(values)]
    labels += [said(f"judge {n}", "q", 1, value, settles=True) for n, value in enumerate(settling)]
    assert decided(labels) == decision
    assert [one.is_open for one in doubts(labels) if one.is_open] == [True] * bool(values and decision is None)


def test_units_in_doubt_and_how_that_was_settled(said: Said) -> None:
    same = [said("anna", "q", 1), said("bob", "q", 1)]
    open_ones = [said("anna", "q", 2), said("bob", "q", 2, "unsure")]
    closed = [said("anna", "q", 3), said("bob", "q", 3, "no")]
    settled = [said("eve", "q", 3, "no", settles=True), said("anna", "q", 3, "yes", settles=True)]
    alone = [said("anna", "q", 4, "unsure")]
    again = [said("anna", "q", 5), said("anna", "q", 5, "unsure", settles=True)]
    found = doubts([*same, *open_ones, *closed, *settled, *alone, *again])
    assert [(one.unit, one.labels, one.settled, one.is_open, one.differs) for one in found] == [
        (open_ones[0].unit, open_ones, None, True, True),
        (closed[0].unit, closed, settled[1], False, True),
        (alone[0].unit, alone, None, True, False),
        (again[0].unit, again[:1], again[1], True, False),
    ]
