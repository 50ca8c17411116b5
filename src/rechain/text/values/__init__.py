"""Numbers, money, quantities, dates and times of a text, read as values whatever their wording."""

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

Place = TypeVar("Place")


class Item(NamedTuple):
    """A word or a value of a text."""

    key: str
    """of a word: folded, singular; of a value: canonical, begins with "=" """
    start: int
    end: int
    others: tuple[str, ...] = ()
    """a value's keys in its other readings"""
    implied: tuple[str, ...] = ()
    """keys of what a value says as well: a date its month and year, opening hours when they begin and end"""
    numbers: tuple[str, ...] = ()
    """the number as written, before units are converted, in every reading: ("60",) of "60 minutes" """
    units: tuple[str, ...] = ()
    """names of a quantity's unit, in every reading; none for a bare number"""
    counted: str = ""
    """of a bare number: the unit or the word that follows it, "day" in "27 working days" """

    @property
    def is_value(self) -> bool:
        """Whether it is a value, not a word."""
        return self.key.startswith("=")


def same(one: Item, two: Item) -> bool:
    """Return whether `two`, of a passage, says what `one`, of an answer, says.

    A date says its year and month, too, but not the other way round. A bare number is the same as a quantity of that
    number, unless it counts something else.
    """
    if one.key == two.key:
        return True
    if not (one.is_value and two.is_value):
        return False
    said = (two.key, *two.others, *two.implied)
    if any(key in said for key in (one.key, *one.others)):
        return True
    if bool(one.units) == bool(two.units):
        return False
    bare, quantity = (two, one) if one.units else (one, two)
    return any(number in quantity.numbers for number in bare.numbers) and (
        not bare.counted or bare.counted in quantity.units
    )


class ValueIndex(Generic[Place]):
    """Values and where each stands, found by what they say."""

    def __init__(self, values: Iterable[tuple[Item, Place]]) -> None:
        self._by_key: dict[str, list[tuple[int, tuple[Item, Place]]]] = {}
        for number, located in enumerate(values):
            for key in _keys(located[0]):
                self._by_key.setdefault(key, []).append((number, located))

    def _alike(self, value: Item) -> list[tuple[Item, Place]]:
        """Return the values that share a key or number with a value, each once, in their order."""
        if not self._by_key or not (keys := _keys(value) & self._by_key.keys()):
            return []
        located = dict(one for key in keys for one in self._by_key[key])
        return [located[number] for number in sorted(located)]

    def find(self, value: Item) -> list[tuple[Item, Place]]:
        """Return those that say what a value says."""
        return [one for one in self._alike(value) if same(value, one[0])]

    def says(self, value: Item) -> bool:
        """Return whether one of them says what a value says."""
        return bool(self.find(value))

    def is_said_by(self, value: Item) -> bool:
        """Return whether a value says what one of them says."""
        return any(same(known, value) for known, _ in self._alike(value))


def _keys(value: Item) -> set[str]:
    """Return what two values have in common if they may say the same."""
    return {value.key, *value.others, *value.implied, *map("#".__add__, value.numbers)}
