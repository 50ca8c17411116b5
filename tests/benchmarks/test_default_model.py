"""The recipe of the default model, tiny and on a CPU: prepared, trained as on a borrowed machine, and judged."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from rechain import Recoverer
from rechain.schema import Gold, GoldChain, Question
from rechain.system.tensors import load_arrays

ROOT = Path(__file__).parents[2]
SHORT = ("epochs=1", "judge_layers=1")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Recipe(NamedTuple):
    """The script, and a folder that it has prepared."""

    main: ModuleType
    stage: Path


def write_logs(questions: list[Question], folder: Path) -> Path:
    """Write questions of two sets of logs with their gold evidence, as benchmarks/logs/build.py does."""
    folder.mkdir()
    asked = [q.model_copy(update={"id": f"set{number % 2}-{number}"}) for number, q in enumerate(questions)]
    gold = [Gold(id=q.id, chains=[GoldChain(passages=["work", "maker"])], verdict="supported") for q in asked]
    for name, rows in (("questions.fit.jsonl", asked), ("gold.fit.jsonl", gold)):
        (folder / name).write_text("".join(f"{row.model_dump_json(exclude_defaults=True)}\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def recipe(
    tmp_path_factory: pytest.TempPathFactory, data: Path, tiny_encoder: Path, towns: Callable[..., list[Question]]
) -> Iterator[Recipe]:
    """The recipe, prepared with an encoder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import default_model

        folder = tmp_path_factory.mktemp("recipe")
        default_model.prepare(data, folder / "stage", tiny_encoder, write_logs(towns(10, first=700), folder / "logs"))
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
        recipe.main.train(recipe.stage, f"fold{fold}", fold, None, SHORT)
    plays = {file.stem: load_arrays(file) for file in (recipe.stage / "plays").glob("*.safetensors")}
    judged = [int(chain) for fold in range(5) for chain in plays[f"fold{fold}"]["chains"]]
    assert len(judged) == len(set(judged)), "no chain is judged twice"
    capsys.readouterr()
    recipe.main.judge(recipe.stage, data)
    assert capsys.readouterr().out.count("A right chain is among those kept: 100.0") == 5
    recipe.main.bundle(recipe.stage, data, tmp_path / "model")
    assert Recoverer(str(tmp_path / "model")).recover(towns(1)[0]).chains
