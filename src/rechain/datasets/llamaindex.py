"""LlamaIndex: a response with the nodes that it was made of, beside its query."""

from typing import Any

from rechain.datasets.logs import Log
from rechain.schema import Question


class LlamaIndex(Log):
    """A `Response` does not hold its query, so a record has it beside the response's fields, or beside the response."""

    name = "llamaindex"
    questions = ("query", "query_str", "question", "input")
    answers = ("response", "answer", "output")
    contexts = ("source_nodes", "nodes")

    def recognises(self, record: dict[str, Any]) -> bool:
        return super().recognises(_flat(record))

    def question(self, record: dict[str, Any]) -> Question:
        return super().question(_flat(record))


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    response = record.get("response")
    return {**record, **response} if isinstance(response, dict) and "source_nodes" in response else record
