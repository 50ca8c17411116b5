"""One part of an index: a folder of the search engine, mapped into memory, that several processes read at once."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, Protocol

import tantivy
from tantivy import Occur, Query

from rechain.errors import InputError
from rechain.retrieval.fields import schema
from rechain.retrieval.vectors import Near, Vectors
from rechain.system.tensors import Array

_EXTRA = 8
"""hits beyond the limit that are fetched, among which ties at the limit are looked for"""
_MOST_TIES = 4_096
"""passages of one score that are put in order: a question without telling words may match all of a collection alike"""
_PREFERRED = 1_000.0
"""what a preferred passage scores beside its words, whose score stays far below"""
_DIGITS = 3
"""decimals of scores that count: the engine adds in an order that depends on how an index grew, in 32 bits"""


class Condition(NamedTuple):
    """Something of which a passage has to hold one value at least."""

    field: Literal["phrase", "name", "entity", "line", "id"]
    values: tuple[str, ...]
    """folded words with single blanks between them; entities and ids as they are"""


class Ask(NamedTuple):
    """What is sought: the passages that fulfil all conditions, those first that hold most of the words."""

    words: tuple[str, ...]
    must: tuple[Condition, ...] = ()
    prefer: Condition | None = None
    """passages that fulfil it come first"""
    limit: int = 20


class Hit(NamedTuple):
    """A passage that was found."""

    score: float
    """BM25 of the words, to three decimals"""
    order: int
    """by which passages of the same score are ordered"""
    is_preferred: bool
    record: bytes
    """the passage as JSON"""


class Shard(Protocol):
    """A part of an index, here or on another machine, or several that answer as one."""

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        """Return the best passages for each of some asks."""
        ...

    def count(self, conditions: Sequence[Condition]) -> list[int]:
        """Return how many passages hold the one value of each of some conditions."""
        ...

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
        """Return the passages that are nearest each of some vectors, [queries, dimensions]."""
        ...


class LocalShard:
    """A part of an index in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        """Open it; the files are mapped, and only what is asked for is read."""
        self._folder = folder
        self._vectors: Vectors | None = None
        self._schema = schema()
        with self._reading(), _lockable(folder) as place:
            index = tantivy.Index.open(str(place))
            index.config_reader("manual")  # the folder of one generation never changes
            self._searcher = index.searcher()

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        """Return the best passages for each of some asks."""
        with self._reading():
            return [self._search(ask) for ask in asks]

    def count(self, conditions: Sequence[Condition]) -> list[int]:
        """Return how many passages hold the one value of each of some conditions."""
        with self._reading():
            return [self._count(condition.field, condition.values[0]) for condition in conditions]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Say in one sentence what the engine says of files that are missing or damaged."""
        try:
            yield
        except BaseException as error:
            # The engine has no class of its own, and at damaged files it panics, which is no Exception, or returns less
            # than it was asked for.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"{self._folder} is no readable part of an index ({reason}); remove the index and build it again."
            ) from error

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
        """Return the passages that are nearest each of some vectors, [queries, dimensions]."""
        self._vectors = self._vectors or Vectors(self._folder)
        return self._vectors.nearest(queries, limit)

    def _count(self, field: str, value: str) -> int:
        if field == "phrase" and " " in value:
            return int(self._searcher.search(self._phrase(value), 1, count=True).count)  # type: ignore[attr-defined]
        return self._searcher.doc_freq("words" if field == "phrase" else field, value)

    def _search(self, ask: Ask) -> list[Hit]:
        query = self._query(ask)
        if query is None:
            return []
        found = self._best(query, ask.limit)
        hits = []
        for score, order, address in found[: ask.limit]:
            is_preferred = ask.prefer is not None and score >= _PREFERRED
            record = record_at(self._searcher, address)
            hits.append(Hit(score - _PREFERRED if is_preferred else score, order, is_preferred, record))
        return hits

    def _best(self, query: Query, limit: int) -> list[tuple[float, int, tantivy.DocAddress]]:
        """Return the best of all matches, and those tied with the last; equal scores by `order`."""
        wanted = limit + _EXTRA
        while True:
            hits = self._searcher.search(query, wanted, count=False).hits
            scores = [round(score, _DIGITS) for score, _ in hits]
            is_whole = len(hits) < wanted or scores[-1] < scores[limit - 1]
            if is_whole or wanted >= _MOST_TIES:
                break
            wanted *= 8
        addresses = [address for _, address in hits]
        orders = self._searcher.fast_field_values("order", addresses) if addresses else []
        ranked = sorted(zip(scores, orders, range(len(hits)), strict=True), key=lambda hit: (-hit[0], hit[1]))
        return [(score, int(order or 0), addresses[number]) for score, order, number in ranked]

    def _query(self, ask: Ask) -> Query | None:
        """Return an ask in the engine's form; None where it asks for nothing."""
        parts = [(Occur.Should, self._term("words", word, "freq")) for word in ask.words]
        if not parts and not ask.must:
            return None
        for condition in ask.must:
            if not condition.values:
                return None
            parts.append((Occur.Must, Query.const_score_query(self._any(condition), 0.0)))
        if ask.prefer and ask.prefer.values:
            parts.append((Occur.Should, Query.const_score_query(self._any(ask.prefer), _PREFERRED)))
        return Query.boolean_query(parts)

    def _any(self, condition: Condition) -> Query:
        if condition.field != "phrase":
            # Most names in a text are no titles: to look each up first takes half the time of a query for all.
            known = [value for value in condition.values if self._searcher.doc_freq(condition.field, value)]
            return Query.term_set_query(self._schema, condition.field, known)
        phrases = [self._phrase(phrase) for phrase in condition.values]
        return phrases[0] if len(phrases) == 1 else Query.boolean_query([(Occur.Should, one) for one in phrases])

    def _phrase(self, phrase: str) -> Query:
        words: list[str | tuple[int, str]] = [*phrase.split()]
        return (
            self._term("words", str(words[0])) if len(words) == 1 else Query.phrase_query(self._schema, "words", words)
        )

    def _term(self, field: str, value: str, option: str = "basic") -> Query:
        return Query.term_query(self._schema, field, value, option)


@contextmanager
def _lockable(folder: Path) -> Iterator[Path]:
    """Yield a folder in which the engine can make the lock that it takes while it opens the files.

    Where nobody may write, as on a disk that is only read, this is a folder of links to the files. Once they are open
    it is not needed any more.
    """
    if os.access(folder, os.W_OK) or not folder.is_dir():
        yield folder
        return
    with TemporaryDirectory(prefix="rechain-") as temporary:
        for path in folder.absolute().iterdir():
            if path.suffix != ".lock":  # left by one who could write
                Path(temporary, path.name).symlink_to(path)
        yield Path(temporary)


def record_at(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> bytes:
    """Return the record of a passage."""
    return bytes(searcher.doc(address)["record"][0])
