"""Questions that callers of the Python API and of HTTP give as dicts, tuples, or objects of other libraries.

Models of pydantic (Ragas, LangChain, LlamaIndex), dataclasses (Haystack, LlamaIndex' responses), arrays, rows and whole
tables of pandas and Arrow are read by what they offer: no library is imported for it.
"""

import dataclasses
import reprlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.formats import make_passages
from rechain.formats.datasets.plain import FieldMap
from rechain.formats.datasets.questions import Entry, read_record
from rechain.formats.datasets.records import without_nulls
from rechain.formats.datasets.validation import bad_record
from rechain.schema import Passage, Question

PassageLike = Passage | Mapping[str, Any] | str | Any
"""A passage, a dict with its fields, its text, or a document or node of LangChain, LlamaIndex or Haystack."""
QuestionLike = Question | Mapping[str, Any] | tuple[str, str, Iterable[PassageLike]] | Entry | Any
"""A question; a dict with its fields; question, answer and passages; what `read_entries` yields; or an object of Ragas,
LangChain, LlamaIndex or Haystack, or a row of a table."""


def as_entry(
    where: str,
    name: str,
    question: QuestionLike,
    mapping: FieldMap | None = None,
    collection: Mapping[str, Passage] | None = None,
) -> Entry:
    """Return a question, or why it cannot be read; `name` is the id of a question without one.

    Where a collection finds passages, a question needs none.
    """
    if isinstance(question, Entry):
        return question
    if isinstance(question, Question):
        return Entry("", question.id, question)
    try:
        if isinstance(question, tuple) and len(question) in (2, 3):
            has_response = (
                len(question) == 2 and not isinstance(question[1], str) and as_record(question[1]) is not None
            )
            if len(question) == 3 or collection is not None or has_response:
                return Entry("", name, as_question(where, name, *question))
        record = None if isinstance(question, str) else as_record(question)
        if record is None:
            kinds = "a Question, a dict or a tuple of question, answer and passages"
            raise QuestionError("bad_record", f"{where}: a question should be {kinds}, not {reprlib.repr(question)}.")
        return read_record(where, record, name, mapping, collection)._replace(where="")
    except QuestionError as error:
        return Entry("", name, error)


def as_question(where: str, name: str, question: str, answer: Any, passages: Iterable[PassageLike] = ()) -> Question:
    """Make a question of its parts; an answer may be a response that holds its passages. Raises QuestionError."""
    response = None if answer is None or isinstance(answer, str) else as_record(answer)
    if response is not None:
        content = read_record(where, {"query": question, **response}, name).content
        if isinstance(content, QuestionError):
            raise content
        return content
    try:
        if isinstance(passages, str | Mapping) or not isinstance(passages, Iterable):
            raise QuestionError("bad_field", f"passages should be a list of passages, not {reprlib.repr(passages)}")
        passage_list = make_passages("passages", (without_nulls(plain_value(passage)) for passage in passages))
        fields = {"id": name, "question": question, "answer": plain_value(answer), "passages": passage_list}
        return Question.model_validate(fields)
    except ValidationError as error:
        raise bad_record(where, error) from error
    except QuestionError as error:
        raise QuestionError(error.code, f"{where}: {error}.") from error


# As deep as the readers of files look: a result has an answer, which has nodes, which have a node with metadata.
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
        # None that was not set is a field that is not there: a sample of Ragas has a response or only a reference.
        fields_set: Collection[str] = getattr(value, "model_fields_set", names)
        fields = {name: getattr(value, name) for name in names}
        return {name: field for name, field in fields.items() if field is not None or name in fields_set}
    if callable(to_dict := getattr(value, "to_dict", None)):  # a row of pandas
        return fields if isinstance(fields := to_dict(), Mapping) else None
    return None


def rows_of(table: Any) -> Iterable[Any]:
    """Return the rows of a table of pandas or Arrow; anything else that yields questions is returned as it is."""
    if isinstance(table, str | Mapping):
        is_text = isinstance(table, str)
        kind = "a text is none: read a file with read_entries" if is_text else "a dict is one: see recover"
        raise RechainError(f"recover_many takes many questions, and {kind}.")
    if hasattr(table, "itertuples"):  # pandas
        names = _distinct([str(name) for name in table.columns])
        return (dict(zip(names, row, strict=True)) for row in table.itertuples(index=False, name=None))
    if hasattr(table, "to_batches") or hasattr(table, "read_next_batch"):  # Arrow
        batches = table.to_batches(_TABLE_BATCH) if hasattr(table, "to_batches") else table
        _distinct(table.schema.names)
        return (row for batch in batches for row in batch.to_pylist())
    if not isinstance(table, Iterable):
        raise RechainError(f"the questions should be a list, or anything that yields them, not {table!r:.80}.")
    return table


def _distinct(names: list[str]) -> list[str]:
    """Return the names of a table's columns; raises RechainError where two are the same, as one would be lost."""
    if repeated := next((name for name, number in Counter(names).items() if number > 1), None):
        raise RechainError(f"two columns of the table have the name '{repeated:.80}'; rename one of them.")
    return names
