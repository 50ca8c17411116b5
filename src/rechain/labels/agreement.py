"""How far annotators agree: Cohen's kappa with an interval, what they decide, and what is left in doubt."""

from collections.abc import Iterable
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
    """Cohen's kappa, None where it is not defined: both said one and the same of everything"""


class Doubt(NamedTuple):
    """A unit that its annotators leave open, as they differ or somebody is unsure; it may be settled since."""

    unit: Unit
    labels: list[Label]
    """what each of them says"""
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


def _agreements(mode: Mode, labels: Iterable[Label]) -> Iterable[Agreement]:
    said: dict[str, dict[Unit, str]] = {}
    for label in labels:
        if label.unit.mode == mode:
            said.setdefault(label.annotator, {})[label.unit] = label.value
    for one, two in combinations(sorted(said), 2):
        if units := [unit for unit in said[one] if unit in said[two]]:
            yield _compared(mode, (one, two), units, said)


def _compared(mode: Mode, names: tuple[str, str], units: list[Unit], said: dict[str, dict[Unit, str]]) -> Agreement:
    one, two = ([said[name][unit] for unit in units] for name in names)
    questions = [unit.question for unit in units]
    equal = sum(map(str.__eq__, one, two)) / len(units)
    kappa = kappa_with_interval(one, two, questions)
    return Agreement(mode, *names, len(units), len(set(questions)), equal, kappa)


def doubts(labels: Iterable[Label]) -> list[Doubt]:
    """Return the units that annotators or what was settled leave open, in the order in which they were first labelled.

    Those that were settled since are among them. Labels are in the order in which they were given.
    """
    found = []
    for unit, given in by_unit(labels).items():
        own = [label for label in given if not label.settles]
        if decided(own) is None or decided(given) is None:
            found.append(Doubt(unit, own, _settling(given)))
    return found


def decided(labels: Iterable[Label]) -> Decision | None:
    """Return what holds of one unit: what was settled, else what all agree on; None where that is neither yes nor no.

    Labels are in the order in which they were given.
    """
    given = list(labels)
    settled = _settling(given)
    values: set[Value] = {settled.value} if settled else {label.value for label in given}
    if values == {"yes"}:
        return "yes"
    return "no" if values == {"no"} else None


def by_unit(labels: Iterable[Label]) -> dict[Unit, list[Label]]:
    """Return the labels of every unit."""
    units: dict[Unit, list[Label]] = {}
    for label in labels:
        units.setdefault(label.unit, []).append(label)
    return units


def _settling(labels: Iterable[Label]) -> Label | None:
    """Return the label that settles a unit, the last if several do."""
    return next((label for label in reversed(list(labels)) if label.settles), None)
