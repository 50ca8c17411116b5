"""The file that holds labels: an SQLite database, created at the first write, shared by several processes.

Between two writes everything is in this one file (there is no write-ahead log beside it), so that a copy is complete.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from rechain.errors import InputError

APPLICATION = 0x7265636C
"""marks an SQLite file as one of labels ("recl")"""
VERSION = 1
_WAIT_S = 30.0
"""how long a write waits for another process's: far longer than any takes, also on a slow network disk"""
_MAGIC = b"SQLite format 3\0"
_SCHEMA = (
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, annotator TEXT NOT NULL, question TEXT NOT NULL,
        passages TEXT NOT NULL, entities TEXT NOT NULL, value TEXT NOT NULL CHECK (value IN ('yes', 'no', 'unsure')),
        note TEXT, settles INTEGER NOT NULL CHECK (settles IN (0, 1)), undone_at TEXT)""",
    "CREATE INDEX events_of_question ON events (question, seq)",
    "CREATE INDEX events_to_undo ON events (annotator, seq) WHERE undone_at IS NULL",
    """CREATE TABLE labels (
        question TEXT NOT NULL, passages TEXT NOT NULL, entities TEXT NOT NULL, annotator TEXT NOT NULL,
        settles INTEGER NOT NULL, mode TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES events (seq),
        PRIMARY KEY (question, passages, entities, annotator, settles)) WITHOUT ROWID""",
    "CREATE INDEX labels_of_annotator ON labels (annotator, mode, settles, question, seq)",
    "CREATE TABLE claims (question TEXT PRIMARY KEY, annotator TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


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

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; it is on the disk when this ends."""
        with self._lock, self._one_sentence():
            database = self._opened() or self._create_tables()
            with _transaction(database):
                yield database

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
            raise InputError(f"{self.path} is no file that could hold labels; name another.")
        if not folder.is_dir():
            raise InputError(f"{self.path} cannot be made: there is no folder {folder}.")
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
            self._has_tables = _check_kind(self._connection, self.path)
        return self._connection if self._has_tables else None

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA synchronous = FULL")  # a label that was acknowledged survives a power cut
        self._file = _identity(self.path)
        self._connection = database
        return database

    def _create_tables(self) -> sqlite3.Connection:
        """Create the tables, unless another process just did."""
        database = self._connection or self._connect()
        with _transaction(database):
            if not _check_kind(database, self.path):
                for statement in _SCHEMA:
                    database.execute(statement)
        self._has_tables = True
        return database

    def _check_start(self) -> None:
        with self.path.open("rb") as file:
            start = file.read(len(_MAGIC))
        if start not in (b"", _MAGIC):
            raise InputError(f"{self.path} is no file of labels: it is not an SQLite database; name another file.")

    @contextmanager
    def _one_sentence(self) -> Iterator[None]:
        """Turn errors of SQLite and the system into one sentence with the file's name."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(f"{self.path} cannot be read or written: {what}.") from error


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
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


def _check_kind(database: sqlite3.Connection, path: Path) -> bool:
    """Return whether the tables exist; raises InputError for a file of another program or of a newer version."""
    application, version, tables = (
        database.execute(statement).fetchone()[0]
        for statement in ("PRAGMA application_id", "PRAGMA user_version", "SELECT COUNT(*) FROM sqlite_master")
    )
    if application != APPLICATION and (application or version or tables):
        raise InputError(f"{path} is another program's database; name another file for the labels.")
    if version > VERSION:
        raise InputError(f"{path} was written by a newer rechain (its version is {version}); update rechain.")
    return bool(version)
