"""Settings: checked by type and limits, read from files, changed."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from rechain.errors import RechainError
from rechain.system.settings import Limits, Positive, Settings


@dataclass(frozen=True)
class TeaSettings(Settings):
    cups: Positive = 2
    minutes: Annotated[float, Limits(above=0, most=10)] = 4.0
    sugar: float = 0.0
    kind: Literal["green", "black"] = "black"
    has_milk: bool = False
    name: str = "tea"
    hours: tuple[Positive, Positive] = (15, 17)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"cups": 0}, "cups should be at least 1, not 0"),
        ({"cups": 1.0}, "cups should be a whole number, not 1.0"),
        ({"cups": True}, "cups should be a whole number, not True"),
        ({"minutes": 0}, "minutes should be more than 0, not 0"),
        ({"minutes": 11}, "minutes should be at most 10, not 11"),
        ({"minutes": "long"}, "minutes should be a number, not 'long'"),
        ({"minutes": False}, "minutes should be a number, not False"),
        ({"sugar": float("-inf")}, "sugar should be finite, not -inf"),
        ({"sugar": float("nan")}, "sugar should be finite, not nan"),
        ({"sugar": date(2026, 1, 2)}, "sugar should be a number, not datetime.date(2026, 1, 2)"),
        ({"kind": "red"}, "kind should be one of green, black, not 'red'"),
        ({"kind": ["green"]}, "kind should be one of green, black, not ['green']"),
        ({"has_milk": 1}, "has_milk should be true or false, not 1"),
        ({"name": 3}, "name should be a text, not 3"),
        ({"hours": (15,)}, "hours should be 2 values, not (15,)"),
        ({"hours": (0, 2)}, "hours should be at least 1, not (0, 2)"),
        ({"hours": (1, "2")}, "hours should be a whole number, not (1, '2')"),
    ],
)
def test_a_wrong_value_is_said_in_one_sentence(values: dict[str, Any], what: str) -> None:
    with pytest.raises(RechainError) as failure:
        TeaSettings(**values)
    assert str(failure.value) == f"the setting {what}."


def test_a_long_value_is_cut() -> None:
    with pytest.raises(RechainError) as failure:
        TeaSettings(cups="many " * 1000)  # type: ignore[arg-type]
    assert len(str(failure.value)) < 200


def test_whole_numbers_and_those_of_numpy_are_numbers() -> None:
    assert TeaSettings(minutes=3, sugar=np.float64(0.5)).but(sugar=10**400) == TeaSettings(minutes=3, sugar=10**400)


def test_they_are_read_from_a_file_and_changed_by_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "tea.toml"
    path.write_text('cups = 3\nkind = "green"\n')
    assert TeaSettings.read(path, cups=4) == TeaSettings(cups=4, kind="green")


def test_what_is_wrong_names_its_source() -> None:
    with pytest.raises(RechainError, match=r"^here: there is no setting 'cup'; the settings are cups, has_milk, "):
        TeaSettings.of({"cup": 1}, "here")
    with pytest.raises(RechainError, match=r"^here: the setting cups should be at least 1, not 0\.$"):
        TeaSettings.of({}, "here", cups=0)
    with pytest.raises(RechainError, match=r"^here: the settings should be names with values\.$"):
        TeaSettings.of([("cups", 1)], "here")  # type: ignore[arg-type]


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(RechainError, match=r"tea\.toml cannot be read: No such file or directory\.$"):
        TeaSettings.read(tmp_path / "tea.toml")
