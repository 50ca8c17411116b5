"""What callers give as a question, made into one."""

from collections.abc import Collection, Iterable, Iterator, Mapping
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


def as_entry(where: str, name: str, given: QuestionLike) -> Entry:
    """Return a question, or why what was given is none; `name` is the id of one that has none of its own."""
    if isinstance(given, Entry):
        return given
    if isinstance(given, Question):
        return Entry("", given.id, given)
    try:
        if isinstance(given, Mapping):
            return read_record(where, _completed(where, name, given))._replace(where="")
        return Entry("", name, as_question(where, name, *_parts(where, given)))
    except QuestionError as error:
        return Entry("", name, error)


def _completed(where: str, name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a dict an id, and its passages ids, where they lack them; published formats have fields of their own."""
    if "passages" not in given:
        return given
    try:
        passages = [p.model_dump() if isinstance(p, Passage) else p for p in _as_passages(given["passages"])]
    except QuestionError as error:
        raise QuestionError(error.code, f"{where}: {error}.") from error
    return {"id": name, **given, "passages": passages}


def _parts(where: str, given: Any) -> tuple[Any, Any, Any]:
    if not isinstance(given, tuple) or len(given) != 3:
        kinds = "a Question, a dict or a tuple of question, answer and passages"
        raise QuestionError("bad_record", f"{where}: a question should be {kinds}, not {given!r:.40}.")
    return given


def as_question(where: str, name: str, question: str, answer: str | None, passages: Iterable[PassageLike]) -> Question:
    """Make a question of its parts. Raises QuestionError, which says what is wrong with them."""
    try:
        fields = {"id": name, "question": question, "answer": answer or "", "passages": list(_as_passages(passages))}
        return Question.model_validate(fields)
    except ValidationError as error:
        raise bad_record(where, error) from error
    except QuestionError as error:
        raise QuestionError(error.code, f"{where}: {error}.") from error


def _as_passages(passages: Iterable[PassageLike]) -> Iterator[Passage | Mapping[str, Any]]:
    """Give every passage an id that lacks one: its title or, if that is taken, its position."""
    if isinstance(passages, str | Mapping) or not isinstance(passages, Iterable):
        raise QuestionError("bad_field", f"passages should be a list of passages, not {passages!r:.40}")
    taken: set[str] = set()
    for number, given in enumerate(passages):
        passage = given if isinstance(given, Passage) else _with_id(number, given, taken)
        taken.add(passage.id if isinstance(passage, Passage) else str(passage["id"]))
        yield passage


def _with_id(number: int, given: Mapping[str, Any] | str, taken: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(given, str | Mapping):
        raise QuestionError("bad_field", f"passages[{number}] should be a text, a dict or a Passage, not {given!r:.40}")
    fields = {"text": given} if isinstance(given, str) else given
    names = chain((str(fields.get("title") or number), str(number)), (f"{number}.{n}" for n in count(1)))
    return {"id": next(name for name in names if name not in taken), **fields}
