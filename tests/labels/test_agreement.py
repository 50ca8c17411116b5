"""How far annotators agree, what is decided, and who differs on what."""

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rechain.candidates.units import Unit
from rechain.labels.agreement import agreements, decided, doubts
from rechain.labels.store import Label, LabelStore

Said = Callable[..., Label]


def test_every_two_annotators_with_common_units_are_compared(store: LabelStore, said: Said) -> None:
    chain = Unit(question="q", passages=("1", "2"), entities=("a",))
    labels = [
        *(said("anna", "q", n, value) for n, value in enumerate(["yes", "yes", "no", "no"])),
        *(said("bob", "r" if n == 9 else "q", n, value) for n, value in [(0, "yes"), (1, "no"), (2, "no"), (9, "no")]),
        said("bob", "q", 3, "no", settles=True),
        said("eve", "elsewhere", 1),
        *(Label(annotator=name, unit=chain, value="yes") for name in ("anna", "eve")),
    ]
    store.add(labels)
    pairs, chains = agreements(store.common())
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


UNITS = st.tuples(st.sampled_from(["q", "r"]), st.integers(0, 2), st.sampled_from(["anna", "bob", "eve"]))
LABELS = st.lists(st.tuples(UNITS, st.sampled_from(["yes", "no", "unsure"]), st.booleans()), max_size=25)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LABELS)
def test_what_is_counted_in_the_file_is_what_its_labels_say(
    tmp_path_factory: pytest.TempPathFactory, said: Said, given_labels: list[Any]
) -> None:
    with LabelStore(tmp_path_factory.mktemp("counted") / "labels") as store:
        for (name, n, who), value, settles in given_labels:
            if value == "unsure" and n == 2:
                store.undo(who)
            store.add([said(who, name, n, value, settles=settles)])
            store.count_doubts()  # what is counted now must not be taken for what holds later
        labels = list(store.all())
        expected = doubts(labels)
        assert [(one.unit, one.is_open) for one in store.doubtful_units()] == [
            (one.unit, one.is_open) for one in expected
        ]
        counts = {name: (count, is_open) for name, count, is_open in store.count_doubts()}
        names = {one.unit.question for one in expected}
        assert counts == {
            name: (
                sum(one.unit.question == name for one in expected),
                sum(one.unit.question == name and one.is_open for one in expected),
            )
            for name in names
        }
        own = [label for label in labels if not label.settles]
        pairs = Counter(
            ("pairs", one.annotator, two.annotator, one.unit.question, one.value, two.value)
            for one, two in product(own, own)
            if one.unit == two.unit and one.annotator < two.annotator
        )
        assert {tuple(row[:-1]): row.units for row in store.common()} == pairs
