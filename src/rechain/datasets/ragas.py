"""Ragas: the samples of an evaluation, by the names of its versions since 0.2 and by the older ones."""

from typing import Any

from rechain.datasets.logs import Log


class Ragas(Log):
    """The answer is the response; the reference is taken only of a record without any, such as a test question."""

    name = "ragas"
    questions = ("user_input", "question")
    answers = ("response", "answer")
    references = ("reference", "ground_truth", "ground_truths")
    contexts = ("retrieved_contexts", "contexts")

    def recognises(self, record: dict[str, Any]) -> bool:
        return super().recognises(record) and not isinstance(record.get("user_input"), list)  # which is a chat
