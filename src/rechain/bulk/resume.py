"""An output file that grows line by line, is whole after every chunk, and can be resumed where a run has stopped.

The file itself shows how far that run came: every question has a line. The last of its chunks is recovered once more
and compared with the file, so that nobody resumes with another input, model or option by mistake.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from io import FileIO
from itertools import chain, islice
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rechain.datasets.reading import Chunk
from rechain.errors import RechainError, ResumableError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

_BLOCK = 1 << 20
_BEGIN = b'{"id":'
"""how every line begins"""


class Progress(NamedTuple):
    """How far an earlier run came."""

    lines: int
    """whole lines that are kept unchecked"""
    offset: int
    """where they end"""
    rest: bytes
    """the bytes after them: lines of the chunk that is recovered again, perhaps half a line at the end"""

    @property
    def whole_lines(self) -> int:
        """The number of all whole lines."""
        return self.lines + self.rest.count(b"\n")


def find_progress(
    path: Path, chunks: Iterable[Chunk], count_lines: Callable[[Chunk], int]
) -> tuple[Progress, Iterator[Chunk]]:
    """Return how far a file came, and the chunks that are left to do, beginning with the last that was done."""
    with path.open("rb") as file:
        whole = sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))
        file.seek(0)
        passed = 0
        source = iter(chunks)
        for chunk in source:
            lines = count_lines(chunk)
            if passed + lines >= whole:
                return Progress(passed, file.tell(), file.read()), chain([chunk], source)
            passed += sum(1 for _ in islice(file, lines))
    raise RechainError(f"{path} holds {whole} lines, but there are only {passed} questions; {_NOT_OURS}")


_NOT_OURS = "it is not the beginning of what this command writes. Name another file, or replace it with --overwrite."


class GrowingFile(AbstractContextManager["GrowingFile"]):
    """An output file that takes lines chunk by chunk, and is not touched before the first of them."""

    def __init__(self, path: Path, progress: Progress | None = None, overwrite: bool = False) -> None:
        """Write a new file, resume one, or replace one."""
        self._path = path
        self._progress = progress
        self._is_new = progress is None and not overwrite
        self._file: FileIO | None = None
        self._size = progress.offset if progress else 0

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def write(self, lines: bytes) -> None:
        """Add lines; if that fails, those that were added before stay whole."""
        if not lines:
            return
        if self._progress:
            lines = self._new(self._progress, lines)
        self._file = self._file or self._open()
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            if self._path.is_file():
                self._file.truncate(self._size)  # takes back what was written of these lines
            raise ResumableError(f"{self._path} cannot be written: {error.strerror}.") from error
        self._size += len(lines)

    def _new(self, progress: Progress, lines: bytes) -> bytes:
        """Return the lines that are to be written: none if the file has all of them, else all.

        Lines of the file must be what this run makes of their questions. If some are missing, the others may have been
        scored without them, before a damaged record, and are written anew.
        """
        *whole, half = progress.rest.split(b"\n")
        if whole and not half and _is_unread(whole[-1]):
            whole.pop()  # perhaps the input was cut off there, and is whole now
        *recovered, new = lines.split(b"\n", len(whole))
        agrees = all(map(_alike, whole, recovered)) if whole else lines.startswith(half)
        agrees = agrees and half.startswith(_BEGIN[: len(half)])
        if not agrees:
            raise RechainError(f"{self._path}, after line {progress.lines}: {_NOT_OURS}")
        self._progress = None
        if new:
            return lines
        self._size += len(progress.rest) - len(half)
        return b""

    def _open(self) -> FileIO:
        if self._path.exists() and not self._path.is_file():
            return self._path.open("wb", buffering=0)  # a device or a pipe
        exists = self._path.exists() and not self._is_new
        try:  # unbuffered: a line that was written is in the file, whatever kills this process
            file = self._path.resolve().open("r+b" if exists else "xb", buffering=0)
        except FileExistsError as error:
            raise RechainError(f"{self._path} has come into being meanwhile; name another file.") from error
        try:  # keeps other runs from writing; the system unlocks the file when this process ends
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise RechainError(f"{self._path} is being written by another run; wait for it or stop it.") from error
        except OSError:
            pass  # not every file system has locks
        file.truncate(self._size)
        file.seek(self._size)
        return file


def _is_unread(line: bytes) -> bool:
    """Return whether a line is that of a record that was no JSON."""
    try:
        return bool(orjson.loads(line)["error"]["code"] == "bad_json")
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False


def _alike(line: bytes, recovered: bytes) -> bool:
    """Return whether two records are the same but for rounding and messages, which name the input's path."""
    try:
        return not line.endswith(b"\r") and _same(orjson.loads(line), orjson.loads(recovered))
    except orjson.JSONDecodeError:
        return False


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # far more than another batch, device or number of threads changes, far less than another model would
        return isclose(one, other, rel_tol=1e-3, abs_tol=1e-4)
    if isinstance(one, dict) and isinstance(other, dict):
        compared = one.keys() - {"message"}
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in compared)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
