"""Tables of text: CSV and TSV, with a row of names first. Cells are text; a blank one is null."""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rechain.errors import DamagedInputError, InputError, QuestionError
from rechain.formats.datasets.json_records import LARGEST_RECORD, Numbered, PathLike

SEPARATORS = ("\t", ";", ",")
# A table of questions has a column for the question, the answer and the passages at least; a sentence that is no table
# seldom has two separators of one kind before its first line ends.
_FEWEST_COLUMNS = 3
# Where an index finds passages a log has two columns, and so may a collection.
_TWO_COLUMNS = (
    *(frozenset((query, reply)) for query in ("question", "query", "user_input") for reply in ("answer", "response")),
    frozenset(("id", "text")),
    frozenset(("title", "text")),
)
# Of the name of a column. Quotation marks and braces in it are those of JSON that has lost its beginning, and what is
# not printable is that of no text: the records of such a file are not rows.
_NAME = re.compile(r"""(?=.*\S)[^{}"\x00-\x1f\x7f\ufffd]{1,100}""")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # byte order marks; so Excel writes "Unicode text"


def encoding_of(start: bytes) -> str:
    """Return the encoding of a file by how it begins."""
    return "utf-16" if start.startswith(_UTF16) else "utf-8-sig"


def separator_of(start: bytes) -> str | None:
    """Return what separates the cells of a table that begins so, or None if it begins like no table."""
    first = start.decode(encoding_of(start), "replace").lstrip("\r\n").partition("\n")[0].rstrip("\r")
    for separator in SEPARATORS:
        names: list[str] = []
        with suppress(csv.Error):
            names = next(csv.reader([first], delimiter=separator, strict=True), [])
        named = names[1:] if names and not names[0] else names  # the numbers of the rows, as pandas writes them
        is_table = len(names) >= _FEWEST_COLUMNS or frozenset(map(str.casefold, names)) in _TWO_COLUMNS
        if is_table and all(map(_NAME.fullmatch, named)):
            return separator
    return None


def read_table(path: PathLike, stream: io.BufferedReader, separator: str, encoding: str) -> Iterator[Numbered]:
    """Yield the cells by name of every row, or why it cannot be read."""
    csv.field_size_limit(LARGEST_RECORD)  # csv has one limit for all readers, and 131,072 is too low for passages
    text = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")
    rows = csv.reader(_lines(path, text), delimiter=separator, strict=True)
    names = _names(path, rows)
    number = 1  # of a row that is not blank
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            if "unexpected end" in str(error) or "field limit" in str(error):
                raise DamagedInputError(
                    f"{path}, row {number}: a quotation mark is not closed. What came before was read."
                ) from error
            yield "row", number, QuestionError("bad_record", f"not a row of a table ({error})")
        else:
            if cells is None:
                return
            if not any(cell.strip() for cell in cells):
                continue
            yield "row", number, _row(names, cells)
        number += 1


def _lines(path: PathLike, text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(LARGEST_RECORD + 1):
        if len(line) > LARGEST_RECORD:
            raise InputError(f"{path} has a line of more than {LARGEST_RECORD >> 20} MB, which is no row of a table.")
        yield line


def _names(path: PathLike, rows: Iterator[list[str]]) -> list[str]:
    try:
        names = [name.strip() for name in next((row for row in rows if any(row)), [])]
    except csv.Error as error:
        raise InputError(f"{path}: its first row, which names the columns, cannot be read ({error}).") from error
    if repeated := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise InputError(f"{path}: two columns have the name '{repeated:.80}'.")
    return names


def _row(names: list[str], cells: list[str]) -> dict[str, Any] | QuestionError:
    if len(cells) > len(names) and any(cells[len(names) :]):
        return QuestionError("bad_record", f"the row has {len(cells)} cells, but there are {len(names)} columns")
    if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell if not cell.isascii()):
        return QuestionError("bad_encoding", "not valid UTF-8; save the table as UTF-8 (Excel: CSV UTF-8)")
    return {name: cell if cell.strip() else None for name, cell in zip(names, cells, strict=False) if name}
