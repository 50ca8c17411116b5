"""Vectors of passages: which of them are near a question in meaning, whatever their words.

    shard-0/vectors.usearch     the vectors, one byte a number, and the graph that leads to near ones
    shard-0/vectors.sqlite      which passage has which key

Both are mapped into memory, so that several processes share them.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from heapq import nsmallest
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import numpy as np

from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.schema import Passage
from rechain.system.processes import batches
from rechain.system.tensors import Array

VECTORS, NAMES = "vectors.usearch", "vectors.sqlite"
REMEDY = "remove the folder and build the index again"
_BATCH = 1_024
"""passages that are embedded at a time: enough to sort them by length, and few enough to show how far it has come"""
_MOST_CHARACTERS = 2_000
"""of a passage that an encoder is given: more than it reads, unless words are very long"""
_LARGEST = 127
"""of a byte: every vector is stretched to it, as only directions are compared"""
_FEW = 10_000
"""vectors of a shard that are all compared, in 0.4 ms: that is exact, and the graph would take half as long"""
_DIGITS = 5
"""decimals of distances that count: bytes tell no more"""


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """What identifies it: vectors of different embedders cannot be compared."""

    def __call__(self, texts: Sequence[str]) -> Array:
        """Return a vector for each text, [texts, dimensions]."""


class Near(NamedTuple):
    """A passage that is near a vector."""

    distance: float
    name: str


def key_of(digest: bytes) -> int:
    """Return the key of a passage of this digest: 63 bits, which SQLite can hold too.

    A changed passage has another key, so that a build keeps the vectors of known keys and embeds the rest.
    """
    return int.from_bytes(digest[:8]) >> 1


class Vectors:
    """The vectors of a shard, mapped into memory."""

    def __init__(self, folder: Path) -> None:
        """Open them; a shard without passages has none."""
        # Without its table of keys, which takes longer to fill than all the rest, the file is open at once.
        self._index = _open(folder / VECTORS, enable_key_lookups=False) if (folder / VECTORS).exists() else None
        self._names = folder / NAMES

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
        """Return the passages that are nearest each of some vectors, [queries, dimensions], nearest first."""
        if self._index is None:
            return [[] for _ in queries]
        nearest = []
        with closing(open_database(self._names)) as connection:
            for query in as_bytes(queries):
                matches = self._index.search(query, limit, threads=1, exact=len(self._index) <= _FEW)
                rows = [connection.execute("SELECT id FROM names WHERE key = ?", (int(key),)) for key in matches.keys]
                names = [str(row.fetchone()[0]) for row in rows]
                nearest.append(sorted(map(Near, matches.distances.round(_DIGITS).tolist(), names)))
        return nearest


def merge_nearest(of_shards: Iterable[Sequence[Sequence[Near]]], limit: int) -> list[list[Near]]:
    """Return the nearest passages of all shards for each of some vectors."""
    return [
        nsmallest(limit, (near for of_shard in of_query for near in of_shard))
        for of_query in zip(*of_shards, strict=True)
    ]


def as_bytes(vectors: Array) -> Array:
    """Return the directions of vectors, one byte a number."""
    greatest = np.abs(vectors).max(axis=1, keepdims=True).clip(1e-9)
    rounded: Array = (vectors / greatest * _LARGEST).round().astype(np.int8)
    return rounded


def write_vectors(
    folder: Path,
    names: Mapping[int, str],
    read: Callable[[str], Passage],
    embed: Embedder,
    before: Sequence[Path],
    report: Callable[[int], None],
) -> None:
    """Write the vectors of a shard: `names` are the ids of its passages by their keys, which `read` returns.

    `before` are the folders of the old shards if they have the same embedder; `report` takes how many are done. The
    graph depends on the order in which vectors are added. It is built again, in the order of keys and by one thread, so
    that results depend on the collection alone, not on its history.
    """
    index_class = _load_library()
    remove_vectors(folder)
    if not names:
        return
    for old in before:
        if _has_names(old, names):
            for name in (VECTORS, NAMES):
                link_or_copy(old / name, folder / name)
            report(len(names))
            return
    known = [_open(path / VECTORS) for path in before if (path / VECTORS).exists()]
    index: Any = None
    for keys in batches(sorted(names), _BATCH):
        vectors = _vectors_of(keys, known, embed, lambda key: read(names[key]))
        if index is None:
            index = index_class(ndim=vectors.shape[1], metric="cos", dtype="i8")
        index.add(np.array(keys, dtype=np.uint64), vectors, threads=1)
        report(len(keys))
    index.save(folder / VECTORS)
    with closing(sqlite3.connect(folder / NAMES, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE names (key INTEGER PRIMARY KEY, id TEXT)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO names VALUES (?, ?)", sorted(names.items()))
        connection.execute("COMMIT")


def _has_names(folder: Path, names: Mapping[int, str]) -> bool:
    """Return whether a shard has vectors of exactly these passages."""
    if not (folder / NAMES).exists():
        return False
    with closing(open_database(folder / NAMES)) as connection:
        return dict(connection.execute("SELECT key, id FROM names")) == names


def _vectors_of(
    keys: Sequence[int], indexes: Sequence[Any], embed: Embedder, passage: Callable[[int], Passage]
) -> Array:
    """Return the vectors of passages, in bytes; those that no old index has are embedded."""
    known: dict[int, Array] = {}
    for index in indexes:
        rows = zip(keys, index.get(np.array(keys, dtype=np.uint64)), strict=True)
        known.update({key: row for key, row in rows if row is not None})
    unknown = [key for key in keys if key not in known]
    if unknown:
        passages = map(passage, unknown)
        texts = [f"{one.title}\n{one.text}".strip()[:_MOST_CHARACTERS] for one in passages]
        known.update(zip(unknown, as_bytes(embed(texts)), strict=True))
    return np.stack([known[key] for key in keys])


def remove_vectors(folder: Path) -> None:
    """Remove the vectors of a shard; of files that are shared with another generation, only its own names go."""
    for name in (VECTORS, NAMES):
        (folder / name).unlink(missing_ok=True)


def embed_questions(embed: Embedder, name: str, texts: Sequence[str]) -> Array:
    """Return the vectors of texts about an index whose passages were embedded by the embedder of this name."""
    if embed.name != name:
        raise RechainError(
            f"the passages of the index were embedded by '{name}' and questions would be by '{embed.name}'; bring the "
            "index up to date with 'rechain index'."
        )
    return embed([text[:_MOST_CHARACTERS] for text in texts])


def _load_library() -> Any:
    """Return the library's class of indexes; raises MissingExtraError if it is not installed."""
    try:
        from usearch.index import Index
    except ImportError as error:
        raise MissingExtraError("An index with vectors", "vectors") from error
    return Index


def _open(path: Path, **options: Any) -> Any:
    """Map a file of vectors into memory."""
    index_class = _load_library()
    try:
        index = index_class.restore(path, view=True, **options)
    except Exception as error:  # the library has no error class
        raise InputError(f"{path} has no readable vectors ({error}); build the index again.") from error
    if index is None:
        raise InputError(f"{path} has no readable vectors; build the index again.")
    return index


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database of a complete generation, which no longer changes; any thread may read it."""
    place = f"file:{quote(path.absolute().as_posix())}?mode=ro&immutable=1"
    try:
        return sqlite3.connect(place, uri=True, check_same_thread=False)
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be read: {error}; {REMEDY}.") from error


def link_or_copy(old: Path, new: Path) -> None:
    """Let two generations share a file, if the file system has links."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)
