"""What is in an index and where it comes from: files, and the passages of each, in a SQLite database."""

import shutil
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rechain.formats.documents import Extract, Refusal, Source, repeat_key
from rechain.index.engine import mark_of, open_database
from rechain.schema import Passage
from rechain.text.collection import passage_digest, stamp_of

_TABLES = """
CREATE TABLE sources (number INTEGER PRIMARY KEY, name TEXT UNIQUE, kind TEXT, size INTEGER, modified INTEGER,
                      passages INTEGER, text BLOB);
CREATE TABLE passages (id TEXT PRIMARY KEY, source INTEGER, key TEXT, digest BLOB, record BLOB) WITHOUT ROWID;
CREATE INDEX passages_of ON passages (source);
"""
_LEFT_OUT = """
CREATE TABLE IF NOT EXISTS left_out (name TEXT PRIMARY KEY, kind TEXT, size INTEGER, modified INTEGER, message TEXT);
"""
"""files without passages; indexes of earlier versions have no such table"""
_REPEATS = """
CREATE TABLE IF NOT EXISTS repeats (key BLOB, name TEXT, kept INTEGER, PRIMARY KEY (key, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS repeats_of ON repeats (name);
"""
"""the passages of documents by what they share with those that repeat them, and whether they are kept, as those of the
first file are; indexes of earlier versions have no such table"""
_UNSETTLED_REPEATS = """
SELECT 1 FROM repeats GROUP BY key HAVING sum(kept) != 1 OR min(name) != max(CASE kept WHEN 1 THEN name END) LIMIT 1
"""
_HOLDERS_OF_KEYS = """
SELECT one.id, one.key, mine.name, mine.kind, other.key, its.name, its.kind
FROM passages AS one JOIN sources AS mine ON mine.number = one.source
LEFT JOIN passages AS other ON other.id = one.key LEFT JOIN sources AS its ON its.number = other.source
WHERE one.key IS NOT NULL
"""
_CACHE = -200_000  # kilobytes: ids come in no order, and a million of them fit
_COMPRESSION = 1  # texts are seldom read, and the quickest level already takes them to a third
_NEVER = -1
"""a time that no file has"""


class NewPassage(NamedTuple):
    """A passage that is new in an index."""

    passage: Passage
    record: bytes
    """the passage as JSON, with all its fields"""


class Changes(NamedTuple):
    """What a build has to do about files."""

    changed: list[Source]
    """new ones, and those whose size or time is another, in the order in which they are taken in"""
    gone: list[str]
    refusals: list[Refusal]
    """why unchanged files have no passages"""
    new: frozenset[str]
    """the names of the new ones among them"""


def order_of_taking(kind: str, name: str) -> tuple[bool, str]:
    """Return by what files are ordered: of two with the same id, that of the first keeps it."""
    return kind != "collection", name


def compare(manifest: Path | None, sources: Sequence[Source]) -> Changes:
    """Return what has changed since a manifest was written; without one all is new."""
    rows: list[Any] = []
    if manifest is not None:
        with closing(open_database(manifest)) as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'left_out'").fetchone():
                rows += connection.execute("SELECT name, size, modified, kind, message FROM left_out")
            rows += connection.execute("SELECT name, size, modified, kind, NULL FROM sources")
    before = {name: state for name, *state, _ in rows}
    now = {source.name: [source.size, source.modified_ns, source.kind] for source in sources}
    changed = [source for source in sources if before.get(source.name) != now[source.name]]
    changed.sort(key=lambda source: order_of_taking(source.kind, source.name))
    refusals = [Refusal(name, message) for name, *state, message in rows if message and now.get(name) == state]
    return Changes(changed, sorted(before.keys() - now.keys()), refusals, frozenset(now.keys() - before.keys()))


class Manifest:
    """The manifest of a generation that is being built; it begins as that of the generation before."""

    def __init__(self, path: Path, before: Path | None) -> None:
        if before is not None:
            shutil.copyfile(before, path)
        self._connection = sqlite3.connect(path, isolation_level=None)
        # The file counts only once it is whole, so that it needs no journal.
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(f"PRAGMA cache_size = {_CACHE}")
        if before is None:
            self._connection.executescript(_TABLES)
        self._connection.executescript(_LEFT_OUT + _REPEATS)
        self._connection.execute("BEGIN")
        self._numbers: dict[str, int] = dict(self._connection.execute("SELECT name, number FROM sources"))
        self._losses: dict[str, bytes] = {}
        """passages that are dropped or replaced: the mark of what the engine has, by id"""
        self.added = self.dropped = 0
        self._has_other_files = False

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def taking(self, source: Source) -> Iterator["Taking"]:
        """Take in a file that is new or changed: yield an object that returns its new passages.

        When all of it is read, those of its passages are dropped that it no longer has.
        """
        number = self._numbers.get(source.name)
        if number is None:
            row = self._connection.execute("SELECT coalesce(max(number), 0) + 1 FROM sources").fetchone()
            number = int(row[0])
        taking = Taking(self._connection, source, number, self._losses)
        yield taking
        self._drop(taking.known.values())
        self.added += taking.added
        before = self._forget(source.name)
        if taking.passages:
            modified = source.modified_ns if taking.refusal is None else _NEVER
            row = (number, source.name, source.kind, source.size, modified, taking.passages, taking.text)
            self._connection.execute("INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        else:
            may_pass, message = taking.refusal is not None and taking.refusal.may_pass, None
            if taking.refusal is not None:
                message = taking.refusal.message.encode("utf-8", "replace").decode()
            row = (source.name, source.kind, source.size, _NEVER if may_pass else source.modified_ns, message)
            self._connection.execute("INSERT INTO left_out VALUES (?, ?, ?, ?, ?)", row)
        self._has_other_files |= before != [row]

    def _forget(self, name: str) -> list[Any]:
        """Remove a file; return what was known of it."""
        rows: list[Any] = []
        for table in ("sources", "left_out"):
            rows += self._connection.execute(f"SELECT * FROM {table} WHERE name = ?", (name,))
            self._connection.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
        return rows

    def drop_sources(self, names: Sequence[str]) -> None:
        """Drop files that are gone, before others are read, which may have the same passages under a new name."""
        for name in names:
            number = self._numbers.pop(name, None)  # None for a file without passages
            rows = self._connection.execute("SELECT id, record FROM passages WHERE source = ?", (number,)).fetchall()
            self._drop(rows)
            self._connection.execute("DELETE FROM repeats WHERE name = ?", (name,))
            self._has_other_files |= bool(self._forget(name))

    def _drop(self, rows: Collection[tuple[str, bytes]]) -> None:
        self._connection.executemany("DELETE FROM passages WHERE id = ?", ((name,) for name, _ in rows))
        self._losses.update(rows)

    @property
    def has_changed(self) -> bool:
        """Whether anything is not as in the generation before; a file may be read again and be the same."""
        return bool(self._has_other_files or self.added or self._losses)

    @property
    def is_settled(self) -> bool:
        """Whether all passages have the ids that they would have in a new index.

        An id that several files have stays with the first of them, and the file's name is put before it in the others.
        So does a passage of documents that several files have, which the others leave out.
        """
        if self._connection.execute(_UNSETTLED_REPEATS).fetchone():
            return False
        rows = self._connection.execute(_HOLDERS_OF_KEYS)
        return all(
            name == f"{source}#{key}"
            and holder is not None
            and others_key is None
            and order_of_taking(holders_kind, holder) < order_of_taking(kind, source)
            for name, key, source, kind, others_key, holder, holders_kind in rows
        )

    def finish(self) -> frozenset[bytes]:
        """Write everything; return the marks of the passages that the engine must drop."""
        self.dropped = len(self._losses)
        self._connection.execute("COMMIT")
        return frozenset(self._losses.values())

    def summary(self) -> tuple[int, int, str]:
        """Return the number of passages, of files, and the stamp of the collection."""
        passages = self._connection.execute("SELECT count(*) FROM passages").fetchone()[0]
        files = self._connection.execute("SELECT count(*) FROM sources").fetchone()[0]
        return (
            passages,
            files,
            stamp_of(digest for (digest,) in self._connection.execute("SELECT digest FROM passages")),
        )


class Taking:
    """The passages of one file, as they are taken in."""

    def __init__(self, connection: sqlite3.Connection, source: Source, number: int, losses: dict[str, bytes]) -> None:
        self._connection = connection
        self._source = source
        self._number = number
        self._losses = losses
        rows = connection.execute("SELECT coalesce(key, id), id, record FROM passages WHERE source = ?", (number,))
        self.known: dict[str, tuple[str, bytes]] = {key: (name, mark) for key, name, mark in rows}
        """id and mark of the passages that the file had and that were not read again, by key"""
        connection.execute("DELETE FROM repeats WHERE name = ?", (source.name,))
        self._met: dict[str, bytes] = {}
        """the digest of the passage of each key"""
        self._repeated: dict[str, set[bytes]] = {}
        """the digests of further passages, by the id that they share"""
        self.added = self.passages = 0
        self.refusal: Refusal | None = None
        """why the file could not be read, or not all of it: then the next build reads it again, changed or not"""
        self.text: bytes | None = None

    def __call__(self, extract: Extract) -> list[NewPassage]:
        """Return the passages that are new, by the ids that they have in the index."""
        if extract.text is not None:
            self.text = zlib.compress(extract.text.encode(), _COMPRESSION)
        passages = (self._take(one) for one in extract.passages if extract.text is None or not self._repeats(one))
        return [passage for passage in passages if passage is not None]

    def refuse(self, refusal: Refusal) -> None:
        """Take what is wrong with the file, or with one of its rows, which leaves the others as they are."""
        if refusal.name == self._source.name:
            self.refusal = refusal

    def _repeats(self, passage: Passage) -> bool:
        """Return whether a passage of a document is one of an earlier file, or of this one, once more."""
        key, name = repeat_key(passage), self._source.name
        before = self._connection.execute("SELECT min(name) FROM repeats WHERE key = ? AND kept", (key,)).fetchone()[0]
        is_repeated = before is not None and before <= name
        self._connection.execute("INSERT OR IGNORE INTO repeats VALUES (?, ?, ?)", (key, name, not is_repeated))
        return is_repeated

    def _take(self, passage: Passage) -> NewPassage | None:
        """Return a passage if it is new, or None if the index has it already."""
        digest = passage_digest(passage)
        key = self._key(passage.id, digest)
        if key is None:
            return None
        self.passages += 1
        old = self.known.pop(key, None)
        name = old[0] if old else self._unused_id(key)
        if name != passage.id:
            passage = passage.model_copy(update={"id": name})
            digest = passage_digest(passage)
        record = orjson.dumps(passage.model_dump(exclude_defaults=True))
        mark = mark_of(record)
        if old and old[1] == mark:
            return None
        row = (name, self._number, None if key == name else key, digest, mark)
        self._connection.execute("INSERT OR REPLACE INTO passages VALUES (?, ?, ?, ?, ?)", row)
        if old:
            self._losses[name] = old[1]
        elif self._losses.get(name) == mark:  # it has moved here from another file
            del self._losses[name]
            return None
        self.added += 1
        return NewPassage(passage, record)

    def _key(self, name: str, digest: bytes) -> str | None:
        """Return a key of a passage that is unique in its file; None for an exact repetition."""
        if name not in self._met:
            self._met[name] = digest
            return name
        more = self._repeated.setdefault(name, set())
        if digest == self._met[name] or digest in more:
            return None
        # On from the last number: a file may have the same id in all its rows.
        keys = (f"{name}.{number}" for number in count(len(more) + 2))
        key = next(key for key in keys if key not in self._met)
        self._met[key] = digest
        more.add(digest)
        return key

    def _unused_id(self, key: str) -> str:
        """Return an id that no passage of another file has."""
        qualified = f"{self._source.name}#{key}"
        names = chain((key, qualified), (f"{qualified}.{number}" for number in count(2)))
        is_taken = "SELECT 1 FROM passages WHERE id = ?"
        return next(name for name in names if not self._connection.execute(is_taken, (name,)).fetchone())
