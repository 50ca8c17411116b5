"""The questions that are served and the chains of each source, in a database that lives as long as the server."""

import fcntl
import os
import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from json import dumps
from math import ceil
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from threading import Lock, RLock
from typing import Any, BinaryIO, NamedTuple
from weakref import finalize

import orjson

from rechain.errors import QuestionError
from rechain.formats.datasets import Entry
from rechain.labels.database import connect, transaction
from rechain.schema import Gold, Question, Recovered, Shape, Verdict
from rechain.system.caches import BoundedCache
from rechain.text.languages import is_chinese
from rechain.web.dashboard import ALIKE, MOST_TYPES, TYPES, Figures, sum_up
from rechain.web.filters import TABLES, Filters, Judgement, Order, condition, ordering
from rechain.web.question_rows import SCHEMA, Stored, add_question, found_row, read_stored

PAGE_SIZE = 25
_PREFIX, _LOCK = "rechain-", "lock"
"""of a temporary folder: its name, and the file in it that is locked as long as its server lives"""
_AT_ONCE = 100
"""questions whose chains are stored in one transaction: others that store wait no longer than that takes"""
_ADDED_AT_ONCE = 1000
"""questions that are added in one transaction, when nobody waits yet: the log of a transaction is on the disk too"""
_REMEMBERED = 100
"""questions that were read last and are kept as they are: whoever looks at one often looks at it again"""

_BODY = "SELECT position, q.id, b.question, problem, gold, own FROM questions q JOIN bodies b USING (position)"
_MOST_POSITIONS, _MOST_FIGURES = 4_000_000, 2_500
"""positions of selections and properties of figures that are kept, as they may be asked for again: 16 MB and some"""

_COMPARED = (
    "FROM found a JOIN found b USING (position) JOIN questions q USING (position) "
    "WHERE a.source = ? AND b.source = ? AND"
)
_SAME = "(a.identity IS b.identity)"
COMPARISONS = {
    "different": f"NOT {_SAME}",
    "same": _SAME,
    "only the first right": "a.judgement = 'right' AND b.judgement = 'wrong'",
    "only the second right": "a.judgement = 'wrong' AND b.judgement = 'right'",
    "both right": "a.judgement = 'right' AND b.judgement = 'right'",
    "both wrong": "a.judgement = 'wrong' AND b.judgement = 'wrong'",
    "all": "1",
}
"""ways to compare two sources, each with its condition on `found` a and b"""


def page_of(wanted: int, total: int) -> dict[str, int]:
    """Return which page of a list is shown, and how many there are; the address may be older than the list."""
    pages = max(ceil(total / PAGE_SIZE), 1)
    return {"page": min(wanted, pages), "pages": pages}


class Row(NamedTuple):
    """A question in a list, with the best chain of one source."""

    position: int
    id: str
    question: str
    answer: str
    type: str | None
    hops: int | None
    """how many passages its chain has, by the data or by gold"""
    summary: str | None
    confidence: float | None
    judgement: Judgement | None
    """whether the chain is a gold chain"""
    error: str | None
    verdict: Verdict | None
    """the source's own verdict: whether the passages support the answer"""
    shape: Shape | None


class Listing(NamedTuple):
    """A page of questions, and how many there are on all pages."""

    rows: list[Row]
    total: int


class Pair(NamedTuple):
    """A question in a comparison, with the best chains of two sources."""

    id: str
    question: str
    one: str | None
    two: str | None
    one_judgement: Judgement | None
    two_judgement: Judgement | None


class Around(NamedTuple):
    """What stands around a question in a list: how many come earlier, and the ids of its neighbours."""

    earlier: int
    before: str | None
    after: str | None
    total: int = 0
    is_among: bool = False
    """whether the question is in the list itself"""

    @property
    def page(self) -> int:
        """The page of the list on which the question is, or would be."""
        return self.earlier // PAGE_SIZE + 1


class TemporaryDatabase:
    """An SQLite database in a folder of its own, which is removed with the object or when Python ends."""

    def __init__(self, schema: str) -> None:
        _remove_remains()
        folder = mkdtemp(prefix=_PREFIX)
        lock = (Path(folder) / _LOCK).open("wb")
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        self._path = Path(folder) / "index.sqlite"
        self._idle: list[sqlite3.Connection] = []
        """connections that no thread is reading from; there are never more than threads that read at once"""
        self._writing = RLock()
        self._writer = connect(self._path)
        # A write-ahead log lets threads read what was there while one writes. Nothing need survive the process.
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute("PRAGMA synchronous = OFF")
        self._writer.executescript(schema)
        self.close = finalize(self, _remove, folder, self._writer, self._idle, lock)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing."""
        with self._writing, transaction(self._writer):
            yield self._writer

    def read(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a SELECT, as of the last transaction that has ended."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = connect(self._path)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            self._idle.append(connection)


def _remove(folder: str, writer: sqlite3.Connection, readers: list[sqlite3.Connection], lock: BinaryIO) -> None:
    for one in (writer, *readers):
        one.close()
    rmtree(folder, ignore_errors=True)
    lock.close()


def _remove_remains() -> None:
    """Remove the folders of servers that were killed: nothing locks them any more."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid() or not (folder / "index.sqlite").exists():
                continue
            with (folder / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                rmtree(folder, ignore_errors=True)


class Index:
    """Questions in the order of their file, their chains from each source, and quick ways to select them."""

    def __init__(self) -> None:
        database = TemporaryDatabase(SCHEMA)
        self._read, self._transaction, self.close = database.read, database.transaction, database.close
        self.unreadable: set[str] = set()
        """the ids of the questions that cannot be read"""
        self.change = 0
        """counts the changes of anything"""
        self._versions: dict[int | None, int] = {}
        """the last change of the questions (None) and of the chains of each source: older results are out of date"""
        self._confident: set[int] = set()
        """the sources whose chains have a confidence"""
        self.has_chinese = False
        """whether a passage has Chinese text, for which a dictionary is loaded: seconds that no page should wait for"""
        self.has_entities = False
        """whether the data names entities, of which experts label pairs"""
        self._noting = Lock()
        self.at = lru_cache(_REMEMBERED)(self._read_stored)
        """returns the question at a position"""
        self._chains = lru_cache(_REMEMBERED)(self._read_chains)
        self._count = lru_cache(1)(lambda _: self._read_number("SELECT count(*) FROM questions"))
        self._selections: BoundedCache[Sequence[int]] = BoundedCache(_MOST_POSITIONS, len)
        self._figures: BoundedCache[Figures] = BoundedCache(_MOST_FIGURES, len)

    def __len__(self) -> int:
        return self._count(self._versions.get(None))

    def _read_number(self, query: str, *values: Any) -> int:
        return int(self._read(query, *values)[0][0])

    def ids(self, order: Order = "file") -> list[str]:
        """Return the ids of all questions, in order; confidence is that of the first source."""
        if order == "file":
            return [name for (name,) in self._read("SELECT id FROM questions ORDER BY position")]
        in_order = ordering(Filters(order=order))
        return [name for (name,) in self._read(f"SELECT q.id FROM {TABLES} ORDER BY {in_order}", 0)]

    def _read_stored(self, position: int) -> Stored:
        return read_stored(*self._read(f"{_BODY} WHERE position = ?", position)[0])

    def named(self, name: str) -> Stored | None:
        """Return the question with an id, or None."""
        rows = self._read("SELECT position FROM questions WHERE id = ?", name)
        return self.at(rows[0][0]) if rows else None

    def recovered(self, source: int, position: int) -> Recovered | None:
        """Return the chains of a question from a source, or None if it has none yet."""
        return self._chains(source, position, self._version(source))

    def _read_chains(self, source: int, position: int, _: tuple[int | None, ...]) -> Recovered | None:
        rows = self._read("SELECT json FROM chains WHERE source = ? AND position = ?", source, position)
        return Recovered.model_validate_json(rows[0][0]) if rows else None

    def count_found(self, source: int) -> int:
        """Return how many questions a source has looked at, whether it found a chain or not."""
        return self._read_number("SELECT count(*) FROM found WHERE source = ?", source)

    def missing(self, source: int, after: int, most: int) -> list[int]:
        """Return the first positions from `after` on that a source has not looked at yet."""
        query = (
            "SELECT position FROM questions q WHERE position >= ? AND NOT EXISTS "
            "(SELECT 1 FROM found f WHERE f.source = ? AND f.position = q.position) ORDER BY position LIMIT ?"
        )
        return [position for (position,) in self._read(query, after, source, most)]

    def select(self, source: int, filters: Filters, page: int = 1) -> Listing:
        """Return a page of the questions that pass some filters, with the best chains of a source."""
        positions = self.positions(source, filters)
        first = (page - 1) * PAGE_SIZE
        return Listing(self.rows(source, positions[first : first + PAGE_SIZE]), len(positions))

    def positions(self, source: int, filters: Filters) -> Sequence[int]:
        """Return the positions of the questions that pass some filters, in the filters' order."""
        chosen = filters.chosen
        if filters.order == "file" and chosen == Filters():
            everything = range(len(self))
            return everything[::-1] if filters.reverse else everything
        where, values = condition(chosen)
        query = f"SELECT q.position FROM {TABLES} WHERE {where} ORDER BY {ordering(filters)}"
        key = (self._version(source), source, chosen, filters.order, filters.reverse)
        return self._selections.get(
            key, lambda: array("I", (position for (position,) in self._read(query, source, *values)))
        )

    def figures(self, source: int, filters: Filters) -> Figures:
        """Return how many of the questions that pass some filters are of each kind, by each of their properties."""
        key = (self._version(source), source, filters.chosen)

        def read() -> Figures:
            positions = dumps(list(self.positions(source, filters)))
            return sum_up(self._read(ALIKE, source, positions), self._read(TYPES, source, positions, MOST_TYPES + 1))

        return self._figures.get(key, read)

    def facets(self, source: int, filters: Filters) -> Figures:
        """Return the figures by each property without the filter of that property, so that others can be added."""
        figures = dict(self.figures(source, filters))
        for name in figures:
            if getattr(filters, name):
                figures[name] = self.figures(source, filters.model_copy(update={name: ()}))[name]
        return figures

    def rows(self, source: int, positions: Sequence[int]) -> list[Row]:
        """Return the questions at some positions, in their order."""
        query = (
            "SELECT q.position, q.id, q.question, q.answer, q.type, q.hops, "
            f"f.summary, f.confidence, f.judgement, f.error, f.verdict, f.shape FROM {TABLES} "
            f"WHERE q.position IN ({', '.join('?' * len(positions))})"
        )
        by_position = {row[0]: Row._make(row) for row in self._read(query, source, *positions)}
        return [by_position[position] for position in positions]

    def neighbours(self, source: int, filters: Filters, position: int) -> Around:
        """Return what stands around a question among those that pass some filters, in their order.

        One that does not pass them itself has its neighbours in the file; in any other order it has no place.
        """
        positions = self.positions(source, filters)
        if filters.order == "file" and not filters.reverse:
            before, after = bisect_left(positions, position) - 1, bisect_right(positions, position)
        elif position in positions:
            before, after = positions.index(position) - 1, positions.index(position) + 1
        else:
            return Around(0, None, None, len(positions))
        known = (positions[place] if 0 <= place < len(positions) else None for place in (before, after))
        one, two = (self._read("SELECT id FROM questions WHERE position = ?", place) for place in known)
        is_among = after - before == 2
        return Around(before + 1, one[0][0] if one else None, two[0][0] if two else None, len(positions), is_among)

    def passages(self, position: int) -> list[tuple[str, str]]:
        """Return title and text of the passages of the question at a position; none of one that cannot be read."""
        ((question,),) = self._read("SELECT question FROM bodies WHERE position = ?", position)
        records = orjson.loads(question)["passages"] if question else []  # a few of a whole list: too many to validate
        return [(record.get("title", ""), record["text"]) for record in records]

    def passages_with(self, words: str, positions: Sequence[int]) -> dict[int, int]:
        """Return the first passages that match a full-text query, by its place, of the questions at some positions."""
        # the sign keeps SQLite from going through all that match instead of through these questions' passages
        query = (
            f"SELECT position, min(place) FROM holds WHERE position IN ({', '.join('?' * len(positions))}) "
            "AND +passage IN (SELECT rowid FROM passage_search WHERE passage_search MATCH ?) GROUP BY position"
        )
        return dict(self._read(query, *positions, words))

    def has_confidence(self, source: int) -> bool:
        """Return whether a source tells the confidence of a chain."""
        return source in self._confident

    def judgements(self, one: int, two: int) -> dict[tuple[str, str], int]:
        """Count the questions by the judgements on two sources: right, wrong or not judged ("")."""
        query = (
            "SELECT coalesce(a.judgement, ''), coalesce(b.judgement, ''), count(*) FROM found a "
            "JOIN found b USING (position) WHERE a.source = ? AND b.source = ? GROUP BY 1, 2"
        )
        return {(first, second): count for first, second, count in self._read(query, one, two)}

    def count_compared(self, one: int, two: int, comparison: str) -> int:
        """Return how many questions there are whose best chains of two sources compare so."""
        return self._read_number(f"SELECT count(*) {_COMPARED} {COMPARISONS[comparison]}", one, two)

    def compare(self, one: int, two: int, comparison: str, page: int = 1) -> list[Pair]:
        """Return a page of the questions whose best chains of two sources compare so."""
        query = (
            "SELECT q.id, q.question, a.summary, b.summary, a.judgement, b.judgement "
            f"{_COMPARED} {COMPARISONS[comparison]} ORDER BY q.position LIMIT ? OFFSET ?"
        )
        return [Pair._make(row) for row in self._read(query, one, two, PAGE_SIZE, (page - 1) * PAGE_SIZE)]

    def compare_neighbours(self, one: int, two: int, comparison: str, position: int) -> Around:
        """Return what stands around a question among those whose best chains of two sources compare so."""
        among = f"{_COMPARED} {COMPARISONS[comparison]} AND position"
        ((earlier, before, after),) = self._read(
            "SELECT earlier, (SELECT id FROM questions WHERE position = last), "
            f"(SELECT id FROM questions WHERE position = (SELECT min(position) {among} > ?)) "
            f"FROM (SELECT count(*) AS earlier, max(position) AS last {among} < ?)",
            *(one, two, position) * 2,
        )
        return Around(earlier, before, after)

    def add(self, entries: Iterable[tuple[Entry, Gold | None]]) -> None:
        """Add questions; one whose id is taken, or that has none, is named after its position."""
        rest = enumerate(entries, start=len(self))
        while batch := list(islice(rest, _ADDED_AT_ONCE)):
            with self._transaction() as connection:
                for position, (entry, gold) in batch:
                    name = add_question(connection, position, entry, gold)
                    if isinstance(entry.content, QuestionError):
                        self.unreadable.add(name)
            contents = [entry.content for _, (entry, _) in batch]
            passages = (one for content in contents if isinstance(content, Question) for one in content.passages)
            self.has_chinese = self.has_chinese or any(is_chinese(passage.text) for passage in passages)
            named = (one for one in contents if isinstance(one, Question))
            self.has_entities = self.has_entities or any(one.question_entities for one in named)
            self._note_change(None)

    def store(self, source: int, found: Iterable[tuple[Stored, Recovered]]) -> None:
        """Store the chains of some questions from a source."""
        rest = iter(found)
        while batch := list(islice(rest, _AT_ONCE)):
            rows = [(source, stored.position, *found_row(stored, recovered)) for stored, recovered in batch]
            chains = [(source, stored.position, recovered.model_dump_json()) for stored, recovered in batch]
            with self._transaction() as connection:
                connection.executemany(f"INSERT OR REPLACE INTO found VALUES ({', '.join('?' * 13)})", rows)
                connection.executemany("INSERT OR REPLACE INTO chains VALUES (?, ?, ?)", chains)
            if any(one.chains and one.chains[0].confidence is not None for _, one in batch):
                self._confident.add(source)
            self._note_change(source)

    def _note_change(self, source: int | None) -> None:
        with self._noting:
            self.change += 1
            self._versions[source] = self.change

    def _version(self, source: int) -> tuple[int | None, ...]:
        """Return what changes whenever questions, or chains of one source, are added."""
        return self._versions.get(None), self._versions.get(source)
