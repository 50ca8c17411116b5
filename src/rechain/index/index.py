"""An index on disk: a collection of passages, and the files by which they are found.

    INDEX/index.json            which generation is current, sealed with a digest; it is replaced in one step
    INDEX/generation-3/         what one build has written; it never changes
        engine/ …               the search engine's files
        manifest.sqlite         which files the passages come from, and the texts of documents

A build writes a new generation next to the old one and then names it in index.json: at any moment, also after a kill,
the index is the old generation or the new one, complete.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from rechain.errors import InputError
from rechain.index.engine import REMEDY, Ask, Condition, Engine, Field, Hit, open_database, read_passage
from rechain.schema import Passage
from rechain.system.files import read_sealed

FORMAT = 2
"""of the folder; an index of another format is refused"""
POINTER = "index.json"
MANIFEST, ENGINE = "manifest.sqlite", "engine"
_ROWS = 10_000
"""ids that are read at a time: a program may take long for each, and meanwhile others read too"""
_KNOWN_COUNTS = 100_000
"""counts that are remembered, some megabytes: questions over one collection ask for the same names again and again.
When they are full all are forgotten, after some ten thousand questions"""


class IndexInfo(NamedTuple):
    """The content of index.json: the current generation."""

    generation: str
    stamp: str
    passages: int
    sources: int
    built: str
    """when, in UTC"""
    settings: Mapping[str, Any]
    """how documents were cut"""
    files: Mapping[str, int]
    """the sizes of all files, by which a damaged index is noticed when it is opened"""


def read_info(folder: Path) -> IndexInfo:
    """Return the description of an index; raises InputError if there is none, or it is damaged."""
    place = folder / POINTER
    if not place.exists():
        what = "there is no index" if not folder.exists() else "is no index"
        where = f"{what} {folder}" if not folder.exists() else f"{folder} {what}"
        raise InputError(f"{where}; build one with 'rechain index SOURCE --out {folder}'.")
    try:
        content = read_sealed(place)
        version = content.pop("format", None)
        info = IndexInfo(**content) if version == FORMAT else None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{place} is damaged ({error}); {REMEDY}.") from error
    if info is None:
        raise InputError(
            f"{folder} is an index of format {version}, and this version of rechain reads {FORMAT}; "
            "remove it and build it again."
        )
    return info


def check_files(folder: Path, info: IndexInfo) -> None:
    """Raise InputError if a file of the index is missing or has another size."""
    for name, size in info.files.items():
        path = folder / info.generation / name
        try:
            actual = path.stat().st_size
        except OSError:
            actual = None
        if actual != size:
            state = "is missing" if actual is None else f"has {actual} bytes instead of {size}"
            raise InputError(f"{folder} is damaged: {info.generation}/{name} {state}; {REMEDY}.")


class Document(NamedTuple):
    """A document as its passages' offsets count in it."""

    name: str
    kind: str
    text: str


class Index(Mapping[str, Passage]):
    """Passages by id, on disk, and their statistics (`text.collection.Statistics`).

    Several processes may read one index; each maps it into its memory, of which the system keeps one copy.
    """

    def __init__(self, folder: str | Path) -> None:
        """Open the current generation: the new one, if another process replaces it at this moment.

        All files of it are opened, so that they can be read when a newer generation has taken its place.
        """
        self.folder = Path(folder)
        self._lock = Lock()
        self._counts: dict[tuple[Field, str], int] = {}
        while True:
            self._pointer = _state_of(self.folder / POINTER)
            self.info = read_info(self.folder)
            generation = self.folder / self.info.generation
            try:
                check_files(self.folder, self.info)
                self._manifest = open_database(generation / MANIFEST)
                self._engine = Engine(generation / ENGINE)
                return
            except InputError:
                if read_info(self.folder).generation == self.info.generation:
                    raise

    def __reduce__(self) -> tuple[Callable[..., "Index"], tuple[Any, ...]]:
        """Return how another process opens the same collection."""
        return open_again, (self.folder, self.stamp)

    def newest(self) -> "Index":
        """Return the index that was built in its place, or this one; also if the folder is gone or damaged now."""
        with suppress(OSError, InputError):
            pointer = _state_of(self.folder / POINTER)
            if pointer not in (None, self._pointer) and read_info(self.folder) != self.info:
                return Index(self.folder)
            self._pointer = pointer
        return self

    @property
    def stamp(self) -> str:
        return self.info.stamp

    @property
    def passages(self) -> int:
        return self.info.passages

    def __len__(self) -> int:
        return self.info.passages

    def __getitem__(self, name: str) -> Passage:
        passages = self.named([name])
        if not passages:
            raise KeyError(name)
        return passages[0]

    def named(self, names: Iterable[str]) -> list[Passage]:
        """Return the passages of some ids, those that there are, by asking once."""
        ids = tuple(dict.fromkeys(names))
        if not ids:
            return []
        (hits,) = self.search([Ask((), (Condition("id", ids),), limit=len(ids))])
        return [read_passage(hit.record) for hit in hits]

    def __iter__(self) -> Iterator[str]:
        last = ""
        while rows := self._rows("SELECT id FROM passages WHERE id > ? ORDER BY id LIMIT ?", last, _ROWS):
            yield from (name for (name,) in rows)
            last = rows[-1][0]

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        """Return the best passages for each query."""
        return self._engine.search(asks)

    def count_word(self, word: str) -> int:
        return self._count("phrase", word)

    def count_name(self, name: str) -> int:
        return self._count("phrase", " ".join(name.split()))

    def count_title(self, title: str) -> int:
        return self._count("name", " ".join(title.split()))

    def count_entity(self, entity: str) -> int:
        return self._count("entity", entity)

    def count_line(self, line: str) -> int:
        return self._count("line", line)

    def count_label(self, label: str) -> int:
        """Return how many passages have a source, an author or a date, as `engine.labels_of` has it."""
        return self._count("label", label)

    def _count(self, field: Field, value: str) -> int:
        """Return how many passages have a value, and remember it; no passage contains a name without a word."""
        number = self._counts.get((field, value))
        if number is None:
            if len(self._counts) >= _KNOWN_COUNTS:
                self._counts = {}
            number = self._counts[field, value] = self._engine.count(field, value) if value else 0
        return number

    def document(self, name: str) -> Document:
        """Return the document that passages name as their source; raises KeyError if there is none."""
        rows = self._rows("SELECT name, kind, text FROM sources WHERE name = ? AND text IS NOT NULL", name)
        if not rows:
            raise KeyError(name)
        ((name, kind, text),) = rows
        try:
            return Document(name, kind, zlib.decompress(text).decode())
        except (zlib.error, ValueError) as error:
            raise InputError(f"{self.folder} is damaged: the text of {name}; {REMEDY}.") from error

    def sources(self) -> list[tuple[str, str, int]]:
        """Return the files that passages come from: name, kind, number of passages."""
        return self._rows("SELECT name, kind, passages FROM sources ORDER BY name")

    def _rows(self, query: str, *values: object) -> list[Any]:
        """Return what the manifest answers; threads of a server share the one connection."""
        with self._lock:
            try:
                return self._manifest.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise InputError(f"{self.folder} is damaged: {MANIFEST}: {error}; {REMEDY}.") from error


def _state_of(path: Path) -> tuple[int, int] | None:
    """Return what is different of a file that was replaced, or None if there is none."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns


def open_again(folder: Path, stamp: str) -> Index:
    """Open an index in another process; raises InputError if it was replaced meanwhile."""
    index = Index(folder)
    if index.stamp != stamp:
        raise InputError(f"{folder} was built again while it was read ({stamp} is now {index.stamp}); start again.")
    return index
