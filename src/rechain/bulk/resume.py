"""An output file that grows line by line, is whole after every chunk, and goes on where an earlier run has stopped.

The file itself says how far that run came: every question has a line. The last of its chunks is recovered once more and
compared with what stands there, so that nobody goes on with another input, model or option by mistake.
"""

from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from itertools import chain, islice
from math import isclose
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson

from rechain.datasets.reading import Chunk
from rechain.errors import RechainError

try:
    import fcntl
except ImportError:  # there are no such locks on this system
    fcntl = None  # type: ignore[assignment]

_BLOCK = 1 << 20
_BEGIN = b'{"id":'
"""how every line begins"""


class Begun(NamedTuple):
    """What an earlier run has left."""

    lines: int
    """whole lines that stay without being looked at again"""
    offset: int
    """where they end"""
    rest: bytes
    """what stands there after them: lines of the chunk that is recovered again, perhaps half a line at the end"""

    @property
    def whole_lines(self) -> int:
        """How many whole lines there are in all."""
        return self.lines + self.rest.count(b"\n")


def take_up(path: Path, chunks: Iterable[Chunk], count_lines: Callable[[Chunk], int]) -> tuple[Begun, Iterator[Chunk]]:
    """Find how far a file came; return that and the chunks that are left to do, the last that was done among them."""
    with path.open("rb") as file:
        whole = sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))
        file.seek(0)
        passed = 0
        source = iter(chunks)
        for chunk in source:
            lines = count_lines(chunk)
            if passed + lines >= whole:
                begun = Begun(passed, file.tell(), file.read())
                return begun, chain([chunk], source)
            passed += sum(1 for _ in islice(file, lines))
    raise RechainError(f"{path} holds {whole} lines, but there are only {passed} questions; {_NOT_OURS}")


_NOT_OURS = "it is not the beginning of what this command writes. Name another file, or replace it with --overwrite."


class GrowingFile:
    """Takes lines, chunk by chunk. The file is not touched before the first of them."""

    def __init__(self, path: Path, begun: Begun | None = None, overwrite: bool = False) -> None:
        """Write a new file, go on with one that was begun, or replace one."""
        self._path = path
        self._begun = begun
        self._is_new = begun is None and not overwrite
        self._file: FileIO | None = None
        self._size = begun.offset if begun else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file:
            self._file.close()

    def write(self, lines: bytes) -> None:
        """Add lines; should that fail, those that were added before stay whole."""
        if not lines:
            return
        if self._begun:
            lines = self._new(self._begun, lines)
        self._file = self._file or self._open()
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._take_back()
            raise RechainError(f"{self._path} cannot be written: {error.strerror}.") from error
        self._size += len(lines)

    def _new(self, begun: Begun, lines: bytes) -> bytes:
        """Return those of some lines that are to be written: none, if all are there, else all of them.

        Lines that are there must be what this run makes of their questions. Where some are missing, those that are
        there may have been scored by themselves, before a damaged record, and are written anew with the others.
        """
        *whole, half = begun.rest.split(b"\n")
        if whole and not half and _is_unread(whole[-1]):
            whole.pop()  # perhaps the input was cut off there, and is whole now
        *there, new = lines.split(b"\n", len(whole))
        agrees = all(map(_alike, whole, there)) if whole else lines.startswith(half)
        agrees = agrees and half.startswith(_BEGIN[: len(half)])
        if not agrees:
            raise RechainError(f"{self._path}, after line {begun.lines}: {_NOT_OURS}")
        self._begun = None
        if new:
            return lines
        self._size += len(begun.rest) - len(half)
        return b""

    def _open(self) -> FileIO:
        if self._path.exists() and not self._path.is_file():
            return self._path.open("wb", buffering=0)  # a device or a pipe
        is_there = self._path.exists() and not self._is_new
        try:
            file = self._path.resolve().open("r+b" if is_there else "xb", buffering=0)
        except FileExistsError as error:
            raise RechainError(f"{self._path} has come into being meanwhile; name another file.") from error
        _lock(file, self._path)
        file.truncate(self._size)
        file.seek(self._size)
        return file

    def _take_back(self) -> None:
        """Remove what was written of the last lines."""
        if self._file and self._path.is_file():
            self._file.truncate(self._size)


def _lock(file: FileIO, path: Path) -> None:
    """Keep other runs from writing to a file while this one does."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise RechainError(f"{path} is being written by another run; wait for it or stop it.") from error
    except OSError:
        pass  # not every file system has locks


def _is_unread(line: bytes) -> bool:
    """Return whether a line is of a record that was no JSON."""
    try:
        return bool(orjson.loads(line)["error"]["code"] == "bad_json")
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False


def _alike(line: bytes, made: bytes) -> bool:
    """Return whether two records are the same but for rounding and messages, which name the input as it was given."""
    try:
        return not line.endswith(b"\r") and _same(orjson.loads(line), orjson.loads(made))
    except orjson.JSONDecodeError:
        return False


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-3, abs_tol=1e-4)
    if isinstance(one, dict) and isinstance(other, dict):
        named = one.keys() - {"message"}
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in named)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
