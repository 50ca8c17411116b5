"""Cheap evidence for every candidate chain: what words, links and mentions tell before any network reads.

Each kind of evidence is one number a chain; FEATURES names them in order. A fixed weighting of a few of them is the
prior over C with which learning begins; the chain reader learns its own.

Where the data names the entities, a step is a passage and the two by which a chain enters and leaves it. That they
stand in one sentence, near to each other, is evidence that the passage says something of both. A collection says what
that is worth: an entity that half of all passages mention stands beside anything.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from math import fsum, log
from typing import NamedTuple

import numpy as np

from rechain.system.tensors import Array
from rechain.text.answers.matcher import Holdings
from rechain.text.candidates import Candidate, Candidates
from rechain.text.collection import Statistics
from rechain.text.languages import idf, phrase_idf, rarities
from rechain.text.linking import Edge
from rechain.text.passage_views import PassageView, SentenceOverlaps
from rechain.text.words import Span, Text

MENTION_FACTOR = 0.3
"""how often two entities stand in a passage says less than that they share a sentence"""
NEARNESS_FACTOR = 0.5
"""what e times as many words between two entities cost: half of what sharing a sentence e times as often brings"""
RARITY_FACTOR = 0.4
"""what it costs that e times as many passages of the collection mention an entity (docs/measured/default_model.md says
how this and the other factors were chosen)"""
_NO_SENTENCE = 0.1
"""counts for none, as a logarithm needs something: ten times less than one sentence"""
NEVER_TOGETHER = log(_NO_SENTENCE)
"""how closely two entities stand together that share no sentence"""


class Closeness(NamedTuple):
    """How closely two entities stand together in a passage: logarithms, so that steps add up."""

    together: float
    """of the number of sentences that they share"""
    mentions: float
    """of the number of times that both are mentioned"""
    distance: float
    """of the number of words from one to the other, where they are nearest"""


class EntityPairs:
    """What tells of the two entities of each step."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._first = candidates.question.question_entities
        self._last = candidates.question.answer_entity
        self._pairs: dict[tuple[int, str, str], Closeness] = {}

    def score(self) -> Sequence[dict[str, float]]:
        """Return for every chain how closely its pairs stand together and, with a collection, how rare they are."""
        beside = self.beside()
        return [
            {
                "pairs in one sentence": sum(step.together for step in steps),
                "mentions": MENTION_FACTOR * sum(step.mentions for step in steps),
                **{name: float(values[number]) for name, values in beside.items()},
            }
            for number, steps in enumerate(map(self.steps, self._candidates.chains))
        ]

    def beside(self) -> dict[str, Array]:
        """Return what tells for the pairs of every chain beside what a trained network weighs, [chains] each.

        Less the greatest: what all chains of a question lack tells nothing of which is right, nor whether one is.
        """
        chains, collection = self._candidates.chains, self._candidates.collection
        distances = [[step.distance for step in self.steps(chain)] for chain in chains]
        parts = {"nearness": NEARNESS_FACTOR * _below_greatest(_total(distances))}
        if collection is not None:
            pairs = [[pair for _, pair in self.entities(chain)] for chain in chains]
            # The entity of a link counts in both its steps. One that the collection does not know counts as in one.
            counts = [[sum(log_count(collection, name) for name in pair) for pair in of_chain] for of_chain in pairs]
            parts["collection"] = RARITY_FACTOR * _below_greatest(_total(counts))
        return parts

    def steps(self, chain: Candidate) -> list[Closeness]:
        """Return for each passage, where both its entities are named, how closely the two stand together."""
        return [self.pair(passage, one, two) for passage, (one, two) in self.entities(chain)]

    def entities(self, chain: Candidate) -> list[tuple[int, tuple[str, str]]]:
        """Return the passages of a chain and the two entities of each, where both are named."""
        steps = self.way(chain)
        return [(passage, (one, two)) for passage, one, two in steps if one is not None and two is not None]

    def way(self, chain: Candidate) -> Iterator[tuple[int, str | None, str | None]]:
        """Yield the passages of a chain and the two entities of each, None for one that is not named."""
        entities = [self.asked_in(chain.passages[0]), *(edge.key for edge in chain.edges), self._last]
        return zip(chain.passages, entities[:-1], entities[1:], strict=True)

    def asked_in(self, passage: int) -> str | None:
        """Return the entity of the question that a passage mentions, the first of several."""
        view = self._candidates.views[passage]
        return next((entity for entity in self._first if view.mentions(entity)), None)

    def evidence(self, passage: int, entity: str) -> float:
        """Return how closely an entity stands together with the one of the question or answer that a passage holds."""
        view = self._candidates.views[passage]
        ends = (*self._first, self._last)
        pairs = [self.pair(passage, end, entity) for end in ends if end is not None and view.mentions(end)]
        return max((pair.together + MENTION_FACTOR * pair.mentions for pair in pairs), default=0.0)

    def pair(self, passage: int, one: str, two: str) -> Closeness:
        """Return how closely two entities stand together in a passage."""
        if (passage, one, two) not in self._pairs:
            self._pairs[passage, one, two] = closeness(self._candidates.views[passage], one, two)
        return self._pairs[passage, one, two]


def weigh_beside(candidates: Candidates) -> dict[str, Array]:
    """Return what `EntityPairs.beside` does; nothing where the data does not name the entities."""
    return EntityPairs(candidates).beside() if candidates.names_entities else {}


def _total(costs: Sequence[Sequence[float]]) -> list[float]:
    """Add up what the steps of each chain cost; one whose entities are not both named costs as the dearest of all."""
    most = max(map(len, costs), default=0)
    dearest = max((cost for of_chain in costs for cost in of_chain), default=0.0)
    return [sum(of_chain) + (most - len(of_chain)) * dearest for of_chain in costs]


def _below_greatest(costs: Sequence[float]) -> Array:
    """Return how much more each costs than the cheapest, as what tells against it."""
    below: Array = min(costs) - np.array(costs)
    return below


def log_count(collection: Statistics | None, entity: str | None) -> float:
    """Return the logarithm of how many passages of a collection mention an entity; 0 where nobody knows."""
    return 0.0 if collection is None or entity is None else log(max(collection.count_entity(entity), 1))


def closeness(view: PassageView, one: str, two: str) -> Closeness:
    """Return how closely two entities stand together.

    A mention that overlaps with one of the other entity, as of a drug within the name of a gene, shares its sentence
    with that name alone, and does not count.
    """
    ones, twos = _Mentions(view.mentions(one)), _Mentions(view.mentions(two))
    shared = _sentences(view, ones.apart_from(twos)) & _sentences(view, twos.apart_from(ones))
    return Closeness(
        together=log(len(shared) + _NO_SENTENCE),
        mentions=log(max(len(ones.spans), 1) * max(len(twos.spans), 1)),
        distance=log(1 + _words_between(view, ones, twos)),
    )


class _Mentions:
    """The mentions of an entity, sorted: a text may have 10,000, too many to compare each with each of another."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self._starts = sorted(start for start, _ in spans)
        self._ends = sorted(end for _, end in spans)

    def apart_from(self, others: "_Mentions") -> list[Span]:
        """Return the mentions that overlap with none of another entity."""
        return [span for span in self.spans if not others._overlap(span)]

    def _overlap(self, span: Span) -> bool:
        """Return whether one of them overlaps with a span: begins before its end, and does not end before its start."""
        start, end = span
        return bisect_left(self._starts, end) > bisect_right(self._ends, start)

    def nearest(self, span: Span) -> Iterable[Span]:
        """Yield what lies between a span and the nearest of them before it, and after it."""
        start, end = span
        if before := bisect_right(self._ends, start):
            yield self._ends[before - 1], start
        if (after := bisect_left(self._starts, end)) < len(self._starts):
            yield end, self._starts[after]


def _sentences(view: PassageView, spans: Iterable[Span]) -> set[int]:
    return {view.sentence_number(start) for start, _ in spans}


def _words_between(view: PassageView, ones: _Mentions, twos: _Mentions) -> int:
    """Return the words from one entity to the other where they are nearest; where they are nowhere apart, all words."""
    places = view.text.places
    between = (gap for span in ones.spans for gap in twos.nearest(span))
    numbers = (bisect_left(places, (end,)) - bisect_left(places, (start,)) for start, end in between)
    return min(numbers, default=len(places))


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
