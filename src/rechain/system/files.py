"""Files that are whole or not there at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of another once it is whole and on the disk.

    A device or a pipe is written to as it is, and a link stays one.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    place = path.resolve()
    temporary = place.with_name(f".{place.name}.{os.urandom(8).hex()}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(place)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # a full disk names none
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by a new one; the old one stays until the new one is whole and on the disk."""
    with replacing(path) as file:
        file.write(content)
