"""The parts of an index: folders of the search engine (tantivy), which several processes map into their memory."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, Protocol

import orjson
import tantivy
from tantivy import Occur, Query

from rechain.errors import InputError
from rechain.index.vectors import REMEDY, Near, Vectors, link_or_copy
from rechain.schema import Passage
from rechain.system.files import short_hash
from rechain.system.processes import usable_cores
from rechain.system.tensors import Array
from rechain.text.passage_views import PassageView, find_lines

_EXTRA = 8
"""hits beyond the limit that are fetched, to find ties at the limit"""
_MOST_TIES = 4_096
"""passages of one score that are put in order: a question without telling words may match all of a collection alike"""
_PREFERRED = 1_000.0
"""the score of a preferred passage, added to that of its words, which is far lower"""
_DIGITS = 3
"""decimals of scores that count: the engine adds in an order that depends on how an index grew, in 32 bits"""

_LONGEST_WORD = 200
"""characters: longer words are data, which no question contains, and would fill the dictionary"""
_HEAP = 200_000_000
"""bytes in which the engine gathers passages before it writes a segment: more are no faster, and fewer make more work
of merging"""
_LEAST_HEAP = 15_000_000
"""bytes a thread, the least that the engine takes"""
_COPIED = (".json",)
"""what the engine replaces; its other files never change, so that two generations can share them"""


class Condition(NamedTuple):
    """Values of which a passage must contain at least one."""

    field: Literal["phrase", "name", "entity", "line", "id"]
    values: tuple[str, ...]
    """folded words with single blanks between them; entities and ids as they are"""


class Ask(NamedTuple):
    """A query: the passages that fulfil all conditions, those with most of the words first."""

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
    """by which passages of the same score are ordered, a hash of the id: nothing that depends on how an index grew"""
    is_preferred: bool
    record: bytes
    """the passage as JSON"""


def read_passage(record: bytes) -> Passage:
    """Return a passage of an index; what is there was checked when it was built."""
    try:
        fields = orjson.loads(record)
    except ValueError as error:
        raise InputError(f"an index is damaged: a passage is no JSON ({error}); {REMEDY}.") from error
    return Passage.model_validate(fields) if fields.get("mentions") else Passage.model_construct(**fields)


def shard_name(number: int) -> str:
    """Return the name of a shard's folder."""
    return f"shard-{number}"


class Shard(Protocol):
    """A part of an index, here or on another machine, or several that answer as one."""

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        """Return the best passages for each query."""

    def count(self, conditions: Sequence[Condition]) -> list[int]:
        """Return how many passages contain the one value of each condition."""

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
        """Return the passages that are nearest each vector, [queries, dimensions]."""


class LocalShard:
    """A part of an index in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        """Open it; the files are mapped, and only what a query needs is read."""
        self._folder = folder
        self._vectors: Vectors | None = None
        self._schema = schema()
        with self._reading(), _lockable(folder) as place:
            index = tantivy.Index.open(str(place))
            index.config_reader("manual")  # the folder of one generation never changes
            self._searcher = index.searcher()

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        with self._reading():
            return [self._search(ask) for ask in asks]

    def count(self, conditions: Sequence[Condition]) -> list[int]:
        with self._reading():
            return [self._count(condition.field, condition.values[0]) for condition in conditions]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of the engine over missing or damaged files into one sentence."""
        try:
            yield
        except BaseException as error:
            # The engine has no error class, and over damaged files it panics, which is no Exception, or returns less
            # than it should.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"{self._folder} is no readable part of an index ({reason}); remove the index and build it again."
            ) from error

    def nearest(self, queries: Array, limit: int) -> list[list[Near]]:
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
        number = ask.limit + _EXTRA
        while True:  # until all that are tied with the last are among the matches
            matches = self._searcher.search(query, number, count=False).hits
            scores = [round(score, _DIGITS) for score, _ in matches]
            is_whole = len(matches) < number or scores[-1] < scores[ask.limit - 1]
            if is_whole or number >= _MOST_TIES:
                break
            number *= 8
        addresses = [address for _, address in matches]
        orders = self._searcher.fast_field_values("order", addresses) if addresses else []
        ranked = sorted(zip(scores, orders, range(len(matches)), strict=True), key=lambda match: (-match[0], match[1]))
        hits = []
        for score, order, place in ranked[: ask.limit]:
            is_preferred = ask.prefer is not None and score >= _PREFERRED
            record = record_at(self._searcher, addresses[place])
            hits.append(Hit(score - _PREFERRED if is_preferred else score, int(order or 0), is_preferred, record))
        return hits

    def _query(self, ask: Ask) -> Query | None:
        """Return a query in the engine's form; None if it asks for nothing."""
        parts = [(Occur.Should, Query.term_query(self._schema, "words", word, "freq")) for word in ask.words]
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
            values = [value for value in condition.values if self._searcher.doc_freq(condition.field, value)]
            return Query.term_set_query(self._schema, condition.field, values)
        phrases = [self._phrase(phrase) for phrase in condition.values]
        return phrases[0] if len(phrases) == 1 else Query.boolean_query([(Occur.Should, one) for one in phrases])

    def _phrase(self, phrase: str) -> Query:
        words: list[str | tuple[int, str]] = [*phrase.split()]
        if len(words) == 1:
            return Query.term_query(self._schema, "words", str(words[0]), "basic")
        return Query.phrase_query(self._schema, "words", words)


@contextmanager
def _lockable(folder: Path) -> Iterator[Path]:
    """Yield a folder in which the engine can make the lock that it takes while it opens the files.

    If the folder is read-only, this is a folder of links to the files, which is not needed once they are open.
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


def schema() -> tantivy.Schema:
    """Return the fields of an index."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    # Our own folded words, parted by blanks, with positions: what is a word is decided in one place, `text/words`.
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="position")
    for field in ("name", "entity", "line"):
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("order", fast=True)
    builder.add_bytes_field("record", stored=True)
    return builder.build()


def document(passage: Passage, record: bytes) -> tantivy.Document:
    """Return a passage as the engine takes it; `record` is what it gives back."""
    view = PassageView(passage)
    words = f"{view.title.joined}|{view.text.joined}"  # no phrase reaches from one to the other
    if not passage.text.isascii():  # of scripts without blanks, also the pairs by which they compare
        words = " ".join((words, *sorted(set(view.terms) - view.vocabulary)))
    if len(words) > _LONGEST_WORD and max(map(len, words.split())) > _LONGEST_WORD:
        words = " ".join(word for word in words.split() if len(word) <= _LONGEST_WORD)
    fields = tantivy.Document()
    fields.add_text("id", passage.id)
    fields.add_text("words", words)
    for name in view.names:
        fields.add_text("name", name.strip())
    for entity in view.entities:
        fields.add_text("entity", entity)
    for line in set(find_lines(passage.text)):
        fields.add_text("line", line)
    fields.add_unsigned("order", short_hash(passage.id))
    fields.add_bytes("record", record)
    return fields


def mark_of(record: bytes) -> bytes:
    """Return a digest of a record; unlike that of a passage it depends on all fields."""
    return blake2b(record, digest_size=16).digest()


class ShardsWriter:
    """The search engine's folders of a new generation, which begin with the content of the old one's."""

    def __init__(self, generation: Path, number: int, before: Path | None) -> None:
        self._before = before
        self._folders = [generation / shard_name(n) for n in range(number)]
        self._writers: dict[int, tantivy.IndexWriter] = {}

    def __enter__(self) -> "ShardsWriter":
        for folder in self._folders:
            folder.mkdir()
            if self._before is None:
                tantivy.Index(schema(), path=str(folder))
                continue
            for path in (self._before / folder.name).iterdir():
                copy = shutil.copyfile if path.suffix in _COPIED else link_or_copy
                copy(path, folder / path.name)
        return self

    def __exit__(self, *error: object) -> None:
        self._writers.clear()

    def add(self, passage: Passage, record: bytes) -> None:
        """Put a passage into its shard."""
        number = self._number(passage.id)
        if number not in self._writers:
            self._writers[number] = self._open_writer(self._folders[number])
        self._writers[number].add_document(document(passage, record))

    def finish(self, dropped: Mapping[str, bytes], mode: int) -> None:
        """Write all that was added, and write the shards again that lose a passage.

        `dropped` are the marks of lost records by id, as an id may come back with another text. The engine lets only
        the owner read some files; they get the given mode.
        """
        for writer in self._writers.values():
            _commit(writer)
        self._writers.clear()
        marks: dict[int, set[bytes]] = {}
        for name, mark in dropped.items():
            marks.setdefault(self._number(name), set()).add(mark)
        for number in marks:
            self._rewrite(self._folders[number], marks[number])
        for folder in self._folders:
            for lock in folder.glob(".tantivy*.lock"):
                lock.unlink()
            for path in folder.iterdir():
                if path.suffix in _COPIED:
                    path.chmod(mode)

    def _number(self, name: str) -> int:
        return short_hash(name) % len(self._folders)

    def _open_writer(self, folder: Path) -> tantivy.IndexWriter:
        threads = max(1, usable_cores() // len(self._folders))
        heap = max(_HEAP // len(self._folders), threads * _LEAST_HEAP)
        return tantivy.Index.open(str(folder)).writer(heap, threads)

    def _rewrite(self, folder: Path, dropped: Set[bytes]) -> None:
        whole = folder.with_name(f"{folder.name}.whole")
        folder.replace(whole)
        folder.mkdir()
        tantivy.Index(schema(), path=str(folder))
        writer = self._open_writer(folder)
        for record in read_records(whole):
            if mark_of(record) not in dropped:
                writer.add_document(document(read_passage(record), record))
        _commit(writer)
        shutil.rmtree(whole)


def _commit(writer: tantivy.IndexWriter) -> None:
    writer.commit()
    writer.wait_merging_threads()


def read_records(folder: Path) -> Iterator[bytes]:
    """Yield the records of all passages in a folder of the engine."""
    searcher = tantivy.Index.open(str(folder)).searcher()
    for _, address in searcher.search(Query.all_query(), max(searcher.num_docs, 1), count=False).hits:
        yield record_at(searcher, address)
