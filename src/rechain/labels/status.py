"""How far the labels of a collection are: which questions have any, by whom, and what is decided."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from rechain.labels.store import LabelStore

State = Literal["not labelled", "labelled", "in doubt", "without doubt"]
STATES: tuple[State, ...] = get_args(State)


@dataclass
class Status:
    """The labels of a question."""

    labels: dict[str, int] = field(default_factory=dict)
    """how many units each annotator labelled"""
    units: int = 0
    """units that anybody labelled"""
    open: int = 0
    """units on which annotators differ or are unsure, and that nobody has settled"""

    def is_in(self, state: State, annotator: str | None = None) -> bool:
        """Return whether it is in a state; of one annotator, whether it was labelled by that one."""
        is_labelled = bool(self.units) if annotator is None else annotator in self.labels
        if state == "not labelled":
            return not is_labelled
        has_doubt = {"labelled": None, "in doubt": True, "without doubt": False}[state]
        return is_labelled and has_doubt in (None, bool(self.open))


@dataclass(frozen=True)
class Overall:
    """How far a collection is."""

    questions: int
    labelled: int
    """questions with labels"""
    units: int
    decided: int
    """of these units, those with a yes or a no that nobody contests"""

    @property
    def share_decided(self) -> float:
        """The share of the labelled units that is decided."""
        return self.decided / self.units if self.units else 0.0


def statuses(store: LabelStore) -> Mapping[str, Status]:
    """Return the labels of every question that has any; another question has a status without any."""
    found: defaultdict[str, Status] = defaultdict(Status)
    for tally in store.tallies():
        labels = found[tally.question].labels
        labels[tally.annotator] = labels.get(tally.annotator, 0) + tally.units
    for question, units in store.count_units().items():
        found[question].units = units
    for count in store.count_doubts():
        found[count.question].open = count.open
    return found


def overall(found: Mapping[str, Status], ids: Iterable[str]) -> Overall:
    """Return how far some questions are."""
    names = list(ids)
    own = [found[name] for name in names if name in found]
    units = sum(one.units for one in own)
    return Overall(len(names), sum(bool(one.units) for one in own), units, units - sum(one.open for one in own))
