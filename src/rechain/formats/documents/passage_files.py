"""Collections: files of passages, a row each. A million rows pass through, so that few are in memory at once."""

from collections.abc import Iterable, Iterator
from io import BufferedReader
from itertools import chain
from typing import Any

from pydantic import ValidationError

from rechain.errors import DamagedInputError, InputError, MissingExtraError, QuestionError, RechainError
from rechain.formats.datasets.formats import Fields, passage_fields
from rechain.formats.datasets.records import RawRecord, read_opened
from rechain.formats.datasets.validation import bad_record
from rechain.formats.documents.characters import open_source
from rechain.formats.documents.source_files import Refusal, Source
from rechain.schema import Passage, number_as_text
from rechain.system.stores import reading

BATCH = 1_000
"""passages at a time: a few MB, and enough that what is done for a batch costs nothing beside its passages"""
_MOST_BAD_ROWS = 1_000
"""rows without any passage before a file is given up: it is a log or a table of something else"""
_ALIASES = {"_id": "id", "docid": "id", "pid": "id", "contents": "text", "body": "text"}
"""fields of BEIR's, Pyserini's and MS MARCO's collections by the names of the schema"""
_NEEDED = 'a row of a collection is such as {"id": "p1", "title": "Rome", "text": "Rome is …"}'


def read_collection(source: Source) -> Iterator[list[Passage] | Refusal]:
    """Yield the passages of a collection in batches, and every row that is none as a Refusal.

    A file without any passage is one Refusal, not one a row.
    """
    outcomes = _read_rows(source)
    refusals: list[Refusal] = []
    for outcome in outcomes:
        if isinstance(outcome, Passage):
            yield from refusals
            yield from _batches(chain([outcome], outcomes))
            return
        refusals.append(outcome)
        if len(refusals) == _MOST_BAD_ROWS:
            break
    yield _without_passages(source, refusals)


def _batches(outcomes: Iterable[Passage | Refusal]) -> Iterator[list[Passage] | Refusal]:
    batch: list[Passage] = []
    for outcome in outcomes:
        if isinstance(outcome, Refusal):
            yield outcome
            continue
        batch.append(outcome)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _without_passages(source: Source, refusals: list[Refusal]) -> Refusal:
    """Return why a file has no passages: what is wrong with the file, or else with its first row."""
    if refusals and refusals[0].name == source.name:
        return refusals[0]
    reason = f" ({refusals[0].message.removeprefix(source.name).lstrip(' ,').rstrip('.')})" if refusals else ""
    return Refusal(source.name, f"{source.name} holds no passages{reason}; {_NEEDED}.")


def _read_rows(source: Source) -> Iterator[Passage | Refusal]:
    """Yield every row as a passage or as what is wrong with it; and what keeps the rest from being read."""
    try:
        # Opened once and read from there: by its path another file could be read than the one that was checked.
        with reading(source.path), _opened(source) as file:
            for record in read_opened(source.path, file, source.size):
                yield _read_row(source, record)
    except RechainError as error:
        may_pass = isinstance(error, MissingExtraError | DamagedInputError)  # the disk may be damaged, not the file
        yield Refusal(source.name, _renamed(source, str(error)), may_pass=may_pass)
    except Exception as error:  # of a library that cannot cope with a damaged file
        yield Refusal(source.name, f"{source.name} cannot be read on: it is damaged ({type(error).__name__}).")


def _opened(source: Source) -> BufferedReader:
    try:
        return open_source(source)
    except InputError as error:
        raise InputError(f"{source.path} {error}.") from error


def _read_row(source: Source, record: RawRecord) -> Passage | Refusal:
    value = record.parsed().value
    try:
        if isinstance(value, QuestionError):
            raise value
        return Passage.model_validate(_fields(value, record.name))
    except (ValidationError, QuestionError) as error:
        return _bad_row(_renamed(source, record.where), source, error)


def _bad_row(where: str, source: Source, error: ValidationError | QuestionError) -> Refusal:
    if isinstance(error, ValidationError):
        return Refusal(where, str(bad_record(where, error)))
    message = str(error)
    if message.startswith(str(source.path)):
        return Refusal(where, _renamed(source, message))
    return Refusal(where, f"{where}: a row {message}.")


def _fields(row: Any, number: str) -> Fields:
    """Return the fields of a passage; a row without an id gets its number."""
    if type(row) is not dict:
        row = passage_fields(row)
    elif type(row.get("id")) is str and "text" in row and "title" in row:  # of our own format, as most are
        return row
    else:
        row = passage_fields({_ALIASES.get(name, name): value for name, value in row.items()})
    name = number_as_text(row.get("id"))
    return {**row, "id": number if name is None else name}


def _renamed(source: Source, message: str) -> str:
    """Return a message, which begins with the path of a file, with the name of the source in its place."""
    path = str(source.path)
    return source.name + message.removeprefix(path) if message.startswith(path) else f"{source.name}: {message}"
