"""The file that holds labels: an SQLite database, created at the first write, shared by several processes.

Between two writes everything is in this one file (there is no write-ahead log beside it), so that a copy is complete.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from rechain.errors import InputError

APPLICATION = 0x7265636C
"""the application id of an SQLite file of labels ("recl")"""
VERSION = 5
EVENT = "seq, at, annotator, question, passages, entities, value, evidence, note, settles, undone_at"
CHANGE = "number, at, annotator, name, events"
_TABLES = (
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, annotator TEXT NOT NULL, question TEXT NOT NULL,
        passages TEXT NOT NULL, entities TEXT NOT NULL, value TEXT NOT NULL
            CHECK (value IN ('supported', 'partly', 'unsupported', 'yes', 'no', 'unsure')),
        evidence TEXT, note TEXT, settles INTEGER NOT NULL CHECK (settles IN (0, 1)), undone_at TEXT)""",
    "CREATE INDEX events_of_question ON events (question, seq)",
    "CREATE INDEX events_to_undo ON events (annotator, seq) WHERE undone_at IS NULL",
    """CREATE TABLE labels (
        question TEXT NOT NULL, passages TEXT NOT NULL, entities TEXT NOT NULL, annotator TEXT NOT NULL,
        settles INTEGER NOT NULL, mode TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES events (seq),
        PRIMARY KEY (question, passages, entities, annotator, settles)) WITHOUT ROWID""",
    "CREATE INDEX labels_of_annotator ON labels (annotator, mode, settles, question, seq)",
    "CREATE TABLE claims (question TEXT PRIMARY KEY, annotator TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE changes (
        number INTEGER PRIMARY KEY, at TEXT NOT NULL, annotator TEXT NOT NULL, name TEXT, events TEXT NOT NULL)""",
)
_MARKS = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
_CURRENT_LABELS = """SELECT question, passages, entities, annotator, settles,
    IIF(json_array_length(passages), 'pairs', 'answers'), MAX(seq)
    FROM events WHERE undone_at IS NULL GROUP BY question, passages, entities, annotator, settles"""
# Until version 4 candidate chains were labelled one by one. The right ones became the evidence that was picked; the
# table events_v4 keeps all labels as they were given.
_RIGHT_CHAINS = """SELECT *, CASE
    WHEN json_array_length(entities) = 0 AND json_array_length(passages) = 1 THEN
        json_object('shape', 'single', 'passages', json(passages))
    WHEN json_array_length(entities) = 0 THEN json_object('shape', 'parallel', 'passages', json(passages))
    WHEN entities LIKE '%""%' THEN json_object('passages', json(passages))
    ELSE json_object('passages', json(passages), 'links', json(entities)) END AS chain
    FROM events_v4 WHERE value = 'yes' AND seq IN (SELECT seq FROM labels_v4 WHERE mode = 'chains') ORDER BY seq"""
_UPDATES = {
    3: tuple(f"ALTER TABLE {table} DROP COLUMN digest" for table in ("events", "claims", "changes")),
    4: (
        *(f"DROP INDEX {name}" for name in ("events_of_question", "events_to_undo", "labels_of_annotator")),
        *(f"ALTER TABLE {table} RENAME TO {table}_v4" for table in ("events", "labels")),
        *_TABLES[:5],
        """INSERT INTO events SELECT seq, at, annotator, question, passages, entities, value, NULL, note, settles,
            undone_at FROM events_v4 WHERE json_array_length(passages) = 1 AND json_array_length(entities) = 2""",
        f"""INSERT INTO events SELECT MAX(seq), MAX(at), annotator, question, '[]', '[]', 'supported',
            json_group_array(json(chain)), MAX(note), settles, NULL FROM ({_RIGHT_CHAINS})
            GROUP BY question, annotator, settles""",
        "DROP TABLE labels_v4",
        f"INSERT INTO labels {_CURRENT_LABELS}",
        *_MARKS,
    ),
}
"""what makes a file of a version into one of the next"""
_DAMAGE_CODES = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WAIT_S = 30.0
"""how long a write waits for another process's: far longer than any takes, also on a slow network disk"""
_MAGIC = b"SQLite format 3\0"


class FullDiskError(InputError):
    """There is no room on the disk for labels."""


class Database:
    """One connection to the file, for all threads of this process; as long as there is no file, reads are empty."""

    def __init__(self, path: Path) -> None:
        """Open the file if it exists; raises InputError where it, or its folder, cannot be used."""
        self.path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._has_tables = False
        self._file: tuple[int, int] | None = None
        with self._one_sentence():
            self._check_place()
            self._opened()

    def rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows that a SELECT yields."""
        with self._lock, self._one_sentence():
            database = self._opened()
            return [] if database is None else database.execute(statement, values).fetchall()

    def state(self) -> tuple[int, int] | None:
        """Return what changes whenever something is written, by this process or another; None without a file."""
        with self._lock, self._one_sentence():
            database = self._opened()
            if database is None:
                return None
            ((others,),) = database.execute("PRAGMA data_version").fetchall()
            return int(others), database.total_changes

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; it is on the disk when this ends."""
        with self._lock, self._one_sentence():
            database = self._opened() or self._create_tables()
            with transaction(database):
                yield database

    @property
    def is_in_place(self) -> bool:
        """Whether the file is where it was opened, or may still be created there."""
        return self.path.parent.is_dir() if self._connection is None else _identity(self.path) == self._file

    def check(self) -> None:
        """Raise InputError if the file is damaged, as opening it does."""
        with self._lock, self._one_sentence():
            database = self._opened()
            self._refuse(None if database is None else _damage_of_file(database))

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._has_tables, self._file = None, False, None

    def _check_place(self) -> None:
        folder = self.path.parent
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder; name a file for the labels.")
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{self.path} is not a regular file; name another file for the labels.")
        if not folder.is_dir():
            raise InputError(f"{self.path} cannot be created: there is no folder {folder}.")
        if not os.access(folder, os.W_OK) or (self.path.exists() and not os.access(self.path, os.W_OK)):
            raise InputError(f"{self.path} cannot be written: it and its folder should allow it.")

    def _opened(self) -> sqlite3.Connection | None:
        """Return the connection, or None as long as nothing was written."""
        if self._connection is not None:
            if _identity(self.path) != self._file:
                raise InputError(
                    f"{self.path} was moved, removed or replaced while in use; put it back and start again."
                )
        elif self.path.exists():
            self._check_start()
            self._connect()
        if self._connection is not None and not self._has_tables:
            self._has_tables = self._check_content(self._connection)
        return self._connection if self._has_tables else None

    def _check_content(self, database: sqlite3.Connection) -> bool:
        """Return whether there are tables; raises InputError if the file is damaged."""
        version = _version(database, self.path)
        if version == 0:
            return False
        self._refuse(_damage_of_file(database))
        if version < VERSION:
            with transaction(database):
                if _version(database, self.path) == version:  # else another process has been faster
                    for statement in chain.from_iterable(_UPDATES[one] for one in range(version, VERSION)):
                        database.execute(statement)
        return True

    def _refuse(self, damage: str | None) -> None:
        if damage is not None:
            raise InputError(f"{self.path} is damaged ({damage}); put a backup in its place.")

    def _connect(self) -> sqlite3.Connection:
        database = connect(self.path)
        database.execute("PRAGMA synchronous = FULL")  # a label that was acknowledged survives a power cut
        self._file = _identity(self.path)
        self._connection = database
        return database

    def _create_tables(self) -> sqlite3.Connection:
        """Create the tables, unless another process just did."""
        database = self._connection or self._connect()
        with transaction(database):
            if not _version(database, self.path):
                for statement in (*_TABLES, *_MARKS):
                    database.execute(statement)
        self._has_tables = True
        return database

    def _check_start(self) -> None:
        with self.path.open("rb") as file:
            start = file.read(len(_MAGIC))
        if start not in (b"", _MAGIC):
            raise InputError(f"{self.path} is not a file of labels: it is not an SQLite database; name another file.")

    @contextmanager
    def _one_sentence(self) -> Iterator[None]:
        """Turn errors of SQLite and the system into one sentence with the file's name."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._refuse(_damage_of_error(error))
            kind = FullDiskError if is_full(error) else InputError
            raise kind(f"{self.path} cannot be read or written: {error}.") from error
        except OSError as error:
            kind = FullDiskError if error.errno in (ENOSPC, EDQUOT) else InputError
            raise kind(f"{self.path} cannot be read or written: {error.strerror}.") from error


def is_full(error: Exception) -> bool:
    """Return whether an error of SQLite is that the disk is full."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def connect(path: Path) -> sqlite3.Connection:
    """Open a database for all threads of this process, in which every transaction is begun and ended as one."""
    return sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Write all or nothing."""
    database.execute("BEGIN IMMEDIATE")  # takes the write lock now: two that read first and then write would both fail
    try:
        yield
        database.execute("COMMIT")
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _version(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables, 0 where there are none; raises InputError for a file of another program."""
    application, version, tables = (
        database.execute(statement).fetchone()[0]
        for statement in ("PRAGMA application_id", "PRAGMA user_version", "SELECT COUNT(*) FROM sqlite_master")
    )
    if application != APPLICATION and (application or version or tables):
        raise InputError(f"{path} is another program's database; name another file for the labels.")
    if version > VERSION:
        raise InputError(f"{path} was written by a newer rechain (its version is {version}); update rechain.")
    if version not in ((*_UPDATES, VERSION) if tables else (0,)):
        raise InputError(f"{path} is damaged (its version is {version}); put a backup in its place.")
    return int(version)


def _damage_of_file(database: sqlite3.Connection) -> str | None:
    """Return what SQLite reports as damaged, or None; it does not notice letters that have changed in a text."""
    message = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
    return None if message == "ok" else " ".join(message.split())


def _damage_of_error(error: sqlite3.Error | UnicodeDecodeError) -> str | None:
    """Return what an error reports as damaged, in one line, or None if it is about something else."""
    if isinstance(error, UnicodeDecodeError):
        return "some of its texts are not UTF-8"
    # Python's own errors have no code, as those of bytes that are not UTF-8; extended codes have it in the low byte.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return " ".join(str(error).split()) if code in _DAMAGE_CODES else None


def restore_labels(database: sqlite3.Connection, annotator: str) -> None:
    """Derive the current labels of an annotator from the log of events."""
    database.execute("DELETE FROM labels WHERE annotator = ?", (annotator,))
    database.execute(f"INSERT INTO labels SELECT * FROM ({_CURRENT_LABELS}) WHERE annotator = ?", (annotator,))
