"""BM25 of the question against each passage; a chain's score is the sum over its passages."""

from collections.abc import Sequence

from rechain.baselines.model import Contributions
from rechain.candidates import Candidates
from rechain.text import Text


class BM25:
    """Okapi BM25, with the question's own passages as the collection."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return the sum of the passages' BM25 scores for every chain."""
        import bm25s

        retriever = bm25s.BM25()
        retriever.index([view.title.words + view.text.words for view in candidates.views], show_progress=False)
        known = set().union(*(view.vocabulary for view in candidates.views))
        words = [word for word in Text(candidates.question.question).words if word in known]
        scores = retriever.get_scores(words) if words else [0.0] * len(candidates.views)
        return [{"bm25": float(sum(scores[p] for p in chain.passages))} for chain in candidates.chains]
