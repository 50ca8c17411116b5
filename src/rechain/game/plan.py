"""In what order the passages of a chain are selected, and what the Reasoner reads.

Roles are places in the chain: 0 is the head, the last is the tail.
"""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["tail to head", "head to tail", "independent"]


@dataclass(frozen=True)
class Step:
    """The selection of one passage, given the passages of other roles that were selected before."""

    role: int
    given: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reading:
    """The Reasoner reads the passage of one role and names the link to the passage of another."""

    role: int
    link: int
    next: int


@dataclass(frozen=True)
class Plan:
    """The steps of the Ranker and the readings of the Reasoner for chains of one length."""

    hops: int
    steps: tuple[Step, ...]
    readings: tuple[Reading, ...] = ()
    is_independent: bool = False

    def name(self, role: int) -> str:
        """Return which of the Ranker's scores a role uses."""
        if self.is_independent:
            return "tail"
        return "head" if role == 0 else "tail" if role == self.hops - 1 else "middle"

    def place(self, role: int) -> int | None:
        """Return the place in the chain that what is selected for a role must fit; None: any."""
        return None if self.is_independent else role

    def step_of(self, role: int) -> int:
        """Return the number of the step that selects a role."""
        return next(number for number, step in enumerate(self.steps) if step.role == role)


def make_plan(hops: int, direction: Direction = "tail to head") -> Plan:
    """Return the paper's plan.

    Two passages: one end, then the other given it. Three: head and tail independently, then the middle given both.
    More: the middles from left to right, each given all that were selected before. Independent: every passage by the
    same scores.
    """
    if direction == "independent":
        return Plan(hops, tuple(map(Step, range(hops))), is_independent=True)
    if hops == 2:
        first, second = (1, 0) if direction == "tail to head" else (0, 1)
        return Plan(2, (Step(first), Step(second, (first,))), (Reading(first, 0, second),))
    tail = hops - 1
    middles = [Step(role, (0, tail, *range(1, role))) for role in range(1, tail)]
    readings = (Reading(0, 0, 1), Reading(tail, tail - 1, tail - 1))
    return Plan(hops, (Step(0), Step(tail), *middles), readings)
