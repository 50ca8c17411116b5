"""Records of a file or folder, one at a time: JSON, CSV, gzip, Parquet, Hugging Face folders; and typed rows of them.

A record of a JSON file stays bytes until `RawRecord.parsed`, so that worker processes share the parsing. A record that
cannot be parsed becomes a QuestionError in its place; a file that cannot be read on raises InputError.
"""

import gzip
import io
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar, cast

import orjson
from pydantic import BaseModel, ValidationError

from rechain.errors import DamagedInputError, InputError, MissingExtraError, QuestionError, RechainError
from rechain.formats.datasets.delimited import encoding_of, read_table, separator_of
from rechain.formats.datasets.formats import bad_record
from rechain.formats.datasets.json_records import (
    BYTE_ORDER_MARK,
    DAMAGE,
    Numbered,
    PathLike,
    Stream,
    json_lines,
    json_objects,
    read_about,
    replayed,
)
from rechain.schema import Gold, Passage, Recovered
from rechain.system.files import is_local, open_binary, reading

# Bytes by which the layout of JSON is recognised: blanks after the first brace do not count beyond them.
_LONGEST_START = 1 << 12
# The start of JSON that does not tell yet whether its records are lines: a lone brace is the start of one of several.
_UNDECIDED = re.compile(rb"\s*(\{[^\S\n]*)?")
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"  # how such files begin
_TABLE_BATCH = 256  # rows in memory at once: a row may have a hundred passages
# No format has a field deeper than this: the deepest are those of a link, chains[].links[].entity. What lies below is
# part of a field that is not read, may be nested without end, and is left as it is.
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

Row = TypeVar("Row", bound=BaseModel)
RowWithId = TypeVar("RowWithId", Gold, Passage, Recovered)


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
            # most records have no null, and the search for it is far quicker than the walk through the fields
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
    """Yield the records of a file of a folder, whose numbers begin again with every file."""
    return (record._replace(name=f"{file}:{record.name}") for record in records)


def _parts_of(path: Path) -> list[Path]:
    """Return the files of a folder in their order; a file, or a folder of `datasets`, is one part."""
    if not path.is_dir():
        return [path]
    has_info = any((path / name).exists() for name in ("dataset_info.json", "dataset_dict.json"))
    if has_info and not any(path.rglob("*.parquet")):  # next to Parquet, the same files only describe it
        if not is_local(path):
            raise InputError(f"{path} is a dataset folder, which `datasets` reads from a disk alone; copy it to one.")
        return [path]
    sizes = {str(file.relative_to(path)): file.stat().st_size for file in path.rglob("*") if file.is_file()}
    parts = question_files(path, sizes)
    if not parts:
        raise InputError(f"{path} is a folder without Parquet, JSON or CSV files and no Hugging Face dataset.")
    return [path / part for part in parts]


def question_files(folder: PathLike, sizes: Mapping[str, int]) -> list[str]:
    """Return those of a folder's files that contain records: Parquet, else JSON, else CSV; neither hidden nor empty.

    JSON next to Parquet is metadata, as on the Hub; but JSON lines would be records. Programs such as Spark hide a
    file, or a folder, by the first character of its name.
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
    start = read_about(file, len(_PARQUET))
    if start == _PARQUET:
        if not file.seekable():
            raise InputError(f"{path} is Parquet, which cannot be read from a pipe; name the file.")
        file.seek(-len(start), os.SEEK_CUR)
        yield from _read_parquet(path, file)
        return
    stream = replayed(start, file)
    try:
        packed = start.startswith(_GZIP)
        for unit, number, value in _values(path, gzip.GzipFile(fileobj=stream) if packed else stream):
            where = f"{path}, {unit} {number}"
            checked = bad_record(where, value) if isinstance(value, QuestionError) else value
            yield RawRecord(where, checked, min(file.tell() / size, 1.0) if size else None, str(number))
    except EOFError as error:
        raise DamagedInputError(f"{path} is cut off: its gzip stream ends early. What came before was read.") from error
    except DAMAGE as error:
        raise DamagedInputError(f"{path} is damaged: {error}. What came before was read.") from error


def _values(path: PathLike, stream: Stream) -> Iterator[Numbered]:
    """Yield every JSON line, every outermost object of an array or of objects on several lines, or every row."""
    start, blank_lines = read_about(stream, len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK), 0
    while _UNDECIDED.fullmatch(start):
        if start.isspace():
            blank_lines, start = blank_lines + start.count(b"\n"), b""
        if len(start) > _LONGEST_START or not (more := stream.read1(_LONGEST_START)):
            break
        start += more
    text, whole = start.lstrip(), replayed(start, stream)
    if text.startswith(b"[") or text.split(b"\n", 1)[0].strip() == b"{":
        yield from json_objects(path, whole, is_array=text.startswith(b"["))
    elif text.startswith(b"{"):
        yield from json_lines(whole, blank_lines + 1)
    elif text:
        yield from _rows(path, start, stream)


def _rows(path: PathLike, start: bytes, stream: Stream) -> Iterator[Numbered]:
    """Yield the rows of a table of text; raises InputError for a file that begins like none."""
    start = start.lstrip(b"\r\n")
    while b"\n" not in start and len(start) < _LONGEST_HEADER and (more := stream.read1(_LONGEST_HEADER)):
        start += more
    encoding = encoding_of(start)
    if start.decode(encoding, "ignore").lstrip().startswith(("{", "[")):  # the first byte would have shown UTF-8
        raise InputError(f"{path} is JSON in UTF-16; save it as UTF-8, which is the encoding of JSON.")
    separator = separator_of(start)
    if separator is None:
        quoted = repr(start[:20].decode("utf-8", "replace"))
        raise InputError(f"{path} is neither JSON nor a table of three columns or more: it begins with {quoted}.")
    yield from read_table(path, replayed(start, stream), separator, encoding)


def _read_parquet(path: PathLike, opened: io.BufferedReader) -> Iterator[RawRecord]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "parquet") from error
    try:
        with pyarrow.parquet.ParquetFile(opened) as file:
            yield from _table_records(path, file.iter_batches(batch_size=_TABLE_BATCH), file.metadata.num_rows)
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:  # the latter of the names of columns
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
        yield from _table_records(path, map(_checked, loaded.with_format("arrow").iter(_TABLE_BATCH)), len(loaded))
    except (RechainError, OSError):  # whose messages name the reason
        raise
    except Exception as error:  # the library raises much for a folder that it cannot read
        raise InputError(f"{path} is not a readable Hugging Face dataset: {error or type(error).__name__}.") from error


def _checked(table: Any) -> Any:
    """Check a table: a damaged offset leads out of the file's memory, and the system kills a process that follows."""
    table.validate(full=True)
    return table


def _table_records(path: PathLike, tables: Iterable[Any], total: int) -> Iterator[RawRecord]:
    """Yield the rows of Arrow tables."""
    for number, row in enumerate(chain.from_iterable(map(_table_rows, tables)), start=1):
        where = f"{path}, row {number}"
        value = QuestionError("bad_encoding", f"{where}: not valid UTF-8.") if row is None else row
        yield RawRecord(where, value, number / total, str(number))


def _table_rows(table: Any) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of a table; None for one that is not UTF-8, which should cost one row, not the table."""
    try:
        yield from table.to_pylist()  # row by row, reading passages takes nearly twice as long
    except UnicodeDecodeError:
        for row in range(table.num_rows):
            try:
                yield from table.slice(row, 1).to_pylist()
            except UnicodeDecodeError:
                yield None


def without_nulls(value: Any, levels: int = _READ_LEVELS, kept: Collection[str] = _TELLING_NULLS) -> Any:
    """Drop fields that are null: tables have a column for every field, JSON leaves absent ones out.

    An answer that is null stays, as none was given, and so do the passages of a log.
    """
    if isinstance(value, dict) and levels:
        fields = ((name, field) for name, field in value.items() if field is not None or name in kept)
        return {name: without_nulls(field, levels - 1, ()) for name, field in fields}
    return [without_nulls(item, levels - 1, ()) for item in value] if isinstance(value, list) and levels else value


def read_rows(path: Path, kind: type[Row]) -> Iterator[tuple[str, Row]]:
    """Yield every row with its place."""
    for where, value, *_ in read_records(path):
        if isinstance(value, QuestionError):
            raise InputError(str(value))
        try:
            yield where, kind.model_validate(value)
        except ValidationError as error:
            raise InputError(str(bad_record(where, error))) from error


def read_with_id(path: Path, kind: type[RowWithId]) -> Iterator[tuple[str, RowWithId]]:
    """Yield every row that has an id, with it; no two may have the same."""
    seen: set[str] = set()
    for where, row in read_rows(path, kind):
        if row.id is None:  # chains of a question that could not be read
            continue
        if row.id in seen:
            raise InputError(f"{where}: the id '{row.id}' stands there twice.")
        seen.add(row.id)
        yield row.id, row


def read_by_id(path: Path, kind: type[RowWithId]) -> dict[str, RowWithId]:
    """Read all rows that have an id; no two may have the same."""
    return dict(read_with_id(path, kind))
