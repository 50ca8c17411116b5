"""Joint recovery: what a question offers, and its chains once all questions have told each other about their steps.

An offer is all that the second pass over an input needs, so that nothing is linked or read by a network twice: every
candidate chain as it would be written, and its steps.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
import orjson

from rechain.errors import QuestionError
from rechain.schema import Chain, Problem, Recovered
from rechain.scoring.beliefs import Beliefs, Offers, posterior
from rechain.scoring.confidences import JOINTLY
from rechain.system.tensors import Array

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
        order = sorted(range(len(chains)), key=lambda number: -(chains[number]["score"] + added[number]))
        best = [_told(chains[number], added[number], shares[number]) for number in order[:top]]
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


def _told(fields: Mapping[str, Any], added: float, share: float) -> Chain:
    """Return a chain with what other questions tell of its steps."""
    chain = Chain.model_validate(fields)
    confidence = None if chain.confidence is None else JOINTLY.confidence(share)
    why = None if chain.why is None else _explained(chain.why, added)
    return chain.model_copy(update={"score": chain.score + added, "confidence": confidence, "why": why})


def _explained(why: dict[str, Any], added: float) -> dict[str, Any]:
    """Return what adds up to a score with one part more; what players say stays last."""
    steps = {name: value for name, value in why.items() if name == "steps"}
    parts = {name: value for name, value in why.items() if name != "steps"}
    return {**parts, TOLD: added, **steps}
