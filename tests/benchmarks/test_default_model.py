"""The recipe of the default model, tiny and on a CPU: prepared, trained as on a borrowed machine, and judged."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from rechain import Recoverer
from rechain.schema import Question
from rechain.system.tensors import load_arrays

ROOT = Path(__file__).parents[2]
SHORT = ("epochs=1", "warm_up_epochs=0", "judge_layers=1")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Recipe(NamedTuple):
    """The script, and a folder that it has prepared."""

    main: ModuleType
    stage: Path


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory, data: Path, tiny_encoder: Path) -> Iterator[Recipe]:
    """The recipe, prepared with an encoder, and with another that differs in its weights."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import default_model

        folder = tmp_path_factory.mktemp("recipe")
        default_model.prepare(data, folder / "stage", tiny_encoder)
        other = shutil.copytree(tiny_encoder, folder / "other")
        weights = load_file(other / "model.safetensors")
        save_file({name: 1.5 * value for name, value in weights.items()}, other / "model.safetensors")
        default_model.add(folder / "stage", other)
        yield Recipe(default_model, folder / "stage")


@pytest.mark.slow
def test_it_is_trained_judged_alone_and_with_another_encoder_and_bundled(
    recipe: Recipe,
    data: Path,
    towns: Callable[..., list[Question]],
    tmp_path: Path,
    on_a_bare_machine: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = [part for setting in SHORT for part in ("--set", setting)]
    train = ("benchmarks/default_model.py", "train", recipe.stage, *settings)
    assert "questions/s from prepared tensors" in on_a_bare_machine(*train, "--name", "all")
    assert "questions learnt in" in on_a_bare_machine(*train, "--name", "fold0", "--fold", 0)
    for fold in range(1, 5):
        recipe.main.train(recipe.stage, f"fold{fold}", fold, "encoder", SHORT)
    for fold in range(5):
        recipe.main.train(recipe.stage, f"other{fold}", fold, "other", SHORT)
    plays = {file.stem: load_arrays(file) for file in (recipe.stage / "plays").glob("*.safetensors")}
    judged = [int(chain) for fold in range(5) for chain in plays[f"fold{fold}"]["chains"]]
    assert len(judged) == len(set(judged)), "no chain is judged twice"
    assert all((plays[f"fold{n}"]["ranker"] != plays[f"other{n}"]["ranker"]).any() for n in range(5))
    capsys.readouterr()
    recipe.main.judge(recipe.stage, data)
    alone = capsys.readouterr().out
    recipe.main.judge(recipe.stage, data, ["fold", "other"])
    both = capsys.readouterr().out
    assert alone.count("A right chain is among those kept: 100.0") == 2
    assert "right by at least one" not in alone
    assert both.count("| all three | right by at least one |") == 2
    recipe.main.bundle(recipe.stage, data, tmp_path / "model")
    assert Recoverer(str(tmp_path / "model")).recover(towns(1)[0]).chains


def test_several_readers_are_compared_with_what_they_say_together(
    benchmarks: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four questions of two chains, the first right: each reader errs on another one, together on none."""
    import default_model_figures as figures

    judged = object.__new__(figures.Judged)
    judged._starts, judged._names_entities = np.arange(0, 10, 2), False
    judged.rows = [(place, [True, False]) for place in range(4)]

    def reader(*right: float) -> dict[str, np.ndarray]:
        ranker = np.array([side for value in right for side in (value, 0.0)])
        return {"ranker": ranker, "reasoner": np.zeros(8), "evidence": np.zeros(8)}

    each = {"one": reader(3, 3, 3, -1), "two": reader(-1, 3, 3, 3)}
    figures.judge_each(judged, reader(1, 3, 3, 1), each)
    rows = [row.split(" | ") for row in capsys.readouterr().out.splitlines() if row.startswith("| all three")]
    assert [row[1] for row in rows] == ["one", "two", "right by at least one"]
    assert [row[2].split(" (")[0] for row in rows] == ["75.0", "75.0", "100.0"]
    assert [row[3].split(" (")[0] for row in rows[:2]] == ["25.0", "25.0"]


def test_an_encoder_with_another_vocabulary_is_refused(recipe: Recipe, tiny_encoder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    content = (tiny_encoder / "tokenizer.json").read_text(encoding="utf-8")
    (other / "tokenizer.json").write_text(content.replace('"[unused0]":1', '"[unusual]":1'), encoding="utf-8")
    with pytest.raises(SystemExit, match="has another vocabulary than"):
        recipe.main.add(recipe.stage, other)
