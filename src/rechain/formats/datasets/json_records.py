"""JSON of any size, record by record: lines, arrays, and objects on several lines."""

import gzip
import io
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from rechain.errors import DamagedInputError, InputError, QuestionError

# Enough for a few hundred questions at a time, so that the loop over chunks costs nothing compared with their parsing.
_CHUNK = 1 << 20
LARGEST_RECORD = 1 << 24
"""bytes of a record: 160 times the longest of the published data sets, yet one that is all braces, which take thirty
times their size when they are parsed, fits into half a gigabyte. A longer one has lost its end, or is a trap."""
_BUFFER = 1 << 17  # bytes at a time from a file; larger ones are no faster
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)  # what reading a damaged gzip stream raises

Numbered = tuple[str, int, bytes | dict[str, Any] | QuestionError]
"""The unit of a record (line, record, row), its number in the file, and its JSON or cells or why it cannot be read."""
Stream = io.BufferedReader | gzip.GzipFile
PathLike = Path | str  # A local path or, for files that `system.files` opens, an address.


class _Replayed(io.RawIOBase):
    """A stream of which the start was read already and comes first; a pipe cannot go back."""

    def __init__(self, start: bytes, rest: Stream) -> None:
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there; more of a pipe may be long in coming."""
        if not self._start:
            return self._rest.readinto1(buffer)
        size = min(len(self._start), len(buffer))
        buffer[:size], self._start = self._start[:size], self._start[size:]
        return size


def replayed(start: bytes, rest: Stream) -> io.BufferedReader:
    """Return a stream of which the start was read already."""
    return io.BufferedReader(_Replayed(start, rest), _BUFFER)


def read_about(stream: Stream, size: int) -> bytes:
    """Read `size` bytes, fewer before the end of the file or before damage, at which the next call then fails."""
    parts: list[bytes] = []
    while size > 0:
        try:
            part = stream.read1(size)
        except DAMAGE:
            if parts:
                break
            raise
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def json_lines(stream: io.BufferedReader, first: int) -> Iterator[Numbered]:
    """Yield every line that is not blank; `first` is the number of the first."""
    number = first
    while line := stream.readline(LARGEST_RECORD + 1):
        if len(line) > LARGEST_RECORD and not line.endswith(b"\n"):
            yield "line", number, _too_long()
            while line and not line.endswith(b"\n"):
                line = stream.readline(_CHUNK)
        elif not line.isspace():
            yield "line", number, line
        else:
            number += _skip_blank_lines(stream)
        number += 1


def _skip_blank_lines(stream: io.BufferedReader) -> int:
    """Pass the blank lines in the buffer; return how many. A small gzip file may hold hundreds of millions."""
    ahead = stream.peek()
    blank = ahead[: len(ahead) - len(ahead.lstrip())]
    stream.read(blank.rfind(b"\n") + 1)
    return blank.count(b"\n")


def json_objects(path: PathLike, stream: io.BufferedReader, is_array: bool) -> Iterator[Numbered]:
    """Yield the outermost objects of an array, or of a file of objects spread over several lines."""
    scanner, rest, numbers = _Scanner(), bytearray(), count(1)  # the rest follows the last object
    start, too_long = -1, 0  # where in the rest an object begins; the number of one that is passed over
    for piece in iter(partial(read_about, stream, _CHUNK), b""):
        before, end = len(rest), 0
        rest += piece
        for edge in scanner.edges(piece):
            if start < 0:
                start = before + edge
                continue
            if not too_long:
                if _is_stray(rest[end:start]):
                    yield "record", next(numbers), _not_an_object()
                record = bytes(rest[start : before + edge + 1])
                yield "record", next(numbers), record if len(record) <= LARGEST_RECORD else _too_long()
            start, end, too_long = -1, before + edge + 1, 0
        del rest[:end]
        start = max(start - end, -1)
        if len(rest) > LARGEST_RECORD and not too_long:
            too_long = next(numbers)
            if start < 0:
                raise InputError(f"{path}, record {too_long}: no record begins within {LARGEST_RECORD >> 20} MB.")
            yield "record", too_long, _too_long()
        if too_long:
            rest.clear()
    if too_long or b"{" in rest:
        number = too_long or next(numbers)
        raise DamagedInputError(f"{path}, record {number}: the file ends in the middle of the record.")
    if _is_stray(rest):
        yield "record", next(numbers), _not_an_object()
    if is_array and b"]" not in rest:
        raise DamagedInputError(f"{path} ends in the middle of its array.")


class _Scanner:
    """Finds the outermost objects of JSON that comes in pieces.

    By numpy, since of an object that is too long every byte may be a brace, which a loop would take minutes for.
    """

    def __init__(self) -> None:
        self._depth, self._is_in_string, self._is_escaped = 0, False, False

    def edges(self, piece: bytes) -> list[int]:
        """Return the places in the next piece of the braces with which outermost objects begin and end, in turn."""
        import numpy as np

        masked = b"_" + piece[1:] if self._is_escaped else piece
        masked = masked.replace(rb"\\", b"__").replace(rb"\"", b"__")
        self._is_escaped = masked.endswith(b"\\")
        codes = np.frombuffer(masked, np.uint8)
        marks = np.flatnonzero((codes == ord('"')) | (codes == ord("{")) | (codes == ord("}")))
        if not len(marks):
            return []
        codes = codes[marks]
        in_string = (np.cumsum(codes == ord('"')) + self._is_in_string) % 2 == 1
        steps = np.where(in_string, 0, (codes == ord("{")).astype(np.int8) - (codes == ord("}")))
        depths = np.cumsum(steps) + self._depth
        depths -= np.minimum(np.minimum.accumulate(depths), 0)  # a brace that closes nothing does not count
        is_open = np.diff(depths > 0, prepend=self._depth > 0)
        self._depth, self._is_in_string = int(depths[-1]), bool(in_string[-1])
        return list(map(int, marks[is_open]))


def _is_stray(between: bytes | bytearray) -> bool:
    """Return whether there is more than separators between two objects."""
    return between.removeprefix(BYTE_ORDER_MARK).strip(b" \t\r\n,[]") != b""


def _not_an_object() -> QuestionError:
    return QuestionError("bad_record", "a question should be an object, in braces")


def _too_long() -> QuestionError:
    return QuestionError("too_long", f"the record is longer than {LARGEST_RECORD >> 20} MB")
