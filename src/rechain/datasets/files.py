"""Raw records of a file, one at a time: JSON lines, JSON arrays, gzip, Parquet, Hugging Face folders.

A record of a JSON file is first its bytes, so that others than the reader can parse it. One that cannot be parsed
becomes a QuestionError in its place; a file that cannot be read on raises InputError.
"""

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

import orjson

from rechain.errors import InputError, MissingExtraError, QuestionError

_CHUNK = 1 << 20
_LARGEST_RECORD = 1 << 29
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# All up to the next brace that is not part of a string.
_TO_BRACE = re.compile(rb'[^{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^{}"]*+)*+[{}]', re.DOTALL)
_OPENING = ord("{")
_PARQUET = b"PAR1"
"""how such a file begins"""
_LINES_NAMES = (".jsonl", ".jsonl.gz")
_JSON_NAMES = (*_LINES_NAMES, ".json", ".json.gz")
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)

Located = tuple[str, bytes | QuestionError]
"""Where a record stands, and its JSON or why it cannot be read."""
PathLike = Path | str
"""A path of this machine's or, where files are opened by others, an address."""


class RawRecord(NamedTuple):
    """A record as it stands in the file, or why it cannot be read; where it stands, and what share was read by then."""

    where: str
    value: Any | bytes | QuestionError
    """bytes are JSON that nobody has parsed yet"""
    share: float | None = None

    def parsed(self) -> "RawRecord":
        """Return it with its JSON parsed; fields that are null are left out."""
        return self._replace(value=_parse(self.where, self.value)) if isinstance(self.value, bytes) else self


def read_records(path: Path) -> Iterator[RawRecord]:
    """Yield the records of a file or folder, parsed; "-" is standard input."""
    for _, records in read_parts(path):
        yield from (record.parsed() for record in records)


def read_parts(path: Path) -> Iterator[tuple[Path, Iterable[RawRecord]]]:
    """Yield every part of a file or folder with its records, those of JSON files as bytes."""
    parts = _parts_of(path)
    sizes = [part.stat().st_size if len(parts) > 1 else 1 for part in parts]
    before, is_empty = 0, True
    for part, size in zip(parts, sizes, strict=True):
        records = _PartRecords(part, before / sum(sizes), size / sum(sizes))
        yield part, records
        before += size
        is_empty = is_empty and records.is_empty
    if is_empty and not any(map(_is_table, parts)):
        raise InputError(f"{path} is empty.")


class _PartRecords:
    """The records of a part, each with the share of the whole that was read by then; and whether there were any."""

    def __init__(self, part: Path, before: float, size: float) -> None:
        self._part = part
        self._before = before
        self._size = size
        self.is_empty = True

    def __iter__(self) -> Iterator[RawRecord]:
        for record in _read_raw(self._part):
            self.is_empty = False
            share = None if record.share is None else self._before + self._size * record.share
            yield record._replace(share=share)


def _parts_of(path: Path) -> list[Path]:
    """Return the files of which a folder consists, in their order; a file, or a folder of `datasets`, is one part."""
    if not path.is_dir() or _is_dataset(path):
        return [path]
    sizes = {str(file.relative_to(path)): file.stat().st_size for file in path.rglob("*") if file.is_file()}
    parts = question_files(path, sizes)
    if not parts:
        raise InputError(f"{path} is a folder without Parquet or JSON files and no Hugging Face dataset.")
    return [path / part for part in parts]


def question_files(folder: PathLike, sizes: Mapping[str, int]) -> list[str]:
    """Return those of a folder's files that hold records: Parquet or, without any, JSON; neither hidden nor empty.

    JSON beside Parquet describes it, as the Hub has it; but lines of JSON would be records.
    """
    shown = [name for name, size in sizes.items() if size and not _is_hidden(PurePath(name))]
    parquet = [name for name in shown if name.endswith(".parquet")]
    if parquet and any(name.endswith(_LINES_NAMES) for name in shown):
        raise InputError(f"{folder} holds both Parquet files and lines of JSON; name a folder with one kind of them.")
    return sorted(parquet or [name for name in shown if name.endswith(_JSON_NAMES)])


def _is_hidden(path: PurePath) -> bool:
    """Return whether a file, or a folder on the way to it, is there for programs alone, by its name."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _is_table(part: Path) -> bool:
    """Return whether a part is a table, which may well be without rows."""
    if not part.is_file():
        return part.is_dir()
    with part.open("rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _read_raw(path: Path) -> Iterator[RawRecord]:
    """Yield the records of one part; those of JSON files are still bytes."""
    try:
        if path.is_dir():
            yield from _read_dataset(path)
            return
        with _open(path) as file:
            yield from read_opened(path, file, os.fstat(file.fileno()).st_size if file.seekable() else 0)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_opened(path: PathLike, file: io.BufferedReader, size: int) -> Iterator[RawRecord]:
    """Yield the records of an open file of so many bytes, or of 0 where nobody knows."""
    start = file.peek(len(_PARQUET))
    if start.startswith(_PARQUET):
        if not file.seekable():
            raise InputError(f"{path} is Parquet, which cannot be read from a pipe; name the file.")
        yield from _read_parquet(path, file)
        return
    stream = cast(io.BufferedReader, gzip.GzipFile(fileobj=file)) if start.startswith(b"\x1f\x8b") else file
    for where, value in _json_values(path, stream):
        yield RawRecord(where, value, min(file.tell() / size, 1.0) if size else None)


@contextmanager
def _open(path: Path) -> Iterator[io.BufferedReader]:
    with nullcontext(sys.stdin.buffer) if path == Path("-") else path.open("rb") as file:
        yield cast(io.BufferedReader, file)


def _json_values(path: PathLike, stream: io.BufferedReader) -> Iterator[Located]:
    try:
        lines, start = _skip_blank(stream)
        if start.startswith(b"[") or start.split(b"\n", 1)[0].strip() == b"{":
            yield from _json_objects(path, stream, is_array=start.startswith(b"["))
        elif start.startswith(b"{"):
            yield from _json_lines(path, stream, lines + 1)
        elif start:
            raise InputError(f"{path} is not JSON: it begins with {_quote(start)}, not with '{{' or '['.")
    except EOFError as error:
        raise InputError(f"{path} is cut off: its gzip stream ends early. What came before was read.") from error
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged: {error}. What came before was read.") from error


def _skip_blank(stream: io.BufferedReader) -> tuple[int, bytes]:
    """Pass over whole chunks of blanks; return how many lines that was, and what comes next, which stays unread."""
    lines = 0
    while ahead := stream.peek(64):
        if start := ahead.removeprefix(_BYTE_ORDER_MARK).lstrip():
            return lines, start
        lines += stream.read(len(ahead)).count(b"\n")
    return lines, b""


def _json_lines(path: PathLike, stream: io.BufferedReader, first: int) -> Iterator[Located]:
    for number, line in enumerate(stream, start=first):
        text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if not text.isspace():
            yield f"{path}, line {number}", text


def _json_objects(path: PathLike, stream: io.BufferedReader, is_array: bool) -> Iterator[Located]:
    """Yield the outermost objects of an array, or of a file of objects spread over several lines."""
    numbers = (f"{path}, record {number}" for number in count(1))
    buffer, at = b"", 0
    while more := _read_about(stream, max(_CHUNK, len(buffer))):
        buffer, at = buffer[at:] + more, 0
        while found := _next_object(buffer, at):
            start, end = found
            if _is_stray(buffer[at:start]):
                yield _not_an_object(next(numbers))
            yield next(numbers), buffer[start:end]
            at = end
        if len(buffer) - at > _LARGEST_RECORD:
            raise InputError(f"{next(numbers)}: no end of the record within 512 MB.")
    rest = buffer[at:]
    if b"{" in rest:
        raise InputError(f"{next(numbers)}: the file ends in the middle of the record.")
    if _is_stray(rest):
        yield _not_an_object(next(numbers))
    if is_array and b"]" not in rest:
        raise InputError(f"{path} ends in the middle of its array.")


def _read_about(stream: io.BufferedReader, size: int) -> bytes:
    """Read so many bytes, or what there is before the file's end or a damage, which the next call then meets."""
    parts: list[bytes] = []
    while size > 0:
        try:
            part = stream.read1(size)
        except _DAMAGE:
            if parts:
                break
            raise
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _next_object(buffer: bytes, at: int) -> tuple[int, int] | None:
    """Return where the next outermost object starts and ends, or None if it does not end in the buffer."""
    depth, start, place = 0, None, at
    while match := _TO_BRACE.match(buffer, place):
        place = match.end()
        if buffer[place - 1] == _OPENING:
            start = place - 1 if start is None else start
            depth += 1
        elif start is not None:
            depth -= 1
            if depth == 0:
                return start, place
    return None


def _is_stray(between: bytes) -> bool:
    """Return whether something stands between objects that should not."""
    return between.removeprefix(_BYTE_ORDER_MARK).strip(b" \t\r\n,[]") != b""


def _not_an_object(where: str) -> Located:
    return where, QuestionError("bad_record", f"{where}: a question should be an object, in braces.")


def _parse(where: str, data: bytes) -> Any | QuestionError:
    try:
        value = orjson.loads(data)
        return without_nulls(value) if b"null" in data else value
    except orjson.JSONDecodeError as error:
        code, what = _what_is_wrong(data, error)
        return QuestionError(code, f"{where}: {what}.")


def _what_is_wrong(data: bytes, error: orjson.JSONDecodeError) -> tuple[str, str]:
    try:
        data.decode()
    except UnicodeDecodeError as undecodable:
        return "bad_encoding", f"not valid UTF-8 (byte {undecodable.start + 1} of the record)"
    return "bad_json", f"not valid JSON ({error})"


def _quote(data: bytes) -> str:
    return repr(data[:20].decode("utf-8", "replace"))


def _read_parquet(path: PathLike, opened: io.BufferedReader) -> Iterator[RawRecord]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "parquet") from error
    numbers = count(1)
    try:
        with pyarrow.parquet.ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_size=256):
                for row in range(batch.num_rows):
                    number = next(numbers)
                    where, share = f"{path}, row {number}", number / file.metadata.num_rows
                    yield RawRecord(where, _row(where, batch.slice(row, 1)), share)
    except pyarrow.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {str(error).rstrip('.')}.") from error


def _row(where: str, batch: Any) -> Any | QuestionError:
    try:
        return without_nulls(batch.to_pylist()[0])
    except UnicodeDecodeError:
        return QuestionError("bad_encoding", f"{where}: not valid UTF-8.")


def _is_dataset(path: Path) -> bool:
    names = ("dataset_info.json", "dataset_dict.json")
    return any((path / name).exists() for name in names) and not any(path.rglob("*.parquet"))


def _read_dataset(path: Path) -> Iterator[RawRecord]:
    try:
        import datasets
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("Reading a Hugging Face dataset folder", "datasets") from error
    try:
        loaded = datasets.load_from_disk(str(path))
        if isinstance(loaded, datasets.DatasetDict):
            splits = ", ".join(str(path / name) for name in loaded)
            raise InputError(f"{path} holds several splits; name one of them: {splits}.")
        for number, record in enumerate(loaded, start=1):
            yield RawRecord(f"{path}, row {number}", without_nulls(record), number / len(loaded))
    except (ValueError, KeyError, TypeError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} is not a readable Hugging Face dataset: {error}.") from error


def without_nulls(value: Any) -> Any:
    """Drop fields that are null, which is to say not there."""
    if isinstance(value, dict):
        return {name: without_nulls(field) for name, field in value.items() if field is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
