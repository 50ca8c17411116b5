"""What is whole of a damaged file of labels, copied into a new one."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rechain.errors import InputError
from rechain.labels.database import Database
from rechain.labels.integrity import CHANGE, CLAIM, EVENT, digest, restore_labels
from rechain.labels.store import label_of

_SMALLEST_EVENT = 64
"""bytes: no event takes fewer, so that the size of a file bounds how many can be sought in it"""


class Repaired(NamedTuple):
    """How many events were copied, and how many were not, as far as is known."""

    copied: int
    lost: int


def repair(damaged: Path, new: Path) -> Repaired:
    """Copy every event, and every claim, that is as it was written into a new file; the damaged one stays as it is."""
    if new.exists():
        raise InputError(f"{new} exists already; name a new file.")
    try:
        with TemporaryDirectory() as folder:
            events, last, claims, changes = _read(_copy(damaged, Path(folder)))
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"nothing of {damaged} can be read ({error}); put a backup in its place.") from error
    if not events:
        raise InputError(f"no event of {damaged} is whole; put a backup in its place.")
    database = Database(new)
    with database.writing() as connection:
        # numbered anew, as the log has no gaps
        rows = [(seq, *event[1:]) for seq, event in enumerate(events, start=1)]
        connection.executemany(
            f"INSERT INTO events VALUES ({'?, ' * len(rows[0])}?)", [(*row, digest(*row)) for row in rows]
        )
        connection.executemany("INSERT INTO claims VALUES (?, ?, ?, ?)", [(*claim, digest(*claim)) for claim in claims])
        places = {event[0]: seq for seq, event in enumerate(events, start=1)}
        for number, at, annotator, name, changed in changes:
            kept = json.dumps([places[seq] for seq in json.loads(changed) if seq in places])
            change = number, at, annotator, name, kept
            connection.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?)", (*change, digest(*change)))
        restore_labels(connection)
    database.close()
    return Repaired(len(events), max(last - len(events), 0))


def _copy(damaged: Path, folder: Path) -> Path:
    """Copy a file and its journal: SQLite may roll back a write that was cut off, and nothing else should change."""
    copied = folder / "labels"
    shutil.copyfile(damaged, copied)
    with suppress(OSError):  # mostly there is no journal, and a bad one is no reason to give up
        shutil.copyfile(damaged.with_name(f"{damaged.name}-journal"), copied.with_name(f"{copied.name}-journal"))
    return copied


def _read(path: Path) -> tuple[list[Any], int, list[Any], list[Any]]:
    """Return the events that are whole, the number of the last one, and the claims and changes that are whole."""
    most = path.stat().st_size // _SMALLEST_EVENT
    with closing(sqlite3.connect(path)) as database:
        has_digests = database.execute("PRAGMA user_version").fetchone()[0] != 1
        lasts = [
            row[0]
            for statement in ("SELECT MAX(seq) FROM sqlite_sequence", "SELECT MAX(seq) FROM events")
            for row in _rows(database, statement)
            if isinstance(row[0], int)
        ]
        last = min(max(lasts, default=most), most)
        # one by one: a page that cannot be read takes only its own events away
        statement = f"SELECT {EVENT}{', digest' if has_digests else ''} FROM events WHERE seq = ?"
        rows = (row for seq in range(1, last + 1) for row in _rows(database, statement, seq))
        events = [row[:10] for row in rows if _is_whole_event(row if has_digests else (*row, digest(*row)))]
        claims, changes = (
            [
                row[:-1]
                for row in _rows(database, f"SELECT {columns}, digest FROM {table}")
                if digest(*row[:-1]) == row[-1]
            ]
            for table, columns in (("claims", CLAIM), ("changes", CHANGE))
        )
    return events, last, claims, changes


def _rows(database: sqlite3.Connection, statement: str, *values: object) -> Iterator[Any]:
    """Yield the rows of a statement until one cannot be read."""
    with suppress(sqlite3.Error, UnicodeDecodeError):
        yield from database.execute(statement, values)


def _is_whole_event(row: Any) -> bool:
    try:
        label_of(row)
    except (ValueError, TypeError):
        return False
    return True
