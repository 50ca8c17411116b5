"""The tables of the questions that are served and of their chains, and how both become rows.

The words of all passages are indexed too, so that questions are found by them.
"""

from hashlib import blake2b
from json import dumps, loads
from sqlite3 import Connection
from typing import Any, NamedTuple

from rechain.errors import QuestionError
from rechain.evaluation.judging import judge
from rechain.formats.datasets import Entry
from rechain.schema import Chain, Gold, Passage, Problem, Question, Recovered
from rechain.text.answers.claims import read_answer
from rechain.text.words import Text
from rechain.web.chains import best_chain
from rechain.web.filters import CANNOT
from rechain.web.passages import Names, short

_SHOWN_TEXT, _SHOWN_TITLE = 300, 40
"""characters of a text and of a title in a list: a line or two"""

# Bodies and chains have their own tables, so that lists and counts read small rows only. Words are cut and folded by
# text.words before they are indexed: the tokenizer is set to leave them whole, letters, digits, marks and + # _ alike.
# `detail=none` keeps which passages contain a word and not where, which is all that is used; more, or beginnings of
# other lengths than two letters, would take twice as long to build.
SCHEMA = """
CREATE TABLE questions (position INTEGER PRIMARY KEY, id TEXT UNIQUE, question TEXT, answer TEXT, type TEXT,
    hops INTEGER, obstacle TEXT);
CREATE VIRTUAL TABLE search USING fts5 (words, content='', prefix='1 2 3',
    tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '+#_'");
CREATE TABLE bodies (position INTEGER PRIMARY KEY, question TEXT, problem TEXT, gold TEXT, own TEXT);
CREATE TABLE found (source INTEGER, position INTEGER, summary TEXT, identity TEXT, confidence REAL,
    judgement TEXT, kinds TEXT, error TEXT, verdict TEXT, shape TEXT, tenth INTEGER, length INTEGER, code TEXT,
    PRIMARY KEY (source, position)) WITHOUT ROWID;
CREATE TABLE chains (source INTEGER, position INTEGER, json TEXT, PRIMARY KEY (source, position));
CREATE TABLE passages (number INTEGER PRIMARY KEY, digest BLOB UNIQUE);
CREATE TABLE holds (passage INTEGER, position INTEGER, place INTEGER, PRIMARY KEY (passage, position)) WITHOUT ROWID;
CREATE INDEX passages_of ON holds (position);
CREATE VIRTUAL TABLE passage_search USING fts5 (words, content='', columnsize=0, detail=none, prefix='2',
    tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '+#_'");
"""


class Stored(NamedTuple):
    """A question, or why it cannot be read, its gold if there is any, and its position."""

    position: int
    id: str
    content: Question | QuestionError
    gold: Gold | None
    own: frozenset[str] | None = None
    """where passages were found in an index: the ids of those that the question itself has; else None"""

    @property
    def entry(self) -> Entry:
        """The question as a model takes it."""
        return Entry("", self.id, self.content, own=self.own)


def add_question(connection: Connection, position: int, entry: Entry, gold: Gold | None) -> str:
    """Add a question; return the name that it has here."""
    name, content = entry.id or f"#{position + 1}", entry.content
    while connection.execute("SELECT 1 FROM questions WHERE id = ?", (name,)).fetchone():
        name = f"{name} #{position + 1}"
    question, answer, kind, hops, titles, body = str(content), "", "", None, "", None
    if isinstance(content, Question):
        titles = " ".join(passage.title for passage in content.passages)
        question, answer, kind, hops = content.question, content.answer, content.type or "", content.hops
        # with the name that it has here, so that its labels are its own
        body = content.model_copy(update={"id": name}).model_dump_json(exclude_defaults=True)
        _add_passages(connection, position, content.passages)
    if hops is None and gold is not None and gold.chains:
        hops = min(len(chain.passages) for chain in gold.chains)
    kind, *texts = (short(text, _SHOWN_TEXT) for text in (kind.strip(), question, answer))
    listed = position, name, *texts, kind or None, hops, _obstacle(content)
    connection.execute("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?)", listed)
    words = Text(f"{name} {question} {answer} {titles}").joined
    connection.execute("INSERT INTO search (rowid, words) VALUES (?, ?)", (position, words))
    problem = Problem.of(content).model_dump_json() if isinstance(content, QuestionError) else None
    own = None if entry.own is None else dumps(sorted(entry.own))
    row = position, body, problem, None if gold is None else gold.model_dump_json(), own
    connection.execute("INSERT INTO bodies VALUES (?, ?, ?, ?, ?)", row)
    return name


def _add_passages(connection: Connection, position: int, passages: list[Passage]) -> None:
    """Add the passages of the question at a position; one that other questions have too is not indexed again."""
    for place, passage in enumerate(passages):
        text = f"{passage.title}\n{passage.text}"
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = connection.execute("SELECT number FROM passages WHERE digest = ?", (digest,)).fetchone()
        if known is None:
            number = connection.execute("INSERT INTO passages (digest) VALUES (?)", (digest,)).lastrowid
            words = Text(text).joined
            connection.execute("INSERT INTO passage_search (rowid, words) VALUES (?, ?)", (number, words))
        else:
            (number,) = known
        connection.execute("INSERT OR IGNORE INTO holds VALUES (?, ?, ?)", (number, position, place))


def _obstacle(content: Question | QuestionError) -> str | None:
    """Return why a question cannot have a chain, or None."""
    if isinstance(content, QuestionError):
        return "unreadable"
    if not content.passages or len(content.passages) < (content.hops or 1):
        return "too_few_passages"
    if content.answer_entity is None and read_answer(content.question, content.answer).kind == "none":
        return "no_answer"
    return None


def read_stored(
    position: int, name: str, question: str | None, problem: str | None, gold: str | None, own: str | None
) -> Stored:
    """Return a question, given its row."""
    content: Question | QuestionError
    if problem is None:
        content = Question.model_validate_json(question or "")
    else:
        error = Problem.model_validate_json(problem)
        content = QuestionError(error.code, error.message)
    known_gold = None if gold is None else Gold.model_validate_json(gold)
    return Stored(position, name, content, known_gold, None if own is None else frozenset(loads(own)))


def found_row(stored: Stored, recovered: Recovered) -> tuple[Any, ...]:
    """Return the row of `found` of a question's best chain, without source and position."""
    chain = best_chain(recovered)
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
    entities = [names.link(chain, n) if names else link.entity for n, link in enumerate(chain.joining_links)]
    links = [f" —{short(entity, _SHOWN_TITLE)}→ " for entity in entities]
    return chain.write_lines(passages, dict(zip(chain.between, links, strict=True)), " → ")
