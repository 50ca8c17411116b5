"""BM25 of the question against each passage; a chain's score is the sum over its passages."""

from collections.abc import Sequence
from typing import cast

from rechain.candidates import Candidates
from rechain.model import Contributions
from rechain.passages import PassageView
from rechain.schema import Question
from rechain.text import Text


class BM25:
    """Okapi BM25, with the question's own passages as the collection."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return the sum of the passages' BM25 scores for every chain."""
        scores = likeness(candidates.question, candidates.views)
        return [{"bm25": float(sum(scores[p] for p in chain.passages))} for chain in candidates.chains]


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
