"""The questions that are explored and the chains found for them, in a database that lives as long as the server.

It stands in a temporary file that SQLite itself removes, so that memory does not grow with the questions.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from json import dumps
from threading import RLock
from typing import Any, Literal, NamedTuple

from rechain.datasets import Entry
from rechain.errors import QuestionError
from rechain.evaluation.judging import judge
from rechain.schema import Chain, Gold, LinkKind, Problem, Question, Recovered
from rechain.text.words import Text

PAGE_SIZE = 25
_SHOWN_TEXT, _SHOWN_TITLE = 300, 80
_AT_ONCE = 100

Verdict = Literal["right", "wrong"]
Order = Literal["file", "least confident", "most confident"]

_SCHEMA = """
CREATE TABLE questions (position INTEGER PRIMARY KEY, id TEXT UNIQUE, question TEXT, answer TEXT);
CREATE VIRTUAL TABLE search USING fts5 (words, content='', prefix='2 3',
    tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '+#_'");
CREATE TABLE bodies (position INTEGER PRIMARY KEY, question TEXT, problem TEXT, gold TEXT);
CREATE TABLE found (source INTEGER, position INTEGER, summary TEXT, identity TEXT, confidence REAL,
    verdict TEXT, kinds TEXT, error TEXT, PRIMARY KEY (source, position)) WITHOUT ROWID;
CREATE INDEX facets ON found (source, verdict, confidence, kinds, error IS NULL);
CREATE TABLE chains (source INTEGER, position INTEGER, json TEXT, PRIMARY KEY (source, position));
"""
_QUESTIONS, _FOUND = "questions", "(SELECT * FROM found WHERE source = ?) AS found USING (position)"
_ORDERS: dict[Order, str] = {
    "file": "position",
    "least confident": "confidence IS NULL, confidence, position",
    "most confident": "confidence IS NULL, confidence DESC, position",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which questions are listed; None and an empty text: whatever it is."""

    text: str = ""
    """words that question, answer, id or titles hold"""
    min_confidence: float | None = None
    max_confidence: float | None = None
    verdict: Verdict | None = None
    kind: LinkKind | None = None
    """a kind of link that the best chain has"""
    chain: bool | None = None
    """whether there is a chain"""
    order: Order = "file"


class Row(NamedTuple):
    """A question as it is listed, with the best chain of one source."""

    position: int
    id: str
    question: str
    answer: str
    summary: str | None
    confidence: float | None
    verdict: Verdict | None
    error: str | None


class Listing(NamedTuple):
    """A page of questions, and how many there are on all pages."""

    rows: list[Row]
    total: int


class Pair(NamedTuple):
    """A question as it is compared, with the best chains of two sources."""

    id: str
    question: str
    one: str | None
    two: str | None
    one_verdict: Verdict | None
    two_verdict: Verdict | None


class Stored(NamedTuple):
    """A question, or why it cannot be read, its gold if that is known, and its place."""

    position: int
    id: str
    content: Question | QuestionError
    gold: Gold | None


class Index:
    """Questions in the order of their file, what was found for them by each source, and quick ways to select them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._connection = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._connection.executescript(_SCHEMA)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def add(self, entries: Iterable[tuple[Entry, Gold | None]]) -> None:
        """Add questions; one whose id is taken, or that has none, is known by its place."""
        with self._transaction() as connection:
            for position, (entry, gold) in enumerate(entries, start=len(self)):
                name = entry.id or f"#{position + 1}"
                while connection.execute("SELECT 1 FROM questions WHERE id = ?", (name,)).fetchone():
                    name = f"{name} #{position + 1}"
                content = _named(name, entry.content)
                asked, answer, words = _told(name, content)
                connection.execute("INSERT INTO questions VALUES (?, ?, ?, ?)", (position, name, asked, answer))
                connection.execute("INSERT INTO search (rowid, words) VALUES (?, ?)", (position, words))
                body = (position, *_written(content), None if gold is None else gold.model_dump_json())
                connection.execute("INSERT INTO bodies VALUES (?, ?, ?, ?)", body)

    def __len__(self) -> int:
        return int(self._read("SELECT count(*) FROM questions")[0][0])

    def ids(self) -> list[str]:
        """Return the ids of all questions, in order."""
        return [name for (name,) in self._read("SELECT id FROM questions ORDER BY position")]

    def at(self, position: int) -> Stored:
        """Return the question at a place."""
        ((name, question, problem, gold),) = self._read(
            "SELECT q.id, b.question, problem, gold FROM questions q JOIN bodies b USING (position) WHERE position = ?",
            position,
        )
        told = None if gold is None else Gold.model_validate_json(gold)
        return Stored(position, name, _as_written(question, problem), told)

    def named(self, name: str) -> Stored | None:
        """Return the question of an id, or None."""
        found = self._read("SELECT position FROM questions WHERE id = ?", name)
        return self.at(found[0][0]) if found else None

    def store(self, source: int, found: Iterable[tuple[Stored, Recovered]]) -> None:
        """Keep what a source has found for some questions; readers wait for no more than a few of them."""
        given = iter(found)
        while some := list(islice(given, _AT_ONCE)):
            rows = [(source, stored.position, *_summary(stored, recovered)) for stored, recovered in some]
            chains = [(source, stored.position, recovered.model_dump_json()) for stored, recovered in some]
            with self._transaction() as connection:
                connection.executemany("INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
                connection.executemany("INSERT OR REPLACE INTO chains VALUES (?, ?, ?)", chains)

    def recovered(self, source: int, position: int) -> Recovered | None:
        """Return what a source has found for a question, or None if it has not looked yet."""
        found = self._read("SELECT json FROM chains WHERE source = ? AND position = ?", source, position)
        return Recovered.model_validate_json(found[0][0]) if found else None

    def count_found(self, source: int) -> int:
        """Return for how many questions a source has looked."""
        return int(self._read("SELECT count(*) FROM found WHERE source = ?", source)[0][0])

    def missing(self, source: int, after: int, most: int) -> list[int]:
        """Return the first places from `after` on for which a source has not looked yet."""
        rows = self._read(
            "SELECT position FROM questions q WHERE position >= ? AND NOT EXISTS "
            "(SELECT 1 FROM found f WHERE f.source = ? AND f.position = q.position) ORDER BY position LIMIT ?",
            after,
            source,
            most,
        )
        return [position for (position,) in rows]

    def select(self, source: int, wanted: Filter, page: int = 1) -> Listing:
        """Return a page of the questions that are wanted, with what a source has found."""
        tables, where, values = _matching(source, wanted)
        ((total,),) = self._read(f"SELECT count(*) FROM {tables} WHERE {where}", *values)
        if wanted.order != "file" and tables == _QUESTIONS:
            tables, values = f"{_QUESTIONS} LEFT JOIN {_FOUND}", [source, *values]
        places = self._read(
            f"SELECT position FROM {tables} WHERE {where} ORDER BY {_ORDERS[wanted.order]} LIMIT ? OFFSET ?",
            *values,
            PAGE_SIZE,
            (page - 1) * PAGE_SIZE,
        )
        return Listing(self._rows(source, [place for (place,) in places]), total)

    def _rows(self, source: int, places: Sequence[int]) -> list[Row]:
        """Return the questions at some places, in their order."""
        rows = self._read(
            "SELECT q.position, q.id, q.question, q.answer, f.summary, f.confidence, f.verdict, f.error "
            "FROM questions q LEFT JOIN found f ON f.source = ? AND f.position = q.position "
            f"WHERE q.position IN ({', '.join('?' * len(places))})",
            source,
            *places,
        )
        known = {row[0]: Row._make(row) for row in rows}
        return [known[place] for place in places]

    def neighbours(self, source: int, wanted: Filter, position: int) -> tuple[str | None, str | None]:
        """Return the ids of the questions before and after one in the file, of those that are wanted."""
        table, where, values = _matching(source, wanted)
        before, after = (
            self._read(
                f"SELECT id FROM questions WHERE position = "
                f"(SELECT {end}(position) FROM {table} WHERE {where} AND position {side} ?)",
                *values,
                position,
            )
            for end, side in (("max", "<"), ("min", ">"))
        )
        return (before[0][0] if before else None), (after[0][0] if after else None)

    def accuracy(self, source: int) -> tuple[int, int]:
        """Return for how many questions the best chain of a source is right, and for how many that is known."""
        rows = dict(self._read("SELECT verdict, count(*) FROM found WHERE source = ? GROUP BY verdict", source))
        return rows.get("right", 0), rows.get("right", 0) + rows.get("wrong", 0)

    def verdicts(self, one: int, two: int) -> dict[tuple[str, str], int]:
        """Count the questions on which two sources are right, wrong or not judged ("")."""
        rows = self._read(
            "SELECT coalesce(a.verdict, ''), coalesce(b.verdict, ''), count(*) FROM found a "
            "JOIN found b USING (position) WHERE a.source = ? AND b.source = ? GROUP BY 1, 2",
            one,
            two,
        )
        return {(first, second): count for first, second, count in rows}

    def compare(self, one: int, two: int, wanted: str, page: int = 1) -> tuple[list[Pair], int]:
        """Return a page of the questions for which two sources have looked, by how their best chains compare."""
        tables = "found a JOIN found b USING (position) JOIN questions q USING (position)"
        where = f"a.source = ? AND b.source = ? AND {COMPARISONS[wanted]}"
        ((total,),) = self._read(f"SELECT count(*) FROM {tables} WHERE {where}", one, two)
        rows = self._read(
            "SELECT q.id, q.question, a.summary, b.summary, a.verdict, b.verdict "
            f"FROM {tables} WHERE {where} ORDER BY q.position LIMIT ? OFFSET ?",
            one,
            two,
            PAGE_SIZE,
            (page - 1) * PAGE_SIZE,
        )
        return [Pair._make(row) for row in rows], total


_SAME = "(a.identity IS b.identity)"
COMPARISONS = {
    "different": f"NOT {_SAME}",
    "same": _SAME,
    "only the first right": "a.verdict = 'right' AND b.verdict = 'wrong'",
    "only the second right": "a.verdict = 'wrong' AND b.verdict = 'right'",
    "both right": "a.verdict = 'right' AND b.verdict = 'right'",
    "both wrong": "a.verdict = 'wrong' AND b.verdict = 'wrong'",
    "all": "1",
}
"""by what is asked for, the condition on found a and b"""


def _named(name: str, content: Question | QuestionError) -> Question | QuestionError:
    """Return a question under the name by which it is known here, so that its labels are its own."""
    if isinstance(content, QuestionError) or content.id == name:
        return content
    return content.model_copy(update={"id": name})


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _told(name: str, content: Question | QuestionError) -> tuple[str, str, str]:
    """Return what is listed of a question, and the words by which it is found."""
    if isinstance(content, QuestionError):
        return _short(str(content), _SHOWN_TEXT), "", Text(f"{name} {content}").joined
    titles = " ".join(passage.title for passage in content.passages)
    words = Text(f"{name} {content.question} {content.answer} {titles}").joined
    return _short(content.question, _SHOWN_TEXT), _short(content.answer, _SHOWN_TEXT), words


def _written(content: Question | QuestionError) -> tuple[str | None, str | None]:
    if isinstance(content, QuestionError):
        return None, Problem.of(content).model_dump_json()
    return content.model_dump_json(exclude_defaults=True), None


def _as_written(question: str | None, problem: str | None) -> Question | QuestionError:
    if problem is not None:
        told = Problem.model_validate_json(problem)
        return QuestionError(told.code, told.message)
    return Question.model_validate_json(question or "")


def _summary(stored: Stored, recovered: Recovered) -> tuple[Any, ...]:
    """Return what is listed of a question's best chain, in the order of the columns of `found`."""
    chain = recovered.chains[0] if recovered.chains else None
    error = None if chain else recovered.error.message if recovered.error else "no chain"
    verdict = None
    if stored.gold is not None:
        verdict = "right" if judge(chain, stored.gold).correct else "wrong"
    if chain is None:
        return None, None, None, verdict, "", error
    kinds = "".join(f"|{link.kind}|" for link in chain.links)
    return _drawn(stored, chain), dumps(chain.identity), chain.confidence, verdict, kinds, error


def _drawn(stored: Stored, chain: Chain) -> str:
    """Return a chain in one line: its passages' titles, or ids, and what links them."""
    passages = stored.content.passages if isinstance(stored.content, Question) else ()
    titles = {passage.id: passage.title for passage in passages}
    names = [_short(titles.get(name) or name, _SHOWN_TITLE) for name in chain.passages]
    links = [f" —{_short(link.entity, _SHOWN_TITLE)}→ " for link in chain.links]
    links += [" → "] * (len(names) - 1 - len(links))
    return "".join(name + link for name, link in zip_longest(names, links[: len(names) - 1], fillvalue=""))


def _matching(source: int, wanted: Filter) -> tuple[str, str, list[Any]]:
    """Return the table and the condition that tell the places of the questions that are wanted, and its values."""
    conditions, values = list[str](), list[Any]()

    def demand(condition: str, *value: Any) -> None:
        conditions.append(condition)
        values.extend(value)

    if wanted.min_confidence is not None:
        demand("confidence >= ?", wanted.min_confidence)
    if wanted.max_confidence is not None:
        demand("confidence <= ?", wanted.max_confidence)
    if wanted.verdict is not None:
        demand("verdict = ?", wanted.verdict)
    if wanted.kind is not None:
        demand("instr(kinds, ?)", f"|{wanted.kind}|")
    if wanted.chain is not None:
        demand("error IS NULL" if wanted.chain else "error IS NOT NULL")
    if conditions:  # on what was found
        conditions.insert(0, "source = ?")
        values.insert(0, source)
    table = "found" if conditions else _QUESTIONS
    if words := Text(wanted.text).words:
        prefixes = " ".join(f'"{word}"*' for word in words)
        demand("position IN (SELECT rowid FROM search WHERE search MATCH ?)", prefixes)
    return table, " AND ".join(conditions) or "1", values
