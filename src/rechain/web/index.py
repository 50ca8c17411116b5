"""The questions that are served and the chains of each source, in a database that lives as long as the server."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, zip_longest
from json import dumps, loads
from sqlite3 import Connection
from threading import Lock
from typing import Any, NamedTuple

import orjson

from rechain.answers.claims import read_answer
from rechain.datasets import Entry
from rechain.errors import QuestionError
from rechain.evaluation.judging import judge
from rechain.schema import Chain, Gold, Problem, Question, Recovered, Shape, Verdict
from rechain.text.segments import has_chinese
from rechain.text.words import Text
from rechain.web import passage_search
from rechain.web.bounded import BoundedCache
from rechain.web.figures import ALIKE, MOST_TYPES, TYPES, Figures, sum_up
from rechain.web.names import Names, short
from rechain.web.passage_search import add_passages
from rechain.web.queries import Filters, Judgement, Order
from rechain.web.selection import CANNOT, TABLES, condition, ordering
from rechain.web.temporary import DatabaseReader, TemporaryDatabase

PAGE_SIZE = 25
_SHOWN_TEXT, _SHOWN_TITLE = 300, 40
"""characters of a text and of a title in a list: a line or two"""
_AT_ONCE = 100
"""questions whose chains are stored in one transaction: others that store wait no longer than that takes"""
_ADDED_AT_ONCE = 1000
"""questions that are added in one transaction, when nobody waits yet: the log of a transaction is on the disk too"""
_REMEMBERED = 100
"""questions that were read last and are kept as they are: whoever looks at one often looks at it again"""

# Bodies and chains stand apart, so that lists and counts read small rows only. Words are cut and folded by text.words
# before they are indexed: the tokenizer is set to leave them whole, letters, digits, marks and + # _ alike.
_SCHEMA = """
CREATE TABLE questions (position INTEGER PRIMARY KEY, id TEXT UNIQUE, question TEXT, answer TEXT, type TEXT,
    hops INTEGER, obstacle TEXT);
CREATE VIRTUAL TABLE search USING fts5 (words, content='', prefix='1 2 3',
    tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '+#_'");
CREATE TABLE bodies (position INTEGER PRIMARY KEY, question TEXT, problem TEXT, gold TEXT, own TEXT);
CREATE TABLE found (source INTEGER, position INTEGER, summary TEXT, identity TEXT, confidence REAL,
    judgement TEXT, kinds TEXT, error TEXT, verdict TEXT, shape TEXT, tenth INTEGER, length INTEGER, code TEXT,
    PRIMARY KEY (source, position)) WITHOUT ROWID;
CREATE TABLE chains (source INTEGER, position INTEGER, json TEXT, PRIMARY KEY (source, position));
"""
_BODY = "SELECT position, q.id, b.question, problem, gold, own FROM questions q JOIN bodies b USING (position)"
_MOST_POSITIONS, _MOST_FIGURES = 4_000_000, 2_500
"""positions of selections and properties of figures that are kept, as they may be asked for again: 16 MB and some"""


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


class Stored(NamedTuple):
    """A question, or why it cannot be read, its gold if there is any, and its position."""

    position: int
    id: str
    content: Question | QuestionError
    gold: Gold | None
    own: frozenset[str] | None = None
    """where passages were found in an index: the ids of those that the question itself has; else None"""


@dataclass(frozen=True)
class Marks:
    """What changes whenever questions or chains are added: what was worked out before then holds no more."""

    change: int = 0
    """the number of the last change of anything"""
    addition: int = 0
    """the number of the last change of the questions"""
    stores: Mapping[int, int] = field(default_factory=dict)
    """the number of the last change of the chains of each source"""
    confident: frozenset[int] = frozenset()
    """the sources that tell the confidence of a chain"""
    has_chinese: bool = False
    """whether a passage has Chinese text, for which a dictionary is loaded: seconds that no page should wait for"""

    def of(self, source: int) -> tuple[int, int]:
        """Return what changes whenever questions, or chains of one source, are added."""
        return self.addition, self.stores.get(source, 0)


class IndexReader:
    """Questions in the order of their file, their chains from each source, and quick ways to select them.

    It reads the database of an `Index`, which may be another process's, and holds what that was when it was told last.
    """

    def __init__(self, database: DatabaseReader, marks: Marks | None = None) -> None:
        self._database = database
        self._read = database.read
        self.marks = marks or Marks()
        """of what is in the database, at least; a process that only reads has to be told of others"""
        self._stored = lru_cache(_REMEMBERED)(self._read_stored)
        self._chains = lru_cache(_REMEMBERED)(self._read_chains)
        self._count = lru_cache(1)(self._read_count)
        self._selections: BoundedCache[Sequence[int]] = BoundedCache(_MOST_POSITIONS, len)
        self._figures: BoundedCache[Figures] = BoundedCache(_MOST_FIGURES, len)

    def __reduce__(self) -> tuple[type["IndexReader"], tuple[DatabaseReader, Marks]]:
        """Return how another process makes one."""
        return IndexReader, (DatabaseReader(self._database.path), self.marks)

    def __len__(self) -> int:
        return self._count(self.marks.addition)

    def _read_count(self, _: int) -> int:
        return int(self._read("SELECT count(*) FROM questions")[0][0])

    def ids(self, order: Order = "file") -> list[str]:
        """Return the ids of all questions, in order; confidence is that of the first source."""
        if order == "file":
            return [name for (name,) in self._read("SELECT id FROM questions ORDER BY position")]
        in_order = ordering(Filters(order=order))
        return [name for (name,) in self._read(f"SELECT q.id FROM {TABLES} ORDER BY {in_order}", 0)]

    def at(self, position: int) -> Stored:
        """Return the question at a position."""
        return self._stored(position)

    def _read_stored(self, position: int) -> Stored:
        return _stored(*self._read(f"{_BODY} WHERE position = ?", position)[0])

    def named(self, name: str) -> Stored | None:
        """Return the question with an id, or None."""
        rows = self._read("SELECT position FROM questions WHERE id = ?", name)
        return self._stored(rows[0][0]) if rows else None

    def recovered(self, source: int, position: int) -> Recovered | None:
        """Return the chains of a question from a source, or None if it has none yet."""
        return self._chains(source, position, self.marks.of(source))

    def _read_chains(self, source: int, position: int, _: tuple[int, int]) -> Recovered | None:
        rows = self._read("SELECT json FROM chains WHERE source = ? AND position = ?", source, position)
        return Recovered.model_validate_json(rows[0][0]) if rows else None

    def count_found(self, source: int) -> int:
        """Return how many questions a source has looked at, whether it found a chain or not."""
        return int(self._read("SELECT count(*) FROM found WHERE source = ?", source)[0][0])

    def missing(self, source: int, after: int, most: int) -> list[int]:
        """Return the first positions from `after` on that a source has not looked at yet."""
        rows = self._read(
            "SELECT position FROM questions q WHERE position >= ? AND NOT EXISTS "
            "(SELECT 1 FROM found f WHERE f.source = ? AND f.position = q.position) ORDER BY position LIMIT ?",
            after,
            source,
            most,
        )
        return [position for (position,) in rows]

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
        key = (self.marks.of(source), source, chosen, filters.order, filters.reverse)
        return self._selections.get(
            key, lambda: array("I", (position for (position,) in self._read(query, source, *values)))
        )

    def figures(self, source: int, filters: Filters) -> Figures:
        """Return how many of the questions that pass some filters are of each kind, by each of their properties."""
        key = (self.marks.of(source), source, filters.chosen)

        def read() -> Figures:
            positions = dumps(list(self.positions(source, filters)))
            return sum_up(self._read(ALIKE, source, positions), self._read(TYPES, source, positions, MOST_TYPES + 1))

        return self._figures.get(key, read)

    def rows(self, source: int, positions: Sequence[int]) -> list[Row]:
        """Return the questions at some positions, in their order."""
        rows = self._read(
            "SELECT q.position, q.id, q.question, q.answer, q.type, q.hops, "
            f"f.summary, f.confidence, f.judgement, f.error, f.verdict, f.shape FROM {TABLES} "
            f"WHERE q.position IN ({', '.join('?' * len(positions))})",
            source,
            *positions,
        )
        by_position = {row[0]: Row._make(row) for row in rows}
        return [by_position[position] for position in positions]

    def neighbours(self, source: int, filters: Filters, position: int) -> tuple[str | None, str | None]:
        """Return the ids of the questions before and after one, of those that pass some filters, in their order.

        One that does not pass them itself has its neighbours in the file; in any other order it has no place.
        """
        positions = self.positions(source, filters)
        if filters.order == "file" and not filters.reverse:
            before, after = bisect_left(positions, position) - 1, bisect_right(positions, position)
        elif position in positions:
            before, after = positions.index(position) - 1, positions.index(position) + 1
        else:
            return None, None
        return self._name(positions, before), self._name(positions, after)

    def _name(self, positions: Sequence[int], place: int) -> str | None:
        """Return the id of the question at a place of a list, or None beyond its ends."""
        if not 0 <= place < len(positions):
            return None
        return str(self._read("SELECT id FROM questions WHERE position = ?", positions[place])[0][0])

    def passages(self, position: int) -> list[tuple[str, str]]:
        """Return title and text of the passages of the question at a position; none of one that cannot be read."""
        ((question,),) = self._read("SELECT question FROM bodies WHERE position = ?", position)
        records = orjson.loads(question)["passages"] if question else []  # a few of a whole list: too many to validate
        return [(record.get("title", ""), record["text"]) for record in records]

    def passages_with(self, words: str, positions: Sequence[int]) -> dict[int, int]:
        """Return the first passages that match a full-text query, by its place, of the questions at some positions."""
        # the sign keeps SQLite from going through all that match instead of through these questions' passages
        rows = self._read(
            f"SELECT position, min(place) FROM holds WHERE position IN ({', '.join('?' * len(positions))}) "
            "AND +passage IN (SELECT rowid FROM passage_search WHERE passage_search MATCH ?) GROUP BY position",
            *positions,
            words,
        )
        return dict(rows)

    def has_confidence(self, source: int) -> bool:
        """Return whether a source tells the confidence of a chain."""
        return source in self.marks.confident

    def judgements(self, one: int, two: int) -> dict[tuple[str, str], int]:
        """Count the questions by the judgements on two sources: right, wrong or not judged ("")."""
        rows = self._read(
            "SELECT coalesce(a.judgement, ''), coalesce(b.judgement, ''), count(*) FROM found a "
            "JOIN found b USING (position) WHERE a.source = ? AND b.source = ? GROUP BY 1, 2",
            one,
            two,
        )
        return {(first, second): count for first, second, count in rows}

    def count_compared(self, one: int, two: int, comparison: str) -> int:
        """Return how many questions there are whose best chains of two sources compare so."""
        return int(self._read(f"SELECT count(*) {_COMPARED} {COMPARISONS[comparison]}", one, two)[0][0])

    def compare(self, one: int, two: int, comparison: str, page: int = 1) -> list[Pair]:
        """Return a page of the questions whose best chains of two sources compare so."""
        rows = self._read(
            "SELECT q.id, q.question, a.summary, b.summary, a.judgement, b.judgement "
            f"{_COMPARED} {COMPARISONS[comparison]} ORDER BY q.position LIMIT ? OFFSET ?",
            one,
            two,
            PAGE_SIZE,
            (page - 1) * PAGE_SIZE,
        )
        return [Pair._make(row) for row in rows]

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


class Index(IndexReader):
    """What an `IndexReader` reads, in a database of its own, to which questions and chains are added."""

    def __init__(self) -> None:
        database = TemporaryDatabase(_SCHEMA + passage_search.SCHEMA)
        super().__init__(database)
        self._transaction, self.close = database.transaction, database.close
        self.unreadable: set[str] = set()
        """the ids of the questions that cannot be read"""
        self._noting = Lock()

    def add(self, entries: Iterable[tuple[Entry, Gold | None]]) -> None:
        """Add questions; one whose id is taken, or that has none, is named after its position."""
        rest = enumerate(entries, start=len(self))
        while batch := list(islice(rest, _ADDED_AT_ONCE)):
            with self._transaction() as connection:
                for position, (entry, gold) in batch:
                    name = _add(connection, position, entry, gold)
                    if isinstance(entry.content, QuestionError):
                        self.unreadable.add(name)
            self._note_change(has_chinese=any(_has_chinese(entry.content) for _, (entry, _) in batch))

    def store(self, source: int, found: Iterable[tuple[Stored, Recovered]]) -> None:
        """Store the chains of some questions from a source."""
        rest = iter(found)
        while batch := list(islice(rest, _AT_ONCE)):
            rows = [(source, stored.position, *_summary(stored, recovered)) for stored, recovered in batch]
            chains = [(source, stored.position, recovered.model_dump_json()) for stored, recovered in batch]
            with self._transaction() as connection:
                connection.executemany(f"INSERT OR REPLACE INTO found VALUES ({', '.join('?' * 13)})", rows)
                connection.executemany("INSERT OR REPLACE INTO chains VALUES (?, ?, ?)", chains)
            has_confidence = any(one.chains and one.chains[0].confidence is not None for _, one in batch)
            self._note_change(source, has_confidence)

    def _note_change(self, source: int | None = None, has_confidence: bool = False, has_chinese: bool = False) -> None:
        """Say that questions or, of a source, chains have been added."""
        with self._noting:
            marks, number = self.marks, self.marks.change + 1
            if source is None:
                has_chinese |= marks.has_chinese
                self.marks = replace(marks, change=number, addition=number, has_chinese=has_chinese)
            else:
                confident = marks.confident | {source} if has_confidence else marks.confident
                self.marks = replace(marks, change=number, stores={**marks.stores, source: number}, confident=confident)


def _add(connection: Connection, position: int, entry: Entry, gold: Gold | None) -> str:
    """Add a question; return the name that it has here."""
    name = entry.id or f"#{position + 1}"
    while connection.execute("SELECT 1 FROM questions WHERE id = ?", (name,)).fetchone():
        name = f"{name} #{position + 1}"
    content = entry.content
    if isinstance(content, Question) and content.id != name:  # so that its labels are its own
        content = content.model_copy(update={"id": name})
    text, answer, words = _listed(name, content)
    listed = (position, name, text, answer, *_properties(content, gold))
    connection.execute("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?)", listed)
    connection.execute("INSERT INTO search (rowid, words) VALUES (?, ?)", (position, words))
    if isinstance(content, Question):
        add_passages(connection, position, content.passages)
    own = None if entry.own is None else dumps(sorted(entry.own))
    body = (position, *_columns(content), None if gold is None else gold.model_dump_json(), own)
    connection.execute("INSERT INTO bodies VALUES (?, ?, ?, ?, ?)", body)
    return name


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


def _listed(name: str, content: Question | QuestionError) -> tuple[str, str, str]:
    """Return a question and its answer as they are listed, and the words by which it is found."""
    if isinstance(content, QuestionError):
        return short(str(content), _SHOWN_TEXT), "", Text(f"{name} {content}").joined
    titles = " ".join(passage.title for passage in content.passages)
    words = Text(f"{name} {content.question} {content.answer} {titles}").joined
    return short(content.question, _SHOWN_TEXT), short(content.answer, _SHOWN_TEXT), words


def _properties(content: Question | QuestionError, gold: Gold | None) -> tuple[str | None, int | None, str | None]:
    """Return a question's type, how many passages its chain has, and why it cannot have one, each where it is known."""
    kind = (content.type or "").strip() if isinstance(content, Question) else ""
    hops = content.hops if isinstance(content, Question) else None
    if hops is None and gold is not None and gold.chains:
        hops = min(len(chain.passages) for chain in gold.chains)
    return short(kind, _SHOWN_TEXT) or None, hops, _obstacle(content)


def _obstacle(content: Question | QuestionError) -> str | None:
    """Return why a question cannot have a chain, or None."""
    if isinstance(content, QuestionError):
        return "unreadable"
    if not content.passages or len(content.passages) < (content.hops or 1):
        return "too_few_passages"
    if content.answer_entity is None and read_answer(content.question, content.answer).kind == "none":
        return "no_answer"
    return None


def _has_chinese(content: Question | QuestionError) -> bool:
    return isinstance(content, Question) and any(has_chinese(passage.text) for passage in content.passages)


def _columns(content: Question | QuestionError) -> tuple[str | None, str | None]:
    if isinstance(content, QuestionError):
        return None, Problem.of(content).model_dump_json()
    return content.model_dump_json(exclude_defaults=True), None


def _stored(
    position: int, name: str, question: str | None, problem: str | None, gold: str | None, own: str | None
) -> Stored:
    content: Question | QuestionError
    if problem is None:
        content = Question.model_validate_json(question or "")
    else:
        error = Problem.model_validate_json(problem)
        content = QuestionError(error.code, error.message)
    known_gold = None if gold is None else Gold.model_validate_json(gold)
    return Stored(position, name, content, known_gold, None if own is None else frozenset(loads(own)))


def _summary(stored: Stored, recovered: Recovered) -> tuple[Any, ...]:
    """Return the row of `found` of a question's best chain, without source and position."""
    chain = recovered.chains[0] if recovered.chains else None
    if chain is None:
        code, message = (recovered.error.code, recovered.error.message) if recovered.error else ("no_chain", "no chain")
        # where there can be no chain, nothing can be right: such questions are counted apart, neither right nor wrong
        is_judged = stored.gold is not None and (_obstacle(stored.content) or code) not in CANNOT
        judgement = "wrong" if is_judged else None
        return None, None, None, judgement, "", message, recovered.verdict, None, None, None, code
    judgement = None
    if stored.gold is not None:
        judgement = "right" if judge(chain, stored.gold).correct else "wrong"
    return (
        _in_one_line(stored, chain),
        dumps(chain.identity),
        chain.confidence,
        judgement,
        "".join(f"|{kind}|" for kind in sorted({link.kind for link in chain.links})),
        None,
        recovered.verdict,
        chain.shape,
        None if chain.confidence is None else min(int(chain.confidence * 10), 9),
        len(chain.passages),
        None,
    )


def _in_one_line(stored: Stored, chain: Chain) -> str:
    """Return the names of a chain's passages and of the entities that link them."""
    names = Names(stored.content) if isinstance(stored.content, Question) else None
    passages = [short(names.passage(name) if names else name, _SHOWN_TITLE) for name in chain.passages]
    if chain.shape == "parallel":
        return " | ".join(passages)
    entities = [names.link(chain, n) if names else link.entity for n, link in enumerate(chain.links_in_order)]
    links = [f" —{short(entity, _SHOWN_TITLE)}→ " for entity in entities]
    links += [" → "] * (len(passages) - 1 - len(links))
    return "".join(name + link for name, link in zip_longest(passages, links, fillvalue=""))
