"""What the formats of tools have in common: question, answer and passages have names of their own, the rest is kept."""

from collections.abc import Iterable
from typing import Any, ClassVar

from rechain.datasets.formats import Format
from rechain.datasets.passages import items_of, make_passages
from rechain.datasets.validation import MissingFieldsError
from rechain.schema import Question


class Log(Format):
    """A record that a tool has logged. Its gold, if any, is in a separate file."""

    same = "links"
    questions: ClassVar[tuple[str, ...]]
    """names of the field that holds the question, best first"""
    answers: ClassVar[tuple[str, ...]]
    references: ClassVar[tuple[str, ...]] = ()
    """names of the field that holds an answer of somebody else's, which is taken where there is no field for its own"""
    contexts: ClassVar[tuple[str, ...]]
    """names of the field that holds the passages; null: none were retrieved"""

    def recognises(self, record: dict[str, Any]) -> bool:
        return bool(first_of(self.questions, record) and first_of(self.contexts, record))

    def lacks_passages(self, record: dict[str, Any]) -> bool:
        """Return whether a record has a question and an answer of this format, but no field for its passages."""
        return bool(first_of(self.questions, record) and first_of(self.answers, record))

    def without_passages(self, record: dict[str, Any]) -> dict[str, Any] | None:
        lacks = self.lacks_passages(record) and given_of(self.contexts, record) is None
        return {**record, self.contexts[0]: []} if lacks else None

    def question(self, record: dict[str, Any]) -> Question:
        question, context = first_of(self.questions, record), given_of(self.contexts, record)
        answer = given_of(self.answers, record) or given_of(self.references, record)
        found = {self.questions[0]: question, self.answers[0]: answer, self.contexts[0]: context}
        if missing := [name for name, place in found.items() if place is None]:
            raise MissingFieldsError(missing)
        assert question and answer and context
        passages = make_passages(context, items_of(context, record[context] or []), logged=True)
        return logged_question(record, {question, answer, context}, record[question], record[answer], passages)


def first_of(names: Iterable[str], record: dict[str, Any]) -> str | None:
    """Return the first of the names of fields that a record has."""
    return next((name for name in names if record.get(name) is not None), None)


def given_of(names: Iterable[str], record: dict[str, Any]) -> str | None:
    """Return the first of the names of fields that a record has; a null counts only where there is no other."""
    return first_of(names, record) or next((name for name in names if name in record), None)


def logged_question(record: dict[str, Any], used: set[str], question: Any, answer: Any, passages: Any) -> Question:
    """Make a question of a record of a log, with the fields that were not used for it."""
    rest = {name: value for name, value in record.items() if name not in used}
    return Question.model_validate({**rest, "question": question, "answer": _text_of(answer), "passages": passages})


def _text_of(answer: Any) -> Any:
    """Return the text of an answer that is null, the message of a model, or a list of which the first is the answer."""
    if isinstance(answer, list) and answer and isinstance(answer[0], str):
        return answer[0]
    if isinstance(answer, dict):
        return next((answer[name] for name in ("content", "text") if isinstance(answer.get(name), str)), answer)
    return answer
