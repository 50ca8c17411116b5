"""Damage to a file of labels gets one sentence and never a traceback; files of the version before are updated."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from rechain.errors import InputError
from rechain.labels.store import Label, LabelStore
from rechain.schema import GoldChain

Said = Callable[..., Label]

VERSION_3 = """
ALTER TABLE events ADD COLUMN digest BLOB;
ALTER TABLE claims ADD COLUMN digest BLOB;
ALTER TABLE changes ADD COLUMN digest BLOB;
PRAGMA user_version = 3;
"""


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


def use(path: Path, label: Label) -> str | None:
    """Read and write everything; return the sentence of a file that is refused."""
    try:
        with LabelStore(path) as store:
            (
                list(store.history()),
                store.changes(),
                store.tallies(),
                store.annotators(),
                store.claims(),
                store.latest("anna", "pairs"),
            )
            store.add([label])
            store.undo(label.annotator)
    except InputError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(str(path))
        return str(error)
    return None


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_harmless_or_gets_one_sentence(
    filled: LabelStore, said: Said, tmp_path: Path, count: int
) -> None:
    data, random = filled.path.read_bytes(), Random(14)
    path = tmp_path / "damaged"
    places = [*range(16, 100, 6), *(random.randrange(len(data)) for _ in range(count))]  # the header, and anywhere
    refused = 0
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.randrange(8)
        path.write_bytes(damaged)
        refused += use(path, said("eve", "q9", 1)) is not None
    assert 0 < refused < len(places)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE events SET note = CAST(x'ff' AS TEXT) WHERE seq = 3", "is damaged (Could not decode to UTF-8"),
        ("UPDATE events SET note = x'00ff' WHERE seq = 3", "is damaged (event 3 cannot be read)"),
        ("UPDATE events SET entities = '[' WHERE seq = 3", "is damaged (event 3 cannot be read)"),
        ("DROP TABLE claims", "is damaged (no such table: claims)"),
        ("PRAGMA user_version = 0", "is damaged (its version is 0)"),
        ("PRAGMA user_version = 2", "is damaged (its version is 2)"),
    ],
)
def test_the_sentence_names_what_is_damaged(filled: LabelStore, said: Said, statement: str, message: str) -> None:
    with sqlite3.connect(filled.path) as database:
        database.execute(statement)
    database.close()
    sentence = use(filled.path, said("eve", "q9", 1))
    assert sentence
    assert message in sentence
    assert "put a backup in its place" in sentence


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"\xd9\xd5\x05\xf9 \xa1c\xd7" + b"\xff" * 9000, None])
def test_files_next_to_it_do_no_harm(filled: LabelStore, said: Said, suffix: str, content: bytes | None) -> None:
    before = list(filled.all())
    filled.close()
    other = filled.path.with_name(filled.path.name + suffix)
    if content is None:
        other.mkdir()
    else:
        other.write_bytes(content)
    use(filled.path, said("eve", "q9", 1))
    if content is None:
        other.rmdir()
    assert list(filled.all()) == before


@pytest.mark.parametrize("size", [1, 15, 16, 99, 100, 4096, 4097, 20_000])
def test_a_file_that_is_cut_off_is_noticed(filled: LabelStore, said: Said, size: int) -> None:
    os.truncate(filled.path, size)
    assert use(filled.path, said("eve", "q9", 1))


def test_a_file_of_version_3_is_updated(filled: LabelStore) -> None:
    before = list(filled.all())
    filled.close()
    with sqlite3.connect(filled.path) as database:
        database.executescript(VERSION_3)
    database.close()
    with LabelStore(filled.path) as store:
        assert list(store.all()) == before
        assert store.claim("q20", "bob") == "bob"
        assert store.rename("anna", "Anna")
    with sqlite3.connect(filled.path) as database:
        assert database.execute("PRAGMA user_version").fetchone()[0] == 5
    database.close()


VERSION_4 = """
CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, annotator TEXT NOT NULL,
    question TEXT NOT NULL, passages TEXT NOT NULL, entities TEXT NOT NULL, value TEXT NOT NULL, note TEXT,
    settles INTEGER NOT NULL, undone_at TEXT);
CREATE INDEX events_of_question ON events (question, seq);
CREATE INDEX events_to_undo ON events (annotator, seq) WHERE undone_at IS NULL;
CREATE TABLE labels (question TEXT NOT NULL, passages TEXT NOT NULL, entities TEXT NOT NULL, annotator TEXT NOT NULL,
    settles INTEGER NOT NULL, mode TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES events (seq),
    PRIMARY KEY (question, passages, entities, annotator, settles)) WITHOUT ROWID;
CREATE INDEX labels_of_annotator ON labels (annotator, mode, settles, question, seq);
CREATE TABLE claims (question TEXT PRIMARY KEY, annotator TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE changes (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, annotator TEXT NOT NULL, name TEXT, events TEXT NOT NULL);
PRAGMA application_id = 1919247212;
PRAGMA user_version = 4;
"""


def test_chains_that_were_labelled_right_become_picked_evidence(tmp_path: Path) -> None:
    at, path = "2026-01-01T00:00:00+00:00", tmp_path / "labels"
    given = [
        ("q1", '["1","2"]', '["x"]', "chains", "yes", 0),
        ("q1", '["3","4"]', '[""]', "chains", "yes", 0),
        ("q1", '["1","4"]', '["x"]', "chains", "no", 0),
        ("q2", '["6","5"]', "[]", "chains", "yes", 1),
        ("q3", '["5"]', "[]", "chains", "yes", 0),
        ("q3", '["1"]', '["a","b"]', "pairs", "no", 0),
        ("q4", '["1"]', "[]", "chains", "no", 0),
    ]
    with sqlite3.connect(path) as database:
        database.executescript(VERSION_4)
        for seq, (question, passages, entities, mode, value, settles) in enumerate(given, start=1):
            event = seq, at, "anna", question, passages, entities, value, None, settles, None
            database.execute(f"INSERT INTO events VALUES ({', '.join('?' * 10)})", event)
            held = question, passages, entities, "anna", settles, mode, seq
            database.execute("INSERT INTO labels VALUES (?, ?, ?, ?, ?, ?, ?)", held)
    database.close()
    with LabelStore(path) as store:
        found = [(one.unit.question, one.value, one.settles, one.evidence) for one in store.all()]
        assert found == [
            ("q1", "supported", False, (GoldChain(passages=["1", "2"], links=["x"]), GoldChain(passages=["3", "4"]))),
            ("q2", "supported", True, (GoldChain(shape="parallel", passages=["5", "6"]),)),
            ("q3", "supported", False, (GoldChain(shape="single", passages=["5"]),)),
            ("q3", "no", False, ()),
        ]
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT COUNT(*) FROM events_v4").fetchone() == (7,)
    database.close()
