"""Vectors of passages: which of them are near a question in meaning, whatever their words.

    shard-0/vectors.usearch     the vectors, one byte a number, and the graph that leads to near ones
    shard-0/vectors.sqlite      which passage has which key

Both are mapped into memory, so that several processes share them.

A key is the beginning of a passage's digest, so that a passage that has changed has another one: a build keeps the
vectors of the keys that the generation before has, and embeds the rest. The graph depends on the order in which vectors
are added; it is built again, in the order of keys and by one thread, so that results depend on the collection alone,
not on its history.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from heapq import nsmallest
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.schema import Passage
from rechain.system.batches import batches
from rechain.system.tensors import Array

VECTORS, NAMES = "vectors.usearch", "vectors.sqlite"
_FEATURE = "An index with vectors"
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
        ...

    def __call__(self, texts: Sequence[str]) -> Array:
        """Return a vector for each text, [texts, dimensions]."""
        ...


class Near(NamedTuple):
    """A passage that is near a vector."""

    distance: float
    name: str


def text_of(passage: Passage) -> str:
    """Return what of a passage is embedded: its title and the beginning of its text."""
    return f"{passage.title}\n{passage.text}".strip()[:_MOST_CHARACTERS]


def key_of(digest: bytes) -> int:
    """Return the key of a passage of this digest: 63 bits, which SQLite can hold too."""
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
        with closing(_open_names(self._names)) as connection:
            return [self._nearest(query, limit, connection) for query in as_bytes(queries)]

    def _nearest(self, query: Array, limit: int, names: sqlite3.Connection) -> list[Near]:
        assert self._index is not None
        matches = self._index.search(query, limit, threads=1, exact=len(self._index) <= _FEW)
        distances = matches.distances.round(_DIGITS).tolist()
        return sorted(
            Near(distance, _name_of(names, key)) for distance, key in zip(distances, matches.keys.tolist(), strict=True)
        )


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


class VectorWriter:
    """Writes the vectors of a new generation's shards."""

    def __init__(self, embed: Embedder, before: Sequence[Path], report: Callable[[int], None]) -> None:
        """Take the folders of the old shards, if they have the same embedder; `report` takes how many are done."""
        check_extra()
        self._embed, self._before, self._report = embed, before, report

    def write(self, folder: Path, names: Mapping[int, str], read: Callable[[str], Passage]) -> None:
        """Write the vectors of a shard: `names` are the ids of its passages by their keys, which `read` returns."""
        remove_vectors(folder)
        same = next((old for old in self._before if names and _names_in(old) == names), None)
        if same is not None:
            for name in (VECTORS, NAMES):
                link_or_copy(same / name, folder / name)
            self._report(len(names))
        elif names:
            self._write(folder, names, read)

    def _write(self, folder: Path, names: Mapping[int, str], read: Callable[[str], Passage]) -> None:
        old = [_open(path / VECTORS) for path in self._before if (path / VECTORS).exists()]
        index: Any = None
        for keys in batches(sorted(names), _BATCH):
            vectors = self._vectors(keys, old, lambda key: read(names[key]))
            if index is None:
                index = _new_index(vectors.shape[1])
            index.add(np.array(keys, dtype=np.uint64), vectors, threads=1)
            self._report(len(keys))
        index.save(folder / VECTORS)
        with closing(sqlite3.connect(folder / NAMES, isolation_level=None)) as connection:
            connection.execute("CREATE TABLE names (key INTEGER PRIMARY KEY, id TEXT)")
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO names VALUES (?, ?)", sorted(names.items()))
            connection.execute("COMMIT")

    def _vectors(self, keys: Sequence[int], old: Sequence[Any], passage: Callable[[int], Passage]) -> Array:
        """Return the vectors of passages, in bytes; those that no old index has are embedded."""
        known: dict[int, Array] = {}
        for index in old:
            rows = zip(keys, index.get(np.array(keys, dtype=np.uint64)), strict=True)
            known.update({key: row for key, row in rows if row is not None})
        unknown = [key for key in keys if key not in known]
        if unknown:
            vectors = as_bytes(self._embed([text_of(passage(key)) for key in unknown]))
            known.update(zip(unknown, vectors, strict=True))
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


def check_extra() -> None:
    """Raise MissingExtraError if the library of vectors is not installed."""
    try:
        import usearch.index  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(_FEATURE, "vectors") from error


def _new_index(dimensions: int) -> Any:
    from usearch.index import Index

    return Index(ndim=dimensions, metric="cos", dtype="i8")


def _open(path: Path, **options: Any) -> Any:
    """Map a file of vectors into memory."""
    check_extra()
    from usearch.index import Index

    try:
        index = Index.restore(path, view=True, **options)
    except Exception as error:  # the library has no error class
        raise InputError(f"{path} has no readable vectors ({error}); build the index again.") from error
    if index is None:
        raise InputError(f"{path} has no readable vectors; build the index again.")
    return index


def _open_names(path: Path) -> sqlite3.Connection:
    """Open the names of a complete generation, which no longer change."""
    return sqlite3.connect(f"file:{path.absolute().as_posix()}?mode=ro&immutable=1", uri=True)


def _name_of(connection: sqlite3.Connection, key: int) -> str:
    return str(connection.execute("SELECT id FROM names WHERE key = ?", (key,)).fetchone()[0])


def _names_in(folder: Path) -> dict[int, str]:
    """Return the ids of the passages of a shard by their keys."""
    if not (folder / NAMES).exists():
        return {}
    with closing(_open_names(folder / NAMES)) as connection:
        return dict(connection.execute("SELECT key, id FROM names"))


def link_or_copy(old: Path, new: Path) -> None:
    """Let two generations share a file, if the file system has links."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copyfile(old, new)
