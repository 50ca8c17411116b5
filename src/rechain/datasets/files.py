"""Raw records of a file, one at a time: JSON lines, JSON arrays, CSV, gzip, Parquet, Hugging Face folders.

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
from functools import partial
from itertools import chain, count, islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

import orjson

from rechain.datasets.delimited import encoding_of, read_rows, separator_of
from rechain.errors import DamagedInputError, InputError, MissingExtraError, QuestionError, RechainError
from rechain.system.stores import is_local, open_binary, reading

# Enough for a few hundred questions at a time, so that the loop over chunks costs nothing beside their parsing.
_CHUNK = 1 << 20
LARGEST_RECORD = 1 << 24
"""bytes of a record: 160 times the longest of the published data sets, yet one that is all braces, which take thirty
times their size when they are parsed, fits into half a gigabyte. A longer one has lost its end, or is a trap."""
# Bytes by which the layout of JSON is told: blanks after the first brace do not count beyond them.
_LONGEST_START = 1 << 12
_BUFFER = 1 << 17  # bytes at a time from a file; larger ones are no faster
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# All up to the next brace that is not part of a string. The quantifiers are possessive ("*+"): a string that does not
# end in the buffer then fails at once, where backtracking would take quadratic time.
_TO_BRACE = re.compile(rb'[^{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^{}"]*+)*+[{}]', re.DOTALL)
_OPENING = ord("{")
# The start of JSON that does not tell yet whether its records are lines: a lone brace is the start of one of several.
_UNDECIDED = re.compile(rb"\s*(\{[^\S\n]*)?")
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"  # how such files begin
_TABLE_BATCH = 256  # rows in memory at once: a row may hold a hundred passages
# No format has a field deeper than this: the deepest are those of a link, chains[].links[].entity. What lies below is
# part of a field that nobody reads, may be nested without end, and is left as it is.
_READ_LEVELS = 8
_LINES_NAMES = (".jsonl", ".jsonl.gz")
_JSON_NAMES = (*_LINES_NAMES, ".json", ".json.gz")
_TABLE_NAMES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
# The names of all columns of a table fit into it; a longer first line belongs to no table.
_LONGEST_HEADER = 1 << 16
# A null in one of these fields says something, unlike a field that is not there: no answer was given, or no passages
# were retrieved.
_TELLING_NULLS = frozenset(
    {"answer", "response", "result", "output", "output_text", "data", "reply", "completion"}
    | {"retrieved_contexts", "contexts", "context", "source_documents", "source_nodes", "nodes", "documents"}
)
_TOO_DEEP = "depth limit exceeded"  # what orjson says at its 1025th level
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)

Located = tuple[str, int, bytes | dict[str, Any] | QuestionError]
"""The place of a record, its number in the file, and its JSON or its cells or why it cannot be read."""
_Stream = io.BufferedReader | gzip.GzipFile
PathLike = Path | str
"""A local path or, for files that `bulk.storage` opens, an address."""


class RawRecord(NamedTuple):
    """A record of a file, or why it cannot be read; its place, and the share of the input that was read by then."""

    where: str
    value: Any | bytes | QuestionError
    """bytes are JSON that is not parsed yet"""
    share: float | None = None
    name: str = ""
    """the id of a question that has none: the number of its line, record or row, in a folder after its file's name"""

    @property
    def size(self) -> int:
        """The number of bytes of JSON or of characters in cells; 256 rows of Parquet are in memory in any case."""
        if isinstance(self.value, dict):
            return sum(len(cell) for cell in self.value.values() if isinstance(cell, str))
        return len(self.value) if isinstance(self.value, bytes) else 0

    def parsed(self, keep_nulls: bool = False) -> "RawRecord":
        """Return the record with its JSON parsed and, unless they are kept, without fields that are null."""
        if isinstance(self.value, dict) and not keep_nulls:
            return self._replace(value=without_nulls(self.value))
        if not isinstance(self.value, bytes):
            return self
        try:
            value = orjson.loads(self.value)
            # most records hold no null, and the search for it is far quicker than the walk through the fields
            has_nulls = b"null" in self.value and not keep_nulls
            return self._replace(value=without_nulls(value) if has_nulls else value)
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
    with reading(path):
        parts = _parts_of(path)
        sizes = [part.stat().st_size if len(parts) > 1 else 1 for part in parts]
    total, before, is_empty = sum(sizes), 0, True
    for part, size in zip(parts, sizes, strict=True):
        records = _read_part(part, before / total, size / total)
        if part != path:
            records = named_after(str(part.relative_to(path)), records)
        first = list(islice(records, 1))
        is_empty = is_empty and not first
        yield part, chain(first, records)
        before += size
    if is_empty and not any(map(_is_table, parts)):
        raise InputError(f"{path} is empty.")


def named_after(file: str, records: Iterable[RawRecord]) -> Iterator[RawRecord]:
    """Yield the records of a file of a folder, whose numbers begin anew with every file."""
    return (record._replace(name=f"{file}:{record.name}") for record in records)


def _parts_of(path: Path) -> list[Path]:
    """Return the files of a folder in their order; a file, or a folder of `datasets`, is one part."""
    if not path.is_dir():
        return [path]
    has_info = any((path / name).exists() for name in ("dataset_info.json", "dataset_dict.json"))
    if has_info and not any(path.rglob("*.parquet")):  # beside Parquet, the same files only describe it
        if not is_local(path):
            raise InputError(f"{path} is a dataset folder, which `datasets` reads from a disk alone; copy it to one.")
        return [path]
    sizes = {str(file.relative_to(path)): file.stat().st_size for file in path.rglob("*") if file.is_file()}
    parts = question_files(path, sizes)
    if not parts:
        raise InputError(f"{path} is a folder without Parquet, JSON or CSV files and no Hugging Face dataset.")
    return [path / part for part in parts]


def question_files(folder: PathLike, sizes: Mapping[str, int]) -> list[str]:
    """Return those of a folder's files that hold records: Parquet, else JSON, else CSV; neither hidden nor empty.

    JSON beside Parquet is metadata, as on the Hub; but JSON lines would be records. Programs such as Spark hide a file,
    or a folder, by the first character of its name.
    """
    hidden = {name for name in sizes if any(part.startswith((".", "_")) for part in PurePath(name).parts)}
    visible = [name for name, size in sizes.items() if size and name not in hidden]
    parquet = [name for name in visible if name.endswith(".parquet")]
    if parquet and any(name.endswith(_LINES_NAMES) for name in visible):
        raise InputError(f"{folder} holds both Parquet files and lines of JSON; name a folder with one kind of them.")
    json = [name for name in visible if name.endswith(_JSON_NAMES)]
    return sorted(parquet or json or [name for name in visible if name.endswith(_TABLE_NAMES)])


def _is_table(part: Path) -> bool:
    """Return whether a part is a table, which may have no rows."""
    if not part.is_file():
        return part.is_dir()
    with open_binary(part) as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _read_part(path: Path, before: float, share: float) -> Iterator[RawRecord]:
    """Yield the records of one part, which follows `before` of the input and is a `share` of it."""
    with reading(path):
        if path.is_dir():
            yield from _read_dataset(path)
            return
        with nullcontext(sys.stdin.buffer) if path == Path("-") else open_binary(path) as file:
            size = 0
            if file.seekable():
                start = file.tell()
                size = file.seek(0, os.SEEK_END)
                file.seek(start)
            for record in read_opened(path, cast(io.BufferedReader, file), size):
                yield record if record.share is None else record._replace(share=before + share * record.share)


def read_opened(path: PathLike, file: io.BufferedReader, size: int) -> Iterator[RawRecord]:
    """Yield the records of an open file; its size is 0 if unknown."""
    start = _read_about(file, len(_PARQUET))
    if start == _PARQUET:
        if not file.seekable():
            raise InputError(f"{path} is Parquet, which cannot be read from a pipe; name the file.")
        file.seek(-len(start), os.SEEK_CUR)
        yield from _read_parquet(path, file)
        return
    stream = _replayed(start, file)
    try:
        packed = start.startswith(_GZIP)
        for where, number, value in _values(path, gzip.GzipFile(fileobj=stream) if packed else stream):
            yield RawRecord(where, value, min(file.tell() / size, 1.0) if size else None, str(number))
    except EOFError as error:
        raise DamagedInputError(f"{path} is cut off: its gzip stream ends early. What came before was read.") from error
    except _DAMAGE as error:
        raise DamagedInputError(f"{path} is damaged: {error}. What came before was read.") from error


class _Replayed(io.RawIOBase):
    """A stream of which the start was read already and comes first; a pipe cannot go back."""

    def __init__(self, start: bytes, rest: _Stream) -> None:
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


def _replayed(start: bytes, rest: _Stream) -> io.BufferedReader:
    return io.BufferedReader(_Replayed(start, rest), _BUFFER)


def _values(path: PathLike, stream: _Stream) -> Iterator[Located]:
    """Yield every JSON line, every outermost object of an array or of objects on several lines, or every row."""
    start, blank_lines = _read_about(stream, len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK), 0
    while _UNDECIDED.fullmatch(start):
        if start.isspace():
            blank_lines, start = blank_lines + start.count(b"\n"), b""
        if len(start) > _LONGEST_START or not (more := stream.read1(_LONGEST_START)):
            break
        start += more
    text, whole = start.lstrip(), _replayed(start, stream)
    if text.startswith(b"[") or text.split(b"\n", 1)[0].strip() == b"{":
        yield from _json_objects(path, whole, is_array=text.startswith(b"["))
    elif text.startswith(b"{"):
        yield from _json_lines(path, whole, blank_lines + 1)
    elif text:
        yield from _rows(path, start, stream)


def _rows(path: PathLike, start: bytes, stream: _Stream) -> Iterator[Located]:
    """Yield the rows of a table of text; raises InputError for a file that begins like none."""
    start = start.lstrip(b"\r\n")
    while b"\n" not in start and len(start) < _LONGEST_HEADER and (more := stream.read1(_LONGEST_HEADER)):
        start += more
    encoding = encoding_of(start)
    if start.decode(encoding, "ignore").lstrip().startswith(("{", "[")):  # UTF-8 would have been told by its first byte
        raise InputError(f"{path} is JSON in UTF-16; save it as UTF-8, which is the encoding of JSON.")
    separator = separator_of(start)
    if separator is None:
        quoted = repr(start[:20].decode("utf-8", "replace"))
        raise InputError(f"{path} is neither JSON nor a table of three columns or more: it begins with {quoted}.")
    yield from read_rows(path, _replayed(start, stream), separator, encoding, LARGEST_RECORD)


def _json_lines(path: PathLike, stream: io.BufferedReader, first: int) -> Iterator[Located]:
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


def _json_objects(path: PathLike, stream: io.BufferedReader, is_array: bool) -> Iterator[Located]:
    """Yield the outermost objects of an array, or of a file of objects spread over several lines."""
    places = ((f"{path}, record {number}", number) for number in count(1))
    scanner, ahead = _Scanner(), b""
    # twice as much after a record that does not end in the buffer, so that a long one is not copied too often
    while more := ahead or _read_about(stream, max(_CHUNK, min(len(scanner.rest), LARGEST_RECORD - len(scanner.rest)))):
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


def _read_about(stream: _Stream, size: int) -> bytes:
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


class _Scanner:
    """Finds the outermost objects of JSON that comes in pieces, and scans nothing before the last brace again."""

    def __init__(self) -> None:
        self.rest = b""
        """what follows the last object that was found"""
        self.depth = 0
        """how many braces are open"""
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
    for piece in chain(cut, iter(partial(_read_about, stream, _CHUNK), b"")):
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
    return between.removeprefix(_BYTE_ORDER_MARK).strip(b" \t\r\n,[]") != b""


def _not_an_object(where: str, number: int) -> Located:
    return where, number, QuestionError("bad_record", f"{where}: a question should be an object, in braces.")


def _too_long(where: str) -> QuestionError:
    return QuestionError("too_long", f"{where}: the record is longer than {LARGEST_RECORD >> 20} MB.")


def _table_rows(batch: Any) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of a batch; None for one that is not UTF-8, which should cost one row, not the batch."""
    try:
        yield from batch.to_pylist()  # row by row, reading passages takes nearly twice as long
    except UnicodeDecodeError:
        for row in range(batch.num_rows):
            try:
                yield from batch.slice(row, 1).to_pylist()
            except UnicodeDecodeError:
                yield None


def _read_parquet(path: PathLike, opened: io.BufferedReader) -> Iterator[RawRecord]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "parquet") from error
    numbers = count(1)
    try:
        with pyarrow.parquet.ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_size=_TABLE_BATCH):
                for row in _table_rows(batch):
                    number = next(numbers)
                    where, share = f"{path}, row {number}", number / file.metadata.num_rows
                    value = QuestionError("bad_encoding", f"{where}: not valid UTF-8.") if row is None else row
                    yield RawRecord(where, value, share, str(number))
    except pyarrow.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {str(error).rstrip('.')}.") from error


def _read_dataset(path: Path) -> Iterator[RawRecord]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("Reading a Hugging Face dataset folder", "datasets") from error
    try:
        loaded = datasets.load_from_disk(str(path))
        if isinstance(loaded, datasets.DatasetDict):
            splits = ", ".join(str(path / name) for name in loaded)
            raise InputError(f"{path} holds several splits; name one of them: {splits}.")
        numbers = count(1)
        for rows in loaded.with_format("arrow").iter(_TABLE_BATCH):
            rows.validate(
                full=True
            )  # a damaged offset leads out of the file's memory, and the system kills who follows
            for record, number in zip(rows.to_pylist(), numbers, strict=False):
                yield RawRecord(f"{path}, row {number}", record, number / len(loaded), str(number))
    except (RechainError, OSError):  # which say by themselves what is wrong
        raise
    except Exception as error:  # the library raises much for a folder that it cannot read
        raise InputError(f"{path} is not a readable Hugging Face dataset: {error or type(error).__name__}.") from error


def without_nulls(value: Any) -> Any:
    """Drop fields that are null: tables have a column for every field, JSON leaves absent ones out.

    An answer that is null stays, as none was given, and so do the passages of a log.
    """
    if not isinstance(value, dict):
        return _without_nulls(value, _READ_LEVELS)
    kept = {name: field for name, field in value.items() if field is not None or name in _TELLING_NULLS}
    return {name: _without_nulls(field, _READ_LEVELS - 1) for name, field in kept.items()}


def _without_nulls(value: Any, levels: int) -> Any:
    if not levels:
        return value
    if isinstance(value, dict):
        return {name: _without_nulls(field, levels - 1) for name, field in value.items() if field is not None}
    return [_without_nulls(item, levels - 1) for item in value] if isinstance(value, list) else value
