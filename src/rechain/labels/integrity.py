"""The tables that hold labels, and whether every byte of them is as it was written.

SQLite notices damage to its own structure, not a letter that has changed in a text. So every event and every claim has
a digest of its values; the labels that hold now can be made again from the events, and are compared with them.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

APPLICATION = 0x7265636C
"""marks an SQLite file as one of labels ("recl")"""
VERSION = 3
"""1 had no digests, 2 no changes of annotators"""
EVENT = "seq, at, annotator, question, passages, entities, value, note, settles, undone_at"
CLAIM = "question, annotator, at"
CHANGE = "number, at, annotator, name, events"
_CHANGES = """CREATE TABLE changes (
        number INTEGER PRIMARY KEY, at TEXT NOT NULL, annotator TEXT NOT NULL, name TEXT, events TEXT NOT NULL,
        digest BLOB NOT NULL)"""
_TABLES = (
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, annotator TEXT NOT NULL, question TEXT NOT NULL,
        passages TEXT NOT NULL, entities TEXT NOT NULL, value TEXT NOT NULL CHECK (value IN ('yes', 'no', 'unsure')),
        note TEXT, settles INTEGER NOT NULL CHECK (settles IN (0, 1)), undone_at TEXT, digest BLOB NOT NULL)""",
    "CREATE INDEX events_of_question ON events (question, seq)",
    "CREATE INDEX events_to_undo ON events (annotator, seq) WHERE undone_at IS NULL",
    """CREATE TABLE labels (
        question TEXT NOT NULL, passages TEXT NOT NULL, entities TEXT NOT NULL, annotator TEXT NOT NULL,
        settles INTEGER NOT NULL, mode TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES events (seq),
        PRIMARY KEY (question, passages, entities, annotator, settles)) WITHOUT ROWID""",
    "CREATE INDEX labels_of_annotator ON labels (annotator, mode, settles, question, seq)",
    """CREATE TABLE claims (
        question TEXT PRIMARY KEY, annotator TEXT NOT NULL, at TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID""",
    _CHANGES,
)
_MARKS = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
_HELD = "SELECT question, passages, entities, annotator, settles, mode, seq FROM labels"
_HELD_BY_LOG = """SELECT question, passages, entities, annotator, settles,
    CASE WHEN json_array_length(passages) = 1 AND json_array_length(entities) THEN 'pairs' ELSE 'chains' END, MAX(seq)
    FROM events WHERE undone_at IS NULL GROUP BY question, passages, entities, annotator, settles"""
_CODES_OF_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_MOST_NAMED = 5
"""damaged events that a message names"""


def digest(*values: object) -> bytes:
    """Return the SHA-256 of the values of a row."""
    return sha256(json.dumps(values, default=repr).encode()).digest()


def prepare(database: sqlite3.Connection) -> None:
    """Let statements on a connection use `digest`."""
    database.create_function("digest", -1, digest, deterministic=True)


def create_tables(database: sqlite3.Connection) -> None:
    """Create all tables and mark the file as one of labels; the caller holds the transaction."""
    for statement in (*_TABLES, *_MARKS):
        database.execute(statement)


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Bring the tables of an older version up to date; the caller holds the transaction, so it is all or nothing."""
    if version == 1:
        _add_digests(database)
    else:
        for statement in (_CHANGES, *_MARKS):
            database.execute(statement)


def _add_digests(database: sqlite3.Connection) -> None:
    """Give every event and claim of version 1 its digest."""
    for table, columns in (("events", EVENT), ("claims", CLAIM)):
        database.execute(f"CREATE TEMP TABLE old_{table} AS SELECT {columns} FROM {table}")
    for table in ("labels", "events", "claims"):
        database.execute(f"DROP TABLE main.{table}")
    create_tables(database)
    for table, columns in (("events", EVENT), ("claims", CLAIM)):
        database.execute(f"INSERT INTO {table} SELECT {columns}, digest({columns}) FROM old_{table}")
        database.execute(f"DROP TABLE temp.old_{table}")
    restore_labels(database)


def restore_labels(database: sqlite3.Connection, annotator: str | None = None) -> None:
    """Write which labels hold, after the log of events: those of one annotator, or of all."""
    database.execute("DELETE FROM labels WHERE ?1 IS NULL OR annotator = ?1", (annotator,))
    database.execute(
        f"INSERT INTO labels SELECT * FROM ({_HELD_BY_LOG}) WHERE ?1 IS NULL OR annotator = ?1", (annotator,)
    )


def find_damage(database: sqlite3.Connection) -> str | None:
    """Return what is damaged, or None where every value is as it was written."""
    with snapshot(database):
        return find_structural_damage(database) or _changed_tables(database) or _changed_rows(database)


def damage_of(error: sqlite3.Error | UnicodeDecodeError) -> str | None:
    """Return what an error says about damage, in one line, or None where it is about something else."""
    # Python's own errors have no code, as those of bytes that are no UTF-8; extended codes have it in the low byte.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if isinstance(error, UnicodeDecodeError) or "user-defined function" in str(error):
        return "some of its texts are not UTF-8"
    return " ".join(str(error).split()) if code in _CODES_OF_DAMAGE else None


def find_structural_damage(database: sqlite3.Connection) -> str | None:
    """Return what SQLite itself finds damaged, or None."""
    message = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
    return None if message == "ok" else " ".join(message.split())


def _changed_tables(database: sqlite3.Connection) -> str | None:
    statements = {statement for (statement,) in database.execute("SELECT sql FROM sqlite_master")}
    return None if statements.issuperset(_TABLES) else "its tables are not those of labels"


def _changed_rows(database: sqlite3.Connection) -> str | None:
    condition = f"FROM events WHERE digest IS NOT digest({EVENT})"
    if count := database.execute(f"SELECT COUNT(*) {condition}").fetchone()[0]:
        named = [str(seq) for (seq,) in database.execute(f"SELECT seq {condition} LIMIT {_MOST_NAMED}")]
        total = database.execute("SELECT COUNT(*) FROM events").fetchone()[0]
        places = f"event{'s' if count > 1 else ''} {', '.join(named)}{' and others' if count > _MOST_NAMED else ''}"
        return f"{count} of its {total} events changed after they were written: {places}"
    if database.execute(
        "SELECT (SELECT MAX(seq) FROM events) IS NOT (SELECT MAX(seq) FROM sqlite_sequence)"
    ).fetchone()[0]:
        return "its last events are missing"
    for one, two in ((_HELD, _HELD_BY_LOG), (_HELD_BY_LOG, _HELD)):
        if database.execute(f"SELECT EXISTS (SELECT * FROM ({one}) EXCEPT SELECT * FROM ({two}))").fetchone()[0]:
            return "which labels hold does not follow from its events"
    if database.execute(f"SELECT EXISTS (SELECT 1 FROM claims WHERE digest IS NOT digest({CLAIM}))").fetchone()[0]:
        return "who has claimed which question changed after it was written"
    if database.execute(f"SELECT EXISTS (SELECT 1 FROM changes WHERE digest IS NOT digest({CHANGE}))").fetchone()[0]:
        return "which annotators were renamed or removed changed after it was written"
    return None


@contextmanager
def snapshot(database: sqlite3.Connection) -> Iterator[None]:
    """Let several statements see the same state, whatever other processes write meanwhile."""
    database.execute("BEGIN")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
