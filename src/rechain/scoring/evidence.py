"""Cheap evidence for every candidate chain: what words, links and mentions tell before any network reads.

Each kind of evidence is one number a chain; FEATURES names them in order. A fixed weighting of a few of them is the
prior over C with which learning begins; the chain reader learns its own.
"""

from collections.abc import Sequence, Set
from itertools import pairwise
from math import fsum

import numpy as np

from rechain.candidates import Candidate, Candidates
from rechain.linking import Edge
from rechain.scoring.lexical import NEVER_TOGETHER, EntityPairs, names_entities
from rechain.system.tensors import Array
from rechain.text.answers import AnswerMatcher
from rechain.text.passages import PassageView
from rechain.text.rarity import idf, phrase_idf
from rechain.text.sentences import AskedSentences, rarities
from rechain.text.words import Text

FEATURES = (
    "question words",
    "links",
    "weakest link",
    "leads to title",
    "comes from title",
    "names passage",
    "names tail",
    "title words",
    "tail title words",
    "other sense",
    "head words",
    "tail words",
    "linking sentences",
    "answering sentence",
    "answer links",
    "answer before tail",
    "question names link",
    "pairs together",
    "weakest pair",
    "mentions",
    "passages",
)
_SCALE = 0.1
_NO_PAIRS = (0.0, 0.0, 0.0)
_PRIOR = {
    "question words": 3.5,
    "links": 5.25,
    "names passage": 2.0,
    "title words": 1.0,
    "tail title words": 1.0,
    "other sense": -0.3,
    "answer before tail": -0.5,
    "question names link": -2.0,
    "pairs together": 1.0,
    "mentions": 0.3,
    "passages": -10.5,
}
_PAIRS = FEATURES.index("pairs together")
PRIOR = np.array([_PRIOR.get(name, 0.0) for name in FEATURES], dtype=np.float32)
"""what each kind of evidence weighs before anything is learnt"""


def weigh(candidates: Candidates) -> Array:
    """Return the evidence for every candidate chain, [chains, features]; of pairs where the data names entities."""
    pairs = _Pairs(candidates) if names_entities(candidates) else None
    words = _Words(candidates, weighs_links=pairs is None)
    rows = (
        [*words.of(chain), *(pairs.of(chain) if pairs else _NO_PAIRS), len(chain.passages) - 2]
        for chain in candidates.chains
    )
    return np.array(list(rows), dtype=np.float32)


def nothing(features: Array) -> Array:
    """Return the evidence of what may be right when no candidate chain is, [features].

    It has the weakest link that counts and a few words of the question; or pairs that never stand in one sentence.
    """
    like = (
        {"pairs together": 3 * NEVER_TOGETHER} if features[:, _PAIRS].any() else {"question words": 1.5, "links": 0.7}
    )
    return np.array([like.get(name, 0.0) for name in FEATURES], dtype=np.float32)


class _Pairs:
    """Evidence from the two entities that each passage should relate."""

    def __init__(self, candidates: Candidates) -> None:
        self._pairs = EntityPairs(candidates)

    def of(self, chain: Candidate) -> Sequence[float]:
        together, mentions = zip(*(self._pairs.steps(chain) or [(0.0, 0.0)]), strict=True)
        return sum(together), min(together), sum(mentions)


class _Words:
    """Evidence from the question's words, titles and links."""

    def __init__(self, candidates: Candidates, weighs_links: bool) -> None:
        """Links are not weighed where all are the data's own: pairs tell them apart."""
        self._weighs_links = weighs_links
        self._asked = Text(candidates.question.question)
        self._idf = rarities(self._asked)
        self._held = [self._idf.keys() & view.vocabulary for view in candidates.views]
        self._sentences = [AskedSentences(view, self._idf) for view in candidates.views]
        self._answer = AnswerMatcher(candidates.question)
        self._is_tail = frozenset(candidates.tails)
        self._named = [_named(view, self._asked) for view in candidates.views]
        self._titles = [self._title_words(view) for view in candidates.views]
        self._other_sense = [self._is_other_sense(view) for view in candidates.views]
        self._answering = {tail: self._sentences[tail].best_answering(self._answer) for tail in candidates.tails}
        self._answer_words = frozenset(Text(candidates.question.answer).words)

    def of(self, chain: Candidate) -> Sequence[float]:
        *before, tail = chain.passages
        weights = [edge.weight if self._weighs_links else 0.0 for edge in chain.edges]
        held = frozenset().union(*(self._held[passage] for passage in chain.passages))
        return (
            self._rarity(held) * _SCALE,
            sum(weights) * _SCALE,
            min(weights) * _SCALE,
            sum(edge.leads_to_title for edge in chain.edges),
            sum(edge.comes_from_title for edge in chain.edges),
            sum(self._named[passage] for passage in before) * _SCALE,
            self._named[tail] * _SCALE,
            sum(self._titles[passage] for passage in before) * _SCALE,
            self._titles[tail] * _SCALE,
            sum(self._other_sense[passage] for passage in chain.passages),
            self._rarity(self._held[before[0]]) * _SCALE,
            self._rarity(self._held[tail]) * _SCALE,
            self._linking(chain) * _SCALE,
            self._answering[tail] * _SCALE,
            sum(self._is_answer(edge) for edge in chain.edges),
            sum(passage in self._is_tail for passage in before),
            sum(self._asks_for(edge) for edge in chain.edges) * _SCALE,
        )

    def _rarity(self, words: Set[str]) -> float:
        return fsum(map(self._idf.__getitem__, words))  # in no order

    def _title_words(self, view: PassageView) -> float:
        """Return how rare a title is, by the share of it that the question holds."""
        rarity = {word: idf(word) for word in view.title_words}
        held = fsum(rarity[word] for word in self._idf.keys() & rarity.keys())
        return phrase_idf(view.title.words) * held / fsum(rarity.values()) if held else 0.0

    def _is_other_sense(self, view: PassageView) -> bool:
        """Return whether the bracketed suffix of a title, "(pinball)" say, names something the question does not."""
        suffix = set(Text(view.passage.title).words) - view.title_words
        return bool(suffix) and suffix.isdisjoint(self._idf)

    def _linking(self, chain: Candidate) -> float:
        """Return how much of the question the sentences hold that mention a link."""
        steps = zip(pairwise(chain.passages), chain.edges, strict=True)
        return sum(
            self._sentences[one].best_with(edge.name) + self._sentences[two].best_with(edge.name)
            for (one, two), edge in steps
        )

    def _is_answer(self, edge: Edge) -> bool:
        return not edge.is_given and not self._answer_words.isdisjoint(edge.name.split())

    def _asks_for(self, edge: Edge) -> float:
        return 0.0 if edge.is_given else sum(self._idf.get(word, 0.0) for word in edge.name.split())


def _named(view: PassageView, asked: Text) -> float:
    title = view.title
    return phrase_idf(title.words) if title.words and title.joined in asked.joined else 0.0
