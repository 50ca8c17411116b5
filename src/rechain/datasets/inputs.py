"""Questions that callers of the Python API and of HTTP give as dicts, tuples, or objects of other libraries."""

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from rechain.datasets.files import without_nulls
from rechain.datasets.mapping import FieldMap
from rechain.datasets.objects import as_record, plain_value
from rechain.datasets.passages import make_passages
from rechain.datasets.reading import Entry, read_record
from rechain.datasets.validation import bad_record
from rechain.errors import QuestionError
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
        is_pair = collection is not None and isinstance(question, tuple) and len(question) == 2
        if isinstance(question, tuple) and (len(question) == 3 or is_pair or _is_with_response(question)):
            return Entry("", name, as_question(where, name, *question))
        record = None if isinstance(question, str) else as_record(question)
        if record is None:
            kinds = "a Question, a dict or a tuple of question, answer and passages"
            raise QuestionError("bad_record", f"{where}: a question should be {kinds}, not {reprlib.repr(question)}.")
        return read_record(where, record, name, mapping, collection)._replace(where="")
    except QuestionError as error:
        return Entry("", name, error)


def _is_with_response(question: tuple[Any, ...]) -> bool:
    """Return whether a tuple is a question with a response, which holds answer and passages."""
    return len(question) == 2 and not isinstance(question[1], str) and as_record(question[1]) is not None


def as_question(where: str, name: str, question: str, answer: Any, passages: Iterable[PassageLike] = ()) -> Question:
    """Make a question of its parts; an answer may be a response that holds its passages. Raises QuestionError."""
    response = None if answer is None or isinstance(answer, str) else as_record(answer)
    if response is not None:
        content = read_record(where, {"query": question, **response}, name).content
        if isinstance(content, QuestionError):
            raise content
        return content
    try:
        fields = {"id": name, "question": question, "answer": plain_value(answer), "passages": _as_passages(passages)}
        return Question.model_validate(fields)
    except ValidationError as error:
        raise bad_record(where, error) from error
    except QuestionError as error:
        raise QuestionError(error.code, f"{where}: {error}.") from error


def _as_passages(passages: Iterable[PassageLike]) -> list[Passage]:
    if isinstance(passages, str | Mapping) or not isinstance(passages, Iterable):
        raise QuestionError("bad_field", f"passages should be a list of passages, not {reprlib.repr(passages)}")
    return make_passages("passages", (without_nulls(plain_value(passage)) for passage in passages))
