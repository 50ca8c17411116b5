"""The steps of candidate chains: what questions over one collection have in common.

A step is a passage and the two entities by which a chain enters and leaves it: the claim that this passage relates
these two. Other questions may offer the same step, with other ends and other passages around it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from math import log
from typing import NamedTuple

import numpy as np

from rechain.schema import Passage
from rechain.scoring.beliefs import Offers
from rechain.system.tensors import Array
from rechain.text.candidates import Candidates
from rechain.text.evidence.pairs import NEVER_TOGETHER, EntityPairs, log_count

_BYTES = 8
"""of a step's name: among a hundred million steps, two share one of 64 bits with a probability of 1 in 4,000"""


def find_steps(candidates: Candidates) -> list[list[str]]:
    """Return the names of the steps of every chain; none where the data does not name the entities.

    Elsewhere a step says nothing that another question could use: which passage is right depends on what is asked, and
    links are found by the words that passages share.
    """
    if not candidates.names_entities:
        return [[] for _ in candidates.chains]
    pairs = EntityPairs(candidates)
    passages = [view.passage for view in candidates.views]
    known: dict[tuple[int, tuple[str, str]], str] = {}
    for step in (step for chain in candidates.chains for step in pairs.entities(chain)):
        if step not in known:
            known[step] = step_name(passages[step[0]], step[1])
    return [[known[step] for step in pairs.entities(chain)] for chain in candidates.chains]


def step_name(passage: Passage, entities: tuple[str, str]) -> str:
    """Return what names a step: the passage by what it says, as ids may be positions in a question, and two entities.

    These are in no order: a chain may go through a passage either way.
    """
    parts = (text.encode("utf-8", "replace") for text in (passage.title, passage.text, *sorted(entities)))
    framed = b"".join(b"%d:%s" % (len(part), part) for part in parts)
    return blake2b(framed, digest_size=_BYTES).hexdigest()


END = -1
"""stands for an entity that links nothing: an end of the chain, or none"""
MAX_STEPS = 1024
"""of a question, those of C and then those whose entities are closest: each costs a row of every batch"""
_CERTAIN = -700.0
"""the log-probability that no chain of C is right: where it is learnt from, one always is"""


class StepRow(NamedTuple):
    """A step as the arrays have it."""

    passage: int
    enter: int
    """the number of the entity by which a chain comes here; END in a head"""
    leave: int
    """the number of the entity by which it goes on; END in a tail"""
    roles: int
    """the places in a chain that it may have, as bits"""
    features: tuple[float, ...]
    """of the two entities: sentences that they share, mentions, words between them, passages of the collection that
    hold the first, and the second; all as logarithms"""


_Key = tuple[int, str | None, str | None]
"""passage, and the names of the two entities"""


class QuestionSteps:
    """All steps of a question, and which of them its chains take."""

    def __init__(self, candidates: Candidates, numbers: Mapping[str, int], holders: Sequence[Iterable[int]]) -> None:
        """Take C, the numbers of the linking entities that the data names, and which passages hold each of these."""
        self._candidates = candidates
        self._pairs = EntityPairs(candidates)
        self._numbers = numbers
        self._asked = list(map(self._pairs.asked_in, range(len(candidates.views))))
        of_chains = [list(self._pairs.way(chain)) for chain in candidates.chains]
        roles: dict[_Key, int] = {}
        for role, key in (step for steps in of_chains for step in enumerate(steps)):
            roles[key] = roles.get(key, 0) | 1 << role
        others = dict(self._others(holders))
        kept = sorted((key for key in others if key not in roles), key=self._rank)[: max(MAX_STEPS - len(roles), 0)]
        every = sorted((*roles, *kept), key=lambda key: (key[0], key[1] or "", key[2] or ""))
        self._roles = {key: roles.get(key, 0) | others.get(key, 0) for key in every}
        places = {key: place for place, key in enumerate(every)}
        self.chains = [[places[key] for key in steps] for steps in of_chains]
        """the steps of every chain of C, head first"""

    def rows(self) -> Iterator[StepRow]:
        """Yield the steps."""
        collection = self._candidates.collection
        for key, roles in self._roles.items():
            passage, *names = key
            enter, leave = (END if name is None else self._numbers.get(name, END) for name in names)
            rarities = (log_count(collection, name) for name in names)
            yield StepRow(passage, enter, leave, roles, (*self._closeness(key), *rarities))

    def _others(self, holders: Sequence[Iterable[int]]) -> Iterator[tuple[_Key, int]]:
        """Yield every step that the types of links allow, and its roles as bits."""
        types, hops = self._candidates.link_types, self._candidates.hops
        answer = self._candidates.question.answer_entity
        of_passage: list[list[str]] = [[] for _ in self._candidates.views]
        for name, places in zip(self._numbers, holders, strict=True):
            for place in places:
                of_passage[place].append(name)

        def fitting(names: Sequence[str], link: int) -> list[str]:
            return [name for name in names if not types or name.startswith(f"{types[link]}:")]

        roles: dict[_Key, int] = {}
        for passage, names in enumerate(of_passage):
            for role in range(hops):
                enters = fitting(names, role - 1) if role else [self._asked[passage]]
                leaves = fitting(names, role) if role < hops - 1 else [answer]
                for key in ((passage, one, two) for one in enters for two in leaves if one != two or one is None):
                    roles[key] = roles.get(key, 0) | 1 << role
        yield from roles.items()

    def _rank(self, key: _Key) -> tuple[float, float, str, str, str]:
        """Return by what steps are ordered: nearest entities first, whatever the order of passages."""
        together, _, distance = self._closeness(key)
        return -together, distance, key[1] or "", key[2] or "", self._candidates.views[key[0]].passage.text

    def _closeness(self, key: _Key) -> tuple[float, float, float]:
        passage, one, two = key
        if one is None or two is None:
            return NEVER_TOGETHER, 0.0, log(1 + len(self._candidates.views[passage].text.places))
        return self._pairs.pair(passage, one, two)


class StepOffers:
    """The steps that questions offer, from which others learn how often each is used (`rechain.scoring.beliefs`)."""

    def __init__(self) -> None:
        self._steps: list[Sequence[Sequence[str]]] = []
        self._evidence: list[tuple[Array, float]] = []

    def add(self, candidates: Candidates, evidence: Array, nothing: float | None = None) -> None:
        """Add a question; `evidence` [chains] are logarithms, as the lexical rule's score is.

        So is the evidence that no chain is right; None: one of them is.
        """
        most = float(evidence.max(initial=-np.inf))
        self._steps.append(find_steps(candidates))
        self._evidence.append((evidence - most, _CERTAIN if nothing is None else nothing - most))

    def told(self, questions: Sequence[int]) -> list[Array]:
        """Return what some questions tell every question of each of its chains: log(pi / prior), summed over steps.

        A question hears nothing of itself.
        """
        offers = Offers()
        for number in questions:
            offers.add(self._steps[number], *self._evidence[number])
        beliefs = offers.learn()
        positions = {number: position for position, number in enumerate(questions)}
        told = []
        for number, steps in enumerate(self._steps):
            names = sorted({step for of_chain in steps for step in of_chain})
            position = positions.get(number)
            ratios = beliefs.about(names) if position is None else beliefs.told(position)
            of_step = dict(zip(names, ratios.tolist(), strict=True))
            told.append(np.array([sum(of_step[step] for step in of_chain) for of_chain in steps]))
        return told
