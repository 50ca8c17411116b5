"""Raw records of a file, one at a time: JSON lines, JSON arrays, gzip, Parquet, Hugging Face folders.

A record that cannot be parsed becomes a QuestionError in its place; a file that cannot be read on raises InputError.
"""

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import orjson

from rechain.errors import InputError, MissingExtraError, QuestionError

_CHUNK = 1 << 20
_LARGEST_RECORD = 1 << 29
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A brace, or a string (which may hold braces), whole or up to where the buffer ends.
_STRUCTURE = re.compile(rb'[{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class RawRecord(NamedTuple):
    """A record as it stands in the file, or why it cannot be read; where it stands, and what share was read by then."""

    where: str
    value: Any | QuestionError
    share: float | None = None


def read_records(path: Path) -> Iterator[RawRecord]:
    """Yield the records of a file or folder; "-" is standard input."""
    try:
        if path.is_dir():
            yield from _read_folder(path)
        elif path != Path("-") and _is_parquet(path):
            yield from _read_parquet(path)
        else:
            yield from _read_json(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_json(path: Path) -> Iterator[RawRecord]:
    with _open(path) as (raw, stream):
        size = raw.seekable() and os.fstat(raw.fileno()).st_size
        for where, value in _json_values(path, stream):
            yield RawRecord(where, value, min(raw.tell() / size, 1.0) if size else None)


@contextmanager
def _open(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file, and the same file unpacked if it is gzipped."""
    with nullcontext(sys.stdin.buffer) if path == Path("-") else path.open("rb") as raw:
        is_gzipped = cast(io.BufferedReader, raw).peek(2)[:2] == b"\x1f\x8b"
        yield cast(BinaryIO, raw), cast(BinaryIO, gzip.GzipFile(fileobj=raw) if is_gzipped else raw)


def _json_values(path: Path, stream: BinaryIO) -> Iterator[tuple[str, Any | QuestionError]]:
    try:
        start = _peek(stream)
        if start.startswith(b"[") or start.split(b"\n", 1)[0].strip() == b"{":
            yield from _json_objects(path, stream)
        elif start.startswith(b"{"):
            yield from _json_lines(path, stream)
        elif start:
            raise InputError(f"{path} is not JSON: it begins with {_quote(start)}, not with '{{' or '['.")
        else:
            raise InputError(f"{path} is empty.")
    except EOFError as error:
        raise InputError(f"{path} is cut off: its gzip stream ends early. What came before was read.") from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is damaged: {error}. What came before was read.") from error


def _peek(stream: BinaryIO) -> bytes:
    """Look at the first bytes of a stream, but for blanks and a byte order mark; they stay unread."""
    while ahead := cast(io.BufferedReader, stream).peek(64):
        if start := ahead.removeprefix(_BYTE_ORDER_MARK).lstrip():
            return start
        stream.read(len(ahead))
    return b""


def _json_lines(path: Path, stream: BinaryIO) -> Iterator[tuple[str, Any | QuestionError]]:
    for number, line in enumerate(stream, start=1):
        if not line.isspace():
            yield _parse(f"{path}, line {number}", line.removeprefix(_BYTE_ORDER_MARK))


def _json_objects(path: Path, stream: BinaryIO) -> Iterator[tuple[str, Any | QuestionError]]:
    """Yield the outermost objects of an array, or of a file of objects spread over several lines."""
    numbers = count(1)
    buffer, at = b"", 0
    while more := stream.read(max(_CHUNK, len(buffer))):
        buffer, at = buffer[at:] + more, 0
        while end := _object_end(buffer, at):
            start = buffer.index(b"{", at)
            yield _parse(f"{path}, record {next(numbers)}", buffer[start:end])
            at = end
        if len(buffer) - at > _LARGEST_RECORD:
            raise InputError(f"{path}, record {next(numbers)}: no end of the record within 512 MB.")
    if b"{" in buffer[at:]:
        raise InputError(f"{path}, record {next(numbers)}: the file ends in the middle of the record.")


def _object_end(buffer: bytes, at: int) -> int | None:
    """Return where the next outermost object ends, or None if its end is not in the buffer."""
    depth = 0
    for match in _STRUCTURE.finditer(buffer, at):
        token = match.group()
        depth += (token == b"{") - (token == b"}")
        if depth == 0 and token == b"}":
            return match.end()
    return None


def _parse(where: str, data: bytes) -> tuple[str, Any | QuestionError]:
    try:
        return where, orjson.loads(data)
    except orjson.JSONDecodeError as error:
        code, what = _what_is_wrong(data, error)
        return where, QuestionError(code, f"{where}: {what}.")


def _what_is_wrong(data: bytes, error: orjson.JSONDecodeError) -> tuple[str, str]:
    try:
        data.decode()
    except UnicodeDecodeError as undecodable:
        return "bad_encoding", f"not valid UTF-8 (byte {undecodable.start + 1} of the record)"
    return "bad_json", f"not valid JSON ({error})"


def _quote(data: bytes) -> str:
    return repr(data[:20].decode("utf-8", "replace"))


def _read_folder(path: Path) -> Iterator[RawRecord]:
    parquet = sorted(path.rglob("*.parquet"))
    if parquet:
        for file in parquet:
            yield from _read_parquet(file)
    elif (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
        yield from _read_dataset(path)
    else:
        raise InputError(f"{path} is a folder without Parquet files and no Hugging Face dataset.")


def _read_parquet(path: Path) -> Iterator[RawRecord]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "parquet") from error
    numbers = count(1)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for record in batch.to_pylist():
                    number = next(numbers)
                    yield RawRecord(f"{path}, row {number}", _without_nulls(record), number / file.metadata.num_rows)
    except pyarrow.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}.") from error


def _read_dataset(path: Path) -> Iterator[RawRecord]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("Reading a Hugging Face dataset folder", "datasets") from error
    loaded = datasets.load_from_disk(str(path))
    if isinstance(loaded, datasets.DatasetDict):
        splits = ", ".join(str(path / name) for name in loaded)
        raise InputError(f"{path} holds several splits; name one of them: {splits}.")
    for number, record in enumerate(loaded, start=1):
        yield RawRecord(f"{path}, row {number}", _without_nulls(record), number / len(loaded))


def _without_nulls(value: Any) -> Any:
    """Drop fields that are null: a column that some rows leave empty."""
    if isinstance(value, dict):
        return {name: _without_nulls(field) for name, field in value.items() if field is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
