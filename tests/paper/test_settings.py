"""The settings of a game: documented, read from files, and checked."""

import ast
import inspect
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import RechainError
from rechain.paper import settings as module
from rechain.paper.settings import DATA_SETS, GameSettings


def documented() -> set[str]:
    """Return the fields that are followed by a string."""
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


def test_there_are_at_most_twenty_settings_each_documented() -> None:
    assert documented() == {field.name for field in fields(GameSettings)}
    assert len(documented()) <= 20


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
    path.write_text('hidden = 7\nsharpness = 0\nrow = "as written"\n')
    assert GameSettings.read(path, hidden=9) == GameSettings(hidden=9, sharpness=0, row="as written")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hiden = 7", "there is no setting 'hiden'; the settings are batch_size, bonus,"),
        ('hidden = "many"', "the setting hidden should be a whole number"),
        ("hidden = 7.0", "the setting hidden should be a whole number"),
        ("hidden = true", "the setting hidden should be a whole number"),
        ("bonus = true", "the setting bonus should be a number"),
        ('bonus = "0.2"', "the setting bonus should be a number"),
        ("bonus = nan", "the setting bonus should be finite"),
        ("learning_rate = inf", "the setting learning_rate should be finite"),
        ("learning_rate = -1.0", "the setting learning_rate should be at least 0"),
        ("learning_rate = 1e39", "the setting learning_rate should be at most 1e+30"),
        ("hidden = 0", "the setting hidden should be at least 1, not 0"),
        ("hidden = 100001", "the setting hidden should be at most 100,000"),
        ("game_epochs = -1", "the setting game_epochs should be at least 0"),
        ("seed = -1", "the setting seed should be at least 0"),
        ("seed = 9223372036854775808", "the setting seed should be less than 9,223,372,036,854,775,808"),
        ("sure_share = 1.5", "the setting sure_share should be at most 1"),
        ('row = "alone"', "the setting row should be one of independent, head to tail, tail to head, cooperative"),
        ("row = [1]", "the setting row should be one of independent"),
        ("hidden", "is not a TOML file: "),
        ("hidden = 1\nhidden = 2", "is not a TOML file: "),
        (b"\x89PNG\r\n\x1a\n\xff", "is not a TOML file: "),
    ],
)
def test_an_error_is_a_sentence_that_names_file_and_setting(tmp_path: Path, text: str | bytes, what: str) -> None:
    error = message(tmp_path / "mine.toml", text)
    assert error.startswith(str(tmp_path / "mine.toml"))
    assert what in error
    assert error.endswith(".")
    assert "\n" not in error


def test_a_bad_change_of_a_file_names_it_too(tmp_path: Path) -> None:
    assert "no setting 'hiden'" in message(tmp_path / "mine.toml", "hidden = 7", hiden=8)
    error = message(tmp_path / "mine.toml", "hidden = 7", sure_share=2)
    assert error.startswith(f"{tmp_path / 'mine.toml'}: the setting")


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(RechainError, match="cannot be read: ") as failure:
        GameSettings.read(tmp_path / name)
    assert str(failure.value).startswith(str(tmp_path / name))


def test_but_changes_a_copy_and_checks_it() -> None:
    settings = GameSettings()
    assert settings.but(hidden=7, bonus=0.25) == GameSettings(hidden=7, bonus=0.25)
    assert settings == GameSettings()
    with pytest.raises(RechainError, match="the setting hidden"):
        settings.but(hidden=0)


def test_recorded_settings_are_read_again() -> None:
    settings = GameSettings(hidden=7, row="untaught")
    assert GameSettings.of(asdict(settings), "run.json") == settings
    with pytest.raises(RechainError, match="should be names with values"):
        GameSettings.of([], "run.json")  # type: ignore[arg-type]


def test_features_add_up() -> None:
    seen = [
        (s.matches_words, s.step_features)
        for f in ("none", "matches", "closeness", "all")
        for s in [GameSettings(features=f, selects="steps")]
    ]
    assert seen == [(False, 0), (True, 0), (True, 3), (True, 5)]
    assert GameSettings(features="all").step_features is None


def test_the_rows_of_the_cooperative_game() -> None:
    rows = {row: GameSettings(row=row) for row in ("tail to head", "cooperative", "as written", "untaught")}
    assert [s.is_cooperative for s in rows.values()] == [False, True, True, True]
    assert [s.teaches_reasoner for s in rows.values()] == [False, True, True, False]
