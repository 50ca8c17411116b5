"""Beliefs about steps, shared among all questions that offer them: expectation maximisation over a whole input.

Every question uses one of its candidate chains, and nobody says which. How often a step is used by the questions that
offer it tells whether its passage really relates its two entities; and that tells which chain a question uses:

    pi(step) = (expected uses + STRENGTH * prior) / (questions that offer it + STRENGTH)
    log-probability of a chain = the model's + the sum over its steps of log(pi(step) / prior) + constant

The two are computed in turns. The prior is the mean use of all steps, so that a step of which nobody else knows
anything changes nothing, and neither does it matter how many steps a chain has. A question does not count in what it is
itself told: else it would hear its own guess as if another had confirmed it. Questions that offer the very same chains
count as one, since a log has the same question many times.

Expected uses are rounded to a grid so coarse that floating-point sums of them are exact. So beliefs are bit for bit the
same, in whatever order questions come.

Joint recovery keeps an `Offer` of every question, which is all that the second pass over an input needs, so that
nothing is linked or read by a network twice.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

import numpy as np
import orjson

from rechain.errors import QuestionError
from rechain.schema import Chain, Problem, Recovered
from rechain.scoring.interface import JOINTLY
from rechain.system.tensors import Array

STRENGTH = 1.0
"""how many questions the prior counts for"""
MOST_ROUNDS = 100
_LEAST_CHANGE = 0.01
"""of an expected use; when none changes more, beliefs are settled"""
_GRID = 2.0**30
"""sums of multiples of 1 / _GRID are exact below 2 ** 23, more questions than offer any one step"""
_BLOCK = 4096
"""questions whose chains are weighed at a time"""
_NEVER = -700.0
"""a log-probability that stands for all lower ones: its exponential is just above zero"""


@dataclass(frozen=True)
class Beliefs:
    """How often steps are used."""

    steps: Array
    """the names of all steps as numbers, ascending"""
    uses: Array
    """how often each is used, expected"""
    offers: Array
    """how many questions offer each"""
    prior: float
    """how often a step is used on average"""
    rounds: int
    """of estimation"""
    _own: Array
    """of every question in turn, its expected uses of its steps"""
    _places: Array
    """of every question in turn, the places of its steps among all"""
    _starts: Array
    """where each question begins in these"""
    _numbers: Array
    """which question stands at each position of the input; -1: one without steps"""

    @property
    def shared(self) -> int:
        """The number of steps that more than one question offers."""
        return int((self.offers > 1).sum())

    @property
    def questions(self) -> int:
        """The number of different questions that offer steps."""
        return len(self._starts) - 1

    def told(self, position: int) -> Array:
        """Return what all other questions tell the one at a position: log(pi / prior) of its steps, ascending."""
        number = int(self._numbers[position])
        if number < 0:
            return np.zeros(0)
        own = slice(int(self._starts[number]), int(self._starts[number + 1]))
        places = self._places[own]
        return _log_ratios(self.uses[places] - self._own[own], self.offers[places] - 1, self.prior)

    def about(self, steps: Sequence[str]) -> Array:
        """Return log(pi / prior) of steps of a question that was not among those learnt from, in their order."""
        if not len(self.steps):
            return np.zeros(len(steps))
        names = _numbers_of(steps)
        places = np.searchsorted(self.steps, names).clip(max=len(self.steps) - 1)
        known = self.steps[places] == names
        return _log_ratios(np.where(known, self.uses[places], 0), np.where(known, self.offers[places], 0), self.prior)


def _log_ratios(uses: Array, offers: Array, prior: float) -> Array:
    ratios: Array = np.log((uses + STRENGTH * prior) / ((offers + STRENGTH) * prior))
    return ratios


def _numbers_of(steps: Sequence[str]) -> Array:
    return np.array([int(step, 16) for step in steps], dtype=np.uint64)


class Offers:
    """What all questions of an input offer: compact, about 0.8 kilobytes a question of DrugHop."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._known: dict[bytes, int] = {}
        """the numbers of questions by what they offer"""
        self._steps = array("Q")
        self._steps_end = array("q", [0])
        """where the steps of each question end"""
        self._chains = array("d")
        """the log-probability of every chain"""
        self._chains_end = array("q", [0])
        self._nothing = array("d")
        """the log-probability that no chain is right, of every question"""
        self._lengths = array("I")
        """how many steps every chain has"""
        self._used = array("I")
        """the steps of every chain, by their places among those of the question"""
        self._used_end = array("q", [0])

    def add(self, steps: Sequence[Sequence[str]], log_probabilities: Array, nothing: float) -> None:
        """Add the next question: the steps and the log-probability of each of its chains, and that none is right."""
        names = sorted({step for of_chain in steps for step in of_chain})
        if not names:
            self._numbers.append(-1)
            return
        places = {name: place for place, name in enumerate(names)}
        used = [sorted(places[step] for step in of_chain) for of_chain in steps]
        # In an order of their own, so that it does not matter in which a model ranks them.
        values = np.maximum(log_probabilities, _NEVER).tolist()
        chains = sorted(zip(used, values, strict=True))
        number = self._known.setdefault(_digest(names, chains), len(self._known))
        self._numbers.append(number)
        if number < len(self._nothing):
            self._merge(number, [value for _, value in chains], nothing)
            return
        self._steps.extend(int(name, 16) for name in names)
        self._steps_end.append(len(self._steps))
        self._chains.extend(value for _, value in chains)
        self._chains_end.append(len(self._chains))
        self._nothing.append(max(nothing, _NEVER))
        self._lengths.extend(len(of_chain) for of_chain, _ in chains)
        self._used.extend(place for of_chain, _ in chains for place in of_chain)
        self._used_end.append(len(self._used))

    def _merge(self, number: int, chains: Sequence[float], nothing: float) -> None:
        """Take the greater of what a model says of the same question twice, which differs by rounding or wording."""
        for place, value in enumerate(chains, start=self._chains_end[number]):
            self._chains[place] = max(self._chains[place], value)
        self._nothing[number] = max(self._nothing[number], nothing)

    def learn(self) -> Beliefs:
        """Estimate how often every step is used."""
        names, found = np.unique(_as_array(self._steps), return_inverse=True)
        places: Array = found.astype(np.int32 if len(names) < 2**31 else np.int64)
        offers: Array = np.bincount(places, minlength=len(names))
        own: Array = np.zeros(len(places))
        uses, ratios = own, own
        prior, rounds = 1.0, 0
        while len(places) and rounds < MOST_ROUNDS:
            rounds += 1
            before, own = own, self._expected_uses(ratios)
            uses = np.bincount(places, own, len(names))
            # Only in whole numbers is the sum over all questions exact; it is zero where none has a right chain.
            total = np.rint(own * _GRID).astype(np.int64).sum()
            prior = max(int(total) / _GRID / len(places), 1 / _GRID)
            ratios = _log_ratios(uses[places] - own, offers[places] - 1, prior)
            if np.abs(own - before).max() < _LEAST_CHANGE:
                break
        starts, numbers = _as_array(self._steps_end).copy(), _as_array(self._numbers).copy()
        return Beliefs(names, uses[: len(names)], offers, prior, rounds, own, places, starts, numbers)

    def _expected_uses(self, ratios: Array) -> Array:
        """Return how likely each question uses each of its steps, by what it is told of them."""
        uses = np.zeros(len(ratios))
        for block in self._blocks():
            chosen = block.probabilities(ratios[block.steps])[block.chain_of_use]
            expected = np.bincount(block.used, chosen, minlength=block.steps.stop - block.steps.start)
            uses[block.steps] = np.round(expected * _GRID) / _GRID
        return uses

    def _blocks(self) -> "Iterator[_Block]":
        count, chains_end, steps_end = len(self._nothing), _as_array(self._chains_end), _as_array(self._steps_end)
        edges = [*range(0, count, _BLOCK), count]
        for first, last in pairwise(edges):
            chains, uses = slice(*chains_end[[first, last]]), slice(*_as_array(self._used_end)[[first, last]])
            sizes = np.diff(chains_end[first : last + 1])
            lengths = _as_array(self._lengths)[chains]
            question_of_chain = np.repeat(np.arange(last - first), sizes)
            chain_of_use = np.repeat(np.arange(len(lengths)), lengths)
            firsts = (steps_end[first:last] - steps_end[first])[question_of_chain[chain_of_use]]
            yield _Block(
                log_probabilities=_as_array(self._chains)[chains],
                nothing=_as_array(self._nothing)[first:last],
                question_of_chain=question_of_chain,
                chain_of_use=chain_of_use,
                used=firsts + _as_array(self._used)[uses],
                steps=slice(int(steps_end[first]), int(steps_end[last])),
            )


@dataclass(frozen=True)
class _Block:
    """Some consecutive questions."""

    log_probabilities: Array
    """[chains]"""
    nothing: Array
    """[questions]"""
    question_of_chain: Array
    chain_of_use: Array
    used: Array
    """the step of every use, by its place among those of the block"""
    steps: slice
    """its steps among all"""

    def probabilities(self, ratios: Array) -> Array:
        """Return how likely each chain is used, with what is told of each step, [chains]."""
        told = np.bincount(self.chain_of_use, ratios[self.used], minlength=len(self.log_probabilities))
        return posterior(self.log_probabilities + told, self.nothing, self.question_of_chain)


def posterior(logits: Array, nothing: Array, question_of_chain: Array) -> Array:
    """Return the probability of every chain among those of its question, [chains], or that none of them is right."""
    most = nothing.copy()
    np.maximum.at(most, question_of_chain, logits)
    weights = np.exp(logits - most[question_of_chain])
    totals = np.exp(nothing - most) + np.bincount(question_of_chain, weights, minlength=len(nothing))
    probabilities: Array = weights / totals[question_of_chain]
    return probabilities


def _as_array(values: array) -> Array:  # type: ignore[type-arg]
    return np.frombuffer(values, dtype=values.typecode)


def _digest(names: Sequence[str], chains: Sequence[tuple[list[int], float]]) -> bytes:
    """Return what tells apart questions that offer different chains."""
    return blake2b(repr((names, [used for used, _ in chains])).encode(), digest_size=16).digest()


_OWN = ("steps", "where", "alone")
"""what an offer adds to the fields of recovered chains"""
TOLD = "jointly"
"""the name of what other questions contribute to a chain's score"""
_LEAST = 1e-12
"""probability that a model leaves for "none of these", where rounding leaves less"""


class Offer(NamedTuple):
    """The candidate chains of a question, best first by the model alone, and the names of the steps of each."""

    fields: Mapping[str, Any]
    """of Recovered, with every chain: as they are written, since to check them all takes longer than to weigh them"""
    steps: Sequence[Sequence[str]] = ()
    """empty where the question takes no part: it has an error, or the data does not name its entities"""
    where: str = ""
    """the place of the question, which errors name"""
    alone: Sequence[float] = ()
    """the probability of each chain by the model alone, as if no more than one were right"""

    @classmethod
    def of(
        cls,
        recovered: Recovered,
        steps: Sequence[Sequence[str]] = (),
        where: str = "",
        alone: Sequence[float] = (),
    ) -> "Offer":
        """Return the offer of a question with all its chains or, without steps, those that it has by itself."""
        return cls(recovered.to_dict(), steps, where, alone)

    @classmethod
    def of_json(cls, line: bytes | str) -> "Offer":
        """Read a line."""
        fields: dict[str, Any] = orjson.loads(line)
        own = {name: fields.pop(name) for name in _OWN}
        return cls(fields=fields, **own)

    def to_json(self) -> str:
        """Return it as a line: the fields of the recovered chains and its own."""
        return orjson.dumps({**self.fields, **{name: getattr(self, name) for name in _OWN}}).decode()

    @property
    def recovered(self) -> Recovered:
        """The chains by the model alone."""
        return Recovered.model_validate(self.fields)

    @property
    def names(self) -> list[str]:
        """The names of all its steps, each once, ascending."""
        return sorted({step for of_chain in self.steps for step in of_chain})

    def add_to(self, offers: Offers) -> None:
        """Add it to those of all questions."""
        offers.add(self.steps, *self._log_probabilities())

    def settle(self, beliefs: Beliefs, position: int, top: int, min_confidence: float | None) -> Recovered:
        """Return the best chains by what the model says and what other questions tell, as Recoverer's options ask."""
        if not self.steps:
            return self.recovered
        told = dict(zip(self.names, beliefs.told(position).tolist(), strict=True))
        return self.weigh(told, top, min_confidence)

    def weigh(self, told: Mapping[str, float], top: int, min_confidence: float | None) -> Recovered:
        """Return the best chains with what is told of each step, log(pi / prior)."""
        added, shares, chains = self._added(told), self.shares(told), self.fields["chains"]
        order = sorted(range(len(chains)), key=lambda number: -shares[number])
        confidences = JOINTLY.confidences(shares)
        best = [_told(chains[number], added[number], confidences[number]) for number in order[:top]]
        error = low_confidence(best, min_confidence)
        if error and self.where:
            error = QuestionError(error.code, f"{self.where}: {error}.")
        kept = [] if error else [chain for chain in best if (chain.confidence or 0.0) >= (min_confidence or 0.0)]
        without = Recovered.model_validate({**self.fields, "chains": []})
        return without.model_copy(update={"chains": kept, "error": Problem.of(error) if error else None})

    def shares(self, told: Mapping[str, float]) -> list[float]:
        """Return the probability of each chain, by the model and what is told, as if no more than one were right."""
        logits, nothing = self._log_probabilities()
        logits = logits + np.array(self._added(told))
        shares: list[float] = posterior(logits, np.array([nothing]), np.zeros(len(logits), dtype=int)).tolist()
        return shares

    def _added(self, told: Mapping[str, float]) -> list[float]:
        """Return what is told of each chain: the sum over its steps."""
        return [sum(told[step] for step in of_chain) for of_chain in self.steps]

    def _log_probabilities(self) -> tuple[Array, float]:
        """Return the log-probability of each chain by the model alone, and that none is right."""
        alone = np.array(self.alone if self.steps else ())
        return np.log(alone.clip(min=1e-300)), log(max(1 - alone.sum(), _LEAST))


def low_confidence(chains: Sequence[Chain], least: float | None) -> QuestionError | None:
    """Return that the best chain is less confident than is demanded, without which there is none; None if it is not."""
    reached = chains[0].confidence or 0.0
    if reached >= (least or 0.0):
        return None
    return QuestionError("low_confidence", f"the best chain has confidence {reached:.4g}, below the {least:g} demanded")


def _told(fields: Mapping[str, Any], added: float, confidence: float) -> Chain:
    """Return a chain with what other questions tell of its steps."""
    chain = Chain.model_validate(fields)
    why = None if chain.why is None else _explained(chain.why, added)
    told = {"score": chain.score + added, "why": why}
    return chain.model_copy(update=told if chain.confidence is None else told | {"confidence": confidence})


def _explained(why: dict[str, Any], added: float) -> dict[str, Any]:
    """Return what adds up to a score with one part more; what players say stays last."""
    steps = {name: value for name, value in why.items() if name == "steps"}
    parts = {name: value for name, value in why.items() if name != "steps"}
    return {**parts, TOLD: added, **steps}
