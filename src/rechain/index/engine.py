"""The search engine (tantivy): a folder of its files, which several processes map into their memory."""

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple
from urllib.parse import quote

import orjson
import tantivy
from tantivy import Occur, Query

from rechain.errors import InputError
from rechain.schema import Passage
from rechain.system.files import short_hash
from rechain.system.processes import usable_cores
from rechain.text.passage_views import PassageView, find_lines
from rechain.text.values.normal import read_items
from rechain.text.words import Text

REMEDY = "remove the folder and build the index again"

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
_NAME_FIELDS = ("source", "publisher", "author", "site_name")
_DATE_FIELDS = ("date", "published_at", "published", "created_at")
"""fields of a passage of a collection that name where and when it was published"""
_LABEL_WORDS, _LONGEST_DATE = 8, 40
_DATE = re.compile(r"=\d{4}-\d\d(?:-\d\d)?")
_COPIED = (".json",)
"""what the engine replaces; its other files never change, so that two generations can share them"""


Field = Literal["phrase", "name", "entity", "line", "label", "id"]


class Condition(NamedTuple):
    """Values of which a passage must contain at least one."""

    field: Field
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


class Engine:
    """Finds and counts passages in a folder of the engine, which never changes."""

    def __init__(self, folder: Path) -> None:
        """Open it; the files are mapped, and only what a query needs is read."""
        self._folder = folder
        self._schema = schema()
        with self._reading(), _lockable(folder) as place:
            index = tantivy.Index.open(str(place))
            index.config_reader("manual")  # the folder of one generation never changes
            self._searcher = index.searcher()

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        """Return the best passages for each query."""
        with self._reading():
            return [self._search(ask) for ask in asks]

    def count(self, field: Field, value: str) -> int:
        """Return how many passages contain a value."""
        with self._reading():
            if field == "phrase" and " " in value:
                return int(self._searcher.search(self._phrase(value), 1, count=True).count)  # type: ignore[attr-defined]
            return self._searcher.doc_freq("words" if field == "phrase" else field, value)

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
            raise InputError(f"{self._folder} is no readable part of an index ({reason}); {REMEDY}.") from error

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
    for field in ("name", "entity", "line", "label"):
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("order", fast=True)
    builder.add_bytes_field("record", stored=True)
    return builder.build()


def labels_of(passage: Passage) -> set[str]:
    """Return what a question may name of a passage apart from its text: its source, author and date."""
    extra = passage.model_extra or {}
    if not extra or "start" in extra:  # a part of a document, whose `source` is its file
        return set()
    names = {" ".join(Text(str(extra[field])).words[:_LABEL_WORDS]) for field in _NAME_FIELDS if extra.get(field)}
    days = [day for field in _DATE_FIELDS if extra.get(field) for day in dates_in(str(extra[field])[:_LONGEST_DATE])]
    return {*names, *days, *(day[: len("=2023-10")] for day in days)} - {""}


def dates_in(text: str) -> list[str]:
    """Return the days and months that a text names, "=2023-10-05" and "=2023-10"."""
    keys = (key for item in read_items(text) if item.is_value for key in (item.key, *item.others))
    return list(dict.fromkeys(filter(_DATE.fullmatch, keys)))


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
    for label in labels_of(passage):
        fields.add_text("label", label)
    fields.add_unsigned("order", short_hash(passage.id))
    fields.add_bytes("record", record)
    return fields


def mark_of(record: bytes) -> bytes:
    """Return a digest of a record; unlike that of a passage it depends on all fields."""
    return blake2b(record, digest_size=16).digest()


class EngineWriter:
    """The search engine's folder of a new generation, which begins with the content of the old one's."""

    def __init__(self, folder: Path, before: Path | None) -> None:
        self._folder = folder
        self._writer: tantivy.IndexWriter | None = None
        folder.mkdir()
        if before is None:
            tantivy.Index(schema(), path=str(folder))
            return
        for path in before.iterdir():
            copy = shutil.copyfile if path.suffix in _COPIED else link_or_copy
            copy(path, folder / path.name)

    def add(self, passage: Passage, record: bytes) -> None:
        """Add a passage."""
        self._writer = self._writer or _open_writer(self._folder)
        self._writer.add_document(document(passage, record))

    def close(self) -> None:
        """Forget what was added and not finished."""
        self._writer = None

    def finish(self, dropped: Set[bytes], mode: int) -> None:
        """Write all that was added, and write everything again if passages were dropped.

        `dropped` are the marks of their records, as an id may come back with another text. The engine lets only the
        owner read some files; they get the given mode.
        """
        if self._writer:
            _commit(self._writer)
        self.close()
        if dropped:
            self._rewrite(dropped)
        for lock in self._folder.glob(".tantivy*.lock"):
            lock.unlink()
        for path in self._folder.iterdir():
            if path.suffix in _COPIED:
                path.chmod(mode)

    def _rewrite(self, dropped: Set[bytes]) -> None:
        whole = self._folder.with_name(f"{self._folder.name}.whole")
        self._folder.replace(whole)
        self._folder.mkdir()
        tantivy.Index(schema(), path=str(self._folder))
        writer = _open_writer(self._folder)
        for record in read_records(whole):
            if mark_of(record) not in dropped:
                writer.add_document(document(read_passage(record), record))
        _commit(writer)
        shutil.rmtree(whole)


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


def _open_writer(folder: Path) -> tantivy.IndexWriter:
    threads = max(1, usable_cores())
    return tantivy.Index.open(str(folder)).writer(max(_HEAP, threads * _LEAST_HEAP), threads)


def _commit(writer: tantivy.IndexWriter) -> None:
    writer.commit()
    writer.wait_merging_threads()


def read_records(folder: Path) -> Iterator[bytes]:
    """Yield the records of all passages in a folder of the engine."""
    searcher = tantivy.Index.open(str(folder)).searcher()
    for _, address in searcher.search(Query.all_query(), max(searcher.num_docs, 1), count=False).hits:
        yield record_at(searcher, address)
