"""An output file that grows line by line, is whole after every chunk, and can be resumed where a run has stopped.

The file itself shows how far that run came: every question has a line. The journal in its provenance file shows that
neither the questions nor the lines before have changed since. What no journal covers is recovered once more and
compared with the file, the last chunk always, so that nobody resumes with another input, model or option by mistake.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain, islice
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rechain.bulk.journal import Audit, Journal, JournalFile, KeptJournal, Stretch, output_digest
from rechain.bulk.work import Tally, WorkResult
from rechain.datasets.reading import Chunk
from rechain.errors import RechainError
from rechain.system.files import WatchedFile
from rechain.system.provenance import Facts, ending

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_BLOCK = 1 << 20
_BEGIN = b'{"id":'
"""how every line begins"""
_NAMES_THE_INPUT = frozenset({"message", "where"})
"""the fields that say where a question stands: a run may be resumed with its input written or put differently"""
_NOT_OURS = "it is not the beginning of what this command writes. Name another file, or replace it with --overwrite."


class Progress(NamedTuple):
    """How far an earlier run came."""

    lines: int
    """whole lines that are kept; those after them are recovered again and compared"""
    offset: int
    """where they end"""
    whole_lines: int
    """the number of all whole lines"""
    size: int
    """of the file"""
    tally: Tally
    """of the questions of the lines that are kept"""
    digest: "hashlib._Hash"
    """of these lines"""
    journal: KeptJournal

    @property
    def is_checked(self) -> bool:
        """Whether a journal shows that the lines that are kept are of the questions of now."""
        return self.journal.journal.exists or not self.lines


def find_progress(
    path: Path, head: Facts, chunks: Iterable[Chunk], count_lines: Callable[[Chunk], int]
) -> tuple[Progress, Iterator[Chunk]]:
    """Return how far a file came, and the chunks that are left to do, beginning with the first that is not certain.

    That is the last one that was done, or an earlier one that the journal does not cover. `head` says with what the
    file is resumed. Raises RechainError where the file, its journal or the questions have changed.
    """
    journal = Journal(path)
    journal.check_work(head, path)
    with path.open("rb") as file:
        whole = sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))
        size = file.tell()
        file.seek(0)
        certain = min(journal.covered(whole) + 1, whole) if journal.exists else whole
        audit, tally, digest, passed = Audit(path, journal, whole), Tally(), hashlib.sha256(), 0
        source = iter(chunks)
        for chunk in source:
            lines = count_lines(chunk)
            if passed + lines >= certain:
                progress = Progress(passed, file.tell(), whole, size, tally, digest, audit.kept())
                audit.add(chunk, passed + 1, (line for line in islice(file, lines) if line.endswith(b"\n")))
                audit.settle()
                return progress, chain([chunk], source)
            there = list(islice(file, lines))
            audit.add(chunk, passed + 1, there)
            for line in there:
                passed += 1
                digest.update(line)
                _count(tally, line, f"{path}, line {passed}")
    raise RechainError(f"{path} holds {whole} lines, but there are only {passed} questions; {_NOT_OURS}")


def _count(tally: Tally, line: bytes, where: str) -> None:
    """Count the question of a line that is kept."""
    try:
        tally.count_fields(orjson.loads(line))
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise RechainError(f"{where}: {_NOT_OURS}") from error


class GrowingFile(AbstractContextManager["GrowingFile"]):
    """An output file that takes the lines of one chunk after another, and is not touched before the first of them."""

    def __init__(self, path: Path, head: Facts, progress: Progress | None = None, overwrite: bool = False) -> None:
        """Write a new file, resume one, or replace one; `head` says what makes it."""
        self._path = path
        self._is_new = progress is None and not overwrite
        self._progress = progress
        """what is there of an earlier run, until all of it has been compared with what this run makes"""
        self._file: WatchedFile | None = None
        self._journal = JournalFile(path, head, progress.journal if progress else None)
        self._pending: list[Stretch] = []
        """stretches that are not in the journal yet"""
        self._lines, self._size = (progress.lines, progress.offset) if progress else (0, 0)
        self._digest = progress.digest.copy() if progress else hashlib.sha256()
        self.tally = Tally()
        """of all questions of the file"""
        if progress:
            self.tally.add(progress.tally)

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()
        self._journal.close()

    def write(self, result: WorkResult) -> None:
        """Add the lines of a chunk; if that fails, those that were added before stay whole."""
        lines = result.lines
        if lines:
            self._file = self._file or self._open()
            kept = self._lines_there(lines) if self._progress else b""
            self._write_stretches(self._file)  # also that of a chunk which ended with what was no half record after all
            if not kept:
                self._file.truncate(self._size)
                self._file.append(lines)
            lines = kept or lines
            self._size += len(lines)
            self._lines += lines.count(b"\n")
            self._digest.update(lines)
        self.tally.add(result.tally)
        if not result.stopped_by:  # else some of its questions have no line yet
            self._pending.append(Stretch(result.records, lines.count(b"\n"), result.input, output_digest(lines)))
        if self._file and not _is_unread(lines[lines.rfind(b"\n", 0, -1) + 1 :]):
            self._write_stretches(self._file)

    def _write_stretches(self, file: WatchedFile) -> None:
        """Write to the journal what is not there yet; the first time, what makes the file."""
        if file.is_regular:
            self._journal.begin()
            for stretch in self._pending:
                self._journal.add(stretch._asdict())
        self._pending.clear()

    def _lines_there(self, lines: bytes) -> bytes:
        """Return the lines of the file in place of these, or none if the file does not have all of them.

        They must be what this run makes of their questions. If some are missing, the others may have been scored
        without them, before a damaged record, and are to be written anew.
        """
        count = lines.count(b"\n")
        there, half, is_end = self._read(count)
        if there and is_end and not half and _is_unread(there[-1]):
            there.pop()  # perhaps the input was cut off there, and is whole now
        agrees = all(map(_alike, there, lines.split(b"\n")))
        if half:
            is_first = not there and self._progress is not None and self._lines == self._progress.lines
            agrees = agrees and (lines.startswith(half) if is_first else half.startswith(_BEGIN[: len(half)]))
        if not agrees:
            raise RechainError(f"{self._path}, after line {self._lines}: {_NOT_OURS}")
        is_whole = len(there) == count
        if is_end or not is_whole:
            self._progress = None
        return b"".join(line + b"\n" for line in there) if is_whole else b""

    def _read(self, count: int) -> tuple[list[bytes], bytes, bool]:
        """Return at most so many whole lines of an earlier run, half a line after them, and whether that is all."""
        with self._path.open("rb") as file:
            file.seek(self._size)
            lines = list(islice(file, count))
            is_end = not file.peek(1)
        half = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        return [line.removesuffix(b"\n") for line in lines], half, is_end

    def finish(self) -> None:
        """State that the file is complete, and wait until it is on the disk."""
        if not self._file:
            return
        if self._progress:
            there, half, _ = self._read(1)
            if there or not half.startswith(_BEGIN[: len(half)]):
                raise RechainError(f"{self._path} holds more than the {self._lines} questions have; {_NOT_OURS}")
        self._file.truncate(self._size)
        self._file.sync()
        if self._file.is_regular:
            counts = self.tally.counts()
            self._journal.add(ending(self._path, self._size, self._digest.hexdigest(), counts))
            self._journal.sync()

    def _open(self) -> WatchedFile:
        try:
            file = WatchedFile(self._path, is_new=self._is_new or not self._path.exists())
        except FileExistsError as error:
            raise RechainError(f"{self._path} has come into being meanwhile; name another file.") from error
        try:  # keeps other runs from writing; the system unlocks the file when this process ends
            if fcntl:
                fcntl.flock(file.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise RechainError(f"{self._path} is being written by another run; wait for it or stop it.") from error
        except OSError:
            pass  # not every file system has locks
        if self._progress and file.size != self._progress.size:
            file.close()
            raise RechainError(f"{self._path} was changed meanwhile, perhaps by another run; start this one again.")
        return file


def _is_unread(line: bytes) -> bool:
    """Return whether a line is that of a record that was no JSON."""
    try:
        return bool(orjson.loads(line)["error"]["code"] == "bad_json")
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False


def _alike(line: bytes, recovered: bytes) -> bool:
    """Return whether two records are the same but for rounding and what names the input's path."""
    try:
        return not line.endswith(b"\r") and _same(orjson.loads(line), orjson.loads(recovered))
    except orjson.JSONDecodeError:
        return False


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # far more than another batch, device or number of threads changes, far less than another model would
        return isclose(one, other, rel_tol=1e-3, abs_tol=1e-4)
    if isinstance(one, dict) and isinstance(other, dict):
        compared = one.keys() - _NAMES_THE_INPUT
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in compared)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
