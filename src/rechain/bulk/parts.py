"""An output folder of numbered parts. Each is whole or absent, so that a later run can make those that are missing.

Part by part, in the order of their names, the folder holds what one file would.
"""

import io
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from rechain.bulk import FINISHED, MANIFEST, PartFormat
from rechain.bulk.storage import Storage
from rechain.bulk.work import Tally, Worker
from rechain.datasets.files import read_opened
from rechain.datasets.reading import Chunk
from rechain.errors import RechainError
from rechain.exports import parquet
from rechain.version import __version__

_SIZES = "questions"
"""the field of the manifest with the question files and their sizes"""
_NO_SIZE = -1
_PART = r"\d{5}-\d{6}\.\w+"
# What this command makes. A hidden part is half a file, left by a process that was killed while writing it.
_OURS = re.compile(rf"{_PART}|\.{_PART}\.[0-9a-f]{{16}}|{MANIFEST}|{FINISHED}")
# As many as have names that sort in their order.
_MOST_FILES, _MOST_PARTS = 10**5, 10**6
# First the claim that all is there, last the proof that the folder is ours: a deletion can be killed at any moment.
_ORDER_OF_DELETION = {FINISHED: 0, MANIFEST: 2}


class Manifest(NamedTuple):
    """What parts are made of, and how."""

    questions: Mapping[str, int]
    """the sizes of the files by their names"""
    options: Mapping[str, Any]


class ExistingParts(NamedTuple):
    """What an earlier run has left in an output folder."""

    names: frozenset[str] = frozenset()
    """of its parts and of all other files in it"""
    changed: frozenset[str] = frozenset()
    """question files that have another size than when their parts were made, or could not be read to their end"""


class PartsFolder:
    """An output folder that takes recovered chains part by part."""

    def __init__(self, address: str, form: PartFormat) -> None:
        """Name a folder, which need not exist."""
        self.storage = Storage(address)
        self._address = self.storage.address_of("")
        self._form = form

    def inspect(self, manifest: Manifest, overwrite: bool, resume: bool) -> ExistingParts:
        """Return what exists, without changing it; raises RechainError if it may be neither replaced nor resumed."""
        names = frozenset(name for name in self.storage.files() if not name.startswith("."))  # such as half a file
        if names and MANIFEST not in names:
            raise RechainError(f"{self._address} is there and was not made by this command; name another folder.")
        if not names or overwrite:
            return ExistingParts(names)
        if not resume:
            raise RechainError(
                f"{self._address} exists; name another folder, replace it with --overwrite, "
                "or go on with it with --resume."
            )
        old, new = (_parse(text) for text in (self.storage.read(MANIFEST), self._serialised(manifest)))
        before, after = old.pop(_SIZES, {}), new.pop(_SIZES)
        if before.keys() != after.keys() or old != new:
            raise RechainError(
                f"{self._address} was begun with another input, model or option (see {MANIFEST} in it); "
                "name another folder, or replace it with --overwrite."
            )
        return ExistingParts(names, frozenset(name for name, size in after.items() if before[name] != size))

    def begin(self, manifest: Manifest, existing: ExistingParts, overwrite: bool) -> None:
        """Write the manifest of a new folder; `overwrite` deletes the parts of an old one first."""
        if overwrite:
            ours = filter(_OURS.fullmatch, self.storage.files())
            for name in sorted(ours, key=lambda name: _ORDER_OF_DELETION.get(name, 1)):
                self.storage.delete(name)
        elif FINISHED in existing.names:
            self.storage.delete(FINISHED)
        if overwrite or not existing.names:
            self.storage.write(MANIFEST, self._serialised(manifest))

    def mark_unread(self, manifest: Manifest, existing: ExistingParts, files: Collection[str]) -> None:
        """Give files that cannot be read to their end a size that none has, so that a resumed run checks their parts.

        So it does with the parts of files that have changed.
        """
        sizes = {**manifest.questions, **dict.fromkeys((*existing.changed, *files), _NO_SIZE)}
        self.storage.write(MANIFEST, self._serialised(manifest._replace(questions=sizes)))

    def finish(self, manifest: Manifest) -> None:
        """State that all parts are there, made of files of the sizes in the manifest."""
        self.storage.write(MANIFEST, self._serialised(manifest))
        self.storage.write(FINISHED, b"")

    def _serialised(self, manifest: Manifest) -> bytes:
        fields = {**manifest.options, _SIZES: manifest.questions, "format": self._form, "rechain": __version__}
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS, default=_plain)

    def delete_from(self, file: int, part: int, existing: ExistingParts) -> None:
        """Delete the existing parts of a file from this one on, as the file has become shorter."""
        first = self.name(file, part)
        for name in existing.names:
            if name >= first and name.partition("-")[0] == first.partition("-")[0]:
                self.storage.delete(name)

    def ids(self, name: str) -> list[str | None]:
        """Return the ids of the questions of an existing part."""
        with self.storage.open(name) as file:
            records = [record.parsed().value for record in read_opened(name, file, 0)]
        return [record.get("id") if isinstance(record, dict) else None for record in records]

    def name(self, file: int, part: int) -> str:
        """Return the name of a part, by the numbers of its question file and of the part within that file."""
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
        file = io.BytesIO()
        if self._form == PartFormat.jsonl:
            file.writelines(f"{each.to_json()}\n".encode() for each in recovered)
        else:
            parquet.write_to(file, recovered)
        self.storage.write(name, file.getvalue())
        return tally


def _parse(text: bytes) -> dict[str, Any]:
    """Return the fields of a manifest, or none if somebody has damaged it by hand."""
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) and isinstance(fields.get(_SIZES), dict) else {}


def _plain(value: Any) -> Any:
    """Return a value that JSON has no form for as one that it has, always the same way."""
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
