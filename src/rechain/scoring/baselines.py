"""Models that learn nothing.

The lexical rule: rare words of the question in the chain's passages, and strong links between them. Where the data
names the entities of question, links and answer, as in DrugHop and MedHop, the rule asks instead how closely the two
entities of a step stand together in its passage and, with a collection, how rare they are (`entity_pairs`).

BM25 of the question against each passage. And a chain picked at random from C: the paper's first baseline.
"""

from collections.abc import Sequence
from math import fsum
from random import Random as Generator

from rechain.scoring.entity_pairs import EntityPairs
from rechain.scoring.interface import Contributions
from rechain.text.candidates import Candidates
from rechain.text.passage_views import bm25_scores
from rechain.text.rarity import rarities
from rechain.text.words import Text

LINK_FACTOR = 1.5
"""the best of 0, 0.5, …, 2 on HotpotQA; 1 and 2 are within a point of it (docs/measured/results.md)"""


class Lexical:
    """Learns nothing, and is hard to beat."""

    def __init__(self, link_factor: float = LINK_FACTOR) -> None:
        self._link_factor = link_factor

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return what words and links, or entities in one sentence, contribute to every chain."""
        if candidates.names_entities:
            return EntityPairs(candidates).score()
        query = rarities(Text(candidates.question.question))
        overlaps = [query.keys() & view.terms for view in candidates.views]
        return [
            {
                "question words": fsum(query[word] for word in set().union(*(overlaps[p] for p in chain.passages))),
                "links": self._link_factor * chain.weight,
            }
            for chain in candidates.chains
        ]


class BM25:
    """Okapi BM25, with the question's own passages as the collection."""

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return the sum of the passages' BM25 scores for every chain."""
        scores = bm25_scores(candidates.question, candidates.views)
        return [{"bm25": float(sum(scores[p] for p in chain.passages))} for chain in candidates.chains]


class Random:
    """Draws by seed and question id, so that a question's chain does not depend on its neighbours."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return a random number for every chain."""
        draw = Generator(f"{self._seed} {candidates.question.id}").random
        return [{"chance": draw()} for _ in candidates.chains]
