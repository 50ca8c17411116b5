"""rechain recover --jointly: questions that inform each other, in one file that is whole, interrupted or not."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.cli.common import Command

from rechain.run.work import JointPass, offers_beside
from rechain.schema import Question
from rechain.system.provenance import read_provenance, sidecar_of

Drugs = Callable[[int, int], list[Question]]


def write(path: Path, questions: Sequence[Question]) -> Path:
    path.write_text("".join(question.model_dump_json(exclude_none=True) + "\n" for question in questions))
    return path


@pytest.fixture
def questions(tmp_path: Path, drugs: Drugs) -> Path:
    return write(tmp_path / "drugs.jsonl", drugs(3, 7))


@pytest.fixture
def recover(rechain: Command) -> Command:
    def run(*arguments: object) -> Any:
        return rechain("recover", "--model", "lexical", "--jointly", *arguments)

    return run


def tails(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [row["chains"][0]["passages"][-1] for row in rows]


def test_the_file_says_that_it_was_made_jointly_and_of_what(recover: Command, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "chains.jsonl"
    outcome = recover(questions, "--out", out, "--explain")
    assert outcome.code == 0
    assert "10 different questions offer" in outcome.err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert tails(rows) == ["good"] * 10
    best = rows[0]["chains"][0]
    assert best["why"]["jointly"] > 0
    assert sum(best["why"].values()) == pytest.approx(best["score"])
    provenance = read_provenance(out)
    assert provenance
    assert provenance.end
    assert not provenance.misfits(questions)
    assert provenance.made_by["settings"]["jointly"] is True
    assert provenance.made_by["input"]["sha256"]
    assert provenance.end["jointly"]["questions"] == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "chains.jsonl",
        "chains.jsonl.provenance",
        "drugs.jsonl",
    ]


def test_the_default_model_is_told_and_confident_too(rechain: Command, questions: Path) -> None:
    first = rechain("recover", questions, "--jointly", "--explain", "--top", 4).rows[0]["chains"]
    told = {chain["passages"][-1]: chain["why"]["jointly"] for chain in first}
    assert max(told, key=lambda tail: told[tail]) == "good"
    assert [chain["confidence"] for chain in first] == sorted((c["confidence"] for c in first), reverse=True)
    assert all(0 < chain["confidence"] < 1 for chain in first)


def test_questions_of_other_data_have_the_chains_that_they_had(
    rechain: Command, recover: Command, town_file: Path
) -> None:
    outcome = recover(town_file)
    assert outcome.out == rechain("recover", "--model", "lexical", town_file).out
    assert "all is as without --jointly" in outcome.err


def test_neither_order_nor_workers_nor_chunks_change_a_chain(
    recover: Command, drugs: Drugs, questions: Path, tmp_path: Path
) -> None:
    expected = {row["id"]: row for row in recover(questions, "--top", 3).rows}
    asked = drugs(3, 7)
    Random(1).shuffle(asked)
    shuffled = write(tmp_path / "shuffled.jsonl", asked)
    for options in (["--workers", 0], ["--workers", 2, "--batch-size", 3]):
        rows = recover(shuffled, "--top", 3, *options).rows
        assert [row["id"] for row in rows] == [question.id for question in asked]
        assert {row["id"]: row for row in rows} == expected


def test_errors_keep_their_lines_and_strict_stops(recover: Command, questions: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "x", \n' + questions.read_text())
    rows = recover(bad).rows
    assert rows[0]["error"]["code"] == "bad_json"
    assert tails(rows[1:]) == ["good"] * 10
    assert recover(bad, "--strict").code == 2


def test_strict_stops_at_low_confidence_too_and_writes_nothing(
    rechain: Command, questions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "chains.jsonl"
    demanding = ("recover", questions, "--jointly", "--min-confidence", 1, "--out", out)
    refused = rechain(*demanding, "--strict")
    assert refused.code == 2
    assert f"{questions}, line 1: the best chain has confidence" in refused.err
    assert not out.exists()
    assert rechain(*demanding, "--resume").code == 3
    assert len(out.read_text().splitlines()) == 10


def test_on_ray_it_is_refused(recover: Command, questions: Path, tmp_path: Path) -> None:
    outcome = recover(questions, "--engine", "ray", "--out", tmp_path / "folder")
    assert outcome.code == 2
    assert "--jointly works on one machine" in outcome.err


def interrupted(recover: Command, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Any:
    """Run the command, which fails between its two passes."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(JointPass, "write", fail)
        return recover(*arguments)


def test_it_is_resumed_between_the_passes(
    recover: Command, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, out = recover(questions).out, tmp_path / "chains.jsonl"
    offers = offers_beside(out)
    failed = interrupted(recover, monkeypatch, questions, "--out", out)
    assert failed.code == 2
    assert f"is in {offers}: go on with --resume" in failed.err
    assert offers.exists()
    assert not out.exists()
    again = recover(questions, "--out", out)
    assert again.code == 2
    assert f"{offers} exists" in again.err
    assert recover(questions, "--out", out, "--resume").code == 0
    assert out.read_text() == expected
    assert not offers.exists()
    assert not sidecar_of(offers).exists()


def test_it_is_resumed_where_the_input_is_written_differently(
    recover: Command, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, out = recover(questions).out, tmp_path / "chains.jsonl"
    interrupted(recover, monkeypatch, questions, "--out", out)
    moved = questions.rename(tmp_path / "moved.jsonl")
    assert recover(moved, "--out", out, "--resume").code == 0
    assert out.read_text() == expected


def test_other_questions_or_options_are_noticed(
    recover: Command, rechain: Command, questions: Path, drugs: Drugs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "chains.jsonl"
    interrupted(recover, monkeypatch, questions, "--out", out)
    assert "was begun with top 1, not 2" in recover(questions, "--out", out, "--resume", "--top", 2).err
    changed = write(tmp_path / "changed.jsonl", drugs(4, 7)[1:])
    assert "changed.jsonl is not the input of before" in recover(changed, "--out", out, "--resume").err
    assert recover(questions, "--out", out, "--resume").code == 0
    before = out.read_bytes()
    assert "Nothing was left to do" in recover(questions, "--out", out, "--resume").err
    assert "was recovered from other questions" in recover(changed, "--out", out, "--resume").err
    assert (
        "jointly true, not unset" in rechain("recover", "--model", "lexical", questions, "--out", out, "--resume").err
    )
    assert out.read_bytes() == before
    assert recover(changed, "--out", out, "--overwrite").code == 0
    assert len(out.read_bytes().splitlines()) == 10


def test_chains_that_were_not_recovered_jointly_are_not_continued(
    recover: Command, rechain: Command, questions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "chains.jsonl"
    rechain("recover", "--model", "lexical", questions, "--out", out)
    assert "was made with jointly unset, not true" in recover(questions, "--out", out, "--resume").err


def test_a_file_of_which_nothing_believable_says_what_made_it_is_not_continued(
    recover: Command, questions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "chains.jsonl"
    recover(questions, "--out", out)
    with sidecar_of(out).open("a") as file:
        file.write("x\n")
    assert f"{sidecar_of(out)} is damaged" in recover(questions, "--out", out, "--resume").err
    sidecar_of(out).unlink()
    assert f"Nothing says what made {out}" in recover(questions, "--out", out, "--resume").err


def test_a_line_that_is_not_an_offer_is_named(
    recover: Command, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "chains.jsonl"
    offers = offers_beside(out)
    interrupted(recover, monkeypatch, questions, "--out", out, "--batch-size", 5)
    sidecar_of(offers).unlink()  # else it shows that the line was changed
    offers.write_text(offers.read_text().replace('"steps":', '"stops":', 1))
    refused = recover(questions, "--out", out, "--batch-size", 5, "--resume")
    assert refused.code == 2
    assert f"{offers}, line 1: there is no {sidecar_of(offers)}, and its chains are others" in refused.err
    assert not out.exists()
    assert recover(questions, "--out", out, "--overwrite").code == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_a_run_that_is_killed_many_times_ends_with_the_same_bytes(drugs: Drugs, tmp_path: Path) -> None:
    questions, out = write(tmp_path / "many.jsonl", drugs(300, 500)), tmp_path / "chains.jsonl"
    command = [sys.executable, "-c", "from rechain.cli.main import main; main()", "recover", "--model", "lexical"]
    command += ["--jointly", str(questions), "--workers", "1", "--batch-size", "8"]
    expected = subprocess.run(command, capture_output=True, check=True).stdout
    random, kills = Random(0), 0
    while kills < 8:
        process = subprocess.Popen([*command, "--out", str(out), "--resume"], start_new_session=True)
        time.sleep(random.uniform(0.5, 3))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        assert not out.exists() or out.read_bytes() == expected
    subprocess.run([*command, "--out", str(out), "--resume"], check=True, capture_output=True)
    assert out.read_bytes() == expected
    provenance = read_provenance(out)
    assert provenance
    assert not provenance.misfits(questions)
