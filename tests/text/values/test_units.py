"""Units: their factors, and the names that stand for them."""

from decimal import Decimal

import pint
import pytest

from rechain.text.values.units import CURRENCIES, UNITS, Unit, counted_unit, find_unit

# How pint names our bases and units, where it does not understand our own name.
PINT = {
    "month": "month", "°C": "delta_degC", "°F": "delta_degF", "%": "percent", "pp": "percent", "permille": "permille",
    "m²": "m**2", "m2": "m**2", "km²": "km**2", "m³": "m**3", "lb": "pound", "Wh": "Wh", "foot": "foot", "m": "metre",
    "tonne": "metric_ton", "cl": "centiliter", "kB": "kilobyte", "minute": "minute", "mbar": "millibar",
}  # fmt: skip
OWN = {"age", "IU", "decibel", "pixel", "permille", "pp", "month", "year", "decade", "century"}
"""units that are no measure, or whose size pint takes from the sun: its year is 365.25 days"""


def all_units() -> list[Unit]:
    units = {unit for named in UNITS.values() for unit in named}
    return sorted(unit for unit in units if unit.base not in CURRENCIES and unit.name not in OWN)


def test_the_factors_are_those_of_pint() -> None:
    registry = pint.UnitRegistry(non_int_type=Decimal)
    for unit in all_units():
        one = registry.Quantity(Decimal(1), PINT.get(unit.name, unit.name))
        in_base = one.to(PINT.get(unit.base, unit.base)).magnitude
        assert abs(in_base - unit.factor) <= unit.factor * Decimal("1e-9"), unit


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("Minuten", ["minute"]), ("MIN", ["minute"]), ("M", []), ("m", ["m"]), ("pounds", ["lb", "GBP"]),
        ("¥", ["CNY", "JPY"]), ("degrees celsius", ["°C"]), ("Tischen", []), ("", []),
    ],
)  # fmt: skip
def test_a_name_stands_for_units(name: str, units: list[str]) -> None:
    assert [unit.name for unit in find_unit(name)] == units


@pytest.mark.parametrize(
    ("word", "unit"), [("urlaubstage", "day"), ("day", "day"), ("arbeitsstunden", "hour"), ("employee", ""), ("m", "")]
)
def test_compounds_count_in_their_last_part(word: str, unit: str) -> None:
    assert counted_unit(word) == unit
