"""LangChain: what chains that answer questions return, with their documents."""

from typing import Any

from rechain.datasets.logs import Log, first_of

_PUBLISHED = ("_id", "supporting_facts", "evidences")
"""fields of HotpotQA and 2WikiMultihopQA, which have questions with a context too"""


class LangChain(Log):
    """Retrieval chains return `input`, `answer` and `context`, older ones `query`, `result` and `source_documents`."""

    name = "langchain"
    questions = ("input", "query", "question")
    answers = ("answer", "result", "output", "output_text")
    contexts = ("source_documents", "context")

    def recognises(self, record: dict[str, Any]) -> bool:
        context = first_of(self.contexts, record)
        is_published = any(name in record for name in _PUBLISHED) or _is_of_hotpotqa(record.get(context or ""))
        return super().recognises(record) and not is_published


def _is_of_hotpotqa(context: Any) -> bool:
    """Return whether a context is columns, or pairs of a title and sentences."""
    first = context[0] if isinstance(context, list) and context else None
    return isinstance(context, dict) or (isinstance(first, list) and not _is_scored(first))


def _is_scored(item: list[Any]) -> bool:
    return len(item) == 2 and isinstance(item[1], int | float)
