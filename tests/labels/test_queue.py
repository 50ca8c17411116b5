"""Which question comes next to whom."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from rechain.errors import RechainError
from rechain.labels.database import Database
from rechain.labels.queue import Queue
from rechain.labels.store import Label, LabelStore
from rechain.text.label_units import Unit, Value

Said = Callable[..., Label]
IDS = [f"q{number}" for number in range(6)]


def two_pairs(question: str, said: Mapping[Unit, Value]) -> Sequence[Unit]:
    pairs = [Unit(question=question, passages=(passage,), entities=("a", "b")) for passage in ("1", "2")]
    return [pair for pair in pairs if pair not in said]


def finish(store: LabelStore, said: Said, name: str, question: str) -> None:
    store.add([said(name, question, 1), said(name, question, 2)])


def test_without_overlap_every_question_has_one_annotator(store: LabelStore, said: Said) -> None:
    queue = Queue(store, 0)
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q0"
    assert queue.next_question("bob", "pairs", IDS, two_pairs) == "q1"
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q0"
    finish(store, said, "anna", "q0")
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q2"
    assert store.claims() == {"q0": "anna", "q1": "bob", "q2": "anna"}


def test_with_full_overlap_everybody_gets_everything(store: LabelStore, said: Said) -> None:
    queue = Queue(store, 1)
    finish(store, said, "anna", "q0")
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q1"
    assert queue.next_question("bob", "pairs", IDS, two_pairs) == "q0"
    assert store.claims() == {}


def test_the_share_that_comes_to_all_is_near_the_overlap_and_always_the_same(store: LabelStore) -> None:
    ids = [f"question {number}" for number in range(2000)]
    shared = set(filter(Queue(store, 0.25).is_shared, ids))
    assert len(shared) / len(ids) == pytest.approx(0.25, abs=0.03)
    assert shared <= set(filter(Queue(store, 0.5).is_shared, ids))
    assert set(filter(Queue(store, 0.25).is_shared, ids)) == shared


def test_a_question_is_left_only_when_all_units_are_labelled(store: LabelStore, said: Said) -> None:
    queue = Queue(store, 0)
    store.add([said("anna", "q0", 1), said("anna", "q0", 2, settles=True), said("bob", "q0", 2)])
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q0"
    store.add([said("anna", "q0", 2, "unsure")])
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q1"


def test_undo_brings_a_question_back(store: LabelStore, said: Said) -> None:
    queue = Queue(store, 0)
    finish(store, said, "anna", "q0")
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q1"
    store.undo("anna")
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q0"
    store.add([said("anna", "q0", 1, "no"), said("anna", "q0", 2, "no")])
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q1"
    store.undo("anna")
    assert queue.next_question("anna", "pairs", IDS, two_pairs) == "q0"


def test_pairs_and_answers_are_finished_apart(store: LabelStore, said: Said, judged: Said) -> None:
    queue = Queue(store, 0)
    finish(store, said, "anna", "q0")

    def answers(question: str, said: Mapping[Unit, Value]) -> Sequence[Unit]:
        return [] if Unit(question=question) in said else [Unit(question=question)]

    assert queue.next_question("anna", "answers", IDS[:1], answers) == "q0"
    store.add([judged("anna", "q0", "unsupported")])
    assert queue.next_question("anna", "answers", IDS[:1], answers) is None


def test_questions_without_units_are_passed_over_and_not_asked_again(store: LabelStore) -> None:
    asked: list[str] = []

    def waiting(question: str, said: Mapping[Unit, Value]) -> Sequence[Unit]:
        asked.append(question)
        return two_pairs(question, said) if question == "q3" else []

    queue = Queue(store, 0)
    assert [queue.next_question("anna", "pairs", IDS, waiting) for _ in range(3)] == ["q3"] * 3
    assert asked == IDS[:4]
    assert store.claims() == {"q3": "anna"}
    assert queue.next_question("anna", "pairs", IDS[:3], waiting) is None


def test_what_is_not_begun_is_given_back(store: LabelStore, said: Said) -> None:
    queue = Queue(store, 0)
    queue.next_question("anna", "pairs", IDS, two_pairs)
    assert store.release("anna") == ["q0"]
    assert queue.next_question("bob", "pairs", IDS, two_pairs) == "q0"
    store.add([said("bob", "q0", 1)])
    assert store.release("bob") == []


def test_progress_counts_labels_and_questions(store: LabelStore, said: Said) -> None:
    queue = Queue(store, 0)
    queue.next_question("anna", "pairs", IDS, two_pairs)
    queue.next_question("eve", "pairs", IDS, two_pairs)
    store.add([said("anna", "q0", 1), said("anna", "q0", 2, "no"), said("anna", "q4", 2), said("anna", "else", 2)])
    store.add([said("bob", "q0", 1, "unsure"), said("bob", "q0", 1, "no", settles=True)])
    told = [(p.annotator, dict(p.labels), p.begun, p.claimed) for p in queue.progress(IDS)]
    assert told == [("anna", {"yes": 2, "no": 1}, 2, 1), ("bob", {"unsure": 1, "settled": 1}, 1, 0), ("eve", {}, 0, 1)]


def test_what_two_finished_together_is_finished_once_they_are_one(store: LabelStore, said: Said) -> None:
    queue = Queue(store, 1)
    store.add([said("ada", "q0", 1), said("Ada", "q0", 2)])
    assert queue.next_question("Ada", "pairs", IDS, two_pairs) == "q0"
    store.rename("ada", "Ada")
    assert queue.next_question("Ada", "pairs", IDS, two_pairs) == "q1"


def test_the_next_question_needs_few_reads_however_many_are_finished(
    store: LabelStore, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"q{number}" for number in range(600)]
    store.add([said("anna", name, passage) for name in ids[:300] for passage in (1, 2)])
    queue = Queue(store, 0.2)
    assert queue.next_question("anna", "pairs", ids, two_pairs) == "q300"
    reads, calls = list[str](), list[str]()
    rows = Database.rows

    def counted_rows(self: Database, statement: str, *values: object) -> list[Any]:
        reads.append(statement)
        return rows(self, statement, *values)

    def counted_units(question: str, labels: Mapping[Unit, Value]) -> Sequence[Unit]:
        calls.append(question)
        return two_pairs(question, labels)

    monkeypatch.setattr(Database, "rows", counted_rows)
    assert queue.next_question("anna", "pairs", ids, counted_units) == "q300"
    assert (len(reads), calls) == (3, [])  # changes, claims and the latest events; no question is looked at again
    store.add([said("anna", "q7", 1, "no")])
    assert queue.next_question("anna", "pairs", ids, counted_units) == "q300"
    assert (len(reads), calls) == (7, ["q7"])  # and only that question whose labels changed


@pytest.mark.parametrize("overlap", [-0.1, 1.1, float("nan")])
def test_the_overlap_is_a_share(store: LabelStore, overlap: float) -> None:
    with pytest.raises(RechainError, match="the overlap is a share"):
        Queue(store, overlap)
