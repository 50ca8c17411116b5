"""Files of one kind of row: passages, gold, chains. A bad row stops the reading."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from rechain.datasets.files import read_records
from rechain.datasets.validation import bad_record
from rechain.errors import InputError, QuestionError
from rechain.schema import Gold, Passage, Recovered

Row = TypeVar("Row", bound=BaseModel)
RowWithId = TypeVar("RowWithId", Gold, Passage, Recovered)


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
