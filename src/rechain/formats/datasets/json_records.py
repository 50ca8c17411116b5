"""JSON of any size, record by record: lines, arrays, and objects on several lines."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import chain, count
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
# All up to the next brace that is not part of a string. The quantifiers are possessive ("*+"): a string that does not
# end in the buffer then fails at once, where backtracking would take quadratic time.
_TO_BRACE = re.compile(rb'[^{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^{}"]*+)*+[{}]', re.DOTALL)
_OPENING = ord("{")
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)  # what reading a damaged gzip stream raises

Located = tuple[str, int, bytes | dict[str, Any] | QuestionError]
"""The place of a record, its number in the file, and its JSON or its cells or why it cannot be read."""
Stream = io.BufferedReader | gzip.GzipFile
PathLike = Path | str  # A local path or, for files that `system.stores` opens, an address.


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


def json_lines(path: PathLike, stream: io.BufferedReader, first: int) -> Iterator[Located]:
    """Yield every line that is not blank; `first` is the number of the first."""
    number = first
    while line := stream.readline(LARGEST_RECORD + 1):
        where = f"{path}, line {number}"
        if len(line) > LARGEST_RECORD and not line.endswith(b"\n"):
            yield where, number, _too_long(where)
            while line and not line.endswith(b"\n"):
                line = stream.readline(_CHUNK)
        elif not line.isspace():
            yield where, number, line
        else:
            number += _skip_blank_lines(stream)
        number += 1


def _skip_blank_lines(stream: io.BufferedReader) -> int:
    """Pass the blank lines in the buffer; return how many. A small gzip file may hold hundreds of millions."""
    ahead = stream.peek()
    blank = ahead[: len(ahead) - len(ahead.lstrip())]
    stream.read(blank.rfind(b"\n") + 1)
    return blank.count(b"\n")


def json_objects(path: PathLike, stream: io.BufferedReader, is_array: bool) -> Iterator[Located]:
    """Yield the outermost objects of an array, or of a file of objects spread over several lines."""
    places = ((f"{path}, record {number}", number) for number in count(1))
    scanner, ahead = _Scanner(), b""
    # twice as much after a record that does not end in the buffer, so that a long one is not copied too often
    while more := ahead or read_about(stream, max(_CHUNK, min(len(scanner.rest), LARGEST_RECORD - len(scanner.rest)))):
        ahead = b""
        for between, record in scanner.objects(more):
            if _is_stray(between):
                yield _not_an_object(*next(places))
            where, number = next(places)
            yield where, number, record if len(record) <= LARGEST_RECORD else _too_long(where)
        if len(scanner.rest) > LARGEST_RECORD:
            where, number = next(places)
            if not scanner.depth:
                raise InputError(f"{where}: no record begins within {LARGEST_RECORD >> 20} MB.")
            yield where, number, _too_long(where)
            ahead, scanner = _after_object(where, scanner, stream), _Scanner()
    rest = scanner.rest
    if b"{" in rest:
        raise DamagedInputError(f"{next(places)[0]}: the file ends in the middle of the record.")
    if _is_stray(rest):
        yield _not_an_object(*next(places))
    if is_array and b"]" not in rest:
        raise DamagedInputError(f"{path} ends in the middle of its array.")


class _Scanner:
    """Finds the outermost objects of JSON that comes in pieces, and scans nothing before the last brace again."""

    def __init__(self) -> None:
        self.rest = b""  # what follows the last object that was found
        self.depth = 0  # how many braces are open
        self._start = self._place = 0

    def objects(self, more: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield every object that ends in the next piece, after what stands before it."""
        buffer, depth, start, place, end = self.rest + more, self.depth, self._start, self._place, 0
        while match := _TO_BRACE.match(buffer, place):
            place = match.end()
            if buffer[place - 1] == _OPENING:
                start = start if depth else place - 1
                depth += 1
            elif depth:
                depth -= 1
                if not depth:
                    yield buffer[end:start], buffer[start:place]
                    end = place
        self.rest, self.depth, self._start, self._place = buffer[end:], depth, start - end, place - end

    @property
    def unscanned(self) -> bytes:
        """What follows the last brace."""
        return self.rest[self._place :]


def _after_object(where: str, scanner: _Scanner, stream: io.BufferedReader) -> bytes:
    """Read on to the end of an object and return what was read after it.

    By numpy, since of an object that is too long every byte may be a brace, which a loop would take minutes for.
    """
    import numpy as np

    rest, depth, quotes, escape = scanner.unscanned, scanner.depth, 0, b""
    cut = (rest[at : at + _CHUNK] for at in range(0, len(rest), _CHUNK))
    for piece in chain(cut, iter(partial(read_about, stream, _CHUNK), b"")):
        text = escape + piece
        masked = text.replace(rb"\\", b"__").replace(rb"\"", b"__")
        escape = b"\\" if masked.endswith(b"\\") else b""  # and what it escapes is in the next piece
        codes = np.frombuffer(masked + b" ", np.uint8)[: len(masked) - len(escape) + 1]
        strings = np.cumsum(codes == ord('"')) + quotes
        braces = (codes == ord("{")).astype(np.int8) - (codes == ord("}"))
        depths = np.cumsum(np.where(strings % 2, 0, braces)) + depth
        if not depths.all():
            return text[int(depths.argmin()) + 1 :]
        depth, quotes = int(depths[-1]), int(strings[-1]) % 2
    raise DamagedInputError(f"{where}: the file ends in the middle of the record.")


def _is_stray(between: bytes) -> bool:
    """Return whether there is more than separators between two objects."""
    return between.removeprefix(BYTE_ORDER_MARK).strip(b" \t\r\n,[]") != b""


def _not_an_object(where: str, number: int) -> Located:
    return where, number, QuestionError("bad_record", f"{where}: a question should be an object, in braces.")


def _too_long(where: str) -> QuestionError:
    return QuestionError("too_long", f"{where}: the record is longer than {LARGEST_RECORD >> 20} MB.")
