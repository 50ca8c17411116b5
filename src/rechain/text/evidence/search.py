"""The search for evidence of any shape: which sets of passages may lead to the answer, best first by cheap evidence.

Sets grow by one passage at a time, and of each size the best are kept: single passages, chains, passages side by side,
and two lines of evidence come from the same search, and their shape from the links that they have. Where the data names
the entities, evidence is a chain of them, and `rechain.text.candidates` finds it.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from math import fsum
from typing import NamedTuple

import numpy as np

from rechain.errors import QuestionError
from rechain.schema import UNORDERED, Question, Shape
from rechain.system.tensors import Array
from rechain.text.answers.matcher import AnswerMatcher, Holdings, Meaning
from rechain.text.candidates import Candidate, Candidates, CandidateSettings, find_chains, find_links
from rechain.text.collection import Statistics
from rechain.text.evidence.features import Pool, prior, weigh
from rechain.text.languages import rarities
from rechain.text.linking import LinkGraph
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

MOST_PASSAGES = 4
"""in a set, where nobody says how many it has"""
_GIVEN_HOPS = (2, 3, 4)
"""passages in a chain of entities that the data names, where nobody says how many it has"""
_BEAM = 40
"""sets of each size that grow"""
_KEPT = 64
"""sets of each size that are kept"""
_POOL, _SEEDS = 64, 32
"""passages among which sets are sought, and of them those that tell most by themselves; others are linked to these"""
_MOST_LINKS = 200
"""of a passage that are followed, the strongest"""
_WEAKER = 1.0
"""links may weigh less than in chains of a given length, since weights choose among all sets and not links alone"""
_MOST_UNORDERED = 8
"""sets of passages without an order that people are shown"""
_TAIL = 20.0
"""what holding the answer counts beside the rarity of words when passages are chosen"""


def find_evidence(
    question: Question,
    settings: CandidateSettings | None = None,
    meaning: Meaning | None = None,
    collection: Statistics | None = None,
) -> Candidates:
    """Build all that a question's evidence may be, with what tells for each; QuestionError says why there is none.

    `meaning` finds passages that say the answer in other words.
    """
    settings = settings or CandidateSettings()
    if settings.link_types or question.link_types or question.answer_entity is not None:
        return _given_chains(question, settings, collection)
    views = [PassageView(passage) for passage in question.passages]
    holdings = AnswerMatcher(question).hold(views, meaning)
    hops = settings.hops or question.hops
    if hops is not None and len(views) < hops:
        raise QuestionError("too_few_passages", f"{len(views)} passages cannot make a chain of {hops}")
    search = _Search(question, views, holdings, settings, collection)
    if holdings.is_judgement and not holdings.tails and search.named < 2:  # those that it names may be compared
        raise QuestionError("no_tail", "no tail: no passage holds what the question says and the answer judges")
    sets = search.sets(range(1, MOST_PASSAGES + 1) if hops is None else (hops,))
    is_cut = len(sets) > settings.limit
    chains = [search.candidate(one) for one in sets[: settings.limit]]
    evidence = np.array([one.evidence for one in sets[: settings.limit]])
    found = Candidates(question, views, holdings.tails, chains, is_cut, settings, holdings, collection, evidence)
    return replace(found, evidence=weigh(found)) if found.names_entities else found  # pairs of them tell more


def worth_showing(found: Candidates) -> Candidates:
    """Return the candidates that people should look at: those that lead to the answer, and without a stray passage.

    The others are there for the weights to choose among. A passage of a set without an order is stray if it has no
    link, no part of the answer, and a title that the question does not name.
    """
    asked, tails = Text(found.question.question).joined, frozenset(found.tails)
    named = {number for number, view in enumerate(found.views) if _first_named(asked, view) < len(asked)}

    def is_worth(one: Candidate) -> bool:
        if one.shape not in UNORDERED:
            return not tails or one.passages[-1] in tails
        linked = {one.passages[place] for ends in one.between for place in ends}
        return linked | named | tails >= {*one.passages}

    kept = [number for number, one in enumerate(found.chains) if is_worth(one)]
    unordered = [number for number in kept if found.chains[number].shape in UNORDERED]
    kept = sorted({*kept} - {*unordered[_MOST_UNORDERED:]})
    evidence = None if found.evidence is None else found.evidence[kept]
    return replace(found, chains=[found.chains[number] for number in kept], evidence=evidence)


def _given_chains(question: Question, settings: CandidateSettings, collection: Statistics | None) -> Candidates:
    """Return the chains of entities that the data names, of any length where none is given."""
    hops = settings.hops or question.hops
    types = question.link_types if settings.link_types is None else settings.link_types
    lengths = (hops,) if hops else (len(types) + 1,) if types else _GIVEN_HOPS
    found = find_chains(question, lengths, settings, collection)
    return replace(found, evidence=weigh(found))


class _Set(NamedTuple):
    """A set of passages: their numbers in the pool, how they are linked, and what tells for them."""

    members: Sequence[int]
    parent: Sequence[int]
    """the place of the member to which each leads; -1: it leads nowhere"""
    tail: int
    """the place of the member at which the answer is"""
    evidence: Array
    value: float
    """the evidence by its weights"""


class _Search:
    """Seeks sets among the passages of a question that tell most of it."""

    def __init__(
        self,
        question: Question,
        views: Sequence[PassageView],
        holdings: Holdings,
        settings: CandidateSettings,
        collection: Statistics | None,
    ) -> None:
        weaker = replace(settings, min_weight=settings.min_weight - _WEAKER)
        graph = find_links(question, weaker, collection, views)
        self._places = _choose(question, views, holdings, graph)
        """the passages in the pool, by their places among all of them"""
        asked = Text(question.question).joined
        self._titles = [_first_named(asked, views[place]) for place in self._places]
        self.named = len(set(self._titles) - {len(asked)})
        """how many different titles the question names"""
        self._pool = Pool(question, views, holdings, self._places)
        self._pool.link(graph)

    def sets(self, sizes: Sequence[int]) -> list[_Set]:
        """Return the best sets of some sizes, the best first."""
        pool, weights, found = self._pool, prior(), list[_Set]()
        members = np.arange(pool.size)[:, None]
        for size in range(1, min(max(sizes), pool.size) + 1):
            if size > 1:
                members = _grown(members[:_BEAM], pool.size)
            if size not in sizes and len(members) <= _BEAM:
                continue  # all of them grow, and none is wanted itself
            trees = pool.trees(members)
            evidence = pool.describe(members, trees)
            values = evidence @ weights
            order = np.argsort(-values, kind="stable")[:_KEPT]
            members = members[order]
            if size in sizes:
                rows = (members.tolist(), trees.parent[order].tolist(), trees.tail[order].tolist())
                found += map(_Set, *rows, evidence[order], values[order].tolist())
        return sorted(found, key=lambda one: -one.value)

    def candidate(self, one: _Set) -> Candidate:
        """Return a set as a candidate: its passages in an order in which each leads on, its links and its shape."""
        order = _leading_order(one.parent, one.tail, [self._titles[number] for number in one.members])
        places = {member: place for place, member in enumerate(order)}
        joined = sorted((places[member], places[towards]) for member, towards in enumerate(one.parent) if towards >= 0)
        numbers = [one.members[member] for member in order]
        edges = tuple(self._pool.edges[numbers[before], numbers[after]] for before, after in joined)
        is_chain = joined == list(pairwise(range(len(order))))
        shape: Shape = "single" if len(order) == 1 else "chain" if is_chain else "graph" if edges else "parallel"
        passages = tuple(self._places[number] for number in numbers)
        weight = fsum(edge.weight for edge in edges)
        return Candidate(passages, edges, weight, shape, tuple(joined) if shape == "graph" else None)


def _grown(members: Array, size: int) -> Array:
    """Return all sets that have one member more, each once, [sets, members]."""
    grown = np.column_stack([np.repeat(members, size, axis=0), np.tile(np.arange(size), len(members))])
    grown.sort(axis=1)
    is_new = (grown[:, 1:] != grown[:, :-1]).all(1)
    return np.unique(grown[is_new], axis=0)


def _leading_order(parent: Sequence[int], tail: int, titles: Sequence[int]) -> list[int]:
    """Return the members so that each comes before the one it leads to; the tail and what leads to it come last.

    Passages that nothing parts come as the question names them.
    """
    if max(parent) < 0:
        return sorted(range(len(parent)), key=titles.__getitem__)
    children: dict[int, list[int]] = {}
    for member, towards in enumerate(parent):
        children.setdefault(towards, []).append(member)

    def line(member: int) -> list[int]:
        before = sorted(children.get(member, ()), key=titles.__getitem__)
        return [*chain.from_iterable(map(line, before)), member]

    lines = sorted(children[-1], key=lambda root: (root == tail, titles[root]))
    return [*chain.from_iterable(map(line, lines))]


def _first_named(asked: str, view: PassageView) -> int:
    """Return where the words of a question name a passage's title; after their end where they do not."""
    place = asked.find(view.title.joined) if view.title.words else -1
    return len(asked) if place < 0 else place


def _choose(question: Question, views: Sequence[PassageView], holdings: Holdings, graph: LinkGraph) -> list[int]:
    """Return the passages among which sets are sought: all, or those that tell most and what is linked to them."""
    if len(views) <= _POOL:
        return list(range(len(views)))
    words, tails, asked = rarities(Text(question.question)), frozenset(holdings.tails), Text(question.question).joined
    says = [fsum(words[word] for word in words.keys() & view.terms) for view in views]
    is_named = [_first_named(asked, view) < len(asked) for view in views]
    tells = [value + _TAIL * (number in tails) for number, value in enumerate(says)]
    # Half of them by the question alone: many passages may hold the answer, and the first of a chain holds none.
    by_answer = sorted(range(len(views)), key=lambda number: -tells[number])
    by_question = sorted(range(len(views)), key=lambda number: (not is_named[number], -says[number]))
    chosen = dict.fromkeys([*by_question[: _SEEDS // 2], *by_answer])
    chosen = dict.fromkeys(islice(chosen, _SEEDS))
    linked: dict[int, float] = {}
    for seed in chosen:
        for edge in islice(graph.edges(seed), _MOST_LINKS):
            value = edge.weight + tells[edge.before]
            linked[edge.before] = max(linked.get(edge.before, 0.0), value)
    others = sorted(linked.keys() - chosen.keys(), key=lambda number: (-linked[number], number))
    return sorted(islice(dict.fromkeys([*chosen, *others, *by_answer]), _POOL))
