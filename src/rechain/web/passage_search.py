"""The words of all passages, so that questions are found by what stands in them."""

from hashlib import blake2b
from sqlite3 import Connection

from rechain.schema import Passage
from rechain.text.words import Text

# `detail=none` keeps which passages hold a word and not where, which is all that is asked for; more, or beginnings of
# other lengths than two letters, would take twice as long to build.
SCHEMA = """
CREATE TABLE passages (number INTEGER PRIMARY KEY, digest BLOB UNIQUE);
CREATE TABLE holds (passage INTEGER, position INTEGER, place INTEGER, PRIMARY KEY (passage, position)) WITHOUT ROWID;
CREATE INDEX passages_of ON holds (position);
CREATE VIRTUAL TABLE passage_search USING fts5 (words, content='', columnsize=0, detail=none, prefix='2',
    tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '+#_'");
"""
_AT_ONCE = 500
"""passages that are looked up by one query"""


def add_passages(connection: Connection, position: int, passages: list[Passage]) -> None:
    """Add the passages of the question at a position; one that other questions have too is not read again."""
    texts = {place: f"{passage.title}\n{passage.text}" for place, passage in enumerate(passages)}
    digests = {place: _digest(text) for place, text in texts.items()}
    numbers = _known(connection, list(digests.values()))
    ((last,),) = connection.execute("SELECT coalesce(max(number), 0) FROM passages")
    new = list[tuple[int, bytes, str]]()
    for place, digest in digests.items():
        if digest not in numbers:
            numbers[digest] = last + len(new) + 1
            new.append((numbers[digest], digest, Text(texts[place]).joined))
    connection.executemany("INSERT INTO passages VALUES (?, ?)", ((number, digest) for number, digest, _ in new))
    words = ((number, joined) for number, _, joined in new)
    connection.executemany("INSERT INTO passage_search (rowid, words) VALUES (?, ?)", words)
    holds = ((numbers[digest], position, place) for place, digest in digests.items())
    connection.executemany("INSERT OR IGNORE INTO holds VALUES (?, ?, ?)", holds)


def _known(connection: Connection, digests: list[bytes]) -> dict[bytes, int]:
    """Return the numbers of those passages that are there already."""
    known: dict[bytes, int] = {}
    for first in range(0, len(digests), _AT_ONCE):
        some = digests[first : first + _AT_ONCE]
        wanted = ", ".join("?" * len(some))
        known |= connection.execute(f"SELECT digest, number FROM passages WHERE digest IN ({wanted})", some).fetchall()
    return known


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
