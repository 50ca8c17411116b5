"""Haystack: generated answers with their documents, alone or as an answer builder returns them."""

from typing import Any

from rechain.datasets.logs import Log
from rechain.schema import Question

_WRAPPERS = ("answer_builder", "answers", "init_parameters")
"""what a generated answer lies in: the result of a pipeline, of its component, and the answer as it is serialised"""
_MOST_WRAPPERS = len(_WRAPPERS)


class Haystack(Log):
    """The fields of a `GeneratedAnswer`; of several answers the first is taken, as the builder puts it first."""

    name = "haystack"
    questions = ("query", "question")
    answers = ("data", "answer", "reply")
    contexts = ("documents",)

    def recognises(self, record: dict[str, Any]) -> bool:
        return super().recognises(_answer(record))

    def question(self, record: dict[str, Any]) -> Question:
        return super().question(_answer(record))


def _answer(record: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that a pipeline's result holds, with the fields beside it."""
    for _ in range(_MOST_WRAPPERS):
        wrapper = next((name for name in _WRAPPERS if name in record), None)
        inner = record.get(wrapper or "")
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if not isinstance(inner, dict):
            break
        record = {**{name: value for name, value in record.items() if name not in (wrapper, "type")}, **inner}
    return record
