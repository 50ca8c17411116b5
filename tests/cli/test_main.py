"""The command as a whole: quick, light, and never a traceback for a user's mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rechain
from rechain.cli.main import app
from rechain.schema import Question

COMMANDS = ("demo", "recover", "candidates", "evaluate", "export", "reproduce", "train")
GROUPS = ("labels",)
HEAVY = {"torch", "transformers", "datasets", "pyarrow", "ray", "spacy", "fastapi", "uvicorn", "sqlite3"}
NOT_FOR_HELP = HEAVY | {"pydantic", "numpy", "orjson", "bm25s", "ahocorasick_rs", "multiprocessing", "asyncio"}
SCRIPT = Path(sys.executable).with_name("rechain")


def run(*command: str | Path, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)  # type: ignore[call-overload]


def loaded_by(code: str, *arguments: str | Path) -> set[str]:
    """Return the top-level modules that a new process has loaded after running some code."""
    report = "import atexit, sys; atexit.register(lambda: print('\\n' + ' '.join(sys.modules)))\n"
    done = run(sys.executable, "-c", report + code, *arguments)
    assert done.returncode == 0, done.stderr
    return {module.partition(".")[0] for module in done.stdout.splitlines()[-1].split()}


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(command in result.output for command in (*COMMANDS, *GROUPS))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: rechain {command}" in result.output


@pytest.mark.parametrize("command", ["recover", "candidates", "evaluate"])
def test_every_command_that_reads_can_choose_types_and_be_strict(command: str) -> None:
    help_text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "120"}).output
    assert "--only" in help_text
    assert "--strict" in help_text
    assert "--passages" in help_text
    assert ("--unambiguous" in help_text) == (command == "evaluate")


def test_the_installed_script_tells_the_version() -> None:
    assert run(SCRIPT, "--version").stdout == f"rechain {rechain.__version__}\n"


def test_import_loads_nothing_heavy() -> None:
    loaded = loaded_by("import rechain")
    assert "rechain" in loaded
    assert not loaded & (NOT_FOR_HELP | {"typer", "rich"})


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_by("from rechain.cli.main import main; main()", "--help")
    assert "typer" in loaded
    assert not loaded & NOT_FOR_HELP


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["demo", "--model", "lexical"],
        ["recover", "questions", "--model", "lexical"],
        ["recover", "questions", "--model", "bm25"],
        ["recover", "questions", "--model", "random"],
        ["candidates", "questions"],
        ["evaluate", "chains", "questions", "--gold", "gold"],
        ["labels", "import", "labels", "gold", "questions", "--annotator", "anna"],
    ],
    ids=" ".join,
)
def test_no_command_loads_torch_unless_a_network_runs(
    tmp_path: Path, bridge_question: Question, arguments: list[str]
) -> None:
    """A module called torch stands first on the path and leaves a trace when anything so much as tries to load it."""
    (tmp_path / "torch.py").write_text("from pathlib import Path; Path(__file__).with_name('loaded').touch()")
    (tmp_path / "questions").write_text(bridge_question.model_dump_json(exclude_none=True))
    (tmp_path / "chains").write_text(json.dumps({"id": "q1", "chains": []}))
    (tmp_path / "gold").write_text(json.dumps({"id": "q1", "chains": [{"passages": ["opera", "composer"]}]}))
    code = "from rechain.cli.main import main; main()"
    done = run(sys.executable, "-c", code, *arguments, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "loaded").exists()


def test_recovery_of_json_needs_no_extra(tmp_path: Path, bridge_question: Question) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(bridge_question.model_dump_json(exclude_none=True))
    assert not loaded_by("from rechain.cli.main import main; main()", "recover", path, "--model", "lexical") & HEAVY


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["recover"], ["evaluate", "one"], ["--nonsense"], ["--"]], ids=" ".join
)
def test_a_command_that_is_none_is_a_mistake(arguments: list[str]) -> None:
    done = run(SCRIPT, *arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["recover", "candidates"])
def test_a_mistake_is_one_sentence_on_standard_error(tmp_path: Path, command: str) -> None:
    done = run(SCRIPT, command, tmp_path / "missing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rechain: {tmp_path / 'missing'} cannot be read: No such file or directory.\n"


def test_nothing_but_the_result_is_printed_where_there_is_no_terminal(
    tmp_path: Path, bridge_question: Question
) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(bridge_question.model_dump_json(exclude_none=True))
    done = run(SCRIPT, "recover", path, "--model", "lexical")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == "1 question, 1 with a chain.\n"
