"""How far annotators agree: Cohen's kappa of every two, what their labels decide, and what is left in doubt."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, get_args

from rechain.candidates.units import Mode, Unit, Value
from rechain.evaluation.statistics import Kappa, kappa_with_interval
from rechain.labels.store import Label

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


def agreements(labels: Iterable[Label]) -> list[Agreement]:
    """Compare every two annotators who labelled the same units, pairs and chains apart."""
    own = [label for label in labels if not label.settles]
    return [agreement for mode in MODES for agreement in _agreements(mode, own)]


def _agreements(mode: Mode, labels: Iterable[Label]) -> Iterator[Agreement]:
    values: dict[str, dict[Unit, str]] = {}
    for label in labels:
        if label.unit.mode == mode:
            values.setdefault(label.annotator, {})[label.unit] = label.value
    for one, two in combinations(sorted(values), 2):
        if common := [unit for unit in values[one] if unit in values[two]]:
            first, second = ([values[name][unit] for unit in common] for name in (one, two))
            questions = [unit.question for unit in common]
            equal = sum(map(str.__eq__, first, second)) / len(common)
            kappa = kappa_with_interval(first, second, questions)
            yield Agreement(mode, one, two, len(common), len(set(questions)), equal, kappa)


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
