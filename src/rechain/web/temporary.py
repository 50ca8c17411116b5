"""A database that lives as long as the server, for all its threads and processes: readers wait for nobody, one writes.

It is a file, so that memory does not grow with the questions. SQLite's own temporary files belong to one connection
alone, and with one connection a slow search would hold all others.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import RLock
from typing import Any
from weakref import finalize

_WAIT_S = 30.0
"""how long a statement waits for a lock; with a write-ahead log hardly any does"""


class DatabaseReader:
    """Reads a database, in any number of threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        """connections that no thread reads from just now; there are never more than threads that read at once"""

    def read(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a SELECT, as of the last transaction that has ended."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            return connection.execute(query, values).fetchall()
        finally:
            self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_WAIT_S, check_same_thread=False, isolation_level=None)


class TemporaryDatabase(DatabaseReader):
    """An SQLite database in a folder of its own, which is removed with the object or when Python ends."""

    def __init__(self, schema: str) -> None:
        folder = mkdtemp(prefix="rechain-")
        super().__init__(Path(folder) / "index.sqlite")
        self._writing = RLock()
        self._writer = self._connect()
        # A write-ahead log lets threads read what was there while one writes. Nothing need survive the process.
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA synchronous = OFF")
        self._writer.executescript(schema)
        self.close = finalize(self, _remove, folder, self._writer, self._idle)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")


def _remove(folder: str, writer: sqlite3.Connection, readers: list[sqlite3.Connection]) -> None:
    for connection in (writer, *readers):
        connection.close()
    rmtree(folder, ignore_errors=True)
