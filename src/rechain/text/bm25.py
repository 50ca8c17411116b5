"""BM25 of a question against each of its passages."""

from collections.abc import Sequence
from typing import cast

from rechain.schema import Question
from rechain.text.passages import PassageView
from rechain.text.words import Text


def likeness(question: Question, views: Sequence[PassageView]) -> Sequence[float]:
    """Return how like a question each of its passages is."""
    import bm25s

    collection = [view.title.words + view.text.words for view in views]
    vocabulary = set().union(*collection)
    # bm25s takes no query without a word of the collection.
    query = [word for word in Text(question.question).words if word in vocabulary]
    if not query:
        return [0.0] * len(collection)
    retriever = bm25s.BM25()
    retriever.index(collection, show_progress=False)
    return cast(Sequence[float], retriever.get_scores(query))
