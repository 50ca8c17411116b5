"""An output file that grows chunk by chunk, is whole after each of them, and can be resumed where a run has stopped.

Its provenance file records what makes it and how far it is: a checkpoint has the number of records of the input that
are done, and the size and the SHA-256 of their lines. A run that resumes the file checks that model, options and input
are the same (the input may have grown), keeps what the last checkpoint covers, and writes the rest again. Without
provenance, or with another input, everything is recovered again and must be what the file contains.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rechain.errors import RechainError
from rechain.formats.datasets.questions import Chunk
from rechain.run.work import Tally, WorkResult
from rechain.system.files import WatchedFile
from rechain.system.provenance import (
    Facts,
    ProvenanceFile,
    contains_input,
    differences,
    ending,
    is_first_line,
    read_lines,
    sidecar_of,
)

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_OVERWRITE = "name another file, or replace it with --overwrite."


class Checkpoint(NamedTuple):
    """How far an output is."""

    records: int = 0
    """of the input"""
    size: int = 0
    """of their lines"""
    sha256: str = ""
    """of their lines"""


@dataclass(frozen=True)
class Progress:
    """What is kept of an earlier run; by default nothing."""

    size: int | None = None
    """of the whole file, if it is continued"""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    history: Sequence[Facts] = ()
    """the lines of the provenance file that are kept"""
    tally: Tally = field(default_factory=Tally)
    """of the questions that the checkpoint covers"""
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    doubt: str = ""
    """why the file is compared with what is recovered again; else what follows the checkpoint is replaced"""


def find_progress(
    path: Path, questions: Path, head: Facts, chunks: Iterable[Chunk]
) -> tuple[Progress, Iterator[Chunk]]:
    """Return what of a file is kept, and the chunks that are left to do.

    `head` says with what the file is resumed. Raises RechainError if that is another model or option, if the provenance
    file is damaged, or if the lines that the checkpoint covers have changed.
    """
    size, has_provenance = path.stat().st_size, sidecar_of(path).is_file()
    doubt = "" if has_provenance or not size else f"there is no {sidecar_of(path)}"
    heads, checkpoint = list[Facts](), Checkpoint()
    for fields in read_lines(sidecar_of(path)) if has_provenance and size else ():  # next to an empty file it is old
        if is_first_line(fields):
            heads.append(fields)
        elif "records" in fields and fields["size"] <= size:  # after a power cut the file may be shorter
            checkpoint = Checkpoint(**fields)
    if heads and (difference := next(differences(heads[-1], head), None)):
        raise RechainError(f"{path} was begun with {difference}; resume it with the same, {_OVERWRITE}")
    if heads and not contains_input(questions, head["input"], heads[-1].get("input")):
        doubt = f"{questions} is not the input of before"
    if doubt:
        return Progress(size, doubt=doubt), iter(chunks)
    tally, digest = _read_kept(path, checkpoint)
    history = [*heads, checkpoint._asdict()] if checkpoint.records else heads
    return Progress(size, checkpoint, history, tally, digest), _without(chunks, checkpoint.records)


def _read_kept(path: Path, checkpoint: Checkpoint) -> tuple[Tally, "hashlib._Hash"]:
    """Count the questions that a checkpoint covers, and check their lines."""
    tally, digest, rest = Tally(), hashlib.sha256(), checkpoint.size
    with path.open("rb") as file:
        while rest > 0 and (line := file.readline(rest)):
            rest -= len(line)
            digest.update(line)
            try:
                tally.count_fields(orjson.loads(line))
            except (ValueError, TypeError, AttributeError, LookupError):
                break  # its digest is another
    if checkpoint.size and digest.hexdigest() != checkpoint.sha256:
        raise RechainError(f"{path} was changed after it was written; {_OVERWRITE}")
    return tally, digest


def _without(chunks: Iterable[Chunk], records: int) -> Iterator[Chunk]:
    """Yield chunks without their first records."""
    for chunk in chunks:
        if len(chunk.records) > records:
            yield chunk._replace(records=chunk.records[records:])
        records = max(records - len(chunk.records), 0)


class GrowingFile(AbstractContextManager["GrowingFile"]):
    """An output file that takes the lines of one chunk after another, and is not touched before the first of them."""

    def __init__(self, path: Path, head: Facts, progress: Progress | None = None, overwrite: bool = False) -> None:
        """Write a new file, resume one, or replace one; `head` describes what makes it."""
        self._path, self._head, self._earlier = path, head, progress or Progress()
        self._is_new = progress is None and not overwrite
        self._records, self._size, _ = self._earlier.checkpoint
        self._digest = self._earlier.digest.copy()
        self.tally = Tally()
        """of all questions of the file"""
        self.tally.add(self._earlier.tally)
        self._old: BufferedReader | None = path.open("rb") if self._earlier.doubt else None
        """the lines of an earlier run, until all of them have been compared"""
        self._file: WatchedFile | None = None
        self._provenance: ProvenanceFile | None = None
        self._pending: Checkpoint | None = None
        """a checkpoint that is not in the provenance file yet: the chunk may have been cut short by a damaged record,
        which is known when the next one comes"""
        self._is_cut = False
        """whether the last record was not JSON: the input may be cut off there, and complete when it is resumed"""

    def __exit__(self, *_: object) -> None:
        for file in (self._old, self._file, self._provenance):
            if file:
                file.close()

    def write(self, result: WorkResult) -> None:
        """Add the lines of a chunk; if that fails, those that were added before stay whole."""
        lines = result.lines
        if lines and not self._is_there(lines):
            file = self._begun()
            self._add_checkpoint()
            file.append(lines)
        self._size += len(lines)
        self._digest.update(lines)
        self._records += result.records
        self.tally.add(result.tally)
        if not result.stopped_by:  # else some of its questions have no line yet
            self._pending = Checkpoint(self._records, self._size, self._digest.hexdigest())
            self._is_cut = _is_of_bad_json(lines)

    def finish(self) -> None:
        """State that the file is complete, and wait until it is on the disk."""
        if self._old and self._old.peek(1):
            raise RechainError(f"{self._path} has more lines than there are questions; {_OVERWRITE}")
        if not self._file and self._earlier.size is None:
            return
        file = self._begun()
        if not self._is_cut:
            self._add_checkpoint()
        file.sync()
        if self._provenance:
            self._provenance.add(ending(self._path, self._size, self._digest.hexdigest(), self.tally.counts()))
            self._provenance.sync()

    def _is_there(self, lines: bytes) -> bool:
        """Return whether the file has these lines from an earlier run; raises RechainError if it has others."""
        there = self._old.read(len(lines)) if self._old else b""
        if not lines.startswith(there):
            pairs = enumerate(zip(lines.split(b"\n"), there.split(b"\n"), strict=False), start=self.tally.questions + 1)
            number = next(number for number, (one, other) in pairs if one != other)
            raise RechainError(
                f"{self._path}, line {number}: {self._earlier.doubt}, and its chains are others; {_OVERWRITE}"
            )
        if self._old and len(there) < len(lines):
            self._old.close()
            self._old = None
        return len(there) == len(lines)

    def _add_checkpoint(self) -> None:
        if self._file and self._provenance and self._pending:
            self._file.check()  # before the checkpoint, as the error should name the output
            self._provenance.add(self._pending._asdict())
        self._pending = None

    def _begun(self) -> WatchedFile:
        """Return the file, opened and without what is to be replaced, and with provenance if it is no device."""
        if self._file:
            return self._file
        try:
            self._file = WatchedFile(self._path, is_new=self._is_new or not self._path.exists())
        except FileExistsError as error:
            raise RechainError(f"{self._path} has come into being meanwhile; name another file.") from error
        try:  # keeps other runs from writing; the system unlocks the file when it is closed, or this process ends
            if fcntl:
                fcntl.flock(self._file.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RechainError(f"{self._path} is being written by another run; wait for it or stop it.") from error
        except OSError:
            pass  # not every file system has locks
        if self._earlier.size not in (None, self._file.size):
            raise RechainError(f"{self._path} was changed meanwhile, perhaps by another run; start this one again.")
        if self._file.is_regular:
            self._provenance = ProvenanceFile(self._path, [*self._earlier.history, self._head])
        self._file.truncate(self._size)
        return self._file


def _is_of_bad_json(lines: bytes) -> bool:
    """Return whether the last line is that of a record that was not JSON."""
    try:
        last: Any = orjson.loads(lines[lines.rfind(b"\n", 0, -1) + 1 :])
        return bool(last["error"]["code"] == "bad_json")
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False
