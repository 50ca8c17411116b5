"""How far annotators agree: Cohen's kappa with an interval, what they decide, and what is left in doubt."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from rechain.candidates.units import Mode, Unit, Value
from rechain.evaluation.statistics import RESAMPLES
from rechain.labels.store import Label

if TYPE_CHECKING:
    from rechain.system.tensors import Array

Decision = Literal["yes", "no"]

MODES: tuple[Mode, ...] = get_args(Mode)
FEWEST_QUESTIONS = 5
"""from so many questions on an interval says something"""


class Kappa(NamedTuple):
    """Cohen's kappa, over how many questions, and its 95 % bootstrap interval: None where those are too few."""

    value: float
    low: float | None
    high: float | None
    questions: int


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


def cohens_kappa(one: Sequence[str], two: Sequence[str]) -> float | None:
    """Return by how much two annotators agree beyond chance; None without items, or where chance alone is certain."""
    kappa = float(_kappas(_tables(one, two, [""] * len(one)).sum(0)))
    return None if kappa != kappa else kappa


def kappa_with_interval(
    one: Sequence[str], two: Sequence[str], questions: Sequence[str], seed: int = 0
) -> Kappa | None:
    """Return Cohen's kappa with a 95 % bootstrap interval over questions, as units of one question hang together.

    `questions` says to which question each item belongs; of fewer than five there is no interval. Resamples in which
    kappa is not defined do not count.
    """
    import numpy as np

    tables = _tables(one, two, questions)
    kappa, count = float(_kappas(tables.sum(0))), len(tables)
    if kappa != kappa:
        return None
    if count < FEWEST_QUESTIONS:
        return Kappa(kappa, None, None, count)
    generator = np.random.default_rng(seed)
    draws = (generator.integers(count, size=count) for _ in range(RESAMPLES))
    flat = tables.reshape(count, -1)
    sums = np.stack([np.bincount(draw, minlength=count) @ flat for draw in draws])
    low, high = np.nanpercentile(_kappas(sums.reshape(-1, *tables.shape[1:])), [2.5, 97.5])
    return Kappa(kappa, float(low), float(high), count)


def _tables(one: Sequence[str], two: Sequence[str], questions: Sequence[str]) -> "Array":
    """Return for every question how often one said this and two said that: [questions, values, values]."""
    import numpy as np

    values = {value: number for number, value in enumerate(sorted({*one, *two}))}
    places = {question: number for number, question in enumerate(dict.fromkeys(questions))}
    tables = np.zeros((len(places), len(values), len(values)), dtype=np.int64)
    for first, second, question in zip(one, two, questions, strict=True):
        tables[places[question], values[first], values[second]] += 1
    return tables


def _kappas(tables: "Array") -> "Array":
    """Return kappa of tables [..., values, values]; not a number where it is not defined."""
    import numpy as np

    total, equal = tables.sum((-2, -1)), np.trace(tables, axis1=-2, axis2=-1)
    by_chance = (tables.sum(-1) * tables.sum(-2)).sum(-1)
    room = total**2 - by_chance
    kappas: Array = np.where(room > 0, (equal * total - by_chance) / np.maximum(room, 1), np.nan)
    return kappas


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
