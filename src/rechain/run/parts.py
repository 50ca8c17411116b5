"""An output folder of numbered parts. Each is whole or absent, so that a later run can make those that are missing.

Part by part, in the order of their names, the folder contains the lines of one file. Ray reads and writes through
Arrow, so that the folder may be in any store that Arrow knows.
"""

import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rechain.errors import InputError, MissingExtraError, QuestionError, RechainError
from rechain.formats.datasets.questions import Chunk
from rechain.formats.datasets.records import RawRecord
from rechain.formats.exports import arrow
from rechain.run import PartFormat
from rechain.run.work import Tally, Worker
from rechain.system.files import SHA256, LostOutputError, opened_seal, sealed, without_keys, write_atomically
from rechain.system.provenance import FINISHED, MANIFEST, SUFFIX, Facts, differences, heading, now

_PART = r"\d{5}-\d{6}\.\w+"
_ENTRY = rf"\.{_PART}{re.escape(SUFFIX)}"
# What this command makes. What ends with a number is half a file, left by a process that was killed while writing it.
_OURS = re.compile(rf"{_PART}|{_ENTRY}|\.({_PART}|{_ENTRY})\.[0-9a-f]{{16}}|{MANIFEST}|{FINISHED}")
_READ = 1 << 20
"""bytes that Arrow reads at a time"""
# Entries that are read at a time: a store such as S3 takes tens of milliseconds for each.
_READERS = 16
# As many as have names that sort in their order.
_MOST_FILES, _MOST_PARTS = 10**5, 10**6
# First the claim that all is there, last the proof that the folder is ours: a deletion can be killed at any moment.
_ORDER_OF_DELETION = {FINISHED: 0, MANIFEST: 2}
_MAY_DIFFER = {"questions", "input", "began", "end", SHA256}
"""the fields of a manifest that may differ when a folder is resumed: sizes of inputs, times and results"""


class Storage:
    """A file, or a folder and what is in it, by its path or its address ("s3://bucket/folder"). It can be pickled."""

    def __init__(self, address: str) -> None:
        """Find the file system of an address, at which nothing need exist yet."""
        try:
            import pyarrow
            from pyarrow import fs
        except ImportError as error:
            raise MissingExtraError("Running on Ray", "ray") from error
        self._is_local = "://" not in address
        self._address = str(Path(address)) if self._is_local else without_keys(address)
        self._system: Any = fs.LocalFileSystem()
        self._root = str(Path(address).absolute())
        if not self._is_local:
            try:
                self._system, self._root = fs.FileSystem.from_uri(address)
            except (pyarrow.ArrowException, OSError) as error:
                raise RechainError(f"{self._address} cannot be reached: {type(error).__name__}.") from error

    def holds(self, other: "Storage") -> bool:
        """Return whether another file or folder is this one or lies in it."""
        if not self._system.equals(other._system):
            return False
        roots = (os.path.realpath(each._root) if self._is_local else each._root for each in (other, self))
        inner, outer = (f"{root.rstrip('/')}/" for root in roots)
        return inner.startswith(outer)

    def files(self) -> dict[str, int]:
        """Return the sizes of all files in the folder by their names; a single file has the name ''."""
        from pyarrow import fs

        with self._named_errors(""):
            info = self._system.get_file_info(self._root)
            if info.type == fs.FileType.NotFound:
                return {}
            if info.type == fs.FileType.File:
                return {"": info.size}
            entries = self._system.get_file_info(fs.FileSelector(self._root, recursive=True))
        return {os.path.relpath(file.path, self._root): file.size for file in entries if file.is_file}

    def address_of(self, name: str) -> str:
        """Return the address of a file in the folder, as messages name it."""
        return _joined(self._address, name)

    @contextmanager
    def open(self, name: str) -> Iterator[io.BufferedReader]:
        """Open a file in the folder for reading."""
        with self._named_errors(name):
            stream = self._system.open_input_file(_joined(self._root, name))
            with io.BufferedReader(stream, _READ) as file:
                yield file

    def read(self, name: str) -> bytes:
        """Return the content of a file in the folder."""
        with self.open(name) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file in the folder, which is whole or absent, also if other processes write the same one."""
        path = _joined(self._root, name)
        with self._named_errors(name):
            self._system.create_dir(self._root, recursive=True)
            if self._is_local:
                write_atomically(Path(path), content)
                return
            with self._system.open_output_stream(path) as file:  # stores show a file once it is whole
                file.write(content)

    def delete(self, name: str) -> None:
        """Delete a file in the folder."""
        with self._named_errors(name):
            self._system.delete_file(_joined(self._root, name))

    @contextmanager
    def _named_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{self.address_of(name)} cannot be read or written: {reason}.") from error


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if name else folder


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

    made_by: Facts | None = None
    """what makes the parts, for their own metadata"""
    names: frozenset[str] = frozenset()
    """of all files that an earlier run has left"""

    def __init__(self, address: str, form: PartFormat) -> None:
        """Name a folder, which need not exist."""
        self.storage = Storage(address)
        self._address = self.storage.address_of("")
        self._form = form
        self._fields: Facts = {}
        """of the manifest"""
        self._written = b""
        """the manifest as it is in the folder"""
        self.parts: dict[str, Part] = {}
        """the complete parts of earlier runs; others are made again"""
        self.tally = Tally()
        """of the questions of all parts, once they are there"""

    def inspect(self, questions: Mapping[str, int], options: Mapping[str, Any], overwrite: bool, resume: bool) -> None:
        """Note what exists, without changing it; raises RechainError if it may be neither replaced nor resumed.

        The parts are made of question files, named with their sizes, and with options.
        """
        total = {"files": len(questions), "size": sum(questions.values())}
        self.made_by = heading("recover", **options)
        self._fields = heading("recover", **options, input=total, questions=questions, format=self._form)
        sizes = self.storage.files()
        self.names = frozenset(name for name in sizes if not name.startswith("."))  # such as half a file
        if self.names and MANIFEST not in self.names:
            raise RechainError(f"{self._address} is there and was not made by this command; name another folder.")
        if not self.names or overwrite:
            return
        if not resume:
            raise RechainError(
                f"{self._address} exists; name another folder, replace it with --overwrite, "
                "or go on with it with --resume."
            )
        self._check_manifest()
        names = list(filter(self._is_part, self.names))
        with ThreadPoolExecutor(_READERS) as pool:
            self.parts = {name: part for name, part in zip(names, pool.map(self._entry, names), strict=True) if part}
        for name, part in self.parts.items():
            if part.size != sizes[name]:
                address = self.storage.address_of(name)
                raise RechainError(f"{address} was changed after it was written; delete it and go on with --resume.")

    def _check_manifest(self) -> None:
        """Raise RechainError if the manifest is damaged, or anything but the sizes of question files is different."""
        self._written = self.storage.read(MANIFEST)
        try:
            old = orjson.loads(self._written)
            opened_seal(old, MANIFEST)
            self._fields["began"], names = old["began"], old["questions"].keys()
        except (ValueError, AttributeError, LookupError) as error:
            raise RechainError(
                f"{self.storage.address_of(MANIFEST)} is damaged or of an older version, so nobody can tell what made "
                "the parts; name another folder, or replace it with --overwrite."
            ) from error
        one, two = ({k: v for k, v in fields.items() if k not in _MAY_DIFFER} for fields in (old, self._fields))
        if names != self._fields["questions"].keys() or one != two:
            difference = next(differences(old, self._fields), f"see {MANIFEST} in it")
            raise RechainError(
                f"{self._address} was begun with another input, model or option ({difference}); "
                "name another folder, or replace it with --overwrite."
            )

    def begin(self, overwrite: bool) -> None:
        """Write the manifest of a new folder; `overwrite` deletes the parts of an old one first."""
        if overwrite:
            ours = filter(_OURS.fullmatch, self.storage.files())
            for name in sorted(ours, key=lambda name: _ORDER_OF_DELETION.get(name, 1)):
                self.storage.delete(name)
        elif FINISHED in self.names:
            self.storage.delete(FINISHED)
        if overwrite or not self.names:
            self._write_manifest({})

    def finish(self, made: Mapping[str, Part]) -> None:
        """State that all parts are there, and what came of the questions.

        `made` has the parts that this run has made. Raises LostOutputError if a part, or the manifest, is no longer
        what it was.
        """
        there = self.storage.files()
        known = {**self.parts, **made}
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
        self._write_manifest({"end": {**self.tally.counts(), "parts": written, "ended": now()}})
        self.storage.write(FINISHED, b"")

    def _write_manifest(self, end: Facts) -> None:
        self._written = orjson.dumps(sealed(self._fields | end, MANIFEST), option=orjson.OPT_INDENT_2)
        self.storage.write(MANIFEST, self._written)

    def _is_part(self, name: str) -> bool:
        return re.fullmatch(_PART, name) is not None and name.endswith(f".{self._form}")

    def _entry(self, name: str) -> Part | None:
        """Read what a part is made of; None if its entry is missing or damaged."""
        hidden = f".{name}{SUFFIX}"
        try:
            fields = orjson.loads(self.storage.read(hidden))
            opened_seal(fields, hidden)
            tally = Tally.of_counts(fields)
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
        if self._form == PartFormat.jsonl:
            content = b"".join(f"{each.to_json()}\n".encode() for each in recovered)
        else:
            file = io.BytesIO()
            arrow.write_to(file, recovered, self.made_by)
            content = file.getvalue()
        records = [record for chunk in chunks for record in chunk.records]
        if recovered and recovered[-1].error and recovered[-1].error.code == "bad_json":
            records.pop()
        part = Part(len(records), input_digest(records), len(content), hashlib.sha256(content).hexdigest(), tally)
        fields = {"records": part.records, "input": part.input, "size": part.size, "part": part.sha256}
        hidden = f".{name}{SUFFIX}"
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
