"""Objects of other libraries as the plain values of a record, by what they offer: no library is imported for it.

Models of pydantic (Ragas, LangChain, LlamaIndex), dataclasses (Haystack, LlamaIndex' responses), arrays, rows and whole
tables of pandas and Arrow.
"""

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from rechain.errors import RechainError
from rechain.schema import Passage

# As deep as the readers of files look: a result holds an answer, which holds nodes, which hold a node with metadata.
_LEVELS = 8
_TABLE_BATCH = 256  # rows in memory at once, as of a file
_MISSING = ("NAType", "NaTType")  # what pandas has for no text and no time
_PLAIN = (str, int, float, bool, bytes, Passage)


def as_record(value: Any) -> dict[str, Any] | None:
    """Return the fields of an object, or None if it has none that could be read."""
    fields = _fields_of(value)
    return None if fields is None else plain_value(fields)


def plain_value(value: Any, levels: int = _LEVELS) -> Any:
    """Return a value with its objects as dicts and lists; what lies too deep or is of no known kind stays as it is."""
    if value is None or not levels or isinstance(value, _PLAIN):
        return None if isinstance(value, float) and value != value else value  # NaN: what pandas has for nothing
    if isinstance(value, list | tuple):
        return [plain_value(item, levels - 1) for item in value]
    if callable(listed := getattr(value, "tolist", None)):  # arrays and numbers of numpy and torch
        return plain_value(listed(), levels - 1)
    if type(value).__name__ in _MISSING:
        return None
    fields = _fields_of(value)
    if fields is not None:
        return {name: plain_value(field, levels - 1) for name, field in fields.items()}
    return value.isoformat() if callable(getattr(value, "isoformat", None)) else value


def _fields_of(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(names := getattr(type(value), "model_fields", None), Mapping):
        # None that nobody gave is a field that is not there: a sample of Ragas has a response or only a reference.
        given: Collection[str] = getattr(value, "model_fields_set", names)
        fields = {name: getattr(value, name) for name in names}
        return {name: field for name, field in fields.items() if field is not None or name in given}
    if callable(to_dict := getattr(value, "to_dict", None)):  # a row of pandas
        return fields if isinstance(fields := to_dict(), Mapping) else None
    return None


def rows_of(table: Any) -> Iterable[Any]:
    """Return the rows of a table of pandas or Arrow; anything else that yields questions is returned as it is."""
    if isinstance(table, str | Mapping):
        kind = (
            "a text is none: read a file with read_entries" if isinstance(table, str) else "a dict is one: see recover"
        )
        raise RechainError(f"recover_many takes many questions, and {kind}.")
    if hasattr(table, "itertuples"):
        return _pandas_rows(table)
    if hasattr(table, "to_batches") or hasattr(table, "read_next_batch"):
        return _arrow_rows(table)
    if not isinstance(table, Iterable):
        raise RechainError(f"the questions should be a list, or anything that yields them, not {table!r:.80}.")
    return table


def _pandas_rows(table: Any) -> Iterator[dict[str, Any]]:
    names = _distinct([str(name) for name in table.columns])
    return (dict(zip(names, row, strict=True)) for row in table.itertuples(index=False, name=None))


def _arrow_rows(table: Any) -> Iterator[dict[str, Any]]:
    batches = table.to_batches(_TABLE_BATCH) if hasattr(table, "to_batches") else table
    _distinct(table.schema.names)
    for batch in batches:
        yield from batch.to_pylist()


def _distinct(names: list[str]) -> list[str]:
    """Return the names of a table's columns; raises RechainError where two are the same, as one would be lost."""
    if repeated := next((name for name, number in Counter(names).items() if number > 1), None):
        raise RechainError(f"two columns of the table have the name '{repeated:.80}'; rename one of them.")
    return names
