"""BM25 of the question against each passage; a chain's score is the sum over its passages."""

from collections.abc import Sequence

from rechain.candidates import Candidates
from rechain.scoring.model import Contributions
from rechain.text.bm25 import likeness


class BM25:
    """Okapi BM25, with the question's own passages as the collection."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return the sum of the passages' BM25 scores for every chain."""
        scores = likeness(candidates.question, candidates.views)
        return [{"bm25": float(sum(scores[p] for p in chain.passages))} for chain in candidates.chains]
