"""Pretrained word vectors, read from the files in which they are published.

Text (GloVe, word2vec, fastText), word2vec binary and npz, each gzipped or not, are recognised by their content. A file
is read in one pass and only as far as needed; what is not kept is neither stored nor checked.
"""

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from rechain.errors import InputError

_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 20
_LONGEST_WORD = 1 << 16
_WIDEST = 1 << 14
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FASTTEXT_MODEL = (793712314).to_bytes(4, "little")
_HEADER = re.compile(rb"(\d{1,18}) (\d{1,18})\s*")
_NUMBERS_AT_END = re.compile(rb"(?: [-+]?\d*\.?\d+(?:e[-+]?\d+)?)+\Z", re.IGNORECASE)
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_DAMAGE = (zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)
_LARGEST = float(np.finfo(np.float16).max)

_Array = npt.NDArray[Any]
_Row = tuple[int, bytes, Any]
"""the number of a line or row, its word, and its vector as it stands in the file"""


class Vectors(NamedTuple):
    """Words, as they stand in the file, and a vector for each."""

    words: list[str]
    matrix: npt.NDArray[np.float16]
    """float16 [words, width]"""

    @property
    def table(self) -> npt.NDArray[np.float16]:
        """The vectors below a first row for words that have none, as `rechain.preparation.lexicon` counts rows."""
        return np.concatenate([np.zeros((1, self.matrix.shape[1]), self.matrix.dtype), self.matrix])


class _Source(NamedTuple):
    """The rows of an open file and how to read them."""

    width: int
    rows: Iterator[_Row]
    unit: str
    parse: Callable[[Any], _Array]


def read_vectors(
    path: str | Path, *, wanted: Collection[str] = (), limit: int = 200_000, width: int | None = None
) -> Vectors:
    """Read the first `limit` words of a file, and those of `wanted` (spelled as in the file) wherever they stand.

    The first occurrence of a word counts. If `width` is given, vectors of another width are an error.
    """
    path, shelf = Path(path), _Shelf(wanted, limit)
    try:
        with path.open("rb") as file:
            source = _source(path, file, shelf)
            if width not in (None, source.width):
                raise InputError(f"{path} holds vectors of {source.width} numbers, but {width} are wanted.")
            shelf.fill(path, source)
    except EOFError as error:
        raise InputError(f"{path} is cut off: its compressed data ends early.") from error
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged: {error}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    return shelf.vectors(source.width)


class _Shelf:
    """The words that are kept, and their vectors, one after the other."""

    def __init__(self, wanted: Collection[str], limit: int) -> None:
        self._left = limit
        self._missing = {word.encode("utf-8", "surrogatepass") for word in wanted}
        self._starts = {word.partition(b" ")[0] for word in self._missing}
        self._words: dict[bytes, None] = {}
        self._numbers = bytearray()

    def may_take(self, start: bytes) -> bool:
        """Return whether the next word, which has this up to its first blank, might be kept."""
        return self._left > 0 or start in self._starts

    def fill(self, path: Path, source: _Source) -> None:
        """Take what is to be kept of the rows of a file."""
        row = None
        for row in source.rows:
            number, word, raw = row
            is_kept = word not in self._words if self._left > 0 else word in self._missing
            self._left -= 1
            if is_kept:
                self._missing.discard(word)
                self._words[word] = None
                self._numbers += _vector(f"{path}, {source.unit} {number}", source.parse, raw).tobytes()
            if self._left <= 0 and not self._missing:
                return
        if row is None and self.may_take(b""):
            raise InputError(f"{path} holds no words.")

    def vectors(self, width: int) -> Vectors:
        words = [word.decode("utf-8", "replace") for word in self._words]
        return Vectors(words, np.frombuffer(self._numbers, np.float16).reshape(len(words), width))


def _vector(where: str, parse: Callable[[Any], _Array], raw: Any) -> npt.NDArray[np.float16]:
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = parse(raw)
            vector = numbers.astype(np.float16)
    except ValueError:
        bad = next(value for value in raw if not _is_number(value))
        raise InputError(f"{where}: {_quote(bad)} is not a number.") from None
    finite = np.isfinite(vector)
    if not finite.all():
        raise InputError(f"{where}: {numbers[~finite][0]} is not a finite number of at most {_LARGEST:.0f}.")
    return vector


def _is_number(value: bytes) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _source(path: Path, stream: io.BufferedReader, shelf: _Shelf) -> _Source:
    if stream.peek(2).startswith(b"\x1f\x8b"):
        stream = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=stream)), _CHUNK)
    start = stream.peek(4)
    if not start:
        raise InputError(f"{path} is empty.")
    if start.startswith(_FASTTEXT_MODEL):
        raise InputError(f"{path} is a fastText model; name the file of its word vectors (.vec or .vec.bin) instead.")
    if start.startswith(b"PK"):
        return _npz(path, stream)
    first = stream.readline(_LONGEST_LINE).removeprefix(_BYTE_ORDER_MARK)
    lines = iter(partial(stream.readline, _LONGEST_LINE), b"")
    if header := _HEADER.fullmatch(first):
        count, width = map(int, header.groups())
        if not 1 <= width <= _WIDEST:
            raise InputError(f"{path}, line 1: the vectors should have 1 to {_WIDEST} numbers, not {width}.")
        if _is_binary(stream, width):
            return _Source(width, _binary_rows(path, stream, count, width), "word", partial(np.frombuffer, dtype="<f4"))
        numbered = enumerate(lines, start=2)
    else:
        width = first.rstrip().count(b" ")
        if not 1 <= width <= _WIDEST:
            raise InputError(f"{path}, line 1: {_quote(first)} is not a word followed by the numbers of its vector.")
        numbered = enumerate(chain([first], lines), start=1)
    return _Source(width, _text_rows(path, numbered, width, shelf), "line", _parse_text)


def _is_binary(stream: io.BufferedReader, width: int) -> bool:
    """Return whether the first vector is binary; as text it has at least a digit and a blank for each number."""
    _, _, numbers = stream.peek(_LONGEST_LINE).partition(b" ")
    return numbers[: 2 * width - 1].translate(None, _PRINTABLE) != b""


def _text_rows(path: Path, lines: Iterable[tuple[int, bytes]], width: int, shelf: _Shelf) -> Iterator[_Row]:
    for number, line in lines:
        if line.isspace() or not shelf.may_take(line.partition(b" ")[0]):
            continue
        word, *values = line.rstrip().rsplit(b" ", width)  # from the right: words may hold blanks
        extra = _NUMBERS_AT_END.search(word)
        found = len(values) + (extra.group().count(b" ") if extra else 0)
        if found != width:
            name = _quote(word[: extra.start()] if extra else word)
            raise InputError(f"{path}, line {number}: {name} should be followed by {width} numbers, not {found}.")
        yield number, word, values


def _parse_text(values: list[bytes]) -> _Array:
    return np.array(list(map(float, values)), dtype=np.float32)


def _binary_rows(path: Path, stream: io.BufferedReader, count: int, width: int) -> Iterator[_Row]:
    buffer, at, number, size = b"", 0, 0, 4 * width
    while number < count and (more := stream.read(_CHUNK)):
        buffer, at = buffer[at:] + more, 0
        while number < count and (blank := buffer.find(b" ", at)) >= 0 and (end := blank + 1 + size) <= len(buffer):
            number += 1
            yield number, buffer[at:blank].lstrip(b"\n"), buffer[blank + 1 : end]
            at = end
        if len(buffer) - at > size + _LONGEST_WORD:
            raise InputError(f"{path}, word {number + 1}: no blank after the word within {_LONGEST_WORD} bytes.")
    if number < count:
        place = "in the middle of" if buffer[at:].strip(b"\n") else "before"
        raise InputError(f"{path} is cut off: it ends {place} vector {number + 1} of {count}.")


def _npz(path: Path, stream: io.BufferedReader) -> _Source:
    try:
        archive = np.load(stream, allow_pickle=False)
        held = archive.zip.namelist()
        if not {"words.npy", "vectors.npy"} <= set(held):
            listed = ", ".join(held[:5] + ["and more"] * (len(held) > 5)) or "nothing"
            raise InputError(f"{path} should hold words.npy and vectors.npy, but it holds {listed}.")
        words, (shape, blocks) = archive["words"], _blocks(archive)
    except ValueError as error:
        raise InputError(f"{path} is not a readable npz file: {error}.") from error
    if words.shape != () or words.dtype.kind != "U":
        raise InputError(f"{path}: 'words' should be one string, with a word on each line.")
    lines = str(words).split("\n") if str(words) else []
    if len(lines) != shape[0]:
        raise InputError(f"{path} has {len(lines)} words, but {shape[0]} vectors.")
    pairs = zip(lines, (vector for block in blocks for vector in block), strict=True)
    rows = ((n, word.encode("utf-8", "surrogatepass"), vector) for n, (word, vector) in enumerate(pairs, start=1))
    return _Source(shape[1], rows, "row", np.asarray)


def _blocks(archive: Any) -> tuple[tuple[int, ...], Iterator[_Array]]:
    """Return the shape of the array 'vectors', and the array itself, a number of rows at a time."""
    stream = archive.zip.open("vectors.npy")
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read_header(stream)
    if len(shape) != 2 or shape[1] == 0 or dtype.kind != "f":
        raise ValueError("'vectors' should be a matrix of floating-point numbers")
    return shape, iter([archive["vectors"]]) if by_columns else _stored_rows(stream, shape, dtype)


def _stored_rows(stream: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[_Array]:
    size = shape[1] * dtype.itemsize
    at_once = max(_CHUNK // size, 1)
    for first in range(0, shape[0], at_once):
        rows = min(at_once, shape[0] - first)
        data = stream.read(rows * size)
        if len(data) < rows * size:
            raise EOFError
        yield np.frombuffer(data, dtype).reshape(rows, shape[1])


def _quote(data: bytes) -> str:
    return repr(data[:40].decode("utf-8", "replace").rstrip())
