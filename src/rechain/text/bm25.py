"""BM25 of a question against each of its passages."""

from collections.abc import Sequence
from typing import cast

from rechain.schema import Question
from rechain.text.passages import PassageView
from rechain.text.words import Text


def likeness(question: Question, views: Sequence[PassageView]) -> Sequence[float]:
    """Return how like a question each of its passages is."""
    collection = [view.words for view in views]
    known = set().union(*collection)
    return _scores([word for word in Text(question.question).words if word in known], collection)


def _scores(asked: list[str], collection: list[list[str]]) -> Sequence[float]:
    import bm25s

    if not asked:
        return [0.0] * len(collection)
    retriever = bm25s.BM25()
    retriever.index(collection, show_progress=False)
    return cast(Sequence[float], retriever.get_scores(asked))
