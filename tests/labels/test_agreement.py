"""What labels decide, who differs on what, how far annotators agree, and the state of each question."""

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rechain.labels.agreement import STATES, Status, agreements, decided, doubts, overall, statuses
from rechain.labels.store import Label, LabelStore

Said = Callable[..., Label]


def test_every_two_annotators_with_common_units_are_compared(store: LabelStore, said: Said, judged: Said) -> None:
    labels = [
        *(said("anna", "q", n, value) for n, value in enumerate(["yes", "yes", "no", "no"])),
        *(said("bob", "r" if n == 9 else "q", n, value) for n, value in [(0, "yes"), (1, "no"), (2, "no"), (9, "no")]),
        said("bob", "q", 3, "no", settles=True),
        said("eve", "elsewhere", 1),
        *(judged(name, "q", "supported", "1", last) for name, last in (("anna", "2"), ("eve", "3"))),
        *(judged(name, "r", "unsupported") for name in ("anna", "eve")),
    ]
    store.add(labels)
    answers, pairs = agreements(store.common())
    assert pairs[:5] == ("pairs", "anna", "bob", 3, 1)
    assert pairs.equal == pytest.approx(2 / 3)
    assert pairs.kappa is not None
    assert pairs.kappa.value == pytest.approx(0.4)
    assert pairs.overlap is None
    assert answers[:6] == ("answers", "anna", "eve", 2, 2, 1.0)
    assert answers.overlap == pytest.approx(1 / 3)  # of the one question for which anything was picked


def test_annotators_who_pick_other_evidence_differ(store: LabelStore, judged: Said) -> None:
    one, other = judged("anna", "q", "supported", "1", "2"), judged("bob", "q", "supported", "2", "1")
    beside = [judged(name, "r", "partly", *names, shape="parallel") for name, names in (("anna", "12"), ("bob", "21"))]
    store.add([one, other, *beside])
    assert decided([one, other]) is None
    assert decided(beside) == beside[0]  # what is side by side has no order
    assert store.doubtful_units() == [(one.unit, True)]
    store.add([judged("eve", "q", "supported", "2", "1", settles=True)])
    assert store.doubtful_units() == [(one.unit, False)]


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
    label = decided(labels)
    assert (label and label.value) == decision
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
        assert store.doubtful_units() == [(one.unit, one.is_open) for one in expected]
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
            ("pairs", one.annotator, two.annotator, one.unit.question, one.value, two.value, None, None)
            for one, two in product(own, own)
            if one.unit == two.unit and one.annotator < two.annotator
        )
        assert {tuple(row[:-1]): row.units for row in store.common()} == pairs


Said = Callable[..., Label]


@pytest.fixture
def filled(store: LabelStore, said: Said) -> LabelStore:
    """Of q1 one unit of three is in doubt, of q2 none, of q3 one was settled."""
    store.add([said("anna", "q1", n) for n in (1, 2)] + [said("bob", "q1", 2, "no"), said("bob", "q1", 3, "no")])
    store.add([said("anna", "q2", 1)])
    store.add([said("anna", "q3", 1), said("bob", "q3", 1, "no"), said("eve", "q3", 1, "no", settles=True)])
    return store


def test_questions_have_the_labels_that_hold(filled: LabelStore) -> None:
    found = statuses(filled)
    assert found["q1"] == Status({"anna": 2, "bob": 2}, 3, 1)
    assert found["q2"] == Status({"anna": 1}, 1, 0)
    assert found["q3"] == Status({"anna": 1, "bob": 1}, 1, 0)
    assert "q4" not in found


def test_all_together_are_summed_over_the_questions_that_are_served(filled: LabelStore) -> None:
    found = overall(statuses(filled), ["q1", "q3", "q4"])
    assert (found.questions, found.labelled, found.units, found.decided) == (3, 2, 4, 3)
    assert found.share_decided == 0.75
    assert overall({}, []).share_decided == 0.0


@pytest.mark.parametrize(
    ("question", "annotator", "states"),
    [
        ("q1", None, ["labelled", "in doubt"]),
        ("q2", None, ["labelled", "without doubt"]),
        ("q2", "bob", ["not labelled"]),
        ("q1", "bob", ["labelled", "in doubt"]),
        ("q4", None, ["not labelled"]),
    ],
)
def test_a_question_is_in_its_states(
    filled: LabelStore, question: str, annotator: str | None, states: list[str]
) -> None:
    status = statuses(filled).get(question, Status())
    assert [state for state in STATES if status.is_in(state, annotator)] == states


def test_counts_follow_a_new_name_and_a_removal(filled: LabelStore) -> None:
    assert statuses(filled)["q1"].labels == {"anna": 2, "bob": 2}
    filled.rename("bob", "anna")
    assert statuses(filled)["q1"] == Status({"anna": 3}, 3, 0)
    filled.remove("anna")
    assert [name for name, status in statuses(filled).items() if status.labels] == []
