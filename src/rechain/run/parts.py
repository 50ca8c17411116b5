"""An output folder of numbered parts. Each is whole or absent, so that a later run can make those that are missing.

Part by part, in the order of their names, the folder contains the lines of one file.
"""

import hashlib
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import orjson

from rechain.errors import InputError, QuestionError, RechainError
from rechain.formats.datasets.questions import Chunk
from rechain.formats.datasets.records import RawRecord
from rechain.formats.exports import arrow
from rechain.run import PartFormat
from rechain.run.work import Tally, Worker
from rechain.system.files import SHA256, LostOutputError, opened_seal, sealed
from rechain.system.provenance import FINISHED, MANIFEST, SUFFIX, Facts, differences, heading, now
from rechain.system.stores import Storage

_SIZES = "questions"
"""the field of the manifest with the question files and their sizes"""
_PART = r"\d{5}-\d{6}\.\w+"
_OURS_PART = re.compile(_PART)
_ENTRY = rf"\.{_PART}{re.escape(SUFFIX)}"
# What this command makes. What ends with a number is half a file, left by a process that was killed while writing it.
_OURS = re.compile(rf"{_PART}|{_ENTRY}|\.({_PART}|{_ENTRY})\.[0-9a-f]{{16}}|{MANIFEST}|{FINISHED}")
# Entries that are read at a time: a store such as S3 takes tens of milliseconds for each.
_READERS = 16
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
    parts: Mapping[str, "Part"] = {}
    """its complete parts; others are to be made again"""


class Part(NamedTuple):
    """What a part is made of and what came of it: the content of its entry, a hidden file next to it."""

    records: int
    """the number of raw records"""
    input: str
    """their digest"""
    size: int
    sha256: str
    tally: Tally


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
        self.tally = Tally()
        """of the questions of all parts, once they are there"""
        self._parts: dict[str, Part] = {}
        """the parts of earlier runs"""

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
        self._check_manifest(manifest)
        self._parts = self._entries([name for name in names if self._is_part(name)])
        for name, part in self._parts.items():
            if part.size != sizes[name]:
                address = self.storage.address_of(name)
                raise RechainError(f"{address} was changed after it was written; delete it and go on with --resume.")
        return ExistingParts(names, self._parts)

    def _check_manifest(self, manifest: Manifest) -> None:
        """Raise RechainError if anything but the sizes of question files is different."""
        old, new = self._parse(self._written), self._fields(manifest)
        self._began = str(old.get("began"))
        if old[_SIZES].keys() != new[_SIZES].keys() or _compared(old) != _compared(new):
            difference = next(differences(old, new), f"see {MANIFEST} in it")
            raise RechainError(
                f"{self._address} was begun with another input, model or option ({difference}); "
                "name another folder, or replace it with --overwrite."
            )

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

    def finish(self, manifest: Manifest, made: Mapping[str, Part]) -> None:
        """State that all parts are there, and what came of the questions.

        `made` has the parts that this run has made. Raises LostOutputError if a part, or the manifest, is no longer
        what it was.
        """
        there = self.storage.files()
        known = {**self._parts, **made}
        names = sorted({*known, *filter(self._is_part, there)})
        for name in names:
            if name not in known or there.get(name) != known[name].size:
                how = "changed; delete it and" if name in there else "removed;"
                raise LostOutputError(
                    f"{self.storage.address_of(name)} was {how} go on with --resume: another program did that while "
                    "other parts were made."
                )
            self.tally.add(known[name].tally)
        if self.storage.read(MANIFEST) != self._written:
            raise LostOutputError(
                f"{self.storage.address_of(MANIFEST)} was changed by another program while parts were made; "
                "start again with another folder."
            )
        written = {name: {"size": known[name].size, "sha256": known[name].sha256} for name in names}
        self._write_manifest(manifest, {**self.tally.counts(), "parts": written, "ended": now()})
        self.storage.write(FINISHED, b"")

    def _write_manifest(self, manifest: Manifest, end: Facts | None = None) -> None:
        fields = sealed({**self._fields(manifest), **({"end": end} if end else {})}, MANIFEST)
        self._written = orjson.dumps(fields, option=orjson.OPT_INDENT_2)
        self.storage.write(MANIFEST, self._written)

    def _fields(self, manifest: Manifest) -> Facts:
        total = {"files": len(manifest.questions), "size": sum(manifest.questions.values())}
        facts = {"input": total, _SIZES: manifest.questions}
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

    def _is_part(self, name: str) -> bool:
        return _OURS_PART.fullmatch(name) is not None and name.endswith(f".{self._form}")

    def _entries(self, names: Collection[str]) -> dict[str, Part]:
        """Read what parts are made of; those whose entries are missing or damaged are left out."""
        with ThreadPoolExecutor(_READERS) as pool:
            return {name: part for name, part in zip(names, pool.map(self._entry, names), strict=True) if part}

    def _entry(self, name: str) -> Part | None:
        hidden = _entry_of(name)
        try:
            fields = orjson.loads(self.storage.read(hidden))
            opened_seal(fields, hidden)
            tally = Tally(fields["questions"], fields["with_chain"], Counter(fields["errors"]))
            tally.verdicts.update(fields.get("verdicts", {}))
            return Part(fields["records"], fields["input"], fields["size"], fields["part"], tally)
        except (InputError, ValueError, AttributeError, LookupError):
            return None

    def name(self, file: int, part: int) -> str:
        """Return the name of a part, by the numbers of its question file and of the part within that file."""
        if file >= _MOST_FILES or part >= _MOST_PARTS:
            raise RechainError(
                f"there can be {_MOST_FILES:,} files of {_MOST_PARTS:,} parts; join files, or make --part-size larger."
            )
        return f"{file:05d}-{part:06d}.{self._form}"

    def make(self, name: str, chunks: Sequence[Chunk], worker: Worker) -> Part:
        """Recover the chains of chunks, write them, and return what came of them.

        The entry is written last: a part without one is made again. It leaves out a last record that is not JSON, as
        the input may be cut off there, and complete when the folder is resumed.
        """
        tally = Tally()
        recovered = [each for chunk in chunks for each in worker.recovered(chunk)]
        for each in recovered:
            tally.count(each)
        file = io.BytesIO()
        if self._form == PartFormat.jsonl:
            file.writelines(f"{each.to_json()}\n".encode() for each in recovered)
        else:
            arrow.write_to(file, recovered, self.made_by)
        content = file.getvalue()
        records = [record for chunk in chunks for record in chunk.records]
        if recovered and recovered[-1].error and recovered[-1].error.code == "bad_json":
            records.pop()
        part = Part(len(records), input_digest(records), len(content), hashlib.sha256(content).hexdigest(), tally)
        fields = {"records": part.records, "input": part.input, "size": part.size, "part": part.sha256}
        hidden = _entry_of(name)
        if self._entry(name):  # that of a part of fewer questions
            self.storage.delete(hidden)
        self.storage.write(name, content)
        self.storage.write(hidden, orjson.dumps(sealed({**fields, **tally.counts()}, hidden)))
        return part


def input_digest(records: Iterable[RawRecord]) -> str:
    """Return the SHA-256 of raw records."""
    digest = hashlib.sha256()
    for record in records:
        value = record.value
        if isinstance(value, QuestionError):
            content = value.code.encode()  # not its message, which names the path
        elif isinstance(value, bytes):
            content = value.strip()  # the last line of a file has no end until more is added
        else:  # a row of a table
            try:
                content = orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
            except TypeError:
                content = repr(value).encode("utf-8", "replace")
        digest.update(b"%d:%s" % (len(content), content))  # the number, as two records differ from one made of both
    return digest.hexdigest()


def _entry_of(name: str) -> str:
    """Return the name of the entry of a part."""
    return f".{name}{SUFFIX}"


def _compared(fields: Facts) -> Facts:
    """Return what must be the same when a folder is resumed: all but the sizes of inputs, times and results."""
    return {name: value for name, value in fields.items() if name not in (_SIZES, "input", "began", "end", SHA256)}
