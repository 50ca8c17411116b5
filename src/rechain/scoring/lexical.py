"""The lexical rule: rare words of the question in the chain's passages, and strong links between them.

Where the data names the entities of question, links and answer, as in DrugHop and MedHop, the rule asks instead how
often the two entities of a step stand in one sentence of its passage, and how often they stand in it at all.
"""

from collections.abc import Sequence
from math import fsum, log

from rechain.candidates import Candidate, Candidates
from rechain.scoring.model import Contributions
from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.words import Text

LINK_FACTOR = 1.5
MENTION_FACTOR = 0.3
_NO_SENTENCE = 0.1
NEVER_TOGETHER = log(_NO_SENTENCE)
"""how closely two entities stand together that share no sentence"""


class Lexical:
    """Learns nothing, and is hard to beat."""

    def __init__(self, link_factor: float = LINK_FACTOR) -> None:
        self._link_factor = link_factor

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return what words and links, or entities in one sentence, contribute to every chain."""
        if names_entities(candidates):
            return EntityPairs(candidates).score()
        asked = {word: idf(word) for word in Text(candidates.question.question).words}
        overlaps = [set(asked).intersection(view.words) for view in candidates.views]
        return [
            {
                "question words": fsum(asked[word] for word in set().union(*(overlaps[p] for p in chain.passages))),
                "links": self._link_factor * chain.weight,
            }
            for chain in candidates.chains
        ]


def names_entities(candidates: Candidates) -> bool:
    """Return whether the data names the entities of question and links."""
    is_given = (edge.is_given for chain in candidates.chains for edge in chain.edges)
    return bool(candidates.question.question_entities) and all(is_given)


class EntityPairs:
    """How closely the two entities of each step stand together in its passage."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._first = candidates.question.question_entities
        self._last = candidates.question.answer_entity
        self._passages = [EntitySentences(view) for view in candidates.views]
        self._known: dict[tuple[int, str, str], tuple[float, float]] = {}

    def score(self) -> Sequence[Contributions]:
        """Return for every chain how closely its pairs stand together."""
        return [self._contributions(chain) for chain in self._candidates.chains]

    def _contributions(self, chain: Candidate) -> Contributions:
        steps = self.steps(chain)
        return {
            "pairs in one sentence": sum(together for together, _ in steps),
            "mentions": MENTION_FACTOR * sum(mentions for _, mentions in steps),
        }

    def steps(self, chain: Candidate) -> list[tuple[float, float]]:
        """Return for each passage how often its two entities stand in one sentence, and how often in it at all."""
        return [self._pair(*step) for step in self._steps(chain)]

    def evidence(self, passage: int, entity: str) -> float:
        """Return how closely an entity stands together with the one of the question or answer that a passage holds."""
        view = self._candidates.views[passage]
        ends = (*self._first, self._last)
        pairs = [self._pair(passage, end, entity) for end in ends if end is not None and view.mentions(end)]
        return max((together + MENTION_FACTOR * mentions for together, mentions in pairs), default=0.0)

    def _steps(self, chain: Candidate) -> list[tuple[int, str, str]]:
        """Return each passage with the two entities it should relate, as far as they are named."""
        head = self._candidates.views[chain.passages[0]]
        first = next((entity for entity in self._first if head.mentions(entity)), None)
        entities = [first, *(edge.key for edge in chain.edges), self._last]
        steps = zip(chain.passages, entities, entities[1:], strict=False)
        return [(passage, one, two) for passage, one, two in steps if one is not None and two is not None]

    def _pair(self, passage: int, one: str, two: str) -> tuple[float, float]:
        if (passage, one, two) not in self._known:
            self._known[passage, one, two] = self._passages[passage].pair(one, two)
        return self._known[passage, one, two]


class EntitySentences:
    """In which sentences of a passage its entities stand."""

    def __init__(self, view: PassageView) -> None:
        self._view = view
        self._known: dict[str, list[int]] = {}

    def span(self, sentence: int) -> tuple[int, int]:
        """Return where a sentence begins and ends."""
        return self._view.sentences[sentence]

    def of(self, entity: str) -> list[int]:
        """Return the sentence of every mention of an entity."""
        if entity not in self._known:
            self._known[entity] = [self._view.sentence_at(start) for start, _ in self._view.mentions(entity)]
        return self._known[entity]

    def pair(self, one: str, two: str) -> tuple[float, float]:
        """Return how often two entities stand in one sentence, and how often they stand in the passage at all."""
        together = log(len(set(self.of(one)) & set(self.of(two))) + _NO_SENTENCE)
        mentions = log(max(len(self.of(one)), 1) * max(len(self.of(two)), 1))
        return together, mentions
