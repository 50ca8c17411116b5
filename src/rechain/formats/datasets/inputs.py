"""Questions that come without a file: as objects of Python and of other libraries, by HTTP, or pasted by a user.

Models of pydantic (Ragas, LangChain, LlamaIndex), dataclasses (Haystack, LlamaIndex' responses), arrays, rows and whole
tables of pandas and Arrow are read by what they offer: no library is imported for it.
"""

import dataclasses
import io
import re
import reprlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson
from pydantic import ValidationError

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.delimited import read_table, separator_of
from rechain.formats.datasets.formats import bad_record, has_text, items_of, listed, make_passages, split_text
from rechain.formats.datasets.plain import FieldMap
from rechain.formats.datasets.questions import Entry, is_record, read_record
from rechain.formats.datasets.records import without_nulls
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
        if isinstance(question, tuple):
            has_passages = len(question) == 2 and (collection is not None or as_record(question[1]) is not None)
            if has_passages or len(question) == 3:
                return Entry("", name, as_question(where, name, *question))
        record = as_record(question)
        if record is None:
            kinds = "a Question, a dict or a tuple of question, answer and passages"
            raise QuestionError("bad_record", f"{where}: a question should be {kinds}, not {reprlib.repr(question)}.")
        return read_record(where, record, name, mapping, collection)._replace(where="")
    except QuestionError as error:
        return Entry("", name, error)


def as_question(where: str, name: str, question: str, answer: Any, passages: Iterable[PassageLike] = ()) -> Question:
    """Make a question of its parts; an answer may be a response that holds its passages. Raises QuestionError."""
    if (response := as_record(answer)) is not None:
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
    except (ValidationError, QuestionError) as error:
        raise bad_record(where, error) from error


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
        is_dict = isinstance(table, Mapping)
        kind = "a dict is one: see recover" if is_dict else "a text is none: read a file with read_entries"
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


# ---- pasted text

# A passage may begin with a bracket, as "[1] Polonium was ..." does; JSON continues with another bracket or a quote.
_JSON = re.compile(r"""\[\s*[\[\]{"']|\{\s*["'}]""")
_FIELDS = ("passages", "retrieved_contexts", "contexts", "context", "source_documents", "documents", "nodes", "results")
"""fields of an object that hold passages, where nothing else of it is known"""


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
        rows = list(read_table("the table", stream, separator, "utf-8"))
    except RechainError as error:  # a mistake in a file, but here in a question
        raise QuestionError("bad_record", str(error)) from error
    for unit, number, row in rows:
        if isinstance(row, QuestionError):
            raise bad_record(f"the table, {unit} {number}", row)
    return [without_nulls(row) for _, _, row in rows]
