"""BM25 of the question against each passage; a chain's score is the sum over its passages."""

from collections.abc import Sequence
from typing import cast

from rechain.candidates import Candidates
from rechain.model import Contributions
from rechain.text import Text


class BM25:
    """Okapi BM25, with the question's own passages as the collection."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return the sum of the passages' BM25 scores for every chain."""
        asked = Text(candidates.question.question).words
        collection = [view.words for view in candidates.views]
        known = set().union(*collection)
        scores = _scores([word for word in asked if word in known], collection)
        return [{"bm25": float(sum(scores[p] for p in chain.passages))} for chain in candidates.chains]


def _scores(asked: list[str], collection: list[list[str]]) -> Sequence[float]:
    import bm25s

    if not asked:
        return [0.0] * len(collection)
    retriever = bm25s.BM25()
    retriever.index(collection, show_progress=False)
    return cast(Sequence[float], retriever.get_scores(asked))
