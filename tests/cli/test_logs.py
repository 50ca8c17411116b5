"""Logs: what they say, when, and to whom."""

import io
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rechain.cli.exits import Terminated
from rechain.cli.logs import LogFormat, RunLog, memory

Command = Callable[..., Any]
RECHAIN = [sys.executable, "-c", "from rechain.cli.main import main; main()"]


class Clock:
    """A clock that stands still."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_says_how_far_a_run_has_come(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with RunLog(LogFormat.json, "recover", {"model": "lexical\x1b", "out": None}, clock=clock) as log:
        log.questions, log.share = 0, 0.2  # a run that was resumed
        log.tick()
        clock.now += 30
        log.questions, log.share, log.errors = 60, 0.4, Counter(no_link=2, bad_json=3)
        log.tick()
        clock.now += 10
        log.end("60 questions.")
    start, first, second, end = events(capsys.readouterr().err)
    assert start.pop("time").endswith("Z")
    assert start == {"command": "recover", "event": "start", "model": "lexical\x1b"}
    assert "left_s" not in first
    expected = {"questions": 60, "questions_a_second": 2.0, "share": 0.4, "left_s": 90.0, "elapsed_s": 30.0}
    assert expected.items() <= second.items()
    assert list(second["errors"].items()) == [("bad_json", 3), ("no_link", 2)]
    assert (end["event"], end["outcome"], end["elapsed_s"], end["summary"]) == ("end", "done", 40.0, "60 questions.")


def test_text_says_the_same_in_a_line_and_ends_with_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with RunLog(LogFormat.text, "recover", {"model": "lexical", "input": "a\x1b\n"}, clock=clock) as log:
        clock.now += 8
        log.questions, log.share, log.errors = 4, 0.125, Counter(no_link=1)
        log.tick()
        log.end("4 questions.", "Every question failed.")
    start, progress, end, last = capsys.readouterr().err.splitlines()
    assert start.endswith(" recover start: model lexical, input a␛␊")
    middle = "questions 4, questions a second 0.5, errors 1 no_link, share 12.5 %"
    assert f" recover progress: {middle}" in progress
    assert ", elapsed 8.0 s" in progress
    assert " recover end: outcome failed, " in end
    assert last == "4 questions. Every question failed."


@pytest.mark.parametrize(
    ("error", "outcome", "summary"),
    [
        (ValueError("wrong"), "failed", "wrong"),
        (KeyboardInterrupt(), "interrupted", "interrupted"),
        (Terminated(), "interrupted", "stopped by SIGTERM"),
    ],
)
def test_a_run_that_fails_has_an_end_too(
    capsys: pytest.CaptureFixture[str], error: BaseException, outcome: str, summary: str
) -> None:
    with pytest.raises(type(error)), RunLog(LogFormat.json, "train", {}):
        raise error
    end = events(capsys.readouterr().err)[-1]
    assert (end["event"], end["outcome"], end["summary"]) == ("end", outcome, summary)


def test_none_prints_failures_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with RunLog(LogFormat.none, "recover", {}) as log:
        log.note("of note")
        log.event("epoch", "an epoch", {})
        log.end("4 questions.", "Every question failed.")
    assert capsys.readouterr().err == "Every question failed.\n"


def test_a_short_run_without_a_choice_has_its_last_line_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with RunLog(None, "recover", {}) as log:
        log.end("4 questions.")
    assert capsys.readouterr().err == "4 questions.\n"


@pytest.mark.parametrize("seconds", ["often", "0", "-1", "nan", "1e30"])
def test_another_number_of_seconds_is_a_number(
    rechain: Command, town_file: Path, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("RECHAIN_LOG_SECONDS", seconds)
    outcome = rechain("recover", town_file, "--model", "lexical", "--workers", 0)
    expected = f"rechain: RECHAIN_LOG_SECONDS should be a number of seconds, not '{seconds}'.\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", expected)


def test_a_long_run_without_a_choice_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    with RunLog(None, "recover", {"model": "lexical"}) as log:
        log.tick()
        log.end("4 questions.")
    start, progress, end, last = capsys.readouterr().err.splitlines()
    assert [" recover start: " in start, " recover progress: " in progress, " recover end: " in end] == [True] * 3
    assert last == "4 questions."


def test_lines_come_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    three = threading.Event()

    class Lines(io.StringIO):
        def write(self, text: str) -> int:
            written = super().write(text)
            if self.getvalue().count('"progress"') >= 3:
                three.set()
            return written

    monkeypatch.setattr("sys.stderr", lines := Lines())
    with RunLog(LogFormat.json, "recover", {}, every=0.001):
        assert three.wait(300)
    assert events(lines.getvalue())[-1]["event"] == "end"


@pytest.mark.parametrize("format", [LogFormat.json, LogFormat.text])
def test_a_line_is_written_whole_while_no_other_thread_writes(
    monkeypatch: pytest.MonkeyPatch, format: LogFormat
) -> None:
    """Or lines of the thread that logs progress would stand in the middle of others."""
    log = RunLog(format, "train", {})
    written: list[tuple[str, bool]] = []

    class Lines(io.StringIO):
        def write(self, text: str) -> int:
            written.append((text, log._writing.locked()))
            return len(text)

    monkeypatch.setattr("sys.stderr", Lines())
    with log:
        log.event("epoch", "an epoch", {"epoch": 1})
        log.tick()
    assert len(written) == 4
    assert all(text.count("\n") == 1 and text.endswith("\n") for text, _ in written)
    assert all(is_locked for _, is_locked in written[1:])


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


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="there is no /proc")
def test_memory_is_that_of_this_process_and_of_those_below() -> None:
    code = "block = bytearray(b'x') * 80_000_000; print(flush=True); input()"
    below = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"]
    with subprocess.Popen(below, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        own, others = memory()
        process.communicate(b"\n")
    assert own and own > 5
    assert others and others > 70


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
    assert logged[-1]["summary"].startswith(f"{tmp_path / 'run'} holds the model")


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
