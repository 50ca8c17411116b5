"""Labels are written at once, kept for good, and taken back one by one."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rechain.errors import InputError, RechainError
from rechain.labels.database import restore_labels
from rechain.labels.store import Label, LabelStore, checked_annotator
from rechain.text.label_units import Unit

Said = Callable[..., Label]


def log_of(store: LabelStore, question: str) -> list[tuple[str, str, str, bool, bool]]:
    """Return the events of a question: annotator, passages, value, whether it settles and whether it was undone."""
    statement = "SELECT annotator, passages, value, settles, undone_at FROM events WHERE question = ? ORDER BY seq"
    with sqlite3.connect(store.path) as database:
        rows = database.execute(statement, (question,)).fetchall()
    return [(*row[:3], bool(row[3]), row[4] is not None) for row in rows]


def event(label: Label, is_undone: bool = False) -> tuple[str, str, str, bool, bool]:
    """Return what the log should hold of a label."""
    return label.annotator, f'["{label.unit.passages[0]}"]', label.value, label.settles, is_undone


def check_current(store: LabelStore) -> None:
    """Check that the labels that hold follow from the log of events."""
    labels = list(store.all())
    store.close()
    with sqlite3.connect(store.path) as database:
        for (name,) in database.execute("SELECT DISTINCT annotator FROM events").fetchall():
            restore_labels(database, name)
    database.close()
    assert list(store.all()) == labels


def test_there_is_no_file_before_the_first_write(store: LabelStore, said: Said) -> None:
    assert list(store.all()) == store.of_question("q") == store.annotators() == []
    assert store.undo("anna") is None
    assert (store.claims(), store.release("anna"), store.latest("anna", "pairs")) == ({}, [], {})
    store.add([])
    assert not store.path.exists()
    store.add([said("anna", "q", 1)])
    assert store.path.exists()


def test_labels_are_read_back_as_they_were_given(store: LabelStore, said: Said, judged: Said) -> None:
    given = [
        said("anna", "q", 1, "no", note="not\0 <b>said</b> \u202e"),
        judged("bob", "q", "partly", "p 1", "ü\n", settles=True),
        judged("bob", "q", "supported", "2", "1", shape="graph"),
        said("anna", "r", 1),
    ]
    store.add(given)
    store.close()
    again = LabelStore(store.path)
    assert list(again.all()) == given
    assert again.of_question("q") == given[:3]
    assert again.annotators() == ["anna", "bob"]
    assert again.questions() == {"q", "r"}


@pytest.mark.parametrize(
    ("value", "passages", "message"),
    [
        ("yes", "1", "answers are labelled supported or partly or unsupported or unsure"),
        ("supported", "", "'supported' needs the passages that support the answer"),
        ("partly", "", "'partly' needs the passages"),
    ],
)
def test_a_verdict_fits_its_evidence(judged: Said, value: str, passages: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        judged("anna", "q", value, *passages)


def test_a_pair_has_no_verdict_and_no_evidence(said: Said) -> None:
    for others in ({"value": "supported"}, {"evidence": [{"passages": ["1"]}]}):
        with pytest.raises(ValidationError, match="pairs "):
            said("anna", "q", 1, **others)


def test_the_newest_label_of_a_unit_holds_and_the_log_keeps_all(store: LabelStore, said: Said) -> None:
    first, other, second = said("anna", "q", 1, "no"), said("bob", "q", 1), said("anna", "q", 1, "yes")
    settling = said("anna", "q", 1, "no", settles=True)
    for label in (first, other, second, settling):
        store.add([label])
    assert store.of_question("q") == [other, second, settling]
    assert log_of(store, "q") == [event(label) for label in (first, other, second, settling)]


def test_undo_goes_back_label_by_label(store: LabelStore, said: Said) -> None:
    first, second, third = said("anna", "q", 1, "no"), said("anna", "q", 1, "yes"), said("anna", "r", 1, settles=True)
    store.add([first, said("bob", "q", 1), second])
    store.add([third])
    assert store.undo("anna") == third
    assert store.undo("anna") == second
    assert first in store.of_question("q")
    assert store.undo("anna") == first
    assert store.undo("anna") is None
    assert [label.annotator for label in store.all()] == ["bob"]
    assert [is_undone for *_, is_undone in log_of(store, "q")] == [True, False, True]


def test_all_or_nothing_is_written(store: LabelStore, said: Said) -> None:
    store.add([said("anna", "q", 1)])
    bad = said("anna", "q", 3).model_copy(update={"value": "perhaps"})
    with pytest.raises(InputError):
        store.add([said("anna", "q", 2), bad])
    assert len(store.of_question("q")) == 1
    store.add([said("anna", "q", 2)])


def test_a_name_is_changed_and_the_history_tells_the_old_one(store: LabelStore, said: Said) -> None:
    store.add([said("ana", "q", 1, "no"), said("bob", "q", 1), said("ana", "q", 2)])
    store.undo("ana")
    store.claim("q", "ana")
    assert store.rename("ana", " Anna ") == 1
    assert [(one.annotator, one.value) for one in store.of_question("q")] == [("Anna", "no"), ("bob", "yes")]
    assert (store.annotators(), store.claims()) == (["Anna", "bob"], {"q": "Anna"})
    assert [(one.number, one.label.annotator, one.undone_at is None) for one in store.history()] == [
        (1, "Anna", True),
        (2, "bob", True),
        (3, "Anna", False),
    ]
    (change,) = store.changes()
    assert (change.annotator, change.name, change.events) == ("ana", "Anna", [1, 3])
    check_current(store)


def test_of_two_who_become_one_the_newest_label_holds_and_settling_stays_in_order(
    store: LabelStore, said: Said
) -> None:
    store.add([said("ada", "q", 1, "no"), said("Ada", "q", 1, "yes"), said("ada", "q", 2)])
    store.add([said("ada", "q", 3, settles=True), said("bob", "q", 3, "no", settles=True)])
    assert store.rename("ada", "Ada") == 3
    held = [(one.annotator, one.unit.passages[0], one.value) for one in store.of_question("q")]
    assert held == [("Ada", "1", "yes"), ("Ada", "2", "yes"), ("Ada", "3", "yes"), ("bob", "3", "no")]
    check_current(store)


def test_who_is_removed_counts_no_more_and_stays_in_the_history(store: LabelStore, said: Said) -> None:
    store.add([said("eve", "q", 1), said("bob", "q", 1, "no"), said("eve", "q", 2)])
    store.claim("r", "eve")
    assert store.remove("eve") == 2
    assert [one.annotator for one in store.all()] == ["bob"]
    assert (store.annotators(), store.claims(), store.undo("eve")) == (["bob"], {}, None)
    assert [(one.label.annotator, one.undone_at is None) for one in store.history()] == [
        ("eve", False),
        ("bob", True),
        ("eve", False),
    ]
    assert [(one.annotator, one.name, one.events) for one in store.changes()] == [("eve", None, [1, 3])]
    store.add([said("eve", "q", 1, "no")])  # and may come back
    assert store.annotators() == ["bob", "eve"]
    check_current(store)


def test_strangers_and_names_that_are_none_change_nothing(store: LabelStore, said: Said) -> None:
    store.add([said("anna", "q", 1)])
    for change in (
        lambda: store.rename("eve", "Eve"),
        lambda: store.rename("anna", "anna"),
        lambda: store.rename("anna", "\u202e"),
        lambda: store.remove("eve"),
    ):
        with pytest.raises(RechainError):
            change()
    assert (store.annotators(), store.count_changes()) == (["anna"], 0)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["anna", "bob"]),
            st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["yes", "no", "unsure"]), st.booleans()), max_size=3),
        ),
        st.sampled_from(["anna", "bob"]),
    ),
    max_size=25,
)


@settings(max_examples=25)
@given(OPERATIONS)
def test_what_holds_is_what_a_replay_of_the_log_says(
    operations: list[str | tuple[str, list[tuple[int, str, bool]]]],
) -> None:
    log: list[Label] = []
    with TemporaryDirectory() as folder, LabelStore(Path(folder) / "labels") as store:
        for operation in operations:
            if isinstance(operation, str):
                own = [label for label in log if label.annotator == operation]
                assert store.undo(operation) == (own[-1] if own else None)
                log = [label for label in log if not own or label is not own[-1]]
            else:
                name, given = operation
                units = [Unit(question="q", passages=(str(n),), entities=("a", "b")) for n, _, _ in given]
                labels = [
                    Label.model_validate({"annotator": name, "unit": unit, "value": value, "settles": settles})
                    for unit, (_, value, settles) in zip(units, given, strict=True)
                ]
                store.add(labels)
                log += labels
        current = {(label.annotator, label.unit, label.settles): label for label in log}
        found = store.of_question("q")
        assert {(label.annotator, label.unit, label.settles): label for label in found} == current
        assert len(found) == len(current)
        held = log_of(store, "q") if store.path.exists() else []
        assert [one for one in held if not one[-1]] == list(map(event, log))


WRITER = """
import sys
from rechain.labels.database import restore_labels
from rechain.labels.store import Label, LabelStore
from rechain.text.label_units import Unit
path, name, count = sys.argv[1:]
store = LabelStore(path)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(count)):
    unit = Unit(question="q", passages=(f"{name}{number}",), entities=("a", "b"))
    store.add([Label(annotator=name, unit=unit, value="yes")])
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def begin(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path, count = tmp_path / "labels", 40
    processes = [writer(path, name, count) for name in ("anna", "bob")]
    for process in processes:
        begin(process)
    assert [process.communicate()[0].count("\n") for process in processes] == [count, count]
    assert len(list(LabelStore(path).all())) == 2 * count


def test_threads_that_write_at_once_lose_nothing(store: LabelStore, said: Said) -> None:
    def work(name: str) -> None:
        for number in range(10):
            store.add([said(name, "q", number)])
            assert store.claim(f"{name}{number}", name) == name

    threads = [Thread(target=work, args=[name]) for name in ("anna", "bob", "eve")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(list(store.all())), len(store.claims())) == (30, 30)


def test_a_writer_that_is_killed_loses_nothing_it_was_told_is_written(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    process = writer(path, "anna", 100_000)
    begin(process)
    assert process.stdout is not None
    for _ in range(25):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    told = 25 + process.communicate()[0].count("\n")
    store = LabelStore(path)
    kept = {label.unit.passages[0] for label in store.all()}
    assert kept >= {f"anna{number}" for number in range(told)}
    assert len(kept) <= told + 1
    assert store.undo("anna") is not None


def test_a_claim_is_given_once_and_given_back_unless_begun(store: LabelStore, said: Said) -> None:
    assert store.claim("q", "anna") == "anna"
    assert store.claim("q", "bob") == "anna"
    assert store.claim("r", "anna") == "anna"
    store.add([said("anna", "q", 1)])
    assert store.annotators() == ["anna"]
    assert store.release("anna") == ["r"]
    assert store.claims() == {"q": "anna"}
    assert store.claim("r", "bob") == "bob"


def test_labels_are_counted_anew_after_the_file_was_closed(store: LabelStore, said: Said) -> None:
    store.add([said("anna", "q", 1)])
    store.close()
    assert store.count_units() == {"q": 1}
    store.close()
    with LabelStore(store.path) as other:
        other.add([said("anna", "r", 1)])
    assert store.count_units() == {"q": 1, "r": 1}


def make_database(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def test_files_that_are_none_of_labels_get_one_sentence(tmp_path: Path, store: LabelStore, said: Said) -> None:
    store.add([said("anna", "q", 1)])
    store.close()
    newer, text, other, cut = (tmp_path / name for name in ("newer", "text", "other", "cut"))
    newer.write_bytes(store.path.read_bytes())
    make_database(newer, "PRAGMA user_version = 99")
    text.write_text('{"id": "q1"}')
    make_database(other, "CREATE TABLE mine (x)")
    cut.write_bytes(store.path.read_bytes()[:5000])
    problems = {
        newer: "newer rechain",
        text: "not an SQLite database",
        other: "another program's",
        cut: "damaged",
        tmp_path: "is a folder",
        tmp_path / "missing" / "labels": "there is no folder",
        text / "labels": "there is no folder",
        Path("/dev/null"): "is not a regular file",
    }
    for path, what in problems.items():
        with pytest.raises(InputError) as failure:
            list(LabelStore(path).all())
        assert str(failure.value).startswith(f"{path} ")
        assert what in str(failure.value)
        assert "\n" not in str(failure.value)
    assert text.read_text() == '{"id": "q1"}'


def test_a_place_that_cannot_be_written_gets_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rechain.labels.database.os.access", lambda *_: False)  # root may write anywhere
    with pytest.raises(InputError, match="cannot be written: it and its folder should allow it"):
        LabelStore(tmp_path / "labels")


def test_an_empty_file_becomes_one_of_labels(tmp_path: Path, said: Said) -> None:
    path = tmp_path / "labels"
    path.touch()
    store = LabelStore(path)
    assert list(store.all()) == []
    store.add([said("anna", "q", 1)])
    assert len(list(LabelStore(path).all())) == 1


def test_a_file_that_another_process_makes_is_seen(store: LabelStore, said: Said) -> None:
    assert list(store.all()) == []
    LabelStore(store.path).add([said("anna", "q", 1)])
    assert len(list(store.all())) == 1


def test_a_file_that_is_taken_away_is_not_written_on(store: LabelStore, said: Said) -> None:
    store.add([said("anna", "q", 1)])
    store.path.rename(store.path.with_name("elsewhere"))
    with pytest.raises(InputError, match="moved, removed or replaced"):
        store.add([said("anna", "q", 2)])


def test_the_file_is_marked_and_synced(store: LabelStore, said: Said) -> None:
    store.add([said("anna", "q", 1, note="a")])
    database = sqlite3.connect(store.path)
    told = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "user_version")]
    assert told == ["delete", 5]
    assert database.execute("PRAGMA application_id").fetchone()[0].to_bytes(4, "big") == b"recl"
    at, passages = database.execute("SELECT at, passages FROM events").fetchone()
    assert at.endswith("+00:00")
    assert json.loads(passages) == ["1"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\nb", "a\0", "\u202eanna"])
def test_a_bad_name_is_none_of_an_annotator(said: Said, name: str) -> None:
    with pytest.raises(ValidationError):
        said(name, "q", 1)
    with pytest.raises(RechainError, match="an annotator's name has 1 to 80 visible characters"):
        checked_annotator(name)


def test_names_and_notes_are_tidied(said: Said) -> None:
    assert checked_annotator(" Žofie O'Neil ") == said(" Žofie O'Neil ", "q", 1).annotator == "Žofie O'Neil"
    assert said("anna", "q", 1, note="  ").note is None
    assert said("anna", "q", 1, at="2024-01-01T01:00:00+01:00").at.isoformat() == "2024-01-01T00:00:00+00:00"
    with pytest.raises(ValidationError):
        said("anna", "q", 1, note="x" * 2001)


def test_a_copy_of_the_file_is_whole_while_it_is_in_use(store: LabelStore, said: Said, tmp_path: Path) -> None:
    store.add([said("anna", "q", 1)])
    copied = tmp_path / "copy"
    copied.write_bytes(store.path.read_bytes())
    assert list(LabelStore(copied).all()) == list(store.all()) != []
