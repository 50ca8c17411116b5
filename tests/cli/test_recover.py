"""rechain recover: what it writes, and what it says about bad input."""

import fcntl
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
from tests.cli.common import RECHAIN, Command

from rechain.cli.recover import _hint
from rechain.errors import ResumableError
from rechain.run.work import Tally
from rechain.schema import Question, Recovered
from rechain.system.log import RunLog
from rechain.system.provenance import read_provenance, sidecar_of

LEXICAL = [*RECHAIN, "recover", "--model", "lexical"]  # a process of its own loads no network
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@pytest.fixture
def recover(rechain: Command) -> Command:
    """Run `rechain recover` in this process."""
    return partial(rechain, "recover")


@pytest.fixture
def good(bridge_question: Question) -> dict[str, Any]:
    """A record from which a chain can be recovered."""
    return json.loads(bridge_question.model_dump_json(exclude_none=True))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a questions file, a record or a raw line each."""

    def write_lines(*records: object, name: str = "questions.jsonl") -> Path:
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
        (tmp_path / name).write_bytes(b"".join(line + b"\n" for line in lines))
        return tmp_path / name

    return write_lines


Write = Callable[..., Path]


def test_the_chain_is_written_as_the_format_says(recover: Command, write: Write, good: dict[str, Any]) -> None:
    outcome = recover(write(good))
    assert outcome.code == 0
    (row,) = outcome.rows
    assert row.keys() == {"id", "chains", "error", "verdict", "verdict_probability", "claims"}
    assert (row["id"], row["error"], row["verdict"]) == ("q1", None, "supported")
    (chain,) = row["chains"]
    assert chain.keys() == {"shape", "passages", "links", "answer", "score", "confidence"}
    assert chain["passages"] == ["opera", "composer"]
    assert chain["links"][0]["entity"] == "Anton Quillfeather"
    assert chain["links"][0]["mentions"] == [[23, 41], [0, 18]]
    assert Recovered.model_validate(row).chains[0].links[0].kind == "title"
    assert outcome.err.strip() == "1 question, 1 with a chain. Answers: 1 supported."


def test_top_and_explain(recover: Command, write: Write, good: dict[str, Any]) -> None:
    (row,) = recover(write(good), "--top", 2, "--explain").rows
    scores = [chain["score"] for chain in row["chains"]]
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)
    assert sum(row["chains"][0]["why"].values()) == pytest.approx(scores[0])


def test_standard_input_and_output(good: dict[str, Any]) -> None:
    for content in (json.dumps(good).encode(), gzip.compress(json.dumps([good]).encode())):
        done = subprocess.run([*LEXICAL, "-"], input=content, capture_output=True)
        assert done.returncode == 0
        assert json.loads(done.stdout)["chains"][0]["passages"] == ["opera", "composer"]


def test_the_output_is_utf8_whatever_the_terminal_is(write: Write, good: dict[str, Any]) -> None:
    path = write(good | {"id": "ž1"})
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*LEXICAL, str(path)], capture_output=True, env=environment)
    assert b"Traceback" not in done.stderr
    assert json.loads(done.stdout)["id"] == "ž1"


def test_a_reader_that_goes_away_is_no_error(write: Write, good: dict[str, Any]) -> None:
    path = write(*[good] * 300)
    command = [*LEXICAL, str(path), "--top", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(300) == 141


def test_questions_may_name_passages_of_another_file(recover: Command, write: Write, good: dict[str, Any]) -> None:
    passages = write(*good["passages"], name="passages.jsonl")
    ids = [passage["id"] for passage in good.pop("passages")]
    questions = write(good | {"passage_ids": ids}, good | {"passage_ids": ["none"]})
    first, second = recover(questions, "--passages", passages).rows
    assert first["chains"][0]["passages"] == ["opera", "composer"]
    assert second["error"]["code"] == "unknown_passage"


def test_only_questions_of_a_type(recover: Command, write: Write, good: dict[str, Any]) -> None:
    path = write(good | {"id": "1", "type": "bridge"}, good | {"id": "2", "type": "comparison"})
    assert [row["id"] for row in recover(path, "--only", "bridge").rows] == ["1"]
    nothing = recover(path, "--only", "no such type")
    assert nothing.code == 2
    assert "no such type" in nothing.err


NO_PASSAGE = {"passages": [{"id": "opera", "text": "Prague"}]}
BAD_LINES: list[tuple[str, object, str, str]] = [
    ("malformed", b'{"id": "bad", ', "bad_json", "JSON"),
    ("missing field", {"answer": ...}, "missing_field", "answer"),
    ("wrong type", {"answer": [7]}, "bad_field", "answer"),
    ("passages of a wrong type", {"passages": 7}, "bad_field", "passages"),
    ("not UTF-8", b'{"id": "bad\xff"}', "bad_encoding", "UTF-8"),
    ("lone surrogate", b'{"id": "bad\\ud800"}', "bad_json", "JSON"),
    ("deeply nested", b'{"a": ' * 5000 + b"1" + b"}" * 5000, "too_deep", "nested"),
    ("deep extra field", {"extra": json.loads("[" * 600 + "null" + "]" * 600)}, "too_deep", "extra"),
    ("huge integer", {"hops": 10**400}, "bad_", ""),
    ("large integer", {"hops": 10**30}, "bad_field", "hops"),
    ("no object", b"7", "bad_record", "object"),
    ("too few passages", NO_PASSAGE, "too_few_passages", "passages"),
    ("no passages", {"passages": []}, "too_few_passages", "passages"),
    ("duplicate passages", {"passages": NO_PASSAGE["passages"] * 2}, "duplicate_passage", "passages[1].id"),
    ("answer in no passage", {"answer": "Vienna"}, "no_tail", "answer 'Vienna'"),
    ("empty answer", {"answer": ""}, "no_answer", "the answer is empty"),
    ("no answer", {"answer": "I don't know."}, "no_answer", "says that there is none"),
    (
        "empty text",
        {"passages": [*NO_PASSAGE["passages"], {"id": "p", "text": " "}]},
        "empty_field",
        "passages[1].text",
    ),
    ("hops", {"hops": 0}, "bad_field", "hops"),
    ("link types", {"hops": 3, "link_types": ["gene"]}, "bad_field", "link_types"),
    ("too few passages", {"passages": [{"id": "a", "text": "Prague"}]}, "too_few_passages", "passages"),
]


def spoiled(good: dict[str, Any], change: object) -> object:
    """Return a raw line as it is, or the good record with fields changed or left out."""
    if not isinstance(change, dict):
        return change
    changed = good | {"id": "bad"} | change
    return {field: value for field, value in changed.items() if value is not ...}


@pytest.mark.parametrize(
    ("change", "code", "what"), [case[1:] for case in BAD_LINES], ids=[case[0] for case in BAD_LINES]
)
def test_a_bad_line_gets_its_own_error_and_stops_strict_runs(
    recover: Command, write: Write, good: dict[str, Any], change: object, code: str, what: str
) -> None:
    path = write(good, spoiled(good, change), good | {"id": "q3"})
    outcome = recover(path)
    first, bad, last = outcome.rows
    assert (outcome.code, first["id"], last["id"]) == (0, "q1", "q3")
    assert first["chains"] and last["chains"]
    assert bad["chains"] == []
    assert bad["id"] == (None if isinstance(change, bytes) or code == "bad_" else "bad")
    assert bad["error"]["code"].startswith(code)
    assert bad["error"]["message"].startswith(f"{path}, line 2: ")
    assert what in bad["error"]["message"].removeprefix(str(path))
    assert bad["error"]["message"].endswith(".")
    assert "3 questions, 2 with a chain; without: 1 " in outcome.err
    strict = recover(path, "--strict")
    assert (strict.code, [row["id"] for row in strict.rows]) == (2, ["q1"])
    assert strict.err == f"rechain: {bad['error']['message']}\n"


def test_a_passage_of_5_mb_works_at_most_one_call_a_word(recover: Command, write: Write, good: dict[str, Any]) -> None:
    sentence = "It rains often in Autumn on the Moldau at 12 degrees. "
    good["passages"][3]["text"] = sentence * 100_000
    path, calls = write(good), 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and "rechain" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        (row,) = recover(path).rows
    finally:
        sys.setprofile(None)
    assert row["chains"][0]["passages"] == ["opera", "composer"]
    assert calls < 100_000 * len(sentence.split())


@pytest.mark.parametrize(
    "content",
    [b"", b" \n", PNG, gzip.compress(PNG), b"[1, 2, 3]", b"[]", b'{"a": 1}\n' * 300, b"id,question\n", b"[" * 5000],
    ids=["empty", "blank", "PNG", "gzip of PNG", "numbers", "empty array", "other objects", "CSV", "deep"],
)
def test_a_file_of_something_else_gets_one_sentence(recover: Command, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    outcome = recover(path, "--model", "lexical")
    assert outcome.code == 2
    assert outcome.err.startswith(f"rechain: {path} ")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("name", ["", "missing.jsonl", "missing/missing.jsonl"], ids=["folder", "file", "both"])
def test_what_is_no_file_gets_one_sentence(recover: Command, tmp_path: Path, name: str) -> None:
    outcome = recover(tmp_path / name)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"rechain: {tmp_path / name} ")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("damage", ["cut", "damaged"])
def test_a_bad_gzip_file_is_read_as_far_as_it_goes(
    recover: Command, tmp_path: Path, good: dict[str, Any], damage: str
) -> None:
    draw = Random(0).randbytes
    packed = gzip.compress(b"".join(json.dumps(good | {"id": draw(99).hex()}).encode() + b"\n" for _ in range(500)))
    at = len(packed) * 3 // 4
    path = tmp_path / "questions.jsonl.gz"
    path.write_bytes(packed[:at] if damage == "cut" else packed[:at] + b"\xff" * 100 + packed[at + 100 :])
    outcome = recover(path, "--model", "lexical")
    assert outcome.code == 2
    assert len(outcome.rows) > 100  # damaged bytes may unpack to nonsense, which only the checksum at the end shows
    assert outcome.err.startswith(f"rechain: {path} is {'cut off' if damage == 'cut' else 'damaged'}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--model", "oracle"], "oracle"),
        (["--linkers", "titles,magic"], "magic"),
        (["--linkers", ""], "--linkers names no linker"),
        (["--linkers", " , "], "--linkers names no linker"),
        (["--hops", "1"], "--hops"),
        (["--hops", "9"], "--hops"),
        (["--hops", "two"], "--hops"),
        (["--top", "0"], "--top"),
        (["--limit", "0"], "--limit"),
        (["--batch-size", "0"], "--batch-size"),
        (["--min-confidence", "1.5"], "--min-confidence"),
        (["--passages", "none.jsonl"], "none.jsonl"),
        (["--nonsense"], "--nonsense"),
    ],
    ids=" ".join,
)
def test_a_bad_option_is_named(
    recover: Command, write: Write, good: dict[str, Any], options: list[str], what: str
) -> None:
    outcome = recover(write(good), *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert what in outcome.err
    assert "Traceback" not in outcome.err


def test_an_output_file_is_not_replaced_unasked(
    recover: Command, write: Write, tmp_path: Path, good: dict[str, Any]
) -> None:
    out = tmp_path / "chains.jsonl"
    out.write_text("precious")
    outcome = recover(write(good), "--out", out)
    assert outcome.code == 2
    assert outcome.err.startswith(f"rechain: {out} exists")
    assert out.read_text() == "precious"
    assert recover(write(good), "--out", out, "--overwrite").code == 0
    assert json.loads(out.read_text())["id"] == "q1"


@pytest.mark.parametrize("name", ["missing/chains.jsonl", "folder", "file/chains.jsonl"])
def test_an_output_that_cannot_be_written_gets_one_sentence(
    recover: Command, write: Write, tmp_path: Path, good: dict[str, Any], name: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    outcome = recover(write(good), "--out", tmp_path / name, "--overwrite")
    assert outcome.code == 2
    assert outcome.err.startswith(f"rechain: {tmp_path / name} ")
    assert outcome.err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("options", [[], ["--out", "/dev/full", "--overwrite"]], ids=["output", "file"])
def test_a_full_disk_gets_one_sentence(write: Write, good: dict[str, Any], options: list[str]) -> None:
    command = [*LEXICAL, str(write(*[good] * 99)), *options]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_cannot_be_read_leaves_the_output_alone(recover: Command, tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text("precious")
    assert recover(tmp_path / "missing", "--out", old, "--overwrite").code == 2
    assert recover(tmp_path / "missing", "--out", new).code == 2
    assert old.read_text() == "precious"
    assert not new.exists()


# ---- models that score many questions together


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, batch_fake: Callable[..., Any]) -> Any:
    """A model that stands in for whatever model is named."""
    model = batch_fake()
    monkeypatch.setattr("rechain.recoverer.load_model", lambda name, device: model)
    return model


def test_strict_writes_all_that_comes_before_the_bad_line(
    recover: Command, write: Write, good: dict[str, Any], fake: Any
) -> None:
    path = write(*(good | {"id": str(number)} for number in range(5)), b"{", good)
    outcome = recover(path, "--strict", "--batch-size", 4, "--workers", 0)
    assert (outcome.code, [row["id"] for row in outcome.rows]) == (2, ["0", "1", "2", "3", "4"])
    assert outcome.err.startswith(f"rechain: {path}, line 6: ")


def test_nothing_is_lost_of_what_was_read_before_a_file_ends_early(
    recover: Command, tmp_path: Path, good: dict[str, Any], fake: Any
) -> None:
    draw = Random(0).randbytes
    lines = [json.dumps(good | {"id": f"{number} {draw(99).hex()}"}).encode() + b"\n" for number in range(300)]
    path = tmp_path / "questions.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(lines))[:-3000])
    one, many = (recover(path, "--batch-size", size, "--workers", 0) for size in (1, 64))
    assert one == many
    assert one.code == 2
    assert len(one.rows) > 200


def test_chains_of_little_confidence_are_dropped(
    recover: Command, write: Write, good: dict[str, Any], fake: Any
) -> None:
    path = write(good)
    assert [len(recover(path, "--top", 3, "--min-confidence", least).rows[0]["chains"]) for least in (0, 0.3)] == [3, 2]
    outcome = recover(path, "--min-confidence", 0.9)
    (row,) = outcome.rows
    assert (outcome.code, row["chains"], row["error"]["code"]) == (3, [], "low_confidence")
    message = "the best chain has confidence 0.8, below the 0.9 demanded."
    assert row["error"]["message"] == f"{path}, line 1: {message}"
    counts = "1 question, 0 with a chain; without: 1 low_confidence. Answers: 1 supported."
    assert outcome.err == f"{counts} Every question failed.\n"


def test_a_model_without_confidence_leaves_the_output_alone(
    recover: Command, write: Write, tmp_path: Path, good: dict[str, Any]
) -> None:
    outcome = recover(write(good), "--model", "lexical", "--min-confidence", 0.5, "--out", tmp_path / "chains.jsonl")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == ("rechain: the model 'lexical' tells no confidence, so none can be demanded of its chains.\n")
    assert not (tmp_path / "chains.jsonl").exists()


# ---- worker processes, and going on with what an interrupted run has left


@pytest.fixture
def lexical(recover: Command) -> Command:
    """Recover in this process alone, with the lexical rule, unless told otherwise."""

    def run(*arguments: object, workers: int = 0) -> Any:
        return recover(*arguments, "--model", "lexical", "--workers", workers)

    return run


@pytest.fixture
def chains(lexical: Command, town_file: Path, tmp_path: Path) -> bytes:
    """What an undisturbed run makes of the town questions."""
    assert lexical(town_file, "--out", tmp_path / "undisturbed.jsonl").code == 0
    return (tmp_path / "undisturbed.jsonl").read_bytes()


@pytest.mark.parametrize(("workers", "size"), [(0, 1), (0, 5), (1, 4), (2, 1), (2, 5), (2, 99), (3, 4), (3, 12)])
def test_neither_workers_nor_batches_change_a_byte(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes, workers: int, size: int
) -> None:
    out = tmp_path / "chains.jsonl"
    outcome = lexical(town_file, "--out", out, "--batch-size", size, workers=workers)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "12 questions, 12 with a chain.\n")
    assert out.read_bytes() == chains
    assert chains.count(b"\n") == 12


def test_resume_without_a_file_begins_anew(lexical: Command, town_file: Path, tmp_path: Path, chains: bytes) -> None:
    out = tmp_path / "chains.jsonl"
    outcome = lexical(town_file, "--out", out, "--resume")
    assert (outcome.code, outcome.err) == (0, "12 questions, 12 with a chain.\n")
    assert out.read_bytes() == chains


def test_resume_of_a_finished_file_changes_no_byte(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes
) -> None:
    out, said = tmp_path / "undisturbed.jsonl", "Nothing was left to do: all 12 questions are there.\n"
    for size in (5, 1, 99):
        outcome = lexical(town_file, "--out", out, "--resume", "--batch-size", size)
        assert (outcome.code, outcome.err) == (0, said)
        assert out.read_bytes() == chains
    sidecar_of(out).unlink()
    outcome = lexical(town_file, "--out", out, "--resume", "--batch-size", 5)
    note = f"there is no {sidecar_of(out)}: what {out} contains is recovered again and compared.\n"
    assert (outcome.code, outcome.err) == (0, f"{note}12 questions, 12 with a chain.\n")
    assert out.read_bytes() == chains


@pytest.fixture
def begun(lexical: Command, town_file: Path, tmp_path: Path) -> Path:
    """The file of a run that was stopped after eight questions."""
    out = tmp_path / "begun.jsonl"
    lines = town_file.read_bytes().splitlines(keepends=True)
    town_file.write_bytes(b"".join(lines[:8]))
    assert lexical(town_file, "--out", out, "--batch-size", 3).code == 0
    town_file.write_bytes(b"".join(lines))
    return out


@pytest.mark.parametrize("size", [1, 3, 5, 99])
def test_questions_that_were_changed_or_swapped_are_noticed(
    lexical: Command, town_file: Path, begun: Path, size: int
) -> None:
    lines, before = town_file.read_bytes().splitlines(keepends=True), (begun.read_bytes(), files(begun.parent))
    for number, content in ((1, [lines[1], lines[0], *lines[2:]]), (1, [*lines[3:], *lines[:3]]), (3, lines[:2])):
        town_file.write_bytes(b"".join(content))
        outcome = lexical(town_file, "--out", begun, "--resume", "--batch-size", size)
        assert outcome.code == 2
        note, error = outcome.err.splitlines()
        assert note == f"{town_file} is not the input of before: what {begun} contains is recovered again and compared."
        assert error.endswith("name another file, or replace it with --overwrite.")
        assert (f"{begun}, line {number}" in error) or (f"{begun} has more lines than there are questions" in error)
        assert (begun.read_bytes(), files(begun.parent)) == before
    town_file.write_bytes(b"".join(lines))
    assert lexical(town_file, "--out", begun, "--resume", "--batch-size", size).code == 0


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".provenance"}


def test_lines_that_were_changed_are_noticed(lexical: Command, town_file: Path, begun: Path) -> None:
    begun.write_bytes(begun.read_bytes().replace(b"town-1", b"town-9", 1))
    outcome = lexical(town_file, "--out", begun, "--resume")
    assert outcome.code == 2
    assert outcome.err == (
        f"rechain: {begun} was changed after it was written; name another file, or replace it with --overwrite.\n"
    )


def test_the_input_may_move_and_grow(lexical: Command, town_file: Path, begun: Path, chains: bytes) -> None:
    moved = town_file.rename(town_file.with_name("moved.jsonl"))
    assert lexical(moved, "--out", begun, "--resume").code == 0
    assert begun.read_bytes() == chains
    provenance = read_provenance(begun)
    assert provenance and provenance.end and not provenance.misfits(moved)
    assert (provenance.end["questions"], provenance.end["with_chain"], provenance.end["errors"]) == (12, 12, {})
    assert provenance.made_by["input"]["name"] == "moved.jsonl"


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        (["--top", 2], "top 1, not 2"),
        (["--only", "bridge"], "only [], not [bridge]"),
        (["--hops", 3], "hops unset, not 3"),
        (["--model", "bm25"], "model lexical, not bm25"),
        (["--passages", "p.jsonl"], "passages of the questions alone, not p.jsonl"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_a_file_was_begun_with_is_named(
    recover: Command, town_file: Path, begun: Path, monkeypatch: pytest.MonkeyPatch, options: Any, difference: str
) -> None:
    monkeypatch.chdir(begun.parent)
    Path("p.jsonl").write_text('{"id": "p", "text": "t"}\n')
    before = begun.read_bytes(), files(begun.parent)
    model = [] if "--model" in options else ["--model", "lexical"]
    outcome = recover(town_file, "--out", begun, "--resume", "--workers", 0, *options, *model)
    assert outcome.code == 2
    assert outcome.err == (
        f"rechain: {begun} was begun with {difference}; resume it with the same, "
        "name another file, or replace it with --overwrite.\n"
    )
    assert (begun.read_bytes(), files(begun.parent)) == before


@pytest.mark.parametrize("place", [0, 0.3, 0.6, 0.9])
def test_a_damaged_provenance_file_is_named_and_can_be_done_without(
    lexical: Command, town_file: Path, begun: Path, chains: bytes, place: float
) -> None:
    content = bytearray(sidecar_of(begun).read_bytes())
    content[int(place * len(content))] ^= 1
    sidecar_of(begun).write_bytes(content)
    before = begun.read_bytes()
    outcome = lexical(town_file, "--out", begun, "--resume")
    assert outcome.code == 2
    assert outcome.err.startswith(f"rechain: {sidecar_of(begun)} is damaged (at line ")
    assert outcome.err.count("\n") == 1
    assert begun.read_bytes() == before
    sidecar_of(begun).unlink()
    assert lexical(town_file, "--out", begun, "--resume").code == 0
    assert begun.read_bytes() == chains


@pytest.mark.parametrize("left", [0, 4])
def test_an_output_that_others_disturb_is_no_success(tmp_path: Path, town_file: Path, left: int) -> None:
    """Whether more questions are left to do then, or none. tests/run/test_resume.py has all kinds of disturbance."""
    out = tmp_path / "folder" / "chains.jsonl"
    out.parent.mkdir()
    lines = town_file.read_bytes().splitlines(keepends=True)
    pipe = subprocess.PIPE
    command = [*LEXICAL, "-", "--out", str(out), "--batch-size", "4", "--workers", "0"]
    with subprocess.Popen(command, stdin=pipe, stderr=pipe) as process:
        assert process.stdin
        process.stdin.write(b"".join(lines[:8]))
        process.stdin.flush()
        assert wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") >= 8)
        assert wait_until(lambda: sidecar_of(out).read_bytes().count(b"\n") >= 2)
        shutil.rmtree(out.parent)
        _, said = process.communicate(b"".join(lines[8 : 8 + left]))
    problem = f"{out} was removed or moved by another program while it was written; start again with --overwrite."
    assert (process.returncode, said.decode()) == (2, f"rechain: {problem}\n")


@pytest.mark.parametrize("size", [1, 5, 99])
def test_a_file_cut_anywhere_goes_on_to_the_same_bytes(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes, size: int
) -> None:
    out = tmp_path / "chains.jsonl"
    ends = [place for place, byte in enumerate(chains, start=1) if byte == ord("\n")]
    for cut in (0, 1, ends[0] - 1, ends[0], ends[4], ends[5] + 7, ends[9], len(chains) - 1):
        out.write_bytes(chains[:cut])
        assert lexical(town_file, "--out", out, "--resume", "--batch-size", size).code == 0
        assert out.read_bytes() == chains


OTHERS = {
    "text": lambda chains: b"precious\n",
    "half a text": lambda chains: b"precious",
    "binary": lambda chains: PNG,
    "too long": lambda chains: chains + chains,
    "the end alone": lambda chains: b"".join(chains.splitlines(keepends=True)[6:]),
}


@pytest.mark.parametrize("content", OTHERS.values(), ids=OTHERS)
def test_resume_of_another_file_is_refused_and_changes_nothing(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes, content: Callable[[bytes], bytes]
) -> None:
    out = tmp_path / "chains.jsonl"
    out.write_bytes(content(chains))
    outcome = lexical(town_file, "--out", out, "--resume", "--batch-size", 5)
    assert outcome.code == 2
    note, error = outcome.err.splitlines()
    assert note == f"there is no {out}.provenance: what {out} contains is recovered again and compared."
    assert error.startswith(f"rechain: {out}")
    assert error.lower().endswith("name another file, or replace it with --overwrite.")
    assert out.read_bytes() == content(chains)


@pytest.mark.parametrize("options", [["--top", 2], ["--explain"], ["--only", "bridge"]], ids=str)
def test_resume_with_other_options_is_refused_and_changes_nothing(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes, options: list[object]
) -> None:
    out = tmp_path / "chains.jsonl"
    out.write_bytes(chains)
    assert lexical(town_file, "--out", out, "--resume", *options).code == 2
    assert out.read_bytes() == chains


@pytest.mark.parametrize("kept", [range(0), range(11, 12), range(1), range(2, 9, 3)], ids=str)
@pytest.mark.parametrize("size", [1, 3, 99])
def test_only_and_resume_go_together(
    lexical: Command, towns: Callable[..., list[Question]], write: Write, tmp_path: Path, kept: range, size: int
) -> None:
    """Many batches have no line at all, and so may the first and the last."""
    kinds = ["bridge" if number in kept else "comparison" for number in range(12)]
    records = [q.model_dump(exclude_none=True) | {"type": kind} for q, kind in zip(towns(12), kinds, strict=True)]
    path, out, whole = write(*records), tmp_path / "chains.jsonl", tmp_path / "whole.jsonl"
    options = ["--only", "bridge", "--batch-size", size]
    assert lexical(path, "--out", whole, *options).code == (0 if kept else 2)
    chains = whole.read_bytes() if kept else b""
    assert [json.loads(line)["id"] for line in chains.splitlines()] == [f"town-{number}" for number in kept]
    for cut in range(0, len(chains) + 1, max(len(chains) // 9, 1)):
        out.write_bytes(chains[:cut])
        assert lexical(path, "--out", out, "--resume", *options).code == (0 if kept else 2)
        assert out.read_bytes() == chains


@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_file_is_gone_on_with_when_it_is_mended(
    lexical: Command, towns: Callable[..., list[Question]], tmp_path: Path, workers: int
) -> None:
    lines = b"".join(question.model_dump_json(exclude_none=True).encode() + b"\n" for question in towns(60))
    path, out, whole = tmp_path / "questions.jsonl.gz", tmp_path / "chains.jsonl", tmp_path / "whole.jsonl"
    packed = gzip.compress(lines)
    path.write_bytes(packed)
    assert lexical(path, "--out", whole).code == 0
    chains = whole.read_bytes()
    path.write_bytes(packed[: len(packed) * 2 // 3])
    outcome = lexical(path, "--out", out, "--batch-size", 7, workers=workers)
    assert outcome.code == 2
    assert outcome.err.startswith(f"rechain: {path} is cut off")
    assert outcome.err.endswith(f"What was done before is in {out}: go on with --resume.\n")
    assert outcome.err.count("\n") == 1
    done = out.read_bytes()
    assert done.count(b"\n") > 10
    assert done.endswith(b"\n")
    assert chains.startswith(done)
    assert len(done) < len(chains)
    assert lexical(path, "--out", out, "--batch-size", 7, "--resume", workers=workers).code == 2  # not mended yet
    assert out.read_bytes() == done
    path.write_bytes(packed)
    assert lexical(path, "--out", out, "--batch-size", 7, "--resume", workers=workers).code == 0
    assert out.read_bytes() == chains


def test_a_line_at_which_a_strict_run_stopped_can_be_mended(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes
) -> None:
    lines, out = town_file.read_bytes().splitlines(keepends=True), tmp_path / "chains.jsonl"
    town_file.write_bytes(b"".join([*lines[:6], lines[6][:40] + b"\n", *lines[7:]]))
    for options in ([], ["--resume"]):
        outcome = lexical(town_file, "--strict", "--batch-size", 4, "--out", out, *options)
        assert outcome.code == 2
        assert outcome.err.startswith(f"rechain: {town_file}, line 7: ")
        assert out.read_bytes() == b"".join(chains.splitlines(keepends=True)[:6])
    town_file.write_bytes(b"".join(lines))
    assert lexical(town_file, "--strict", "--batch-size", 4, "--out", out, "--resume").code == 0
    assert out.read_bytes() == chains


def test_a_folder_of_parts_is_gone_on_with(lexical: Command, town_file: Path, tmp_path: Path, chains: bytes) -> None:
    lines, folder, out = town_file.read_bytes().splitlines(keepends=True), tmp_path / "parts", tmp_path / "chains.jsonl"
    folder.mkdir()
    for number, part in enumerate([lines[:3], lines[3:4], lines[4:]]):
        (folder / f"{number}.jsonl").write_bytes(b"".join(part))
    for cut in (0, 400, 900, len(chains)):
        out.write_bytes(chains[:cut])
        assert lexical(folder, "--out", out, "--resume", "--batch-size", 2).code == 0
        assert out.read_bytes() == chains


def test_chains_that_go_into_the_folder_of_the_questions_can_be_gone_on_with_or_are_refused_at_once(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes
) -> None:
    """What was written must not be read as questions."""
    folder = tmp_path / "parts"
    folder.mkdir()
    out = folder / "zchains.jsonl"
    (folder / "a.jsonl").write_bytes(town_file.read_bytes())
    first = lexical(folder, "--out", out)
    if first.code == 2:
        assert not out.exists()
        return
    assert out.read_bytes() == chains
    assert lexical(folder, "--out", out, "--resume").code == 0
    assert out.read_bytes() == chains


@pytest.mark.parametrize("option", ["--overwrite", "--resume"])
def test_a_file_of_the_folder_of_questions_is_not_overwritten_by_their_chains(
    lexical: Command, town_file: Path, tmp_path: Path, option: str
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_bytes(town_file.read_bytes())
    assert lexical(folder, "--out", folder / "a.jsonl", option).code == 2
    assert (folder / "a.jsonl").read_bytes() == town_file.read_bytes()


def test_standard_input_is_gone_on_with(town_file: Path, tmp_path: Path, chains: bytes) -> None:
    out = tmp_path / "chains.jsonl"
    out.write_bytes(chains[: len(chains) // 2])
    command = [*LEXICAL, "-", "--out", str(out), "--resume", "--batch-size", "3", "--workers", "2"]
    done = subprocess.run(command, input=town_file.read_bytes(), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert out.read_bytes() == chains


def test_what_was_written_to_a_broken_pipe_is_not_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "pipe"
    os.mkfifo(out)
    with pytest.raises(ResumableError, match=r"^broken$"), _hint(out, Tally(questions=1)):
        raise ResumableError("broken")


def test_a_disk_that_fills_up_leaves_whole_lines_and_is_gone_on_with(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes
) -> None:
    resource = pytest.importorskip("resource")
    room, out = len(chains) * 3 // 5, tmp_path / "chains.jsonl"
    done = subprocess.run(
        [*LEXICAL, str(town_file), "--out", str(out), "--batch-size", "2", "--workers", "0"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),  # writes fail in mid-line
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    sentence = f"{out} cannot be written: File too large. What was done before is in {out}: go on with --resume."
    assert done.stderr == f"rechain: {sentence}\n"
    left = out.read_bytes()
    assert 0 < left.count(b"\n") < 12
    assert left.endswith(b"\n")
    assert chains.startswith(left)
    assert lexical(town_file, "--out", out, "--resume", "--batch-size", 2).code == 0
    assert out.read_bytes() == chains


def of_session(leader: int) -> list[int]:
    """Return the processes of a session, but for those that have ended and wait for that to be noticed."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if session == str(leader) and state != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Wait for a condition; the limit only keeps a test from hanging."""
    limit = time.monotonic() + seconds
    while not (is_met := condition()) and time.monotonic() < limit:
        time.sleep(0.02)
    return is_met


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_run_that_is_stopped_leaves_whole_lines_and_no_process_and_is_gone_on_with(
    lexical: Command, town_file: Path, tmp_path: Path, chains: bytes, how: str
) -> None:
    """It waits for more questions when it is stopped; meanwhile no other run may write to its file."""
    out = tmp_path / "chains.jsonl"
    command = [*LEXICAL, "-", "--out", str(out), "--batch-size", "1", "--workers", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, start_new_session=True) as process:
        assert process.stdin and process.stderr
        process.stdin.write(town_file.read_bytes())
        process.stdin.flush()
        assert wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") >= 8)
        assert len(of_session(process.pid)) >= 3  # it, and two workers at least
        for option in ("--resume", "--overwrite"):
            other = lexical(town_file, "--out", out, option)
            assert other.code == 2
            assert f"{out} is being written by another run" in other.err.splitlines()[-1]
        if how == "SIGINT":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        else:
            process.send_signal(signal.Signals[how])
        assert process.wait(300) == {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -signal.SIGKILL}[how]
        assert wait_until(lambda: not of_session(process.pid))
        said = process.stderr.read().decode()
        process.stdin.close()
    hint = f"What was done before is in {out}: go on with --resume.\nrechain: "
    ends = {"SIGINT": f"{hint}interrupted.\n", "SIGTERM": f"{hint}stopped by SIGTERM.\n", "SIGKILL": ""}
    assert said == ends[how]
    assert chains.startswith(out.read_bytes())
    assert out.read_bytes().endswith(b"\n")
    assert lexical(town_file, "--out", out, "--resume").code == 0
    assert out.read_bytes() == chains


def unread(pipe: int) -> int:
    """Return how many bytes nobody has read yet from a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_a_file_that_comes_into_being_meanwhile_is_not_replaced_unasked(town_file: Path, tmp_path: Path) -> None:
    """Another run may have begun and finished it while this one waited for its first question."""
    out = tmp_path / "chains.jsonl"
    command = [*LEXICAL, "-", "--out", str(out), "--workers", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, text=True) as process:
        assert process.stdin
        process.stdin.write('{"id": "cut\n')
        process.stdin.flush()
        assert wait_until(lambda: unread(process.stdin.fileno()) == 0)
        out.write_text("precious")
        _, said = process.communicate(town_file.read_text())
    assert out.read_text() == "precious"
    assert process.returncode == 2, said


def test_the_log_says_that_the_input_is_read_for_its_digest(
    rechain: Command, town_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large input takes minutes, before the first question."""
    ticked, tick = threading.Event(), RunLog.tick

    def tick_and_tell(log: RunLog) -> None:
        tick(log)
        ticked.set()

    def describe_slowly(path: Path) -> None:
        if path == town_file:
            ticked.clear()
            assert ticked.wait(300)

    monkeypatch.setattr(RunLog, "tick", tick_and_tell)
    monkeypatch.setattr("rechain.system.provenance.describe_input", describe_slowly)
    monkeypatch.setenv("RECHAIN_LOG_SECONDS", "0.05")
    outcome = rechain("recover", town_file, "--model", "lexical", "--workers", 0, "--out", tmp_path / "chains.jsonl")
    assert outcome.code == 0
    assert "recover progress: doing digest of the input, " in outcome.err
    assert "digest of the input" not in outcome.err.splitlines()[-2]
