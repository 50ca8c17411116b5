"""An output folder of numbered parts. Each is whole or not there, so that a run can go on with those that are missing.

Part by part, in the order of their names, the folder holds what one file would.
"""

import io
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from rechain.bulk import PartFormat
from rechain.bulk.storage import Storage
from rechain.bulk.work import Tally, Worker
from rechain.datasets.files import read_opened
from rechain.datasets.reading import Chunk
from rechain.errors import RechainError
from rechain.exports import parquet
from rechain.schema import Recovered
from rechain.version import __version__

_MADE_BY = "_rechain.json"
"""says what the parts are made of and how"""
_SIZES = "questions"
"""under which it names the files of questions, with their sizes"""
_NO_SIZE = -1
_FINISHED = "_SUCCESS"
"""stands there when all parts do, as Spark and others have it"""
_PART = r"\d{5}-\d{6}\.\w+"
_OURS = re.compile(rf"{_PART}|\.{_PART}\.[0-9a-f]{{16}}|{_MADE_BY}|{_FINISHED}")
"""what this command makes; a hidden part is one that a process left behind that was killed while writing it"""
_MOST_FILES, _MOST_PARTS = 10**5, 10**6
"""so many have names that sort in their order"""
_ORDER_OF_DELETION = {_FINISHED: 0, _MADE_BY: 2}
"""first what says that all is there, last what says whose it is"""


class Origin(NamedTuple):
    """What parts are made of, and how."""

    questions: Mapping[str, int]
    """the sizes of the files by their names"""
    options: Mapping[str, Any]


class Found(NamedTuple):
    """What is there already of an output folder."""

    parts: frozenset[str] = frozenset()
    """the names of its parts and of whatever else is in it"""
    changed: frozenset[str] = frozenset()
    """files of questions that have another size than when their parts were made, or could not be read to their end"""


class PartsFolder:
    """Takes what was recovered, part by part."""

    def __init__(self, address: str, form: PartFormat) -> None:
        """Name a folder; it need not be there."""
        self.storage = Storage(address)
        self._address = self.storage.address_of("")
        self._form = form

    def look(self, origin: Origin, overwrite: bool, resume: bool) -> Found:
        """Return what is there already, and change nothing; it must be such as may be replaced or gone on with."""
        there = frozenset(name for name in self.storage.files() if not name.startswith("."))  # such as half a file
        if there and _MADE_BY not in there:
            raise RechainError(f"{self._address} is there and was not made by this command; name another folder.")
        if not there or overwrite:
            return Found(there)
        if not resume:
            raise RechainError(
                f"{self._address} exists; name another folder, replace it with --overwrite, "
                "or go on with it with --resume."
            )
        then, now = (_read(text) for text in (self.storage.read(_MADE_BY), self._described(origin)))
        before, after = then.pop(_SIZES, {}), now.pop(_SIZES)
        if before.keys() != after.keys() or then != now:
            raise RechainError(
                f"{self._address} was begun with another input, model or option (see {_MADE_BY} in it); "
                "name another folder, or replace it with --overwrite."
            )
        return Found(there, frozenset(name for name, size in after.items() if before[name] != size))

    def begin(self, origin: Origin, found: Found, overwrite: bool) -> None:
        """Say what parts will be made of, having deleted others where that is wanted."""
        if overwrite:
            ours = filter(_OURS.fullmatch, self.storage.files())
            for name in sorted(ours, key=lambda name: _ORDER_OF_DELETION.get(name, 1)):
                self.storage.delete(name)
        elif _FINISHED in found.parts:
            self.storage.delete(_FINISHED)
        if overwrite or not found.parts:
            self.storage.write(_MADE_BY, self._described(origin))

    def doubt(self, origin: Origin, found: Found, files: Collection[str]) -> None:
        """Say that the parts of some files are to be looked at again, as those of files that have changed are."""
        doubted = dict.fromkeys((*found.changed, *files), _NO_SIZE)
        self.storage.write(_MADE_BY, self._described(origin._replace(questions={**origin.questions, **doubted})))

    def finish(self, origin: Origin) -> None:
        """Say that all parts are there, and that there is no doubt any more."""
        self.storage.write(_MADE_BY, self._described(origin))
        self.storage.write(_FINISHED, b"")

    def _described(self, origin: Origin) -> bytes:
        all_of_it = {**origin.options, _SIZES: origin.questions, "format": self._form, "rechain": __version__}
        return orjson.dumps(all_of_it, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS, default=_plain)

    def delete_from(self, file: int, part: int, found: Found) -> None:
        """Delete the parts that were found of a file from this one on: it no longer has so many."""
        first = self.name(file, part)
        for name in found.parts:
            if name >= first and name.partition("-")[0] == first.partition("-")[0]:
                self.storage.delete(name)

    def ids(self, name: str) -> list[str | None]:
        """Return the ids of the questions of a part that is there."""
        with self.storage.open(name) as file:
            records = [record.parsed().value for record in read_opened(name, file, 0)]
        return [record.get("id") if isinstance(record, dict) else None for record in records]

    def name(self, file: int, part: int) -> str:
        """Return the name of a part, by the number of the file that it is made from and its own within that."""
        if file >= _MOST_FILES or part >= _MOST_PARTS:
            raise RechainError(
                f"there can be {_MOST_FILES:,} files of {_MOST_PARTS:,} parts; join files, or make --part-size larger."
            )
        return f"{file:05d}-{part:06d}.{self._form}"

    def make(self, name: str, chunks: Sequence[Chunk], worker: Worker) -> Tally:
        """Recover the chains of chunks and write them."""
        tally = Tally()
        recovered = [each for chunk in chunks for each in worker.recovered(chunk)]
        for each in recovered:
            tally.count(each)
        self.storage.write(name, self._content(recovered))
        return tally

    def _content(self, recovered: Sequence[Recovered]) -> bytes:
        if self._form == PartFormat.jsonl:
            return "".join(each.to_json() + "\n" for each in recovered).encode()
        file = io.BytesIO()
        parquet.write_to(file, recovered)
        return file.getvalue()


def _read(text: bytes) -> dict[str, Any]:
    """Return what a folder is made of; nothing, where somebody has changed that by hand."""
    try:
        read = orjson.loads(text)
    except orjson.JSONDecodeError:
        read = {}
    return read if isinstance(read, dict) and isinstance(read.get(_SIZES), dict) else {}


def _plain(value: Any) -> Any:
    """Return a value that JSON does not know as one that it does, always the same way."""
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
