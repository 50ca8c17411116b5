"""What lives as long as the server: a database in a temporary folder, and caches of bounded size."""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock, RLock
from typing import Any, Generic, TypeVar
from weakref import finalize

_WAIT_S = 30.0
"""how long a statement waits for a lock; with a write-ahead log hardly any does"""


class TemporaryDatabase:
    """An SQLite database in a folder of its own, which is removed with the object or when Python ends."""

    def __init__(self, schema: str) -> None:
        folder = mkdtemp(prefix="rechain-")
        self._path = Path(folder) / "index.sqlite"
        self._idle: list[sqlite3.Connection] = []
        """connections that no thread is reading from; there are never more than threads that read at once"""
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
        return sqlite3.connect(self._path, timeout=_WAIT_S, check_same_thread=False, isolation_level=None)


def _remove(folder: str, writer: sqlite3.Connection, readers: list[sqlite3.Connection]) -> None:
    for connection in (writer, *readers):
        connection.close()
    rmtree(folder, ignore_errors=True)


T = TypeVar("T")


class BoundedCache(Generic[T]):
    """Values by key, of limited size in all; those that nobody asked for longest are dropped first."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        """Take how much may be kept, and what says how much a value is."""
        self._most = most
        self._size_of = size
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def find(self, key: Hashable) -> T | None:
        """Return the value of a key if it is there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def add(self, key: Hashable, value: T) -> None:
        """Keep a value, unless it is too large or there is one."""
        size = self._size_of(value)
        with self._lock:
            if key not in self._values and size <= self._most:
                self._values[key] = value, size
                self._size += size
            while self._size > self._most:
                self._size -= self._values.popitem(last=False)[1][1]

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, which is made where it is not there. Two threads may make it at once."""
        value = self.find(key)
        if value is None:
            value = make()
            self.add(key, value)
        return value
