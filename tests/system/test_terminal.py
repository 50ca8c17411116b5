import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.system.terminal import note, print_records, printable

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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
