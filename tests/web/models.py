"""A model for tests of the server."""

from collections.abc import Sequence
from threading import Event
from time import sleep

from rechain.scoring.interface import Scores
from rechain.text.candidates import Candidates

HANG_S = 300
"""seconds that only keep a test from hanging: a busy machine may take long"""


class Stuck:
    """A model that never ends over one question, as a pattern does that is not linear."""

    chooses_hops = False

    def to(self, device: str) -> "Stuck":
        return self

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        if any(candidates.question.id == "town-1" for candidates in batch):
            sleep(HANG_S)
        return [Scores([{"x": 1.0}] * len(one.chains), [0.5] * len(one.chains)) for one in batch]


class Held:
    """A model that begins to score when it may, and breaks over some questions."""

    chooses_hops = False

    def __init__(self, breaks_over: Sequence[str] = (), may_go_on: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.has_begun, self.may_go_on = Event(), Event()
        self.breaks_over = breaks_over
        if may_go_on:
            self.may_go_on.set()

    def to(self, device: str) -> "Held":
        return self

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        self.batches.append([candidates.question.id for candidates in batch])
        self.has_begun.set()
        assert self.may_go_on.wait(HANG_S)
        if set(self.batches[-1]).intersection(self.breaks_over):
            raise RuntimeError("broken")
        return [Scores([{"x": 1.0}] * len(one.chains), [0.5] * len(one.chains)) for one in batch]
