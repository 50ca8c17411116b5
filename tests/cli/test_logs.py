"""What commands log, and the bars that they show on a terminal."""

import json
import os
import pty
import re
import signal
import subprocess
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.cli.common import RECHAIN, Command

from rechain.cli.recover import _count
from rechain.run.work import Tally, WorkResult
from rechain.system.log import RunLog

DEMO = str(files("rechain").joinpath("data/demo.jsonl"))


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("seconds", ["often", "0", "-1", "nan", "1e30"])
def test_another_number_of_seconds_is_a_number(
    rechain: Command, town_file: Path, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("RECHAIN_LOG_SECONDS", seconds)
    outcome = rechain("recover", town_file, "--model", "lexical", "--workers", 0)
    expected = f"rechain: RECHAIN_LOG_SECONDS should be a number of seconds, not '{seconds}'.\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", expected)


def test_keys_in_an_address_are_not_logged(rechain: Command) -> None:
    addresses = ["s3://KEY:SECRET@bucket/questions", "--out", "s3://KEY:SECRET@bucket/chains?region=x"]
    outcome = rechain("recover", *addresses, "--engine", "ray", "--workers", 0, "--log", "json")
    start = json.loads(outcome.err.splitlines()[0])
    assert (start["input"], start["out"]) == ("s3://bucket/questions", "s3://bucket/chains")
    assert "SECRET" not in outcome.err and "KEY" not in outcome.err


@pytest.mark.parametrize("command", [["recover", "--model", "lexical", "--workers", "0"], ["candidates"]])
def test_too_many_errors_are_the_outcome_that_is_logged(rechain: Command, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"question": "?", "answer": 7, "passages": []}\n')
    outcome = rechain(*command, tmp_path / "bad.jsonl", "--log", "json")
    assert outcome.code == 3
    end = events(outcome.err)[-1]
    assert (end["event"], end["outcome"]) == ("end", "failed")
    assert end["summary"].endswith("Every question failed.")


def test_every_command_that_runs_long_can_be_logged(rechain: Command, town_file: Path, tmp_path: Path) -> None:
    recover = ["recover", town_file, "--model", "lexical", "--workers", 0, "--out", tmp_path / "chains.jsonl"]
    start, end = events(rechain(*recover, "--log", "json").err)
    assert {"model": "lexical", "input": str(town_file), "workers": 0}.items() <= start.items()
    assert (end["questions"], end["errors"], end["share"]) == (12, {}, 1.0)
    assert end["summary"] == "12 questions, 12 with a chain."
    start, end = events(rechain("candidates", town_file, "--log", "json").err)
    assert (start["command"], end["questions"]) == ("candidates", 12)
    assert rechain(*recover, "--overwrite", "--log", "none").err == ""
    text = rechain(*recover, "--overwrite", "--log", "text").err.splitlines()
    assert (len(text), text[-1]) == (3, "12 questions, 12 with a chain.")


@pytest.mark.slow
def test_training_is_logged(rechain: Command, town_file: Path, tmp_path: Path) -> None:
    settings = ["--set", "hidden=3", "--set", "pretrain_epochs=1", "--set", "game_epochs=1", "--device", "cpu"]
    outcome = rechain("train", town_file, "--out", tmp_path / "run", *settings, "--log", "json")
    assert outcome.code == 0
    logged = events(outcome.err)
    assert logged[0]["event"] == "start"
    assert {"phase", "epoch"} <= next(event for event in logged if event["event"] == "epoch").keys()
    assert logged[-1]["doing"].startswith("game, epoch 1, step ")
    assert logged[-1]["summary"].startswith(f"{tmp_path / 'run'} contains the model")


def test_a_log_ends_when_its_run_is_stopped(town_file: Path) -> None:
    """It waits for more questions when SIGTERM comes."""
    command = [*RECHAIN, "recover", "-", "--model", "lexical", "--workers", "0", "--batch-size", "1", "--log", "json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(town_file.read_text())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        start, end, last = process.stderr.read().splitlines()
        assert process.wait(300) == 143
    assert json.loads(start)["input"] == "-"
    assert json.loads(end)["outcome"] == "interrupted"
    assert last == "rechain: stopped by SIGTERM."


def run_on_terminal(*arguments: str) -> tuple[bytes, str]:
    """Return what a command prints, and what it shows on standard error, which is a terminal."""
    terminal, screen = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.run([*RECHAIN, *arguments], stderr=screen, stdout=subprocess.PIPE, env=environment, timeout=300)
    os.close(screen)
    shown = os.read(terminal, 1 << 16).decode(errors="replace")
    os.close(terminal)
    assert done.returncode == 0
    return done.stdout, shown


def test_a_bar_is_shown_on_a_terminal_and_chains_go_to_standard_output() -> None:
    assert "Building candidates" in run_on_terminal("candidates", DEMO)[1]
    printed, shown = run_on_terminal("recover", DEMO, "--model", "lexical", "--workers", "0")
    assert len(printed.splitlines()) == 14
    assert "Recovering" in shown
    assert re.search(r"100%\S* 14 questions, \d+/s, 100.0 % with a chain", shown)
    assert "confidence" not in shown  # which this model does not have


def test_the_bar_tells_how_confident_a_model_is() -> None:
    show = Mock()
    result = WorkResult(b"", Tally(40, 30, Counter(no_link=10), 24.0, 30), 0.5)
    _count(result, Tally(), show, RunLog(None, "recover", {}))
    show.assert_called_once_with(0.5, 40, ", 75.0 % with a chain, mean confidence 0.80")


def test_no_bar_is_shown_elsewhere() -> None:
    assert subprocess.run([*RECHAIN, "candidates", DEMO], capture_output=True, check=True).stderr == b""
