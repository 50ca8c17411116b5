"""How far labels are, of each question and of all."""

from collections.abc import Callable

import pytest

from rechain.labels.status import STATES, Status, overall, statuses
from rechain.labels.store import Label, LabelStore

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
