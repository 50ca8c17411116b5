"""The recipe of the default model, tiny and on a CPU: prepared, trained as on a borrowed machine, and judged."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from rechain import Recoverer
from rechain.schema import Question
from rechain.system.tensors import load_arrays

ROOT = Path(__file__).parents[2]
SHORT = ("epochs=1", "judge_layers=1")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Recipe(NamedTuple):
    """The script, and a folder that it has prepared."""

    main: ModuleType
    stage: Path


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory, data: Path, tiny_encoder: Path) -> Iterator[Recipe]:
    """The recipe, prepared with an encoder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import default_model

        folder = tmp_path_factory.mktemp("recipe")
        default_model.prepare(data, folder / "stage", tiny_encoder)
        yield Recipe(default_model, folder / "stage")


@pytest.mark.slow
def test_it_is_trained_judged_and_bundled(
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
        recipe.main.train(recipe.stage, f"fold{fold}", fold, SHORT)
    plays = {file.stem: load_arrays(file) for file in (recipe.stage / "plays").glob("*.safetensors")}
    judged = [int(chain) for fold in range(5) for chain in plays[f"fold{fold}"]["chains"]]
    assert len(judged) == len(set(judged)), "no chain is judged twice"
    capsys.readouterr()
    recipe.main.judge(recipe.stage, data)
    assert capsys.readouterr().out.count("A right chain is among those kept: 100.0") == 2
    recipe.main.bundle(recipe.stage, data, tmp_path / "model")
    assert Recoverer(str(tmp_path / "model")).recover(towns(1)[0]).chains
