"""The settings of a game: documented, read from files, and checked."""

import ast
import inspect
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import RechainError
from rechain.game import settings as module
from rechain.game.settings import AS_WRITTEN, DATA_SETS, GameSettings


def documented() -> set[str]:
    """Return the fields that a string stands under."""
    tree = ast.parse(inspect.getsource(module))
    (made,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "GameSettings"]
    pairs = zip(made.body, made.body[1:], strict=False)
    return {
        one.target.id
        for one, next_one in pairs
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and isinstance(next_one, ast.Expr)
        and isinstance(next_one.value, ast.Constant)
    }


def message(path: Path, text: str | bytes, **changes: Any) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RechainError) as failure:
        GameSettings.read(path, **changes)
    return str(failure.value)


def test_every_field_is_documented() -> None:
    assert documented() == {field.name for field in fields(GameSettings)}


@pytest.mark.parametrize("name", DATA_SETS)
def test_every_data_set_has_settings(name: str) -> None:
    settings = GameSettings.for_data(name)
    assert settings != GameSettings()
    assert settings.row == "cooperative"
    assert GameSettings.for_data(name, hidden=7) == settings.but(hidden=7)


def test_a_data_set_without_settings_is_an_error_that_names_it() -> None:
    with pytest.raises(RechainError, match=r"nonsense\.toml"):
        GameSettings.for_data("nonsense")


def test_a_file_changes_what_it_names_and_the_caller_has_the_last_word(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('hidden = 7\ndropout = 0\nrow = "conditional"\nmark_answer = true\n')
    expected = GameSettings(hidden=9, dropout=0, row="conditional", mark_answer=True)
    assert GameSettings.read(path, hidden=9) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hiden = 7", "there is no setting 'hiden'; the settings are baseline, batch_size,"),
        ('hidden = "many"', "the setting hidden should be a whole number"),
        ("hidden = 7.0", "the setting hidden should be a whole number"),
        ("hidden = true", "the setting hidden should be a whole number"),
        ("exact_match = 1", "the setting exact_match should be true or false"),
        ("dropout = true", "the setting dropout should be a number"),
        ('dropout = "0.2"', "the setting dropout should be a number"),
        ("bonus = nan", "the setting bonus should be finite"),
        ("learning_rate = inf", "the setting learning_rate should be finite"),
        ("learning_rate = -1.0", "the setting learning_rate should be at least 0"),
        ("game_learning_rate = 1e39", "the setting game_learning_rate should be at most 1e+30"),
        ("clip = 0", "the setting clip should be more than 0"),
        ("hidden = 0", "the setting hidden should be at least 1, not 0"),
        ("hidden = 100001", "the setting hidden should be at most 100,000"),
        ("checkpoint_steps = 0", "the setting checkpoint_steps should be at least 1"),
        ("game_epochs = -1", "the setting game_epochs should be at least 0"),
        ("seed = -1", "the setting seed should be at least 0"),
        ("seed = 9223372036854775808", "the setting seed should be less than 9,223,372,036,854,775,808"),
        ("dropout = 1.0", "the setting dropout should be less than 1"),
        ("held_out = -0.1", "the setting held_out should be at least 0"),
        ('row = "alone"', "the setting row should be one of independent, conditional, cooperative"),
        ("row = [1]", "the setting row should be one of independent, conditional, cooperative"),
        ('gradient = "reinforce"\nsamples = 1', "the setting samples should be at least 2 for the baseline"),
        ("hidden", "is not a TOML file: "),
        ("hidden = 1\nhidden = 2", "is not a TOML file: "),
        (b"\x89PNG\r\n\x1a\n\xff", "is not a TOML file: "),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_that_names_file_and_setting(
    tmp_path: Path, text: str | bytes, what: str
) -> None:
    told = message(tmp_path / "mine.toml", text)
    assert told.startswith(str(tmp_path / "mine.toml"))
    assert what in told
    assert told.endswith(".")
    assert "\n" not in told


def test_one_sample_is_enough_for_a_moving_baseline() -> None:
    assert GameSettings(gradient="reinforce", baseline="moving", samples=1).samples == 1


def test_a_bad_change_of_a_file_names_it_too(tmp_path: Path) -> None:
    assert "no setting 'hiden'" in message(tmp_path / "mine.toml", "hidden = 7", hiden=8)
    assert message(tmp_path / "mine.toml", "hidden = 7", dropout=2).startswith(f"{tmp_path / 'mine.toml'}: the setting")


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(RechainError, match="cannot be read: ") as failure:
        GameSettings.read(tmp_path / name)
    assert str(failure.value).startswith(str(tmp_path / name))


def test_but_changes_a_copy_and_checks_it() -> None:
    settings = GameSettings()
    assert settings.but(hidden=7, dropout=0.5) == GameSettings(hidden=7, dropout=0.5)
    assert settings == GameSettings()
    with pytest.raises(RechainError, match="the setting hidden"):
        settings.but(hidden=0)


def test_a_setting_cannot_be_no_number() -> None:
    with pytest.raises(RechainError, match="the setting entropy should be finite"):
        GameSettings(entropy=math.nan)


def test_settings_of_an_earlier_version_are_read_as_they_were() -> None:
    """What was trained before a setting existed goes on as it was trained."""
    record = {name: value for name, value in asdict(GameSettings(hidden=7)).items() if name not in AS_WRITTEN}
    assert GameSettings.recorded(record, "run.json") == GameSettings(hidden=7, **AS_WRITTEN)
    now = GameSettings(hidden=7, bonus_by="walk")
    assert GameSettings.recorded(asdict(now), "run.json") == now
    assert GameSettings.of(record, "mine.toml") == GameSettings(hidden=7)
    with pytest.raises(RechainError, match="should be names with values"):
        GameSettings.recorded([], "run.json")  # type: ignore[arg-type]
