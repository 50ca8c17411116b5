"""What somebody pastes: passages as text, JSON or a table, or whole records as RAG tools log them."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.delimited import read_table, separator_of
from rechain.formats.datasets.formats import has_text, items_of, split_text
from rechain.formats.datasets.json_records import LARGEST_RECORD
from rechain.formats.datasets.questions import is_record
from rechain.formats.datasets.records import without_nulls
from rechain.formats.datasets.validation import listed

# A passage may begin with a bracket, as "[1] Polonium was ..." does; JSON continues with another bracket or a quote.
_JSON = re.compile(r"""\[\s*[\[\]{"']|\{\s*["'}]""")
_FIELDS = ("passages", "retrieved_contexts", "contexts", "context", "source_documents", "documents", "nodes", "results")
"""fields of an object that hold passages, where nothing else of it is known"""
_TABLE = "the table"


class Pasted(NamedTuple):
    """Passages, in the notation of any tool, or a whole question as one has logged it."""

    passages: Sequence[Any] = ()
    record: Mapping[str, Any] | None = None
    records: int = 1
    """how many records there are, of which this is one"""


def read_pasted(text: str, number: int = 1, needs_passages: bool = True) -> Pasted | None:
    """Return what JSON or a table holds, of several records that of a number, from 1; None for plain text.

    Raises QuestionError where it begins like one of them and cannot be read. Where an index finds passages, a record
    needs none.
    """
    text = text.lstrip("\ufeff \t\r\n")
    if _JSON.match(text):
        values = _json_values(text)
    elif (separator := separator_of(text.partition("\n")[0].encode("utf-8", "replace"))) and _is_table(text, separator):
        values = _rows(text, separator)
    else:
        return None
    return _pasted(values, number, needs_passages)


def _json_values(text: str) -> list[Any]:
    """Return the values of a JSON array, of JSON lines, or of a list as Python prints it."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        try:
            return [orjson.loads(line) for line in text.splitlines() if line.strip()]
        except orjson.JSONDecodeError:
            items = split_text(text)
            if len(items) > 1 or not isinstance(items[0], str) or items[0] != text.strip():
                return items
            raise QuestionError(
                "bad_json", f"the passages begin like JSON but are not valid JSON ({error})."
            ) from error
    return value if isinstance(value, list) else [value]


def _is_table(text: str, separator: str) -> bool:
    """Return whether the names of columns are known: a sentence with commas should not become a table."""
    names = [name.strip().strip('"') for name in text.partition("\n")[0].split(separator)]
    header = dict.fromkeys(names, "x")
    return has_text(header) or is_record(header, needs_passages=False)


def _rows(text: str, separator: str) -> list[Any]:
    stream = cast(io.BufferedReader, io.BytesIO(text.encode("utf-8", "replace")))
    try:
        rows = [row for _, _, row in read_table(_TABLE, stream, separator, "utf-8", LARGEST_RECORD)]
    except QuestionError:
        raise
    except RechainError as error:  # a file would say so of itself
        raise QuestionError("bad_record", str(error)) from error
    for row in rows:
        if isinstance(row, QuestionError):
            raise row
    return [without_nulls(row) for row in rows]


def _pasted(values: Sequence[Any], number: int, needs_passages: bool) -> Pasted:
    first = values[0] if values else None
    if isinstance(first, dict) and is_record(first, needs_passages):
        if number > len(values):
            raise QuestionError("bad_record", f"there is no record {number}: {len(values)} were pasted.")
        chosen = values[number - 1]
        if not isinstance(chosen, dict):
            raise QuestionError("bad_record", f"record {number}: a question should be an object, in braces.")
        return Pasted(record=chosen, records=len(values))
    if len(values) == 1 and isinstance(first, dict) and not has_text(first):
        field = next((name for name in _FIELDS if first.get(name)), None)
        if field is None:
            has = f"; it has {listed(first)}" if first else ""
            raise QuestionError("bad_record", f"what was pasted holds neither passages nor a question{has}.")
        return Pasted(items_of(field, first[field]))
    return Pasted(values)
