"""Files that are whole or absent, whatever kills the process that writes them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
