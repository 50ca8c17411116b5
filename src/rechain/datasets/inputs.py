"""Questions that callers of the Python API and of HTTP give as objects, dicts or tuples."""

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any

from pydantic import ValidationError

from rechain.datasets.reading import Entry, read_record
from rechain.datasets.validation import bad_record
from rechain.errors import QuestionError
from rechain.schema import Passage, Question

PassageLike = Passage | Mapping[str, Any] | str
QuestionLike = Question | Mapping[str, Any] | tuple[str, str, Iterable[PassageLike]] | Entry
"""A question; a dict with its fields; question, answer and passages; or what `read_entries` yields."""


def as_entry(where: str, name: str, question: QuestionLike) -> Entry:
    """Return a question, or why it cannot be read; `name` is the id of a question without one."""
    if isinstance(question, Entry):
        return question
    if isinstance(question, Question):
        return Entry("", question.id, question)
    try:
        if isinstance(question, Mapping):
            return read_record(where, _with_ids(where, name, question))._replace(where="")
        if not isinstance(question, tuple) or len(question) != 3:
            kinds = "a Question, a dict or a tuple of question, answer and passages"
            raise QuestionError("bad_record", f"{where}: a question should be {kinds}, not {reprlib.repr(question)}.")
        return Entry("", name, as_question(where, name, *question))
    except QuestionError as error:
        return Entry("", name, error)


def _with_ids(where: str, name: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add missing ids of a question and of its passages; published formats name these fields otherwise."""
    if "passages" not in record:
        return record
    try:
        passages = [p.model_dump() if isinstance(p, Passage) else p for p in _as_passages(record["passages"])]
    except QuestionError as error:
        raise QuestionError(error.code, f"{where}: {error}.") from error
    return {"id": name, **record, "passages": passages}


def as_question(where: str, name: str, question: str, answer: str | None, passages: Iterable[PassageLike]) -> Question:
    """Make a question of its parts. Raises QuestionError, which says what is wrong."""
    try:
        fields = {"id": name, "question": question, "answer": answer or "", "passages": list(_as_passages(passages))}
        return Question.model_validate(fields)
    except ValidationError as error:
        raise bad_record(where, error) from error
    except QuestionError as error:
        raise QuestionError(error.code, f"{where}: {error}.") from error


def _as_passages(passages: Iterable[PassageLike]) -> Iterator[Passage | Mapping[str, Any]]:
    """Add missing ids of passages: the title or, if that is taken, the position."""
    if isinstance(passages, str | Mapping) or not isinstance(passages, Iterable):
        raise QuestionError("bad_field", f"passages should be a list of passages, not {reprlib.repr(passages)}")
    taken: set[str] = set()
    for number, passage in enumerate(passages):
        if isinstance(passage, Passage):
            taken.add(passage.id)
            yield passage
            continue
        if not isinstance(passage, str | Mapping):
            kinds = "a text, a dict or a Passage"
            raise QuestionError("bad_field", f"passages[{number}] should be {kinds}, not {reprlib.repr(passage)}")
        content = {"text": passage} if isinstance(passage, str) else passage
        title = content.get("title")
        titles = [title] if isinstance(title, str) and title else []
        names = chain(titles, (str(number),), (f"{number}.{n}" for n in count(1)))
        fields = {"id": next(name for name in names if name not in taken), **content}
        if isinstance(fields["id"], str):  # if not, the schema says so
            taken.add(fields["id"])
        yield fields
