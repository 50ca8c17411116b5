"""The recipe of the default model, tiny and on a CPU: prepared, trained as on a borrowed machine, and judged."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

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
    """The recipe, prepared with the same encoder for reader and teacher."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import default_model

        stage = tmp_path_factory.mktemp("recipe") / "stage"
        default_model.prepare(data, stage, tiny_encoder, tiny_encoder)
        yield Recipe(default_model, stage)
        for name in ("default_model", "default_model_figures"):
            sys.modules.pop(name)


@pytest.mark.parametrize("name", ["default_model", "proof", "proof_plays", "rechain.game.plays"])
def test_what_runs_on_a_borrowed_machine_needs_torch_transformers_numpy_and_safetensors_alone(
    name: str, on_a_bare_machine: Callable[..., str]
) -> None:
    on_a_bare_machine(name)


@pytest.mark.slow
def test_it_is_trained_judged_alone_and_with_its_teacher_and_bundled(
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
        recipe.main.train(recipe.stage, f"teacher{fold}", fold, "teacher", SHORT)
    fold = load_arrays(recipe.stage / "questions.safetensors")["fold"]
    told = [load_arrays(recipe.stage / "plays" / f"fold{number}.safetensors")["chains"] for number in range(5)]
    assert len({*range(5)} & {*fold}) == 5
    assert sum(map(len, told)) == len({int(chain) for chains in told for chain in chains}), "no chain is told twice"
    capsys.readouterr()
    recipe.main.judge(recipe.stage, data)
    alone = capsys.readouterr().out
    recipe.main.judge(recipe.stage, data, ["fold", "teacher"])
    both = capsys.readouterr().out
    assert "A right chain is among those kept: 100.0" in alone
    assert "At least one of the readers" not in alone
    assert both.count("At least one of the readers chooses a right chain") == 2
    assert "| all three |" in both
    recipe.main.bundle(recipe.stage, data, tmp_path / "model")
    assert Recoverer(str(tmp_path / "model")).recover(towns(1)[0]).chains


def test_a_teacher_with_another_vocabulary_is_refused(
    recipe: Recipe, data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    content = (tiny_encoder / "tokenizer.json").read_text(encoding="utf-8")
    (other / "tokenizer.json").write_text(content.replace('"[unused0]":1', '"[unusual]":1'), encoding="utf-8")
    with pytest.raises(SystemExit, match="has another vocabulary than"):
        recipe.main.prepare(data, tmp_path / "stage", tiny_encoder, other)
