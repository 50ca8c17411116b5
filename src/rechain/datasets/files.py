"""Raw records of a file, one at a time: JSON lines, JSON arrays, gzip, Parquet, Hugging Face folders.

A record of a JSON file stays bytes until `RawRecord.parsed`, so that worker processes share the parsing. A record that
cannot be parsed becomes a QuestionError in its place; a file that cannot be read on raises InputError.
"""

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import chain, count, islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

import orjson

from rechain.errors import DamagedInputError, InputError, MissingExtraError, QuestionError

# Enough for a few hundred questions at a time, so that the loop over chunks costs nothing beside their parsing.
_CHUNK = 1 << 20
# A record that is longer has lost its closing brace; reading on would fill the memory with the rest of the file.
_LARGEST_RECORD = 1 << 29
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# All up to the next brace that is not part of a string. The quantifiers are possessive ("*+"): a string that does not
# end in the buffer then fails at once, where backtracking would take quadratic time.
_TO_BRACE = re.compile(rb'[^{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^{}"]*+)*+[{}]', re.DOTALL)
_OPENING = ord("{")
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"  # how such files begin
_PARQUET_BATCH = 256  # rows in memory at once: a row may hold a hundred passages
# No format has a field deeper than this: the deepest are those of a link, chains[].links[].entity. What lies below is
# part of a field that nobody reads, may be nested without end, and is left as it is.
_READ_LEVELS = 8
_LINES_NAMES = (".jsonl", ".jsonl.gz")
_JSON_NAMES = (*_LINES_NAMES, ".json", ".json.gz")
_TOO_DEEP = "depth limit exceeded"  # what orjson says at its 1025th level
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)

Located = tuple[str, bytes | QuestionError]
"""The place of a record, and its JSON or why it cannot be read."""
PathLike = Path | str
"""A local path or, for files that `bulk.storage` opens, an address."""


class RawRecord(NamedTuple):
    """A record of a file, or why it cannot be read; its place, and the share of the input that was read by then."""

    where: str
    value: Any | bytes | QuestionError
    """bytes are JSON that is not parsed yet"""
    share: float | None = None

    def parsed(self) -> "RawRecord":
        """Return the record with its JSON parsed and without fields that are null."""
        if not isinstance(self.value, bytes):
            return self
        try:
            value = orjson.loads(self.value)
            # most records hold no null, and the search for it is far quicker than the walk through the fields
            return self._replace(value=without_nulls(value) if b"null" in self.value else value)
        except orjson.JSONDecodeError as error:
            if error.msg.startswith(_TOO_DEEP):
                return self._replace(value=QuestionError("too_deep", f"{self.where}: the record is nested too deeply."))
            reason = QuestionError("bad_json", f"{self.where}: not valid JSON ({error}).")
        try:
            self.value.decode()
        except UnicodeDecodeError as error:
            byte = error.start + 1
            reason = QuestionError("bad_encoding", f"{self.where}: not valid UTF-8 (byte {byte} of the record).")
        return self._replace(value=reason)


def read_records(path: Path) -> Iterator[RawRecord]:
    """Yield the records of a file or folder, parsed; "-" is standard input."""
    for _, records in read_parts(path):
        yield from (record.parsed() for record in records)


def read_parts(path: Path) -> Iterator[tuple[Path, Iterable[RawRecord]]]:
    """Yield every part of a file or folder with its records, those of JSON files as bytes."""
    parts = _parts_of(path)
    sizes = [part.stat().st_size if len(parts) > 1 else 1 for part in parts]
    total, before, is_empty = sum(sizes), 0, True
    for part, size in zip(parts, sizes, strict=True):
        records = _read_part(part, before / total, size / total)
        first = list(islice(records, 1))
        is_empty = is_empty and not first
        yield part, chain(first, records)
        before += size
    if is_empty and not any(map(_is_table, parts)):
        raise InputError(f"{path} is empty.")


def _parts_of(path: Path) -> list[Path]:
    """Return the files of a folder in their order; a file, or a folder of `datasets`, is one part."""
    if not path.is_dir():
        return [path]
    has_info = any((path / name).exists() for name in ("dataset_info.json", "dataset_dict.json"))
    if has_info and not any(path.rglob("*.parquet")):  # beside Parquet, the same files only describe it
        return [path]
    sizes = {str(file.relative_to(path)): file.stat().st_size for file in path.rglob("*") if file.is_file()}
    parts = question_files(path, sizes)
    if not parts:
        raise InputError(f"{path} is a folder without Parquet or JSON files and no Hugging Face dataset.")
    return [path / part for part in parts]


def question_files(folder: PathLike, sizes: Mapping[str, int]) -> list[str]:
    """Return those of a folder's files that hold records: Parquet or, without any, JSON; neither hidden nor empty.

    JSON beside Parquet is metadata, as on the Hub; but JSON lines would be records. Programs such as Spark hide a file,
    or a folder, by the first character of its name.
    """
    hidden = {name for name in sizes if any(part.startswith((".", "_")) for part in PurePath(name).parts)}
    visible = [name for name, size in sizes.items() if size and name not in hidden]
    parquet = [name for name in visible if name.endswith(".parquet")]
    if parquet and any(name.endswith(_LINES_NAMES) for name in visible):
        raise InputError(f"{folder} holds both Parquet files and lines of JSON; name a folder with one kind of them.")
    return sorted(parquet or [name for name in visible if name.endswith(_JSON_NAMES)])


def _is_table(part: Path) -> bool:
    """Return whether a part is a table, which may have no rows."""
    if not part.is_file():
        return part.is_dir()
    with part.open("rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _read_part(path: Path, before: float, share: float) -> Iterator[RawRecord]:
    """Yield the records of one part, which follows `before` of the input and is a `share` of it."""
    try:
        if path.is_dir():
            yield from _read_dataset(path)
            return
        with nullcontext(sys.stdin.buffer) if path == Path("-") else path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size if file.seekable() else 0
            for record in read_opened(path, cast(io.BufferedReader, file), size):
                yield record if record.share is None else record._replace(share=before + share * record.share)
    except OSError as error:
        raise DamagedInputError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_opened(path: PathLike, file: io.BufferedReader, size: int) -> Iterator[RawRecord]:
    """Yield the records of an open file; its size is 0 if unknown."""
    start = file.peek(len(_PARQUET))
    if start.startswith(_PARQUET):
        if not file.seekable():
            raise InputError(f"{path} is Parquet, which cannot be read from a pipe; name the file.")
        yield from _read_parquet(path, file)
        return
    stream = cast(io.BufferedReader, gzip.GzipFile(fileobj=file)) if start.startswith(_GZIP) else file
    try:
        for where, value in _json_values(path, stream):
            yield RawRecord(where, value, min(file.tell() / size, 1.0) if size else None)
    except EOFError as error:
        raise DamagedInputError(f"{path} is cut off: its gzip stream ends early. What came before was read.") from error
    except _DAMAGE as error:
        raise DamagedInputError(f"{path} is damaged: {error}. What came before was read.") from error


def _json_values(path: PathLike, stream: io.BufferedReader) -> Iterator[Located]:
    """Yield the JSON of every line, or of every outermost object of an array or of objects spread over lines."""
    blank_lines, start = 0, b""
    while (ahead := stream.peek(64)) and not (start := ahead.removeprefix(_BYTE_ORDER_MARK).lstrip()):
        blank_lines += stream.read(len(ahead)).count(b"\n")
    if start.startswith(b"[") or start.split(b"\n", 1)[0].strip() == b"{":
        yield from _json_objects(path, stream, is_array=start.startswith(b"["))
    elif start.startswith(b"{"):
        for number, line in enumerate(stream, start=blank_lines + 1):
            text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if not text.isspace():
                yield f"{path}, line {number}", text
    elif start:
        quoted = repr(start[:20].decode("utf-8", "replace"))
        raise InputError(f"{path} is not JSON: it begins with {quoted}, not with '{{' or '['.")


def _json_objects(path: PathLike, stream: io.BufferedReader, is_array: bool) -> Iterator[Located]:
    """Yield the outermost objects of an array, or of a file of objects spread over several lines."""
    places = (f"{path}, record {number}" for number in count(1))
    buffer, at = b"", 0
    # twice as much after a record that does not end in the buffer, so that a long one is not scanned too often
    while more := _read_about(stream, max(_CHUNK, len(buffer))):
        buffer, at = buffer[at:] + more, 0
        while span := _next_object(buffer, at):
            start, end = span
            if _is_stray(buffer[at:start]):
                yield _not_an_object(next(places))
            yield next(places), buffer[start:end]
            at = end
        if len(buffer) - at > _LARGEST_RECORD:
            raise InputError(f"{next(places)}: no end of the record within 512 MB.")
    rest = buffer[at:]
    if b"{" in rest:
        raise DamagedInputError(f"{next(places)}: the file ends in the middle of the record.")
    if _is_stray(rest):
        yield _not_an_object(next(places))
    if is_array and b"]" not in rest:
        raise DamagedInputError(f"{path} ends in the middle of its array.")


def _read_about(stream: io.BufferedReader, size: int) -> bytes:
    """Read `size` bytes, fewer before the end of the file or before damage, at which the next call then fails."""
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
    """Return whether there is more than separators between two objects."""
    return between.removeprefix(_BYTE_ORDER_MARK).strip(b" \t\r\n,[]") != b""


def _not_an_object(where: str) -> Located:
    return where, QuestionError("bad_record", f"{where}: a question should be an object, in braces.")


def _read_parquet(path: PathLike, opened: io.BufferedReader) -> Iterator[RawRecord]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "parquet") from error
    numbers = count(1)
    try:
        with pyarrow.parquet.ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH):
                for row in range(batch.num_rows):
                    number = next(numbers)
                    where, share = f"{path}, row {number}", number / file.metadata.num_rows
                    try:  # row by row: text that is not UTF-8 should cost one row, not the batch
                        value = without_nulls(batch.slice(row, 1).to_pylist()[0])
                    except UnicodeDecodeError:
                        value = QuestionError("bad_encoding", f"{where}: not valid UTF-8.")
                    yield RawRecord(where, value, share)
    except pyarrow.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {str(error).rstrip('.')}.") from error


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


def without_nulls(value: Any, levels: int = _READ_LEVELS) -> Any:
    """Drop fields that are null: tables have a column for every field, JSON leaves absent ones out."""
    if not levels:
        return value
    if isinstance(value, dict):
        return {name: without_nulls(field, levels - 1) for name, field in value.items() if field is not None}
    return [without_nulls(item, levels - 1) for item in value] if isinstance(value, list) else value
