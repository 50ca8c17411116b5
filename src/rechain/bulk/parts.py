"""An output folder of numbered parts. Each is whole or absent, so that a later run can make those that are missing.

Part by part, in the order of their names, the folder holds what one file would.
"""

import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from rechain.bulk import PartFormat
from rechain.bulk.storage import Storage
from rechain.bulk.work import Tally, Worker
from rechain.datasets.files import read_opened
from rechain.datasets.reading import Chunk
from rechain.errors import RechainError
from rechain.exports import parquet
from rechain.system.digests import SHA256, opened_seal, sealed
from rechain.system.files import LostOutputError
from rechain.system.provenance import FINISHED, MANIFEST, Facts, differences, heading, now

_SIZES = "questions"
"""the field of the manifest with the question files and their sizes"""
_NO_SIZE = -1
_PART = r"\d{5}-\d{6}\.\w+"
# What this command makes. A hidden part is half a file, left by a process that was killed while writing it.
# Bytes of parts of earlier runs, whose counts nobody has kept: so many are read again for them within seconds. Where
# there are more, the counts are left out.
_MOST_COUNTED = 1 << 30
_OURS_PART = re.compile(_PART)
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
        self.made_by: Facts | None = None
        """what makes the parts, for their own metadata"""
        self._began = now()
        self._written = b""
        """the manifest"""
        self._parts: dict[str, int] = {}
        """the sizes of the parts of earlier runs that are to stay as they are, and of other files"""

    def inspect(self, manifest: Manifest, overwrite: bool, resume: bool) -> ExistingParts:
        """Return what exists, without changing it; raises RechainError if it may be neither replaced nor resumed."""
        sizes = self.storage.files()
        names = frozenset(name for name in sizes if not name.startswith("."))  # such as half a file
        if names and MANIFEST not in names:
            raise RechainError(f"{self._address} is there and was not made by this command; name another folder.")
        if not names or overwrite:
            return ExistingParts(names)
        if not resume:
            raise RechainError(
                f"{self._address} exists; name another folder, replace it with --overwrite, "
                "or go on with it with --resume."
            )
        self._written = self.storage.read(MANIFEST)
        old, new = self._parse(self._written), self._fields(manifest)
        self._began = str(old.get("began"))
        before, after = old[_SIZES], new[_SIZES]
        if before.keys() != after.keys() or _compared(old) != _compared(new):
            difference = next(differences(old, new), f"see {MANIFEST} in it")
            raise RechainError(
                f"{self._address} was begun with another input, model or option ({difference}); "
                "name another folder, or replace it with --overwrite."
            )
        changed = frozenset(name for name, size in after.items() if before[name] != size)
        numbers = {f"{number:05d}" for number, name in enumerate(after) if name in changed}
        self._parts = {name: size for name, size in sizes.items() if name.partition("-")[0] not in numbers}
        return ExistingParts(names, changed)

    def begin(self, manifest: Manifest, existing: ExistingParts, overwrite: bool) -> None:
        """Write the manifest of a new folder; `overwrite` deletes the parts of an old one first."""
        self.made_by = heading("recover", **manifest.options)
        if overwrite:
            ours = filter(_OURS.fullmatch, self.storage.files())
            for name in sorted(ours, key=lambda name: _ORDER_OF_DELETION.get(name, 1)):
                self.storage.delete(name)
        elif FINISHED in existing.names:
            self.storage.delete(FINISHED)
        if overwrite or not existing.names:
            self._write_manifest(manifest)

    def mark_unread(self, manifest: Manifest, existing: ExistingParts, files: Collection[str]) -> None:
        """Give files that cannot be read to their end a size that none has, so that a resumed run checks their parts.

        So it does with the parts of files that have changed.
        """
        sizes = {**manifest.questions, **dict.fromkeys((*existing.changed, *files), _NO_SIZE)}
        self._write_manifest(manifest._replace(questions=sizes))

    def finish(self, manifest: Manifest, made: Mapping[str, int], tally: Tally) -> None:
        """State that all parts are there, made of files of the sizes in the manifest, and what came of the questions.

        `made` has the sizes of the parts that this run has made, and `tally` their questions. Raises LostOutputError
        if a part, or the manifest, is no longer what it was.
        """
        there = self.storage.files()
        parts = {name: size for name, size in {**self._parts, **made}.items() if _OURS_PART.fullmatch(name)}
        for name, size in parts.items():
            if there.get(name) != size:
                how = "changed; delete it and" if name in there else "removed;"
                raise LostOutputError(
                    f"{self.storage.address_of(name)} was {how} go on with --resume: another program did that while "
                    "other parts were made."
                )
        if self.storage.read(MANIFEST) != self._written:
            raise LostOutputError(
                f"{self.storage.address_of(MANIFEST)} was changed by another program while parts were made; "
                "start again with another folder."
            )
        earlier = {name: size for name, size in parts.items() if name not in made}
        counts: Facts = {}
        if sum(earlier.values()) <= _MOST_COUNTED:
            whole = Tally()
            for each in (tally, *map(self._tally, earlier)):
                whole.add(each)
            counts = whole.counts()
        self._write_manifest(manifest, {**counts, "parts": len(parts), "ended": now()})
        self.storage.write(FINISHED, b"")

    def _write_manifest(self, manifest: Manifest, end: Facts | None = None) -> None:
        fields = sealed({**self._fields(manifest), **({"end": end} if end else {})}, MANIFEST)
        self._written = orjson.dumps(fields, option=orjson.OPT_INDENT_2)
        self.storage.write(MANIFEST, self._written)

    def _fields(self, manifest: Manifest) -> Facts:
        sizes = [size for size in manifest.questions.values() if size != _NO_SIZE]
        facts = {"input": {"files": len(manifest.questions), "size": sum(sizes)}, _SIZES: manifest.questions}
        return heading("recover", **manifest.options, **facts, format=self._form) | {"began": self._began}

    def _parse(self, text: bytes) -> Facts:
        """Return the fields of a manifest; raises RechainError if it is damaged, or was changed by hand."""
        try:
            fields = orjson.loads(text)
            opened_seal(fields, MANIFEST)
            if isinstance(fields[_SIZES], dict):
                return dict(fields)
        except (ValueError, AttributeError, LookupError):
            pass
        raise RechainError(
            f"{self.storage.address_of(MANIFEST)} is damaged or of an older version, so nobody can tell what made the "
            "parts; name another folder, or replace it with --overwrite."
        )

    def _tally(self, name: str) -> Tally:
        """Return what came of the questions of an existing part."""
        tally = Tally()
        for record in self._records(name):
            tally.count_fields(record)
        return tally

    def _records(self, name: str) -> Iterator[dict[str, Any]]:
        with self.storage.open(name) as file:
            values = (record.parsed().value for record in read_opened(name, file, 0))
            yield from (value if isinstance(value, dict) else {} for value in values)

    def delete_from(self, file: int, part: int, existing: ExistingParts) -> None:
        """Delete the existing parts of a file from this one on, as the file has become shorter."""
        first = self.name(file, part)
        for name in existing.names:
            if name >= first and name.partition("-")[0] == first.partition("-")[0]:
                self.storage.delete(name)

    def ids(self, name: str) -> list[str | None]:
        """Return the ids of the questions of an existing part."""
        return [record.get("id") for record in self._records(name)]

    def name(self, file: int, part: int) -> str:
        """Return the name of a part, by the numbers of its question file and of the part within that file."""
        if file >= _MOST_FILES or part >= _MOST_PARTS:
            raise RechainError(
                f"there can be {_MOST_FILES:,} files of {_MOST_PARTS:,} parts; join files, or make --part-size larger."
            )
        return f"{file:05d}-{part:06d}.{self._form}"

    def make(self, name: str, chunks: Sequence[Chunk], worker: Worker) -> tuple[Tally, int]:
        """Recover the chains of chunks and write them; return what came of them, and the size of the part."""
        tally = Tally()
        recovered = [each for chunk in chunks for each in worker.recovered(chunk)]
        for each in recovered:
            tally.count(each)
        file = io.BytesIO()
        if self._form == PartFormat.jsonl:
            file.writelines(f"{each.to_json()}\n".encode() for each in recovered)
        else:
            parquet.write_to(file, recovered, self.made_by)
        self.storage.write(name, file.getvalue())
        return tally, file.tell()


def _compared(fields: Facts) -> Facts:
    """Return what must be the same when a folder is resumed: all but the sizes of inputs, times and results."""
    return {name: value for name, value in fields.items() if name not in (_SIZES, "input", "began", "end", SHA256)}
