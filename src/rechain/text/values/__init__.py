"""Numbers, money, quantities, dates and times of a text, read as values whatever their wording."""

from typing import NamedTuple


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
