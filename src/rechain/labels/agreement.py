"""How far annotators agree: Cohen's kappa of every two, what their labels decide, and what is left in doubt."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from rechain.candidates.units import Mode, Unit, Value
from rechain.evaluation.statistics import Kappa, kappa_with_interval
from rechain.labels.store import Common, Label

Decision = Literal["yes", "no"]

MODES: tuple[Mode, ...] = get_args(Mode)


class Agreement(NamedTuple):
    """How far two annotators agree on the units that both labelled."""

    mode: Mode
    one: str
    two: str
    units: int
    questions: int
    equal: float
    """the share of units that both labelled alike"""
    kappa: Kappa | None
    """None where it is not defined: both gave one and the same value to everything"""


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
        return len({label.value for label in self.labels}) > 1


def agreements(common: Iterable[Common]) -> list[Agreement]:
    """Compare every two annotators who labelled the same units, pairs and chains apart."""
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
    return Agreement(mode, one, two, sum(units), len(set(questions)), equal, kappa)


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


def decided(labels: Sequence[Label]) -> Decision | None:
    """Return the decision on one unit: what was settled, else what all agree on; None if that is neither yes nor no.

    Labels are in the order in which they were added.
    """
    settled = _settling(labels)
    values: set[Value] = {settled.value} if settled else {label.value for label in labels}
    if values == {"yes"}:
        return "yes"
    return "no" if values == {"no"} else None


def by_unit(labels: Iterable[Label]) -> dict[Unit, list[Label]]:
    """Return the labels of every unit."""
    units: dict[Unit, list[Label]] = {}
    for label in labels:
        units.setdefault(label.unit, []).append(label)
    return units


def _settling(labels: Sequence[Label]) -> Label | None:
    """Return the label that settles a unit, the last if several do."""
    return next((label for label in reversed(labels) if label.settles), None)
