"""Settings of the chain reader."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import RechainError
from rechain.reader.settings import ReaderSettings


@pytest.mark.parametrize("name", ["max_tokens", "most_chains", "epochs", "batch_size"])
@pytest.mark.parametrize("value", [0, -3])
def test_what_is_counted_is_at_least_one(name: str, value: int) -> None:
    with pytest.raises(RechainError, match=f"^the setting {name} should be at least .*, not {value}"):
        ReaderSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 12.5),
        ("margin", "wide"),
        ("margin", float("nan")),
        ("temperature", 0),
        ("temperature", -1.0),
        ("ranker_weight", None),
        ("ranker_weight", float("inf")),
        ("seed", True),
    ],
)
def test_a_wrong_value_is_said_in_one_sentence(name: str, value: Any) -> None:
    with pytest.raises(RechainError, match=f"^the setting {name} should be .*not {re.escape(repr(value))}.$"):
        ReaderSettings(**{name: value})


def test_whole_numbers_are_numbers() -> None:
    assert ReaderSettings(margin=3, temperature=2).margin == 3


def test_the_defaults_are_right() -> None:
    settings = ReaderSettings()
    assert all(getattr(settings, field.name) == field.default for field in fields(settings))


def test_they_are_read_from_a_file_and_changed_by_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "reader.toml"
    path.write_text("epochs = 5\nmargin = 2\n")
    assert ReaderSettings.read(path, seed=7) == ReaderSettings(epochs=5, margin=2.0, seed=7)


def test_recorded_settings_that_no_longer_exist_are_ignored() -> None:
    assert ReaderSettings.recorded({"max_tokens": 128, "teachers": 2}, "config.json") == ReaderSettings(max_tokens=128)
