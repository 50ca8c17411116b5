"""Cheap evidence: what words, titles, answers and links tell of every set of passages before any network reads.

Each kind of evidence is one number a candidate; FEATURES names them in order, and one set of weights is for all of
them: a single passage, a chain, passages side by side, and two lines of evidence. How many passages are needed, and in
which shape, follows from the same numbers: a passage has to earn its place by what it adds.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import fsum
from typing import NamedTuple

import numpy as np
import orjson

from rechain.schema import Question
from rechain.system.tensors import Array
from rechain.text.answers import wrapping
from rechain.text.answers.matcher import Holdings
from rechain.text.candidates import Candidate, Candidates
from rechain.text.evidence.pairs import NEVER_TOGETHER, EntityPairs
from rechain.text.languages import idf, naming_words, phrase_idf, rarities, stem
from rechain.text.linking import Edge, LinkGraph
from rechain.text.passage_views import PassageView, SentenceOverlaps
from rechain.text.words import Text, phrase

_SCALE = 0.1
"""brings sums of rarities, of 5 to 60, to the size of the other numbers, as networks like it"""
_CONTENT = 1.0
"""rarity of a word that says something: function words have less"""
_MOST_SENTENCES = 200
"""of a passage that are compared; a longer one was not cut into parts"""
_MOST_CLAIMS = 20
"""of an answer that are looked for; one with more is a document"""
_ASKED_LINK = 0.5
"""how much a link loses if the question names it: two passages about what was asked need not lead to one another"""
_AT_ONCE = 1000
"""sets that are described together, with an array of all passages for each"""
_DECIMALS = 9
"""to which evidence is rounded: its last bits depend on how many sets are added up at once"""
_WEAKEST = 0.01
"""strength that a link keeps whatever the question names"""

LINKS = ("links", "leads to title", "comes from title", "linking sentences", "answer links", "question names link")
"""what a link has, summed over a candidate's links; its strength comes first"""
_STRENGTH, _LEADS, _COMES, _NAMED = 0, 1, 2, 5
PAIRS = ("pairs together", "weakest pair", "mentions", "pairs near", "pairs rare")
"""of the entities of each step, where the data names them: words and links tell nothing more there"""
_PAIR_SCALE = 2.0
"""brings logarithms of counts to the size of what a network says of such chains (docs/measured/default_model.md)"""
_PLAIN = (
    "question words",
    "names",
    "least added",
    "added",
    "said",
    "least said alone",
    "said by the best alone",
    "said in sentences",
    "least said by a sentence",
    "answer",
    "answer of tail",
    "no tail",
    "others hold answer",
    "answering sentence",
    "tail words",
    "tail sentence",
    "tail named",
    "tail title words",
    "best sentences",
    "named",
    "title words",
    "other sense",
    "least shown",
    *LINKS,
    "weakest link",
    "apart",
    "one",
    "three",
    "four",
    "two by title",
    "two apart",
    "two apart: judgement",
    "two apart: compares",
    "two apart: chooses",
    "two apart: answer in question",
    "two lines",
    "two lines: judgement",
    "two lines: compares",
    "two lines: chooses",
    "two lines: answer in question",
    "one: answer in question",
    "one: judgement",
    "named passages",
    "reached",
    "unreached",
    "two named",
    "two named: compared",
    "two lines reached: compared",
    *PAIRS,
)
_UNTITLED = (
    "one",
    "three",
    "four",
    "links",
    "weakest link",
    "apart",
    "question words",
    "names",
    "added",
    "least added",
    "said",
    "least said alone",
    "said in sentences",
    "least said by a sentence",
    "best sentences",
    "tail sentence",
    "answer",
    "linking sentences",
    "question names link",
)
"""what weighs differently where the question names no passage's title, as in handbooks and manuals"""
FEATURES = (*_PLAIN, *(f"no title named: {name}" for name in _UNTITLED))
_UNTITLED_PLACES = [_PLAIN.index(name) for name in _UNTITLED]
NOTHING = "none of these"
"""stands for one candidate more: that no candidate is right, as where an answer is false"""


@cache
def weights() -> Mapping[str, float]:
    """Return what each kind of evidence weighs before a network has learned more (benchmarks/evidence.py fits them)."""
    numbers: dict[str, float] = orjson.loads(files("rechain").joinpath("data/evidence.json").read_bytes())
    return numbers


def prior() -> Array:
    """Return these weights in the order of FEATURES."""
    return np.array([weights().get(name, 0.0) for name in FEATURES])


class Comparison(NamedTuple):
    """What tells whether a question compares things: each is 0 or 1."""

    judgement: float
    """whether the answer judges, "yes" or "the same" say"""
    compares: float
    chooses: float
    answer_in_question: float

    @classmethod
    def of(cls, query: Text, answer: str, holdings: Holdings) -> "Comparison":
        """Return what tells of a question."""
        words = phrase(answer)
        return cls(
            float(holdings.is_judgement),
            float(not wrapping.words("comparisons").isdisjoint(query.terms)),
            float(not wrapping.words("choices").isdisjoint(query.words) or "还 是" in query.joined),
            float(bool(words) and words in query.joined),
        )


class _Held(NamedTuple):
    """Which words each passage holds, and what each word counts."""

    holds: Array  # [passages, words], 0 or 1
    counts: Array  # [words]

    def by(self, chosen: Array, members: Array) -> tuple[Array, Array]:
        """Return what sets of passages hold together, [sets], and what each member alone adds, [sets, members]."""
        times = chosen @ self.holds  # [sets, words]
        alone = ((times == 1) * self.counts) @ self.holds.T  # [sets, passages]
        return (times > 0) @ self.counts, np.take_along_axis(alone, members, 1)


class Trees(NamedTuple):
    """How the members of sets of passages are linked: each to at most one other, to which it leads."""

    parent: Array  # the place of the member to which each leads, [sets, members]; -1: it leads nowhere
    tail: Array  # the place of the member at which the answer is, [sets]
    links: Array  # what the links have that lead away, [sets, members, LINKS]

    @property
    def is_linked(self) -> Array:
        """Whether each member leads to another, [sets, members]."""
        linked: Array = self.parent >= 0
        return linked


class Pool:
    """What the passages of a question hold of question and answer, as arrays over passages."""

    def __init__(
        self, question: Question, views: Sequence[PassageView], holdings: Holdings, places: Sequence[int] | None = None
    ) -> None:
        """Take the passages of a question, or those at some places; members of sets are numbers in the pool."""
        self._places = range(len(views)) if places is None else places
        self._numbers = {place: number for number, place in enumerate(self._places)}
        views = [views[place] for place in self._places]
        query = Text(question.question)
        self.size = len(views)
        self._rarities = rarities(query)
        self._asked = self._read_asked(query, views)
        naming = naming_words(query)
        self._names = self._asked.counts * [word in naming for word in sorted(self._rarities)]
        titles = np.array([self._title(view, query) for view in views]).reshape(-1, 3)
        self._named, self._titles, self._other_sense = titles.T
        self._sentences = [SentenceOverlaps(view, self._rarities) for view in views]
        self._best_sentence = _SCALE * np.array([max(one.overlaps, default=0.0) for one in self._sentences])
        self._claims = np.zeros((len(holdings.claims[:_MOST_CLAIMS]), self.size))  # how much each passage holds of each
        for row, claim in zip(self._claims, holdings.claims, strict=False):
            for tail in claim.holdings.keys() & self._numbers.keys():
                row[self._numbers[tail]] = claim.holdings[tail].strength
        self._tails: Array = self._claims.mean(0) if len(self._claims) else np.zeros(self.size)
        self._answering = np.zeros(self.size)
        for tail in self._numbers.keys() & set(holdings.tails):
            self._answering[self._numbers[tail]] = _SCALE * self._best_answering(holdings, tail)
        said = _Said(set(self._rarities), self._rarities, holdings, views)
        self._said, self._said_in_sentences = said.anywhere, said.in_sentences
        self._answer_words = holdings.words
        self._comparison = Comparison.of(query, question.answer, holdings)
        self.roots = 10 * self._tails + self._answering + 0.1 * self._best_sentence - 0.05 * self._named
        """how likely each is the last of a set; the answer decides, where it is held alike what the question says"""
        self.edges: dict[tuple[int, int], Edge] = {}

    def _read_asked(self, query: Text, views: Sequence[PassageView]) -> _Held:
        words = sorted(self._rarities)
        holds = np.array([[word in view.terms for word in words] for view in views], dtype=float)
        return _Held(holds.reshape(len(views), -1), _SCALE * np.array([self._rarities[word] for word in words]))

    def _title(self, view: PassageView, query: Text) -> tuple[float, float, float]:
        """Return how rare a title is that the question names, how much of it else, and whether it has another sense.

        It has if its bracketed suffix, "(pinball)" say, names something that the question does not.
        """
        words = {word: idf(word) for word in view.title.words}
        rarity = _SCALE * phrase_idf(view.title.words)
        held = fsum(words[word] for word in self._rarities.keys() & words.keys())
        suffix = set(Text(view.passage.title).words) - words.keys()
        return (
            rarity if view.title.words and view.title.joined in query.joined else 0.0,
            rarity * held / fsum(words.values()) if held else 0.0,
            float(bool(suffix) and suffix.isdisjoint(self._rarities)),
        )

    def _best_answering(self, holdings: Holdings, tail: int) -> float:
        """Return how much of the question the sentence holds that holds the answer."""
        sentences, holding = self._sentences[self._numbers[tail]], holdings.best(tail)
        best = sentences.best_with(holdings.phrases) if holdings.phrases else 0.0
        return max(best, sentences.overlap_at(holding.span)) if holding and holding.span else best

    # --- Links --------------------------------------------------------------------------------------------------------

    def link(self, graph: LinkGraph) -> None:
        """Take the strongest link from each passage to each other, if there is one: for a pool of few passages."""
        inside = frozenset(self._places)
        self._links = np.zeros((self.size, self.size, len(LINKS)))
        for after in self._places:
            for edge in graph.edges(after, inside):
                ends = self._numbers[edge.before], self._numbers[after]
                if ends not in self.edges:  # entities that the data names may link two passages several times
                    self.edges[ends] = edge
                    self._links[ends] = self.describe_link(edge)
        weakened = self._links[..., _STRENGTH] - _ASKED_LINK * np.minimum(self._links[..., _NAMED], 1.0)
        self._strengths = np.maximum(weakened, _WEAKEST) * (self._links[..., _STRENGTH] > 0)

    def describe_link(self, edge: Edge) -> tuple[float, ...]:
        """Return what LINKS names of a link."""
        words = [] if edge.is_given else edge.name.split()
        ends = zip((edge.before, edge.after), edge.forms, strict=True)
        sentences = fsum(self._sentences[self._numbers[place]].best_with((form,)) for place, form in ends)
        return (
            _SCALE * edge.weight,
            float(edge.leads_to_title),
            float(edge.comes_from_title),
            _SCALE * sentences,
            float(not self._answer_words.isdisjoint(words)),
            _SCALE * fsum(self._rarities.get(word, 0.0) for word in words),
        )

    def trees(self, members: Array) -> Trees:
        """Return the strongest links that join the members of sets to what holds the answer, [sets, members].

        From the tail on, the member with the strongest link to those that are joined already comes next. Where none
        has a link, another line begins, at the member that is the likeliest last.
        """
        sets, size = members.shape
        rows, places = np.arange(sets), np.arange(size)
        roots = self.roots[members]
        tail = roots.argmax(1)
        joined = places == tail[:, None]
        strengths = self._strengths[members[:, :, None], members[:, None, :]]  # from each to each
        without = 1e-6 * (roots - roots.min() + 1)  # less than any link
        parent = np.full((sets, size), -1)
        for _ in range(size - 1):
            is_open = ~joined[:, :, None] & joined[:, None, :]
            choice = np.where(is_open, np.where(strengths > 0, strengths, without[:, :, None]), -1.0)
            child, towards = np.divmod(choice.reshape(sets, -1).argmax(1), size)
            is_link = strengths[rows, child, towards] > 0
            parent[rows, child] = np.where(is_link, towards, -1)
            joined[rows, child] = True
        ends = np.take_along_axis(members, parent.clip(0), 1)
        return Trees(parent, tail, self._links[members, ends] * (parent >= 0)[..., None])

    # --- Description --------------------------------------------------------------------------------------------------

    def describe(self, members: Array, trees: Trees) -> Array:
        """Return what tells for or against sets of passages of one size, [sets, FEATURES]; pairs are left at 0."""
        sets, size = members.shape
        rows = np.arange(sets)
        chosen = np.zeros((sets, self.size))
        chosen[rows[:, None], members] = 1
        tail = members[rows, trees.tail]
        others = chosen.copy()
        others[rows, tail] = 0
        asked, adds = self._asked.by(chosen, members)
        said, said_alone = self._said.by(chosen, members)
        in_sentences, in_sentences_alone = self._said_in_sentences.by(chosen, members)
        is_linked, links = trees.is_linked, trees.links.sum(1)  # [sets, members], [sets, LINKS]
        lines = size - is_linked.sum(1)
        is_named, holds_answer = self._named[members] > 0, self._tails[members] > 0
        is_reached = _is_reached(trees) & ~is_named
        leads = _count_children(trees.parent)
        is_explained = is_named | is_reached | (holds_answer & (is_linked | (leads > 0)))
        comparison = self._comparison
        is_compared = max(comparison[:3])
        two_apart = (size == 2) * (lines == 2)
        # both lines are a passage that leads to another
        two_lines = (size == 4) * (lines == 2) * (np.where(is_linked, leads, 0).max(1) == 0) * (leads.max(1) == 1)
        two_named = (size == 2) * (is_named.sum(1) == 2)
        columns = [
            asked,
            ((chosen @ self._asked.holds) > 0) @ self._names,
            adds.min(1),
            adds.sum(1),
            said,
            said_alone.min(1),
            (chosen * (self._said.holds @ self._said.counts)).max(1),
            in_sentences,
            in_sentences_alone.min(1),
            self._claims[:, members].max(2).mean(0) if len(self._claims) else 0.0,
            self._tails[tail],
            self._tails[tail] == 0,
            others @ (self._tails > 0),
            self._answering[tail],
            self._asked.holds[tail] @ self._asked.counts,
            self._best_sentence[tail],
            self._named[tail],
            self._titles[tail],
            others @ self._best_sentence,
            others @ self._named,
            others @ self._titles,
            chosen @ self._other_sense,
            (adds + self._named[members] + holds_answer).min(1),
            *links.T,
            _least(trees.links[..., _STRENGTH], is_linked),
            lines - 1,
            size == 1,
            size == 3,
            size == 4,
            (size == 2) * (links[:, _LEADS] + links[:, _COMES] > 0),
            two_apart,
            *(two_apart * value for value in comparison),
            two_lines,
            *(two_lines * value for value in comparison),
            (size == 1) * comparison.answer_in_question,
            (size == 1) * comparison.judgement,
            is_named.sum(1),
            is_reached.sum(1),
            size - is_explained.sum(1),
            two_named,
            two_named * is_compared,
            (size == 4) * (is_named.sum(1) == 2) * (is_reached.sum(1) == 2) * is_compared,
            *np.zeros(len(PAIRS)),
        ]
        plain = np.empty((sets, len(_PLAIN)))
        for number, column in enumerate(columns):
            plain[:, number] = column
        names_no_title = float(self._named.max(initial=0.0) == 0)
        return np.concatenate([plain, names_no_title * plain[:, _UNTITLED_PLACES]], 1).round(_DECIMALS)


def _count_children(parent: Array) -> Array:
    """Return how many members lead to each, [sets, members]."""
    places = np.arange(parent.shape[1])
    children: Array = (parent[:, None, :] == places[:, None]).sum(2)
    return children


def _is_reached(trees: Trees) -> Array:
    """Return whether a link of each member is its title, which the other passage mentions, [sets, members]."""
    places = np.arange(trees.parent.shape[1])
    is_towards = trees.parent[:, None, :] == places[:, None]  # [sets, towards, from]
    leads = (is_towards * trees.links[:, None, :, _LEADS]).sum(2)
    reached: Array = (leads + trees.links[..., _COMES]) > 0
    return reached


def _least(values: Array, counts: Array) -> Array:
    """Return the least of those values that count in each row; 0 where none does."""
    least = np.where(counts, values, np.inf).min(1)
    return np.where(np.isfinite(least), least, 0.0)


class _Said:
    """The words of question and answer that tell a question's passages apart, and which of them each passage says.

    Rarity is counted among the passages of the question, so that it needs no table of any language.
    """

    def __init__(
        self, asked: set[str], rarity: Mapping[str, float], holdings: Holdings, views: Sequence[PassageView]
    ) -> None:
        question = {stem(word) for word in asked if rarity[word] >= _CONTENT}
        answer = {stem(word) for word in holdings.words} - question
        held = [frozenset(map(stem, view.terms)) & (question | answer) for view in views]
        words = sorted(frozenset().union(*held))
        holds = np.array([[word in some for word in words] for some in held], dtype=float).reshape(len(views), -1)
        rarities_here = np.log((len(views) + 1) / holds.sum(0))
        counts = rarities_here / (rarities_here.sum() or 1.0)
        best = [
            _best_sentence(view, words, counts) if some else np.zeros(len(words))
            for view, some in zip(views, held, strict=True)
        ]
        self.anywhere = _Held(holds, counts)
        self.in_sentences = _Held(np.array(best).reshape(len(views), -1), counts)


def _best_sentence(view: PassageView, words: Sequence[str], counts: Array) -> Array:
    """Return which of some words the sentence of a passage holds that holds most of them."""
    held = [frozenset(map(stem, text.terms)) for text in view.sentence_texts[:_MOST_SENTENCES]] or [frozenset()]
    rows = np.array([[word in some for word in words] for some in held], dtype=float).reshape(len(held), -1)
    best: Array = rows[np.argmax(rows @ counts)]
    return best


def weigh(candidates: Candidates) -> Array:
    """Return the evidence for every candidate, [candidates, FEATURES]; of pairs alone where the data names entities."""
    table = np.zeros((len(candidates.chains), len(FEATURES)))
    if candidates.names_entities:
        table[:, _PLAIN.index(PAIRS[0]) : len(_PLAIN)] = _pair_evidence(candidates)
        return table
    pool = Pool(candidates.question, candidates.views, candidates.holdings)
    sizes = np.array([len(chain.passages) for chain in candidates.chains])
    for size in sorted(set(sizes.tolist())):
        of_size = np.flatnonzero(sizes == size)
        for numbers in np.split(of_size, range(_AT_ONCE, len(of_size), _AT_ONCE)):
            chains = [candidates.chains[number] for number in numbers.tolist()]
            members = np.array([chain.passages for chain in chains])
            table[numbers] = pool.describe(members, _given_trees(pool, chains))
    return table


def _given_trees(pool: Pool, chains: Sequence[Candidate]) -> Trees:
    """Return the trees of candidates of one size that have their links already."""
    size = len(chains[0].passages)
    parent, links = np.full((len(chains), size), -1), np.zeros((len(chains), size, len(LINKS)))
    known: dict[Edge, tuple[float, ...]] = {}  # many chains share a link
    for row, chain in enumerate(chains):
        for (before, after), edge in zip(chain.between, chain.edges, strict=True):
            if edge not in known:
                known[edge] = pool.describe_link(edge)
            parent[row, before], links[row, before] = after, known[edge]
    members = np.array([chain.passages for chain in chains])
    return Trees(parent, np.where(parent < 0, pool.roots[members], -np.inf).argmax(1), links)


def _pair_evidence(candidates: Candidates) -> Array:
    """Return what tells for the entities of each candidate's steps, [candidates, PAIRS]."""
    pairs = EntityPairs(candidates)
    steps = [pairs.steps(chain) for chain in candidates.chains]
    columns = [
        [sum(step.together for step in of_chain) for of_chain in steps],
        [min((step.together for step in of_chain), default=0.0) for of_chain in steps],
        [sum(step.mentions for step in of_chain) for of_chain in steps],
        pairs.nearness(),
        pairs.rarity(),
    ]
    return _PAIR_SCALE * np.array(columns).T


def nothing(candidates: Candidates) -> float:
    """Return the score of what may be right when no candidate is."""
    if candidates.names_entities:
        # pairs that never share a sentence, in three passages
        return 3 * _PAIR_SCALE * NEVER_TOGETHER * weights()["pairs together"]
    return weights()[NOTHING]
