"""What tools log: question, answer and passages have names of their own, and the other fields are kept."""

from collections.abc import Iterable
from typing import Any, ClassVar

from rechain.formats.datasets.formats import Format, MissingFieldsError, items_of, make_passages
from rechain.schema import Question


class Log(Format):
    """A record that a tool has logged. Its gold, if any, is in a separate file."""

    same = "links"
    questions: ClassVar[tuple[str, ...]]
    """names of the field of the question, best first"""
    answers: ClassVar[tuple[str, ...]]
    references: ClassVar[tuple[str, ...]] = ()
    """names of the field of another answer, which is taken if there is no field for the tool's own"""
    contexts: ClassVar[tuple[str, ...]]
    """names of the field of the passages; null: none were retrieved"""

    def recognises(self, record: dict[str, Any]) -> bool:
        record = self.unwrapped(record)
        return bool(first_of(self.questions, record) and first_of(self.contexts, record))

    def unwrapped(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a record, which may be in an object within it."""
        return record

    def without_passages(self, record: dict[str, Any]) -> dict[str, Any] | None:
        has_rest = first_of(self.questions, record) and first_of(self.answers, record)
        return {**record, self.contexts[0]: []} if has_rest and not present_of(self.contexts, record) else None

    def question(self, record: dict[str, Any]) -> Question:
        record = self.unwrapped(record)
        question, context = first_of(self.questions, record), present_of(self.contexts, record)
        answer = present_of(self.answers, record) or present_of(self.references, record)
        places = {self.questions[0]: question, self.answers[0]: answer, self.contexts[0]: context}
        if missing := [name for name, place in places.items() if place is None]:
            raise MissingFieldsError(missing)
        assert question and answer and context
        passages = make_passages(context, items_of(context, record[context] or []), logged=True)
        return logged_question(record, {question, answer, context}, record[question], record[answer], passages)


def first_of(names: Iterable[str], record: dict[str, Any]) -> str | None:
    """Return the first of the names of fields that a record has."""
    return next((name for name in names if record.get(name) is not None), None)


def present_of(names: Iterable[str], record: dict[str, Any]) -> str | None:
    """Return the first of the names of fields that a record has; a null counts only if there is no other."""
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


class Ragas(Log):
    """The answer is the response; the reference is taken only of a record without any, such as a test question."""

    name = "ragas"
    questions = ("user_input", "question")
    answers = ("response", "answer")
    references = ("reference", "ground_truth", "ground_truths")
    contexts = ("retrieved_contexts", "contexts")

    def recognises(self, record: dict[str, Any]) -> bool:
        return super().recognises(record) and not isinstance(record.get("user_input"), list)  # which is a chat


_PUBLISHED = frozenset(("_id", "supporting_facts", "evidences"))
"""fields of HotpotQA and 2WikiMultihopQA, which have questions with a context too"""


class LangChain(Log):
    """Retrieval chains return `input`, `answer` and `context`, older ones `query`, `result` and `source_documents`."""

    name = "langchain"
    questions = ("input", "query", "question")
    answers = ("answer", "result", "output", "output_text")
    contexts = ("source_documents", "context")

    def recognises(self, record: dict[str, Any]) -> bool:
        context = record.get(first_of(self.contexts, record) or "")
        first = context[0] if isinstance(context, list) and context else None
        is_scored = isinstance(first, list) and len(first) == 2 and isinstance(first[1], int | float)
        # HotpotQA's context is columns, or pairs of a title and sentences.
        is_of_hotpotqa = isinstance(context, dict) or (isinstance(first, list) and not is_scored)
        return super().recognises(record) and not is_of_hotpotqa and _PUBLISHED.isdisjoint(record)


class LlamaIndex(Log):
    """A `Response` lacks its query, so a record has it next to the response's fields, or next to the response."""

    name = "llamaindex"
    questions = ("query", "query_str", "question", "input")
    answers = ("response", "answer", "output")
    contexts = ("source_nodes", "nodes")

    def unwrapped(self, record: dict[str, Any]) -> dict[str, Any]:
        response = record.get("response")
        return {**record, **response} if isinstance(response, dict) and "source_nodes" in response else record


_WRAPPERS = ("answer_builder", "answers", "init_parameters")
"""what a generated answer lies in: the result of a pipeline, of its component, and the answer as it is serialised"""


class Haystack(Log):
    """The fields of a `GeneratedAnswer`; of several answers the first is taken, as the builder puts it first."""

    name = "haystack"
    questions = ("query", "question")
    answers = ("data", "answer", "reply")
    contexts = ("documents",)

    def unwrapped(self, record: dict[str, Any]) -> dict[str, Any]:
        for _ in _WRAPPERS:
            wrapper = next((name for name in _WRAPPERS if name in record), None)
            inner = record.get(wrapper or "")
            inner = inner[0] if isinstance(inner, list) and inner else inner
            if not isinstance(inner, dict):
                break
            record = {**{name: value for name, value in record.items() if name not in (wrapper, "type")}, **inner}
        return record
