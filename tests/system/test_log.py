"""Logs and bars: what they show, when, and to whom."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.cli.main import Terminated
from rechain.system.log import LogFormat, RunLog, bar, counted, memory, note, print_records, printable


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    monkeypatch.setenv("RECHAIN_LOG_SECONDS", "0.001")
    with RunLog(LogFormat.json, "recover", {}):
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


def test_a_bar_is_shown_where_a_terminal_is_and_no_log_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    for format in (None, LogFormat.text):
        monkeypatch.setattr("sys.stderr", screen := Terminal())
        with RunLog(format, "recover", {}) as log, bar("Recovering") as show:
            show(0.5, 40, ", 75.0 % with a chain")
            assert log.shows_bar is (format is None)
        shown.append("50%" in screen.getvalue() and "40 questions, " in screen.getvalue())
    assert shown == [True, False]


@pytest.mark.parametrize(("total", "share"), [(4, "75%"), (None, "")])
def test_questions_are_counted_on_standard_error(
    capsys: pytest.CaptureFixture[str], total: int | None, share: str
) -> None:
    questions = counted(iter("abcd"), "Spelling", total)
    assert [next(questions) for _ in range(3)] == ["a", "b", "c"]
    questions.close()  # type: ignore[attr-defined]
    out, err = capsys.readouterr()
    assert out == ""
    assert all(part in err for part in ("Spelling", share, "3 questions, ", "/s"))


PRINTING = "from rechain.system.log import counted\nfor item in counted('abc', 'Spelling', 3): print(item)"


def test_what_is_printed_under_a_bar_stays_on_standard_output() -> None:
    terminal, screen = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    done = subprocess.run([sys.executable, "-c", PRINTING], stderr=screen, stdout=subprocess.PIPE, env=environment)
    os.close(screen)
    shown = os.read(terminal, 1 << 16).decode(errors="replace")
    os.close(terminal)
    assert done.stdout == b"a\nb\nc\n"
    assert "3 questions" in shown


# ---- text for people

TITLE = "\x1b]0;owned\x07"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, žluťoučký 😀 \u05d0", "plain text, žluťoučký 😀 \u05d0"),
        (TITLE, "␛]0;owned␇"),
        ("\x9b2J", "\ufffd2J"),
        ("done\rfake", "done␍fake"),
        ("one\ntwo\tthree", "one␊two␉three"),
        ("\x00\x7f", "␀␡"),
        ("a\u202eb\u2066c\u2029", "a\ufffdb\ufffdc\ufffd"),
        ("\udcff.jsonl", "\ufffd.jsonl"),
    ],
)
def test_a_terminal_is_shown_what_it_would_obey(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_of_a_text_may_be_kept() -> None:
    assert printable("one\ntwo\t\x1b", keep_lines=True) == "one\ntwo\t␛"


@given(st.text())
def test_places_stay_and_nothing_is_left_to_obey(text: str) -> None:
    """Highlights are set by place."""
    shown = printable(text)
    assert len(shown) == len(text)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert printable(shown) == shown


def test_a_note_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    note(f"{TITLE}\nrechain: fake")
    assert capsys.readouterr().err == "␛]0;owned␇␊rechain: fake\n"


def test_a_note_that_quotes_a_whole_text_keeps_its_beginning_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    note(f"the passage '{'long ' * 50_000}' is not there; name another.")
    line = capsys.readouterr().err
    assert line.startswith("the passage 'long long")
    assert line.endswith("is not there; name another.\n")
    assert len(line) < 3000


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_records_are_exact_in_a_pipe_and_safe_json_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]
) -> None:
    record = {"id": "a\x9b2J\u202e", "text": "ž"}
    line = json.dumps(record, ensure_ascii=False) + "\n"
    monkeypatch.setattr(sys, "stdout", printed := stream())
    print_records(line)
    assert json.loads(printed.getvalue()) == record
    assert (printed.getvalue() == line) == (stream is io.StringIO)
    assert ("\x9b" in printed.getvalue()) == (stream is io.StringIO)
