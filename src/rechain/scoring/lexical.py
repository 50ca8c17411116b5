"""The lexical rule: rare words of the question in the chain's passages, and strong links between them.

Where the data names the entities of question, links and answer, as in DrugHop and MedHop, the rule asks instead how
often the two entities of a step stand in one sentence of its passage, and how often they stand in it at all.
"""

from collections.abc import Sequence
from math import fsum, log

from rechain.candidates import Candidate, Candidates
from rechain.scoring.model import Contributions
from rechain.text.passages import PassageView
from rechain.text.rarity import rarities
from rechain.text.words import Text

LINK_FACTOR = 1.5
"""the best of 0, 0.5, …, 2 on HotpotQA; 1 and 2 are within a point of it (docs/measured/results.md)"""
MENTION_FACTOR = 0.3
"""how often two entities stand in a passage says less than that they share a sentence"""
_NO_SENTENCE = 0.1
"""counts for none, as a logarithm needs something: ten times less than one sentence"""
NEVER_TOGETHER = log(_NO_SENTENCE)
"""how closely two entities stand together that share no sentence"""


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


class EntityPairs:
    """How closely the two entities of each step stand together in its passage."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._first = candidates.question.question_entities
        self._last = candidates.question.answer_entity
        self._pairs: dict[tuple[int, str, str], tuple[float, float]] = {}

    def score(self) -> Sequence[Contributions]:
        """Return for every chain how closely its pairs stand together."""
        return [
            {
                "pairs in one sentence": sum(together for together, _ in steps),
                "mentions": MENTION_FACTOR * sum(mentions for _, mentions in steps),
            }
            for steps in map(self.steps, self._candidates.chains)
        ]

    def steps(self, chain: Candidate) -> list[tuple[float, float]]:
        """Return for each passage, where both its entities are named, what `closeness` says of the two."""
        head = self._candidates.views[chain.passages[0]]
        first = next((entity for entity in self._first if head.mentions(entity)), None)
        entities = [first, *(edge.key for edge in chain.edges), self._last]
        steps = zip(chain.passages, entities, entities[1:], strict=False)
        return [self._pair(passage, one, two) for passage, one, two in steps if one is not None and two is not None]

    def evidence(self, passage: int, entity: str) -> float:
        """Return how closely an entity stands together with the one of the question or answer that a passage holds."""
        view = self._candidates.views[passage]
        ends = (*self._first, self._last)
        pairs = [self._pair(passage, end, entity) for end in ends if end is not None and view.mentions(end)]
        return max((together + MENTION_FACTOR * mentions for together, mentions in pairs), default=0.0)

    def _pair(self, passage: int, one: str, two: str) -> tuple[float, float]:
        if (passage, one, two) not in self._pairs:
            self._pairs[passage, one, two] = closeness(self._candidates.views[passage], one, two)
        return self._pairs[passage, one, two]


def closeness(view: PassageView, one: str, two: str) -> tuple[float, float]:
    """Return how often two entities stand in one sentence, and how often they stand in the passage at all."""
    ones, twos = view.sentences_with(one), view.sentences_with(two)
    together = log(len(set(ones) & set(twos)) + _NO_SENTENCE)
    mentions = log(max(len(ones), 1) * max(len(twos), 1))
    return together, mentions
