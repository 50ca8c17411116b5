"""An index on disk: a collection of passages, and the files by which they are found.

    INDEX/index.json            which generation is current, sealed with a digest; it is replaced in one step
    INDEX/generation-3/         what one build has written; it never changes
        shard-0/ …              the search engine's files, and the vectors, if there are any; the shard of a passage
                                depends on a hash of its id
        manifest.sqlite         which files the passages come from, and the texts of documents

A build writes a new generation next to the old one and then names it in index.json: at any moment, also after a kill,
the index is the old generation or the new one, complete.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple

from rechain.errors import InputError
from rechain.index.shard import Ask, Condition, Hit, LocalShard, Shard, read_passage, shard_name
from rechain.index.vectors import REMEDY, Near, merge_nearest, open_database
from rechain.schema import Passage
from rechain.system.files import read_sealed
from rechain.system.tensors import Array

FORMAT = 1
"""of the folder; an index of another format is refused"""
POINTER = "index.json"
MANIFEST = "manifest.sqlite"
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
    shards: int
    built: str
    """when, in UTC"""
    settings: Mapping[str, Any]
    """how documents were cut"""
    files: Mapping[str, int]
    """the sizes of all files, by which a damaged index is noticed when it is opened"""
    vectors: str | None = None
    """what embedded the passages, if they have vectors"""


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


def check_files(folder: Path, info: IndexInfo, within: str = "") -> None:
    """Raise InputError if a file of the index, or of one folder in it, is missing or has another size."""
    for name, size in info.files.items():
        if not name.startswith(within):
            continue
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

    def __init__(
        self, folder: str | Path, shards: Sequence[Shard] | None = None, info: IndexInfo | None = None
    ) -> None:
        """Open an index; `shards` replace its own if these are on other machines.

        With shards and `info` the folder need not be on this machine, unless documents are read.
        """
        self.folder = Path(folder)
        self._lock = Lock()
        self._manifest: sqlite3.Connection | None = None
        self._elsewhere = None if shards is None else list(shards)
        if self._elsewhere is None:
            self.info, self._shards = self._open()
        else:
            self.info, self._shards = info or read_info(self.folder), self._elsewhere
        self._counts: dict[Condition, int] = {}

    def _open(self) -> tuple[IndexInfo, list[Shard]]:
        """Open the current generation: the new one, if another process replaces it at this moment.

        All files of it are opened, so that they can be read when a newer generation has taken its place.
        """
        while True:
            info = read_info(self.folder)
            try:
                check_files(self.folder, info)
                self._manifest = open_database(self.folder / info.generation / MANIFEST)
                generation = self.folder / info.generation
                return info, [LocalShard(generation / shard_name(number)) for number in range(info.shards)]
            except InputError:
                if read_info(self.folder).generation == info.generation:
                    raise

    def __reduce__(self) -> tuple[Callable[..., "Index"], tuple[Any, ...]]:
        """Return how another process opens it: the same collection, by the same shards where these are elsewhere."""
        if self._elsewhere is None:
            return open_again, (self.folder, self.stamp)
        return Index, (self.folder, self._elsewhere, self.info)

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
        """Return the best passages of all shards for each query."""
        if not asks:
            return []
        of_shards = [shard.search(asks) for shard in self._shards]
        return of_shards[0] if len(of_shards) == 1 else merge_hits(asks, of_shards)

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
        """Return the passages of all shards that are nearest each of some vectors, [queries, dimensions]."""
        return merge_nearest([shard.nearest(queries, limit) for shard in self._shards], limit)

    def count_word(self, word: str) -> int:
        return self._count(Condition("phrase", (word,)))

    def count_name(self, name: str) -> int:
        return self._count(_named("phrase", name))

    def count_title(self, title: str) -> int:
        return self._count(_named("name", title))

    def count_entity(self, entity: str) -> int:
        return self._count(Condition("entity", (entity,)))

    def count_line(self, line: str) -> int:
        return self._count(Condition("line", (line,)))

    def count_ahead(
        self,
        words: Iterable[str] = (),
        titles: Iterable[str] = (),
        lines: Iterable[str] = (),
        entities: Iterable[str] = (),
    ) -> None:
        """Count many things in one call, as a call of shards on other machines takes a while."""
        conditions = [
            *(_named("phrase", word) for word in words),
            *(_named("name", title) for title in titles),
            *(Condition("line", (line,)) for line in lines),
            *(Condition("entity", (entity,)) for entity in entities),
        ]
        self._count_all([condition for condition in dict.fromkeys(conditions) if condition not in self._counts])

    def _count(self, condition: Condition) -> int:
        number = self._counts.get(condition)
        return self._count_all([condition])[condition] if number is None else number

    def _count_all(self, conditions: Sequence[Condition]) -> Mapping[Condition, int]:
        """Return how many passages fulfil conditions, and remember it; no passage contains a name without a word."""
        countable = [condition for condition in conditions if condition.values[0]]
        of_shards = [shard.count(countable) for shard in self._shards] if countable else []
        totals = (sum(counts) for counts in zip(*of_shards, strict=True))
        counts = dict.fromkeys(conditions, 0) | dict(zip(countable, totals, strict=True))
        if len(self._counts) + len(counts) > _KNOWN_COUNTS:
            self._counts = {}
        self._counts |= counts
        return counts

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
            if self._manifest is None:
                self._manifest = open_database(self.folder / self.info.generation / MANIFEST)
            try:
                return self._manifest.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise InputError(f"{self.folder} is damaged: {MANIFEST}: {error}; {REMEDY}.") from error


def _named(field: Literal["phrase", "name"], name: str) -> Condition:
    return Condition(field, (" ".join(name.split()),))


def open_shard(folder: Path, info: IndexInfo, number: int) -> LocalShard:
    """Open one shard of an index, of which nothing else need be in the folder."""
    name = shard_name(number)
    check_files(folder, info, f"{name}/")
    return LocalShard(folder / info.generation / name)


def merge_hits(asks: Sequence[Ask], of_shards: Sequence[list[list[Hit]]]) -> list[list[Hit]]:
    """Return the best passages of all shards for each query."""

    def rank(hit: Hit) -> tuple[bool, float, int, bytes]:  # no two alike, so the order of shards does not matter
        return not hit.is_preferred, -hit.score, hit.order, hit.record

    return [
        nsmallest(ask.limit, (hit for hits in of_ask for hit in hits), key=rank)
        for ask, of_ask in zip(asks, zip(*of_shards, strict=True), strict=True)
    ]


def open_again(folder: Path, stamp: str) -> Index:
    """Open an index in another process; raises InputError if it was replaced meanwhile."""
    index = Index(folder)
    if index.stamp != stamp:
        raise InputError(f"{folder} was built again while it was read ({stamp} is now {index.stamp}); start again.")
    return index
