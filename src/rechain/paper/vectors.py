"""Pretrained word vectors, from the files in which they are published.

GloVe text (a word and its numbers on each line, with or without word2vec's header), word2vec binary (BioWordVec), each
gzipped or not, and npz with `words` (one string, a word a line) and `vectors` are recognised by their content.
"""

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rechain.errors import InputError

_CHUNK = 1 << 20
_LONGEST_WORD = 1 << 16
_WIDEST = 1 << 14
_HEADER = re.compile(rb"(\d{1,18}) (\d{1,18})\s*")
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_DAMAGE = (zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, EOFError)
_LARGEST = float(np.finfo(np.float16).max)

_Row = tuple[str, bytes, npt.NDArray[Any]]
"""where a word is in the file, the word, and its vector"""


class Vectors(NamedTuple):
    """Words, as they are spelled in the file, and a vector for each."""

    words: list[str]
    matrix: npt.NDArray[np.float16]
    """float16 [words, width]"""

    @property
    def table(self) -> npt.NDArray[np.float16]:
        """The vectors after a first row for words that have none, as `rechain.paper.lexicon` counts rows."""
        return np.concatenate([np.zeros((1, self.matrix.shape[1]), self.matrix.dtype), self.matrix])


def no_vectors(width: int = 50) -> Vectors:
    """Return vectors for no word at all: every word is then represented by its spelling."""
    return Vectors([], np.zeros((0, width), np.float16))


def read_vectors(path: str | Path, *, limit: int = 200_000, width: int | None = None) -> Vectors:
    """Read the first `limit` words of a file; of a word that occurs twice the first.

    If `width` is given, vectors of another width are an error.
    """
    path = Path(path)
    words: dict[bytes, None] = {}
    numbers = bytearray()
    size = 0
    try:
        with path.open("rb") as file:
            for count, (where, word, vector) in enumerate(_rows(path, file), start=1):
                size = len(vector)
                if width not in (None, size):
                    raise InputError(f"{path} has vectors of {size} numbers, but {width} are needed.")
                if word not in words:
                    words[word] = None
                    numbers += _half(where, vector).tobytes()
                if count >= limit:
                    break
    except OSError as error:
        if not isinstance(error, gzip.BadGzipFile):
            raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
        raise InputError(f"{path} is damaged: {error}.") from error
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged: {error}.") from error
    if not words:
        raise InputError(f"{path} has no words.")
    return Vectors([w.decode("utf-8", "replace") for w in words], np.frombuffer(numbers, np.float16).reshape(-1, size))


def _half(where: str, vector: npt.NDArray[Any]) -> npt.NDArray[np.float16]:
    with np.errstate(over="ignore", invalid="ignore"):
        half = vector.astype(np.float16)
    if not (finite := np.isfinite(half)).all():
        raise InputError(f"{where}: {vector[~finite][0]} is not a finite number of at most {_LARGEST:.0f}.")
    return half


def _rows(path: Path, file: io.BufferedReader) -> Iterator[_Row]:
    """Yield the rows of a file of any of the formats."""
    if file.peek(2).startswith(b"PK"):
        yield from _npz_rows(path, file)
        return
    stream: Any = io.BufferedReader(gzip.GzipFile(fileobj=file), _CHUNK) if file.peek(2)[:2] == b"\x1f\x8b" else file
    first = stream.readline(_CHUNK)
    if not first:
        raise InputError(f"{path} is empty.")
    header = _HEADER.fullmatch(first)
    count, width = map(int, header.groups()) if header else (0, first.rstrip().count(b" "))
    if not 1 <= width <= _WIDEST:
        raise InputError(f"{path}, line 1: {_quote(first)} is neither a word with its vector nor a header.")
    if header and _is_binary(stream, width):
        yield from _binary_rows(path, stream, count, width)
        return
    if not header:
        yield _parse_line(f"{path}, line 1", first, width)
    for number, line in enumerate(iter(lambda: stream.readline(_CHUNK), b""), start=2):
        if not line.isspace():
            yield _parse_line(f"{path}, line {number}", line, width)


def _is_binary(stream: io.BufferedReader, width: int) -> bool:
    """Return whether the first vector is binary; as text it has at least a digit and a blank for each number."""
    _, _, numbers = stream.peek(_CHUNK).partition(b" ")
    return numbers[: 2 * width - 1].translate(None, _PRINTABLE) != b""


def _parse_line(where: str, line: bytes, width: int) -> _Row:
    word, *values = line.rstrip().rsplit(b" ", width)  # from the right: words may contain blanks
    if len(values) != width:
        raise InputError(f"{where}: {_quote(word)} should be followed by {width} numbers, not {len(values)}.")
    try:
        return where, word, np.array(list(map(float, values)), dtype=np.float32)
    except ValueError as error:
        raise InputError(f"{where}: {str(error).rpartition(': ')[2]} is not a number.") from None


def _binary_rows(path: Path, stream: io.BufferedReader, count: int, width: int) -> Iterator[_Row]:
    buffer, at, number, size = b"", 0, 0, 4 * width
    while number < count and (more := stream.read(_CHUNK)):
        buffer, at = buffer[at:] + more, 0
        while number < count and (blank := buffer.find(b" ", at)) >= 0 and (end := blank + 1 + size) <= len(buffer):
            number += 1
            vector = np.frombuffer(buffer[blank + 1 : end], dtype="<f4")
            yield f"{path}, word {number}", buffer[at:blank].lstrip(b"\n"), vector
            at = end
        if len(buffer) - at > size + _LONGEST_WORD:
            raise InputError(f"{path}, word {number + 1}: no blank after the word within {_LONGEST_WORD} bytes.")
    if number < count:
        raise InputError(f"{path} is cut off: it ends in vector {number + 1} of {count}.")


def _npz_rows(path: Path, file: IO[bytes]) -> Iterator[_Row]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            words, vectors = str(archive["words"]).split("\n"), archive["vectors"]
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} is not an npz file with words and vectors: {error}.") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(words) != len(vectors):
        raise InputError(f"{path} should have a word on each line of `words` and a row of `vectors` for each.")
    for number, (word, vector) in enumerate(zip(words, vectors, strict=True), start=1):
        yield f"{path}, row {number}", word.encode("utf-8", "surrogatepass"), vector


def _quote(data: bytes) -> str:
    return repr(data[:40].decode("utf-8", "replace").rstrip())
