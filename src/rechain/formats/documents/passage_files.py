"""Collections: files of passages, a row each. A million rows pass through, so that few are in memory at once."""

from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from pydantic import ValidationError

from rechain.errors import DamagedInputError, InputError, MissingExtraError, QuestionError, RechainError
from rechain.formats.datasets.formats import Fields, bad_record, passage_fields
from rechain.formats.datasets.records import RawRecord, read_opened
from rechain.formats.documents.characters import open_source
from rechain.formats.documents.source_files import Refusal, Source
from rechain.schema import Passage, number_as_text
from rechain.system.files import reading

BATCH = 1_000
"""passages at a time: a few MB, and enough that what is done for a batch costs nothing beside its passages"""
_MOST_BAD_ROWS = 1_000  # rows without any passage before a file is given up: it is a log or a table of something else
_ALIASES = {"_id": "id", "docid": "id", "pid": "id", "contents": "text", "body": "text"}
"""fields of BEIR's, Pyserini's and MS MARCO's collections by the names of the schema"""
_NEEDED = 'a row of a collection is such as {"id": "p1", "title": "Rome", "text": "Rome is …"}'


def read_collection(source: Source) -> Iterator[list[Passage] | Refusal]:
    """Yield the passages of a collection in batches, and every row that is none as a Refusal.

    A file without any passage is one Refusal, not one a row: what is wrong with the file, or else with its first row.
    """
    batch: list[Passage] = []
    early: list[Refusal] = []  # those before the first passage
    has_passages = False
    for outcome in _read_rows(source):
        if isinstance(outcome, Passage):
            if not has_passages:
                has_passages = True
                yield from early
            batch.append(outcome)
            if len(batch) == BATCH:
                yield batch
                batch = []
        elif has_passages:
            yield outcome
        else:
            early.append(outcome)
            if len(early) == _MOST_BAD_ROWS:
                break
    if batch:
        yield batch
    if not has_passages and early and early[0].name == source.name:
        yield early[0]
    elif not has_passages:
        reason = f" ({early[0].message.removeprefix(source.name).lstrip(' ,').rstrip('.')})" if early else ""
        yield Refusal(source.name, f"{source.name} holds no passages{reason}; {_NEEDED}.")


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
    where, value = _renamed(source, record.where), record.parsed().value
    if isinstance(value, QuestionError):  # which begins with the path
        return Refusal(where, _renamed(source, str(value)))
    try:
        return Passage.model_validate(_fields(value, record.name))
    except ValidationError as error:
        return Refusal(where, str(bad_record(where, error)))
    except QuestionError as error:
        return Refusal(where, f"{where}: a row {error}.")


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
