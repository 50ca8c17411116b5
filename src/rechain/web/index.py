"""The questions that are served and the chains of each source, in a database that lives as long as the server."""

from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from json import dumps, loads
from sqlite3 import Connection
from typing import Any, NamedTuple

from rechain.datasets import Entry
from rechain.errors import QuestionError
from rechain.evaluation.judging import judge
from rechain.schema import Chain, Gold, Problem, Question, Recovered, Shape, Verdict
from rechain.text.words import Text
from rechain.web.queries import Filters, Judgement, Order
from rechain.web.temporary import TemporaryDatabase

PAGE_SIZE = 25
_SHOWN_TEXT, _SHOWN_TITLE = 300, 80
"""characters of a text and of a title in a list: a line or two"""
_AT_ONCE = 100
"""questions whose chains are stored in one transaction: others that store wait no longer than that takes"""
_ADDED_AT_ONCE = 1000
"""questions that are added in one transaction, when nobody waits yet: the log of a transaction is on the disk too"""

# Bodies and chains stand apart, so that lists and counts read small rows only. Words are cut and folded by text.words
# before they are indexed: the tokenizer is set to leave them whole, letters, digits, marks and + # _ alike.
_SCHEMA = """
CREATE TABLE questions (position INTEGER PRIMARY KEY, id TEXT UNIQUE, question TEXT, answer TEXT);
CREATE VIRTUAL TABLE search USING fts5 (words, content='', prefix='1 2 3',
    tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '+#_'");
CREATE TABLE bodies (position INTEGER PRIMARY KEY, question TEXT, problem TEXT, gold TEXT, own TEXT);
CREATE TABLE found (source INTEGER, position INTEGER, summary TEXT, identity TEXT, confidence REAL,
    judgement TEXT, kinds TEXT, error TEXT, verdict TEXT, shape TEXT, PRIMARY KEY (source, position)) WITHOUT ROWID;
CREATE INDEX facets ON found (source, judgement, verdict, shape, confidence, kinds, error IS NULL);
CREATE TABLE chains (source INTEGER, position INTEGER, json TEXT, PRIMARY KEY (source, position));
"""
_BODY = "SELECT position, q.id, b.question, problem, gold, own FROM questions q JOIN bodies b USING (position)"
_QUESTIONS, _FOUND = "questions", "(SELECT * FROM found WHERE source = ?) AS found USING (position)"
_ORDERS: dict[Order, str] = {
    "file": "position",
    "least confident": "confidence IS NULL, confidence, position",
    "most confident": "confidence IS NULL, confidence DESC, position",
}


class Row(NamedTuple):
    """A question in a list, with the best chain of one source."""

    position: int
    id: str
    question: str
    answer: str
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


class Stored(NamedTuple):
    """A question, or why it cannot be read, its gold if there is any, and its position."""

    position: int
    id: str
    content: Question | QuestionError
    gold: Gold | None
    own: frozenset[str] | None = None
    """where passages were found in an index: the ids of those that the question itself has; else None"""


class Index:
    """Questions in the order of their file, their chains from each source, and quick ways to select them."""

    def __init__(self) -> None:
        database = TemporaryDatabase(_SCHEMA)
        self._transaction, self._read = database.transaction, database.read
        self.close = database.close

    def add(self, entries: Iterable[tuple[Entry, Gold | None]]) -> None:
        """Add questions; one whose id is taken, or that has none, is named after its position."""
        rest = enumerate(entries, start=len(self))
        while batch := list(islice(rest, _ADDED_AT_ONCE)):
            with self._transaction() as connection:
                for position, (entry, gold) in batch:
                    _add(connection, position, entry, gold)

    def __len__(self) -> int:
        return int(self._read("SELECT count(*) FROM questions")[0][0])

    def ids(self) -> list[str]:
        """Return the ids of all questions, in order."""
        return [name for (name,) in self._read("SELECT id FROM questions ORDER BY position")]

    def at(self, position: int) -> Stored:
        """Return the question at a position."""
        return _stored(*self._read(f"{_BODY} WHERE position = ?", position)[0])

    def named(self, name: str) -> Stored | None:
        """Return the question with an id, or None."""
        rows = self._read(f"{_BODY} WHERE id = ?", name)
        return _stored(*rows[0]) if rows else None

    def store(self, source: int, found: Iterable[tuple[Stored, Recovered]]) -> None:
        """Store the chains of some questions from a source."""
        rest = iter(found)
        while batch := list(islice(rest, _AT_ONCE)):
            rows = [(source, stored.position, *_summary(stored, recovered)) for stored, recovered in batch]
            chains = [(source, stored.position, recovered.model_dump_json()) for stored, recovered in batch]
            with self._transaction() as connection:
                connection.executemany("INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
                connection.executemany("INSERT OR REPLACE INTO chains VALUES (?, ?, ?)", chains)

    def recovered(self, source: int, position: int) -> Recovered | None:
        """Return the chains of a question from a source, or None if it has none yet."""
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
        tables, where, values = _matching(source, filters)
        ((total,),) = self._read(f"SELECT count(*) FROM {tables} WHERE {where}", *values)
        if filters.order != "file" and tables == _QUESTIONS:
            tables, values = f"{_QUESTIONS} LEFT JOIN {_FOUND}", [source, *values]
        rows = self._read(
            f"SELECT position FROM {tables} WHERE {where} ORDER BY {_ORDERS[filters.order]} LIMIT ? OFFSET ?",
            *values,
            PAGE_SIZE,
            (page - 1) * PAGE_SIZE,
        )
        return Listing(self._rows(source, [position for (position,) in rows]), total)

    def _rows(self, source: int, positions: Sequence[int]) -> list[Row]:
        """Return the questions at some positions, in their order."""
        rows = self._read(
            "SELECT q.position, q.id, q.question, q.answer, "
            "f.summary, f.confidence, f.judgement, f.error, f.verdict, f.shape "
            "FROM questions q LEFT JOIN found f ON f.source = ? AND f.position = q.position "
            f"WHERE q.position IN ({', '.join('?' * len(positions))})",
            source,
            *positions,
        )
        by_position = {row[0]: Row._make(row) for row in rows}
        return [by_position[position] for position in positions]

    def neighbours(self, source: int, filters: Filters, position: int) -> tuple[str | None, str | None]:
        """Return the ids of the questions before and after one in the file, of those that are filters."""
        table, where, values = _matching(source, filters)
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
        """Return how many best chains of a source are right, and how many were judged."""
        rows = dict(self._read("SELECT judgement, count(*) FROM found WHERE source = ? GROUP BY judgement", source))
        return rows.get("right", 0), rows.get("right", 0) + rows.get("wrong", 0)

    def judgements(self, one: int, two: int) -> dict[tuple[str, str], int]:
        """Count the questions by the judgements on two sources: right, wrong or not judged ("")."""
        rows = self._read(
            "SELECT coalesce(a.judgement, ''), coalesce(b.judgement, ''), count(*) FROM found a "
            "JOIN found b USING (position) WHERE a.source = ? AND b.source = ? GROUP BY 1, 2",
            one,
            two,
        )
        return {(first, second): count for first, second, count in rows}

    def compare(self, one: int, two: int, comparison: str, page: int = 1) -> tuple[list[Pair], int]:
        """Return a page of the questions whose best chains of two sources compare so, and how many there are."""
        tables = "found a JOIN found b USING (position) JOIN questions q USING (position)"
        where = f"a.source = ? AND b.source = ? AND {COMPARISONS[comparison]}"
        ((total,),) = self._read(f"SELECT count(*) FROM {tables} WHERE {where}", one, two)
        rows = self._read(
            "SELECT q.id, q.question, a.summary, b.summary, a.judgement, b.judgement "
            f"FROM {tables} WHERE {where} ORDER BY q.position LIMIT ? OFFSET ?",
            one,
            two,
            PAGE_SIZE,
            (page - 1) * PAGE_SIZE,
        )
        return [Pair._make(row) for row in rows], total


def _add(connection: Connection, position: int, entry: Entry, gold: Gold | None) -> None:
    name = entry.id or f"#{position + 1}"
    while connection.execute("SELECT 1 FROM questions WHERE id = ?", (name,)).fetchone():
        name = f"{name} #{position + 1}"
    content = entry.content
    if isinstance(content, Question) and content.id != name:  # so that its labels are its own
        content = content.model_copy(update={"id": name})
    text, answer, words = _listed(name, content)
    connection.execute("INSERT INTO questions VALUES (?, ?, ?, ?)", (position, name, text, answer))
    connection.execute("INSERT INTO search (rowid, words) VALUES (?, ?)", (position, words))
    own = None if entry.own is None else dumps(sorted(entry.own))
    body = (position, *_columns(content), None if gold is None else gold.model_dump_json(), own)
    connection.execute("INSERT INTO bodies VALUES (?, ?, ?, ?, ?)", body)


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


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _listed(name: str, content: Question | QuestionError) -> tuple[str, str, str]:
    """Return a question and its answer as they are listed, and the words by which it is found."""
    if isinstance(content, QuestionError):
        return _short(str(content), _SHOWN_TEXT), "", Text(f"{name} {content}").joined
    titles = " ".join(passage.title for passage in content.passages)
    words = Text(f"{name} {content.question} {content.answer} {titles}").joined
    return _short(content.question, _SHOWN_TEXT), _short(content.answer, _SHOWN_TEXT), words


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
    error = None if chain else recovered.error.message if recovered.error else "no chain"
    judgement = None
    if stored.gold is not None:
        judgement = "right" if judge(chain, stored.gold).correct else "wrong"
    if chain is None:
        return None, None, None, judgement, "", error, recovered.verdict, None
    kinds = "".join(f"|{link.kind}|" for link in chain.links)
    summary = _in_one_line(stored, chain)
    return summary, dumps(chain.identity), chain.confidence, judgement, kinds, error, recovered.verdict, chain.shape


def _in_one_line(stored: Stored, chain: Chain) -> str:
    """Return the titles, or ids, of a chain's passages and the entities that link them."""
    passages = stored.content.passages if isinstance(stored.content, Question) else ()
    titles = {passage.id: passage.title for passage in passages}
    names = [_short(titles.get(name) or name, _SHOWN_TITLE) for name in chain.passages]
    if chain.shape == "parallel":
        return " | ".join(names)
    links = [f" —{_short(link.entity, _SHOWN_TITLE)}→ " for link in chain.links]
    links += [" → "] * (len(names) - 1 - len(links))
    return "".join(name + link for name, link in zip_longest(names, links[: len(names) - 1], fillvalue=""))


def _matching(source: int, filters: Filters) -> tuple[str, str, list[Any]]:
    """Return the table and the condition that select the positions of the questions, and the condition's values."""
    conditions, values = list[str](), list[Any]()

    def demand(condition: str, *value: Any) -> None:
        conditions.append(condition)
        values.extend(value)

    if filters.min_confidence is not None:
        demand("confidence >= ?", filters.min_confidence)
    if filters.max_confidence is not None:
        demand("confidence <= ?", filters.max_confidence)
    if filters.judgement is not None:
        demand("judgement = ?", filters.judgement)
    if filters.verdict is not None:
        demand("verdict = ?", filters.verdict)
    if filters.shape is not None:
        demand("shape = ?", filters.shape)
    if filters.kind is not None:
        demand("instr(kinds, ?)", f"|{filters.kind}|")
    if filters.has_chain is not None:
        demand("error IS NULL" if filters.has_chain else "error IS NOT NULL")
    if conditions:  # `found` alone then answers, from its index; a join would read every question
        conditions.insert(0, "source = ?")
        values.insert(0, source)
    table = "found" if conditions else _QUESTIONS
    if words := _telling(Text(filters.text).words):
        prefixes = " ".join(f'"{word}"*' for word in words)
        demand("position IN (SELECT rowid FROM search WHERE search MATCH ?)", prefixes)
    return table, " AND ".join(conditions) or "1", values


def _telling(words: Iterable[str]) -> list[str]:
    """Leave out words that others begin with, or repeat: what begins with "parental" begins with "par" too."""
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    telling: list[str] = []
    for word in longest_first:
        if not any(longer.startswith(word) for longer in telling):
            telling.append(word)
    return telling
