"""Damage to a file of labels is noticed or harmless, whichever byte it is; old files become new ones, or stay old."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rechain.errors import InputError
from rechain.labels.store import Label, LabelStore

Said = Callable[..., Label]

VERSION_1 = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, annotator TEXT NOT NULL, question TEXT NOT NULL,
    passages TEXT NOT NULL, entities TEXT NOT NULL, value TEXT NOT NULL CHECK (value IN ('yes', 'no', 'unsure')),
    note TEXT, settles INTEGER NOT NULL CHECK (settles IN (0, 1)), undone_at TEXT);
CREATE INDEX events_of_question ON events (question, seq);
CREATE INDEX events_to_undo ON events (annotator, seq) WHERE undone_at IS NULL;
CREATE TABLE labels (
    question TEXT NOT NULL, passages TEXT NOT NULL, entities TEXT NOT NULL, annotator TEXT NOT NULL,
    settles INTEGER NOT NULL, mode TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES events (seq),
    PRIMARY KEY (question, passages, entities, annotator, settles)) WITHOUT ROWID;
CREATE INDEX labels_of_annotator ON labels (annotator, mode, settles, question, seq);
CREATE TABLE claims (question TEXT PRIMARY KEY, annotator TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO events VALUES
    (1, '2026-01-01T00:00:00.000000+00:00', 'anna', 'q', '["1"]', '["a","b"]', 'no', 'ü', 0, NULL),
    (2, '2026-01-02T00:00:00.000000+00:00', 'anna', 'q', '["1"]', '["a","b"]', 'yes', NULL, 0, NULL),
    (3, '2026-01-03T00:00:00.000000+00:00', 'bob', 'q', '["1","2"]', '["a"]', 'yes', NULL, 1, NULL),
    (4, '2026-01-04T00:00:00.000000+00:00', 'bob', 'r', '["1"]', '["a","b"]', 'yes', NULL, 0, '2026-01-05T00:00:00');
INSERT INTO labels VALUES
    ('q', '["1"]', '["a","b"]', 'anna', 0, 'pairs', 2), ('q', '["1","2"]', '["a"]', 'bob', 1, 'chains', 3);
INSERT INTO claims VALUES ('q', 'anna', '2026-01-01T00:00:00.000000+00:00');
PRAGMA application_id = 1919247212;
PRAGMA user_version = 1;
"""


def state_of(store: LabelStore) -> tuple[Any, ...]:
    """Return all that a file of labels says."""
    lists = list(store.all()), store.tallies(), store.annotators()
    return *lists, store.claims(), store.questions(), store.latest("anna", "pairs")


@pytest.fixture
def filled(store: LabelStore, said: Said) -> LabelStore:
    """A file with labels of two annotators, some changed and undone, and claims; closed."""
    notes = ["some words " * (number % 4) for number in range(40)]
    store.add(
        [said(("anna", "bob")[place % 2], f"q{place // 4}", place, note=note) for place, note in enumerate(notes)]
    )
    store.add([said("anna", "q0", number, "no") for number in range(5)])
    store.undo("anna")
    for number in range(8):
        store.claim(f"q{number}", "anna")
    store.close()
    return store


def outcome_of(path: Path, state: tuple[Any, ...], label: Label) -> str:
    """Return whether damage is noticed, harmless, or neither."""
    try:
        with LabelStore(path) as store:
            if state_of(store) != state:
                return "not noticed"
            store.add([label])
            store.undo(label.annotator)
            store.check()
            return "harmless"
    except InputError as error:
        assert "\n" not in str(error)
        return "noticed"


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_noticed_or_harmless_wherever_it_is(
    filled: LabelStore, said: Said, tmp_path: Path, count: int
) -> None:
    state, data, random = state_of(filled), filled.path.read_bytes(), Random(14)
    filled.close()
    path = tmp_path / "damaged"
    places = [*range(16, 100, 6), *(random.randrange(len(data)) for _ in range(count))]  # the header, and anywhere
    outcomes = {}
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.randrange(8)
        path.write_bytes(damaged)
        outcomes[place] = outcome_of(path, state, said("eve", "q9", 1))
    assert set(outcomes.values()) == {"noticed", "harmless"}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE events SET value = 'no' WHERE seq = 2", "1 of its 45 events changed after they were written: event 2"),
        ("UPDATE events SET undone_at = 'now' WHERE seq < 9", "events 1, 2, 3, 4, 5 and others"),
        ("UPDATE events SET note = CAST(x'ff' AS TEXT) WHERE seq = 3", "not UTF-8"),
        ("UPDATE events SET note = x'00' WHERE seq = 3", "event 3"),
        ("UPDATE labels SET mode = 'chains' WHERE seq = 9", "which labels hold does not follow from its events"),
        ("DELETE FROM labels WHERE seq = 9", "which labels hold does not follow from its events"),
        ("DELETE FROM events WHERE seq = 45", "its last events are missing"),
        ("UPDATE claims SET annotator = 'bob' WHERE question = 'q1'", "who has claimed which question"),
        ("DROP INDEX labels_of_annotator", "its tables are not those of labels"),
        ("PRAGMA user_version = 0", "its version is 0"),
    ],
)
def test_the_sentence_says_what_is_damaged(filled: LabelStore, statement: str, message: str) -> None:
    with sqlite3.connect(filled.path) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(InputError) as failure:
        LabelStore(filled.path)
    assert message in str(failure.value)
    assert str(failure.value).startswith(f"{filled.path} is damaged (")
    assert "put a backup in its place" in str(failure.value)


def test_damage_that_comes_later_is_noticed_when_labels_are_read(filled: LabelStore) -> None:
    with LabelStore(filled.path) as store:
        assert store.of_question("q0")
        with sqlite3.connect(filled.path) as database:
            database.execute("UPDATE events SET value = 'unsure' WHERE question = 'q0'")
        database.close()
        for read in (
            store.check,
            lambda: store.of_question("q0"),
            lambda: list(store.all()),
            lambda: store.undo("anna"),
        ):
            with pytest.raises(InputError, match="changed after"):
                read()
        assert store.of_question("q3")


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"\xd9\xd5\x05\xf9 \xa1c\xd7" + b"\xff" * 9000, None])
def test_files_beside_it_do_no_harm(filled: LabelStore, said: Said, suffix: str, content: bytes | None) -> None:
    state = state_of(filled)
    filled.close()
    beside = filled.path.with_name(filled.path.name + suffix)
    if content is None:
        beside.mkdir()
    else:
        beside.write_bytes(content)
    assert outcome_of(filled.path, state, said("eve", "q9", 1)) in ("harmless", "noticed")


@pytest.mark.parametrize("size", [1, 15, 16, 99, 100, 4096, 4097, 20_000])
def test_a_file_that_is_cut_off_is_noticed(filled: LabelStore, said: Said, size: int) -> None:
    os.truncate(filled.path, size)
    assert outcome_of(filled.path, (), said("eve", "q9", 1)) == "noticed"


def test_a_file_of_version_1_gets_digests(tmp_path: Path) -> None:
    path = tmp_path / "old"
    with sqlite3.connect(path) as database:
        database.executescript(VERSION_1)
    database.close()
    with LabelStore(path) as store:
        assert [(one.annotator, one.value, one.unit.mode) for one in store.all()] == [
            ("anna", "yes", "pairs"),
            ("bob", "yes", "chains"),
        ]
        assert store.claims() == {"q": "anna"}
        assert (taken := store.undo("anna")) and taken.value == "yes"
        assert [one.note for one in store.of_question("q") if one.annotator == "anna"] == ["ü"]
        store.check()


def test_a_file_of_version_2_gets_a_table_of_changes(filled: LabelStore) -> None:
    before = state_of(filled)
    filled.close()
    with sqlite3.connect(filled.path) as database:
        database.executescript("DROP TABLE changes; PRAGMA user_version = 2")
    database.close()
    with LabelStore(filled.path) as store:
        assert (state_of(store), store.changes()) == (before, [])
        assert store.rename("anna", "Anna")
        store.check()


def test_a_change_of_annotators_that_is_tampered_with_is_noticed(filled: LabelStore) -> None:
    filled.rename("anna", "Anna")
    filled.close()
    with sqlite3.connect(filled.path) as database:
        database.execute("UPDATE changes SET annotator = 'eve'")
    database.close()
    with pytest.raises(InputError, match="which annotators were renamed or removed changed"):
        LabelStore(filled.path)


KILLED = """
import os, signal, sys
from rechain.labels import integrity
from rechain.labels.store import LabelStore
name = sys.argv[2]
after = getattr(integrity, name)
def killed(database):
    after(database)
    database.execute("PRAGMA cache_spill = 1")
    os.kill(os.getpid(), signal.SIGKILL)
setattr(integrity, name, killed)
LabelStore(sys.argv[1])
"""


@pytest.mark.parametrize("step", ["create_tables", "restore_labels"])
def test_a_migration_that_is_killed_is_done_by_the_next(tmp_path: Path, step: str) -> None:
    path = tmp_path / "old"
    with sqlite3.connect(path) as database:
        database.executescript(VERSION_1)
    database.close()
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path), step], check=False)
    assert ended.returncode == -signal.SIGKILL
    with LabelStore(path) as store:
        assert len(list(store.all())) == 2
        assert store.claims() == {"q": "anna"}


def test_a_damaged_file_of_version_1_is_not_migrated(tmp_path: Path) -> None:
    path = tmp_path / "old"
    with sqlite3.connect(path) as database:
        database.executescript(VERSION_1)
    database.close()
    data = path.read_bytes().replace(b"yes\x00", b"yas\x00").replace(b"bobq", b"bozq", 1)
    path.write_bytes(data)
    with pytest.raises(InputError, match="is damaged"):
        LabelStore(path)
    assert path.read_bytes() == data
