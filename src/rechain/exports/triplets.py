"""Chains as triplets to train a retriever with sentence-transformers, whose losses take the columns in this order.

    {"query": …, "positive": …, "negative": …}

Every passage of a chain is a positive; the negatives are hard ones, of the question's own passages. A column `score` is
what its trainers hand to a loss as labels: losses that know none leave it alone.
"""

from typing import Any

from rechain.errors import QuestionError
from rechain.exports.joining import Joined, LineExport
from rechain.exports.texts import hard_negatives, text_of, weight_of


def rows(joined: Joined, negatives: int = 1, weights: bool = False) -> list[dict[str, Any]]:
    """Return the triplets of a question: every passage of its chain with each of the hardest negatives."""
    hardest = hard_negatives(joined)[:negatives]
    if not hardest:
        raise QuestionError("no_negative", "every passage is on a chain")
    weight = {"score": weight_of(joined)} if weights else {}
    return [
        {"query": joined.question.question, "positive": text_of(passage), "negative": text_of(negative), **weight}
        for passage, _ in joined.passages
        for negative in hardest
    ]


EXPORT = LineExport(rows, options=("negatives", "weights"))
