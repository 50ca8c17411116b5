"""Files that are whole or absent, whatever kills the process that writes them, and that notice who changes them."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rechain.errors import RechainError, ResumableError


class LostOutputError(RechainError):
    """An output file that another program has removed, replaced or changed while it was written."""


class Remedies(NamedTuple):
    """What a user does about a file that another program has disturbed while it was written."""

    removed: str
    replaced: str
    cut: str
    grown: str


_OF_OUTPUTS = Remedies(
    removed="start again",
    replaced="start again with another file",
    cut="go on with --resume",
    grown="start again with --overwrite",
)


class WatchedFile:
    """A file that is only added to, without a buffer: what was written is in it, whatever kills this process.

    A device or a pipe is written to as it is, and not watched.
    """

    def __init__(self, path: Path, is_new: bool = False, remedies: Remedies = _OF_OUTPUTS) -> None:
        """Open a file that exists, or make a new one; errors name the remedies."""
        self.path = path
        self._remedies = remedies
        if path.exists() and not path.is_file():
            self.file = FileIO(path, "w")
        else:  # at the end of the file, wherever that is: after a cut, a hole of zero bytes would look like what is due
            self.file = FileIO(path.resolve(), "x+" if is_new else "r+", opener=_appending)
        status = os.fstat(self.file.fileno())
        self.size = status.st_size
        self.is_regular = stat.S_ISREG(status.st_mode)

    def append(self, content: bytes) -> None:
        """Add bytes; if that fails, what was there before stays."""
        self.check()
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError as error:
            if self.is_regular:
                self.file.truncate(self.size)
            raise ResumableError(f"{self.path} cannot be written: {error.strerror}.") from error
        self.size += len(content)

    def truncate(self, size: int) -> None:
        """Cut the file."""
        self.check()
        if self.is_regular and size != self.size:
            self.file.truncate(size)
            self.size = size

    def check(self) -> None:
        """Raise LostOutputError if this is no longer the file of its name, or not as long as what was written."""
        if not self.is_regular:
            return
        mine = os.fstat(self.file.fileno())
        try:
            is_same = os.path.samestat(self.path.stat(), mine)
        except OSError:
            raise LostOutputError(
                f"{self.path} was removed or moved by another program while it was written; {self._remedies.removed}."
            ) from None
        if not is_same:
            raise LostOutputError(
                f"{self.path} was replaced by another program while it was written; {self._remedies.replaced}."
            )
        if mine.st_size != self.size:
            remedy = self._remedies.cut if mine.st_size < self.size else self._remedies.grown
            raise LostOutputError(
                f"{self.path} was changed by another program while it was written: it has {mine.st_size} bytes, "
                f"not the {self.size} that were written; {remedy}."
            )

    def sync(self) -> None:
        """Wait until the file is on the disk, and check it."""
        if not self.is_regular:
            return
        try:
            os.fsync(self.file.fileno())
        except OSError as error:
            raise ResumableError(f"{self.path} cannot be written: {error.strerror}.") from error
        self.check()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _appending(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND, 0o666)


@contextmanager
def replacing(path: Path, previous: Path | None = None) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of another once it is whole and on the disk.

    The other is kept as `previous`, where that is named: at any moment one of both is there and whole.
    A device or a pipe is written to as it is, and a link stays one.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    place = path.resolve()
    # hidden, so that readers of a folder pass it over, and in the same folder, as only there a rename is atomic
    temporary = place.with_name(f".{place.name}.{os.urandom(8).hex()}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave an empty file under the new name
            is_whole = os.fstat(file.fileno()).st_size == file.tell()
        if not (is_whole and temporary.exists()):
            raise LostOutputError(f"{path} was removed or cut by another program while it was written; start again.")
        if previous is not None and place.exists():
            place.replace(previous)
        temporary.replace(place)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # the error of a full disk names no file
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by a new one; the old one stays until the new one is whole and on the disk."""
    with replacing(path) as file:
        file.write(content)
