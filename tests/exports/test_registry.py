"""A new export is one module and one line in `registry.EXPORTS`; CONTRIBUTING shows how."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rechain.exports.joining import FileExport, Joined, LineExport
from rechain.exports.registry import EXPORTS, load_export
from rechain.schema import Question


def rows(joined: Joined, negatives: int = 1) -> list[dict[str, Any]]:
    return [{"q": joined.question.question, "chain": joined.best.passages, "negatives": negatives}]


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The command line as it is with a toy export, whose module is `rechain.exports.toy`."""
    toy = ModuleType("rechain.exports.toy")
    toy.EXPORT = LineExport(rows, options=("negatives",))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, toy.__name__, toy)
    monkeypatch.setitem(EXPORTS, "toy", "chains of a toy")
    spec = importlib.util.find_spec("rechain.cli.export")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)  # a fresh copy, as the list is read when it is imported
    spec.loader.exec_module(module)
    app = typer.Typer()
    app.command()(module.export)
    return app


def test_an_export_that_is_listed_is_offered_and_written(
    app: typer.Typer, bridge: Joined, bridge_question: Question, tmp_path: Path
) -> None:
    questions, chains, out = (tmp_path / name for name in ("questions", "chains", "out"))
    questions.write_text(bridge_question.model_dump_json(exclude_none=True) + "\n")
    chains.write_text(bridge.recovered.to_json() + "\n")
    arguments = [str(chains), "--to", "toy", "--questions", str(questions), "--negatives", "3", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    expected = {"q": bridge_question.question, "chain": ["opera", "composer"], "negatives": 3}
    assert [json.loads(line) for line in out.read_text().splitlines()] == [expected]
    shown = CliRunner().invoke(app, ["--help"]).output.replace("│", " ")
    assert "toy: chains of a toy" in " ".join(shown.split())


@pytest.mark.parametrize("name", EXPORTS)
def test_every_listed_module_has_its_export(name: str) -> None:
    assert isinstance(load_export(name), LineExport | FileExport)


def test_the_help_loads_no_export() -> None:
    code = "import sys, rechain.cli.main; print([name for name in sys.modules if name.startswith('rechain.exports.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "['rechain.exports.registry']"
