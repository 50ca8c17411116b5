"""How far labels are: what they decide, what is in doubt, how far annotators agree, and the state of each question."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from rechain.evaluation.statistics import Kappa, kappa_with_interval
from rechain.labels.store import Common, Label, LabelStore
from rechain.text.label_units import Mode, Unit

MODES: tuple[Mode, ...] = get_args(Mode)


class Agreement(NamedTuple):
    """How far two annotators agree on the units that both labelled."""

    mode: Mode
    one: str
    two: str
    units: int
    questions: int
    equal: float
    """the share of units to which both gave the same value"""
    kappa: Kappa | None
    """None if it is not defined: both gave one and the same value to everything"""
    overlap: float | None
    """of answers: the mean share of the passages picked by either that both picked; None if nobody picked any"""


class Doubt(NamedTuple):
    """A unit that its annotators leave open, as they differ or somebody is unsure; it may be settled since."""

    unit: Unit
    labels: list[Label]
    """the annotators' own labels"""
    settled: Label | None
    """what was agreed on since, which may again be unsure"""

    @property
    def is_open(self) -> bool:
        """Whether it waits to be settled."""
        return self.settled is None or self.settled.value == "unsure"

    @property
    def differs(self) -> bool:
        """Whether annotators differ, not only hesitate."""
        return len({label.judgement for label in self.labels}) > 1


def agreements(common: Iterable[Common]) -> list[Agreement]:
    """Compare every two annotators who labelled the same units, answers and pairs apart."""
    compared: dict[tuple[Mode, str, str], list[Common]] = {}
    for row in common:
        compared.setdefault((row.mode, row.one, row.two), []).append(row)
    order = sorted(compared, key=lambda key: (MODES.index(key[0]), *key[1:]))
    return [_agreement(*key, tuple(compared[key])) for key in order]


@lru_cache(maxsize=32)  # an interval takes a tenth of a second, and most pairs are as they were when one looks again
def _agreement(mode: Mode, one: str, two: str, common: tuple[Common, ...]) -> Agreement:
    units, questions = [row.units for row in common], [row.question for row in common]
    equal = sum(row.units for row in common if row.first == row.second) / sum(units)
    kappa = kappa_with_interval([row.first for row in common], [row.second for row in common], questions, units)
    return Agreement(mode, one, two, sum(units), len(set(questions)), equal, kappa, _mean_overlap(common))


def _mean_overlap(common: Sequence[Common]) -> float | None:
    """Return the mean Jaccard overlap of the passages that two picked, over the answers for which either picked any."""
    total = count = 0.0
    for row in common:
        first, second = _passages(row.first_evidence), _passages(row.second_evidence)
        if first or second:
            total += row.units * len(first & second) / len(first | second)
            count += row.units
    return total / count if count else None


def _passages(evidence: str | None) -> set[str]:
    return {name for chain in json.loads(evidence or "[]") for name in chain["passages"]}


def doubts(labels: Iterable[Label]) -> list[Doubt]:
    """Return the units that annotators, or what was settled, leave open, in the order of their first labels.

    Those that were settled since are among them. Labels are in the order in which they were added.
    """
    doubtful = []
    for unit, of_unit in by_unit(labels).items():
        own = [label for label in of_unit if not label.settles]
        if decided(own) is None or decided(of_unit) is None:
            doubtful.append(Doubt(unit, own, _settling(of_unit)))
    return doubtful


def decided(labels: Sequence[Label]) -> Label | None:
    """Return the label that decides one unit: what was settled, else what all agree on; None if that is unsure.

    Labels are in the order in which they were added.
    """
    counting = [settled] if (settled := _settling(labels)) else labels
    if len({label.judgement for label in counting}) != 1 or counting[0].value == "unsure":
        return None
    return counting[0]


def by_unit(labels: Iterable[Label]) -> dict[Unit, list[Label]]:
    """Return the labels of every unit."""
    units: dict[Unit, list[Label]] = {}
    for label in labels:
        units.setdefault(label.unit, []).append(label)
    return units


def _settling(labels: Sequence[Label]) -> Label | None:
    """Return the label that settles a unit, the last if several do."""
    return next((label for label in reversed(labels) if label.settles), None)


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
    """of these units, those whose label nobody contests"""

    @property
    def share_decided(self) -> float:
        """The share of the labelled units that is decided."""
        return self.decided / self.units if self.units else 0.0


def statuses(store: LabelStore) -> Mapping[str, Status]:
    """Return the labels of every question that has any; another question has a status without any."""
    found: defaultdict[str, Status] = defaultdict(Status)
    for tally in store.tallies():
        if tally.value != "settled":
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
