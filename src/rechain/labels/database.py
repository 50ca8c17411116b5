"""The file that holds labels: an SQLite database, created at the first write, shared by several processes.

Between two writes everything is in this one file (there is no write-ahead log beside it), so that a copy is complete.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from rechain.errors import InputError
from rechain.labels import integrity

_WAIT_S = 30.0
"""how long a write waits for another process's: far longer than any takes, also on a slow network disk"""
_MAGIC = b"SQLite format 3\0"


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
            with _transaction(database):
                yield database

    def check(self) -> None:
        """Raise InputError where something of the file is damaged, which opening it has checked as well."""
        with self._one_sentence():
            with self._lock:
                if self._opened() is None:
                    return
            # on a connection of its own, as it takes long and would hold all others
            with closing(self._new_connection()) as connection:
                self._refuse(integrity.find_damage(connection))

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
            self._has_tables = self._check_content(self._connection)
        return self._connection if self._has_tables else None

    def _check_content(self, database: sqlite3.Connection) -> bool:
        """Return whether there are tables; raises InputError where they are damaged."""
        version = _version(database, self.path)
        if version == 0:
            return False
        if version < integrity.VERSION:
            with _transaction(database):
                if _version(database, self.path) == version:  # no other process was faster
                    self._refuse(integrity.find_structural_damage(database))
                    integrity.migrate(database, version)
        self._refuse(integrity.find_damage(database))
        return True

    def _refuse(self, damage: str | None) -> None:
        if damage is not None:
            raise InputError(
                f"{self.path} is damaged ({damage}); put a backup in its place, or copy what is whole with "
                f"`rechain labels repair {self.path} NEW`."
            )

    def _connect(self) -> sqlite3.Connection:
        database = self._new_connection()
        database.execute("PRAGMA synchronous = FULL")  # a label that was acknowledged survives a power cut
        self._file = _identity(self.path)
        self._connection = database
        return database

    def _new_connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        integrity.prepare(connection)
        return connection

    def _create_tables(self) -> sqlite3.Connection:
        """Create the tables, unless another process just did."""
        database = self._connection or self._connect()
        with _transaction(database):
            if not _version(database, self.path):
                integrity.create_tables(database)
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
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._refuse(integrity.damage_of(error))
            raise InputError(f"{self.path} cannot be read or written: {error}.") from error
        except OSError as error:
            raise InputError(f"{self.path} cannot be read or written: {error.strerror}.") from error


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


def _version(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables, 0 where there are none; raises InputError for a file of another program."""
    application, version, tables = (
        database.execute(statement).fetchone()[0]
        for statement in ("PRAGMA application_id", "PRAGMA user_version", "SELECT COUNT(*) FROM sqlite_master")
    )
    if application != integrity.APPLICATION and (application or version or tables):
        raise InputError(f"{path} is another program's database; name another file for the labels.")
    if version > integrity.VERSION:
        raise InputError(f"{path} was written by a newer rechain (its version is {version}); update rechain.")
    if bool(version > 0) != bool(tables):
        raise InputError(f"{path} is damaged (its version is {version}); put a backup in its place.")
    return int(version)
