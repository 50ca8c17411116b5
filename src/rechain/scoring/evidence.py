"""Cheap evidence for every candidate chain: what words, links and mentions tell before any network reads.

Each kind of evidence is one number a chain; FEATURES names them in order. A fixed weighting of a few of them is the
prior over C with which learning begins; the chain reader learns its own.
"""

from collections.abc import Sequence, Set
from math import fsum
from typing import NamedTuple

import numpy as np

from rechain.scoring.entity_pairs import NEVER_TOGETHER, EntityPairs
from rechain.system.tensors import Array
from rechain.text.answers.matcher import Holdings
from rechain.text.candidates import Candidate, Candidates
from rechain.text.linking import Edge
from rechain.text.passage_views import PassageView, SentenceOverlaps
from rechain.text.rarity import idf, phrase_idf, rarities
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
"""brings sums of rarities, of 5 to 60, to the size of the other numbers, as networks like it"""
# Chosen among a few values each by looking at gold of HotpotQA open and DrugHop open (docs/measured/default_model.md).
# Words and links are the lexical rule (1 to 1.5); another passage costs what its words and link bring by chance.
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
    pairs = EntityPairs(candidates) if candidates.names_entities else None
    words = _Words(candidates, weighs_links=pairs is None)
    rows = []
    for chain in candidates.chains:
        of_pairs: tuple[float, ...] = (0.0, 0.0, 0.0)
        if pairs and (steps := pairs.steps(chain)):
            together, mentions, _ = zip(*steps, strict=True)
            of_pairs = sum(together), min(together), sum(mentions)
        rows.append([*words.of(chain), *of_pairs, len(chain.passages) - 2])
    return np.array(rows, dtype=np.float32)


def nothing(features: Array) -> Array:
    """Return the evidence of what may be right when no candidate chain is, [features].

    It has the weakest link that counts and a few words of the question; or pairs that never stand in one sentence.
    """
    if features[:, _PAIRS].any():
        evidence = {"pairs together": 3 * NEVER_TOGETHER}  # in a chain of three passages
    else:
        evidence = {"question words": 1.5, "links": 0.7}  # a link of 7.0, and 15 of words: two rare ones
    return np.array([evidence.get(name, 0.0) for name in FEATURES], dtype=np.float32)


class _Words:
    """Evidence from the question's words, titles and links."""

    def __init__(self, candidates: Candidates, weighs_links: bool) -> None:
        """Links are not weighed where the data gives them all: pairs tell them apart."""
        self._weighs_links = weighs_links
        self._query = Text(candidates.question.question)
        self._idf = rarities(self._query)
        self._overlaps = [self._idf.keys() & view.terms for view in candidates.views]
        self._rarities = [self._rarity(overlap) for overlap in self._overlaps]
        self._sentences = [SentenceOverlaps(view, self._idf) for view in candidates.views]
        self._is_tail = frozenset(candidates.tails)
        self._titles = [self._title(view) for view in candidates.views]
        self._answering = {tail: self._best_answering(candidates.holdings, tail) for tail in candidates.tails}
        self._answer_words = candidates.holdings.words
        self._links: dict[Edge, _LinkEvidence] = {}  # many chains share a link

    def of(self, chain: Candidate) -> Sequence[float]:
        """Return what FEATURES names first, up to "question names link"; without links what they tell is nothing."""
        *before, tail = chain.passages
        weights = [edge.weight if self._weighs_links else 0.0 for edge in chain.edges]
        links = [self._link(edge) for edge in chain.edges]
        overlap = frozenset().union(*(self._overlaps[passage] for passage in chain.passages))
        return (
            self._rarity(overlap) * _SCALE,
            sum(weights) * _SCALE,
            min(weights, default=0.0) * _SCALE,
            sum(link.leads_to_title for link in links),
            sum(link.comes_from_title for link in links),
            sum(self._titles[passage].named for passage in before) * _SCALE,
            self._titles[tail].named * _SCALE,
            sum(self._titles[passage].share for passage in before) * _SCALE,
            self._titles[tail].share * _SCALE,
            sum(self._titles[passage].is_other_sense for passage in chain.passages),
            self._rarities[chain.passages[0]] * _SCALE,
            self._rarities[tail] * _SCALE,
            sum(link.overlap for link in links) * _SCALE,
            self._answering.get(tail, 0.0) * _SCALE,
            sum(link.holds_answer for link in links),
            sum(passage in self._is_tail for passage in before),
            sum(link.rarity for link in links) * _SCALE,
        )

    def _link(self, edge: Edge) -> "_LinkEvidence":
        """Return what a link tells, whatever chain it is in."""
        if edge not in self._links:
            first, second = edge.forms
            before, after = self._sentences[edge.before], self._sentences[edge.after]
            words = [] if edge.is_given else edge.name.split()
            self._links[edge] = _LinkEvidence(
                edge.leads_to_title,
                edge.comes_from_title,
                before.best_with((first,)) + after.best_with((second,)),
                not self._answer_words.isdisjoint(words),
                sum(self._idf.get(word, 0.0) for word in words),
            )
        return self._links[edge]

    def _best_answering(self, holdings: Holdings, tail: int) -> float:
        """Return how much of the question the sentence holds that holds the answer."""
        sentences, holding = self._sentences[tail], holdings.best(tail)
        best = sentences.best_with(holdings.phrases) if holdings.phrases else 0.0
        return max(best, sentences.overlap_at(holding.span)) if holding and holding.span else best

    def _rarity(self, words: Set[str]) -> float:
        return fsum(map(self._idf.__getitem__, words))  # fsum, as the words come in no order

    def _title(self, view: PassageView) -> "_Title":
        title, words = view.title, {word: idf(word) for word in view.title.words}
        rarity = phrase_idf(title.words)
        held = fsum(words[word] for word in self._idf.keys() & words.keys())
        suffix = set(Text(view.passage.title).words) - words.keys()
        return _Title(
            named=rarity if title.words and title.joined in self._query.joined else 0.0,
            share=rarity * held / fsum(words.values()) if held else 0.0,
            is_other_sense=bool(suffix) and suffix.isdisjoint(self._idf),
        )


class _LinkEvidence(NamedTuple):
    """What a link has of titles, question and answer."""

    leads_to_title: bool
    comes_from_title: bool
    overlap: float
    """how much of the question the sentences hold that mention it"""
    holds_answer: bool
    rarity: float
    """that of the question's words in its name"""


class _Title(NamedTuple):
    """What a passage's title has of the question."""

    named: float
    """its rarity, where the question holds the whole of it"""
    share: float
    """its rarity, by the share of it that the question holds"""
    is_other_sense: bool
    """whether its bracketed suffix, "(pinball)" say, names something that the question does not"""
