"""The command as a whole: quick, light, how it ends, and nothing that a terminal would obey."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.cli.common import Command
from typer.testing import CliRunner

from rechain.cli.main import Terminated, app, code_of, main
from rechain.cli.options import ExitCode, too_many_errors
from rechain.errors import RechainError
from rechain.schema import Question
from rechain.version import __version__

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
    assert run(SCRIPT, "--version").stdout == f"rechain {__version__}\n"


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


# ---- too many errors


@pytest.fixture
def failing(tmp_path: Path, bridge_question: Question) -> Path:
    """A file of four questions: three have a field of a wrong type, the last has a chain."""
    path = tmp_path / "questions.jsonl"
    good = json.loads(bridge_question.model_dump_json(exclude_none=True))
    path.write_text("".join(json.dumps(record) + "\n" for record in (*[good | {"answer": 7}] * 3, good)))
    return path


def bad_alone(path: Path) -> Path:
    """Leave the last question out."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    return path


READING = (["recover", "--model", "lexical", "--workers", "0"], ["candidates"])


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_run_in_which_every_question_failed_is_no_success(
    rechain: Command, failing: Path, command: list[str]
) -> None:
    assert rechain(*command, failing).code == 0
    outcome = rechain(*command, bad_alone(failing))
    assert outcome.code == 3
    assert outcome.err.endswith("Every question failed.\n")
    assert outcome.out


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_more_errors_than_allowed_are_no_success(rechain: Command, failing: Path, command: list[str]) -> None:
    assert rechain(*command, failing, "--max-error-rate", 0.75).code == 0
    outcome = rechain(*command, failing, "--max-error-rate", 0.5)
    assert outcome.code == 3
    assert outcome.err.endswith("75.0 % of the questions failed, but only 50 % may.\n")
    for rate in (1.5, -1, "nan"):
        assert rechain(*command, failing, "--max-error-rate", rate).code == 2
    assert rechain(*command, bad_alone(failing), "--max-error-rate", 1).code == 0


@pytest.mark.parametrize(
    ("failed", "questions", "most", "is_too_many"),
    [
        (0, 0, 0.0, False),
        (0, 5, 0.0, False),
        (1, 5, 0.0, True),
        (1, 5, 0.2, False),
        (2, 5, 0.2, True),
        (5, 5, 1, False),
        (5, 5, None, True),
        (4, 5, None, False),
    ],
)
def test_how_many_errors_are_too_many(failed: int, questions: int, most: float | None, is_too_many: bool) -> None:
    assert bool(too_many_errors(failed, questions, most)) == is_too_many


def test_going_on_is_advised_only_where_it_helps(rechain: Command, failing: Path, tmp_path: Path) -> None:
    """A folder whose second file is something else: what was done is kept, but --resume would fail in the same way."""
    folder, out = tmp_path / "folder", tmp_path / "chains.jsonl"
    folder.mkdir()
    failing.rename(folder / "a.jsonl")
    (folder / "b.jsonl").write_text("no JSON")
    outcome = rechain("recover", folder, "--model", "lexical", "--workers", 0, "--batch-size", 1, "--out", out)
    assert outcome.code == 2
    assert outcome.err.endswith(f"What was done before is in {out}.\n")
    assert "--resume" not in outcome.err


# ---- a reader that goes away


@pytest.fixture
def printing(tmp_path: Path, rechain: Command, bridge_question: Question) -> Path:
    """A folder with questions, chains, gold and labels."""
    (tmp_path / "questions.jsonl").write_text(bridge_question.model_dump_json(exclude_none=True) + "\n")
    (tmp_path / "gold.jsonl").write_text(json.dumps({"id": "q1", "chains": [{"passages": ["opera", "composer"]}]}))
    out = tmp_path / "chains.jsonl"
    assert rechain("recover", tmp_path / "questions.jsonl", "--model", "lexical", "--out", out).code == 0
    files = [tmp_path / name for name in ("labels.sqlite", "gold.jsonl", "questions.jsonl")]
    assert rechain("labels", "import", *files, "--annotator", "anna").code == 0
    return tmp_path


PRINTING = [
    ["recover", "questions.jsonl", "--model", "lexical", "--workers", "0"],
    ["candidates", "questions.jsonl"],
    ["candidates", "questions.jsonl", "--json"],
    ["evaluate", "chains.jsonl", "questions.jsonl", "--gold", "gold.jsonl"],
    ["evaluate", "chains.jsonl", "questions.jsonl", "--gold", "gold.jsonl", "--json"],
    ["export", "chains.jsonl", "--to", "triplets", "--questions", "questions.jsonl"],
    ["labels", "export", "labels.sqlite", "questions.jsonl"],
    ["labels", "agreement", "labels.sqlite"],
    ["demo", "--model", "lexical"],
    ["--version"],
    ["--help"],
]


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_reader_that_is_gone_ends_a_command_quietly(
    printing: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(printing)
    monkeypatch.setattr("sys.argv", ["rechain", *arguments])
    theirs, ours = os.pipe()
    os.close(theirs)
    with os.fdopen(ours, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        with pytest.raises(SystemExit) as ended:
            main()
        monkeypatch.undo()
    assert ended.value.code == 141
    said = capsys.readouterr().err
    assert "rechain:" not in said
    assert "Error" not in said


@pytest.mark.parametrize(
    ("code", "cause", "expected"),
    [
        (0, None, 0),
        (None, None, 0),
        ("no", None, 1),
        (1, OSError(), 1),
        (1, BrokenPipeError(), 141),
        (2, BrokenPipeError(), 2),
        (130, KeyboardInterrupt(), 130),
        (130, Terminated(), 143),
    ],
)
def test_the_code_tells_what_has_happened(code: Any, cause: BaseException | None, expected: int) -> None:
    ended = SystemExit(code)
    ended.__context__ = RechainError("in between")
    ended.__context__.__cause__ = cause
    assert code_of(ended) == expected
    assert ExitCode.READER_GONE == 128 + 13


# ---- nothing that a terminal would obey

EVIL = "\x1b]0;owned\x07\x9b2J\r\u202e"


def on_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str:
    """Return what a command shows on a terminal, for standard output and standard error alike."""
    terminal, screen = os.openpty()
    shown = b""
    with os.fdopen(screen, "w") as stream:
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", stream)
            patch.setattr("sys.stderr", stream)
            patch.setenv("TERM", "dumb")  # on which rich shows no colours and no bars
            patch.setattr("rich.console.Console._environ", os.environ)  # rich keeps that of its import
            patch.setattr("sys.argv", ["rechain", *map(str, arguments)])
            with pytest.raises(SystemExit):
                main()
        stream.flush()
        os.set_blocking(terminal, False)
        try:
            while piece := os.read(terminal, 1 << 16):
                shown += piece
        except BlockingIOError:
            pass
    os.close(terminal)
    return shown.decode()


def assert_is_harmless(shown: str) -> None:
    assert shown
    assert not set("\x07\x9b\u202e") & set(shown)
    assert "\x1b]" not in shown
    assert "\r" not in shown.replace("\r\n", "")


@pytest.fixture
def evil(tmp_path: Path, bridge_question: Question) -> Path:
    """A file of a question with escape sequences in every text, and of one whose answer is nowhere."""
    record = bridge_question.model_dump(exclude_none=True) | {"id": EVIL, "question": f"Where {EVIL}?"}
    for passage in record["passages"]:
        passage |= {"id": passage["id"] + EVIL, "title": passage["title"] + EVIL, "text": passage["text"] + EVIL}
    path = tmp_path / f"{EVIL}.jsonl"
    bad = record | {"id": EVIL + "2", "answer": f"nowhere{EVIL}"}
    path.write_text("".join(json.dumps(each) + "\n" for each in (record, bad)))
    return path


def test_ids_texts_and_names_of_files_are_shown_and_not_obeyed(
    evil: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rechain: Command
) -> None:
    recover = ["recover", evil, "--model", "lexical", "--workers", 0]
    assert_is_harmless(on_terminal(monkeypatch, *recover))
    assert_is_harmless(on_terminal(monkeypatch, *recover, "--strict"))
    assert_is_harmless(on_terminal(monkeypatch, "candidates", evil))
    assert_is_harmless(on_terminal(monkeypatch, "candidates", tmp_path / f"missing{EVIL}"))
    assert_is_harmless(on_terminal(monkeypatch, "candidates", evil, f"more{EVIL}"))
    assert_is_harmless(on_terminal(monkeypatch, "demo", "--id", EVIL))
    chains = tmp_path / f"chains{EVIL}.jsonl"
    assert rechain(*recover, "--out", chains).code == 0
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps({"id": EVIL, "chains": [{"passages": ["a", "b"]}]}))
    assert_is_harmless(on_terminal(monkeypatch, "evaluate", chains, evil, "--gold", gold))
    assert_is_harmless(on_terminal(monkeypatch, "export", chains, "--to", "triplets", "--questions", evil))


def test_what_goes_into_files_and_pipes_is_exact(evil: Path, tmp_path: Path, rechain: Command) -> None:
    outcome = rechain("recover", evil, "--model", "lexical", "--workers", 0)
    assert [row["id"] for row in outcome.rows] == [EVIL, EVIL + "2"]
    out = tmp_path / "chains.jsonl"
    assert rechain("recover", evil, "--model", "lexical", "--workers", 0, "--out", out).code == 0
    assert out.read_bytes() == outcome.out.encode()
    assert "\x9b" in outcome.out


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
def test_a_name_that_is_no_text_can_be_printed(tmp_path: Path, rechain: Command) -> None:
    outcome = rechain("candidates", os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    assert (outcome.code, outcome.err) == (
        2,
        f"rechain: {tmp_path}/\ufffd.jsonl cannot be read: No such file or directory.\n",
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "full", "out"), "out cannot be written: full."),
        (OSError(errno.EACCES, "no", "out"), "out cannot be read or written: no."),
        (io.UnsupportedOperation("not readable"), "a file cannot be read or written: not readable."),
    ],
)
def test_a_file_that_fails_is_named(
    rechain: Command, monkeypatch: pytest.MonkeyPatch, error: OSError, expected: str
) -> None:
    monkeypatch.setattr("rechain.cli.main.app", Mock(side_effect=error))
    assert rechain() == (2, "", f"rechain: {expected}\n")
