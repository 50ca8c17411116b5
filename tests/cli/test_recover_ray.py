"""rechain recover --engine ray: a folder of parts, made on a real cluster."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.common import Command

from rechain.formats.datasets.records import read_rows
from rechain.schema import Question, Recovered


@pytest.fixture
def on_ray(nodes: Any, rechain: Command) -> Command:
    """Recover on the cluster, into parts of four questions."""

    def run(questions: Path, out: Path, *options: object) -> Any:
        sizes = ("--batch-size", 2, "--part-size", 4)
        return rechain("recover", questions, "--engine", "ray", "--out", out, "--model", "lexical", *sizes, *options)

    return run


def content(folder: Path) -> dict[str, bytes]:
    """Return the files that are seen; the entries of parts are hidden beside them."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def timeless(files: dict[str, bytes]) -> dict[str, Any]:
    """Return files without the time at which the last of them was written, and the digest of that."""
    made_by = json.loads(files["_rechain.json"])
    del made_by["sha256"], made_by["end"]["ended"]
    return files | {"_rechain.json": made_by}


def report(said: str) -> str:
    """Return the last line: on a busy machine a run takes so long that it logs."""
    return said.splitlines(keepends=True)[-1]


def joined(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("0*")))


@pytest.fixture
def chains(rechain: Command, town_file: Path, tmp_path: Path) -> bytes:
    """What the local engine makes of the town questions."""
    out = tmp_path / "local.jsonl"
    assert rechain("recover", town_file, "--model", "lexical", "--workers", 0, "--out", out).code == 0
    return out.read_bytes()


NAMES = {"00000-000000", "00000-000001", "00000-000002"}


@pytest.mark.slow
def test_a_folder_is_made_gone_on_with_and_replaced_as_asked(
    on_ray: Command, town_file: Path, tmp_path: Path, chains: bytes
) -> None:
    out = tmp_path / "out"
    outcome = on_ray(town_file, out)
    assert (outcome.code, outcome.out, report(outcome.err)) == (0, "", "12 questions, 12 with a chain.\n")
    assert joined(out) == chains
    made = content(out)
    assert made.keys() == {f"{name}.jsonl" for name in NAMES} | {"_SUCCESS", "_rechain.json"}

    outcome = on_ray(town_file, out)
    expected = f"{out} exists; name another folder, replace it with --overwrite, or go on with it with --resume."
    assert (outcome.code, outcome.err) == (2, f"rechain: {expected}\n")

    for option in (["--top", 2], ["--model", "bm25"], ["--part-size", 2], ["--hops", 3], ["--explain"]):
        outcome = on_ray(town_file, out, "--resume", *option)
        assert outcome.code == 2
        assert outcome.err.startswith(f"rechain: {out} was begun with another input, model or option ")
    assert content(out) == made

    (out / "00000-000001.jsonl").unlink()
    outcome = on_ray(town_file, out, "--resume")
    assert (outcome.code, report(outcome.err)) == (0, "4 questions after the 8 that were there, 4 with a chain.\n")
    assert timeless(content(out)) == timeless(made)

    outcome = on_ray(town_file, out, "--overwrite", "--format", "parquet", "--part-size", 8)
    assert (outcome.code, report(outcome.err)) == (0, "12 questions, 12 with a chain.\n")
    assert {path.name for path in out.glob("0*")} == {"00000-000000.parquet", "00000-000001.parquet"}
    recovered = [each for path in sorted(out.glob("0*")) for _, each in read_rows(path, Recovered)]
    assert recovered == [Recovered.model_validate_json(line) for line in chains.splitlines()]


@pytest.mark.slow
def test_passages_are_found_in_an_index(on_ray: Command, rechain: Command, town_file: Path, tmp_path: Path) -> None:
    """The lines are those of one machine; a folder is gone on with as long as the index is the same."""
    index, passages, log, out = (tmp_path / name for name in ("index", "passages.jsonl", "log.jsonl", "out"))
    questions = [Question.model_validate_json(line) for line in town_file.read_text().splitlines()]
    records = [
        {"id": f"{question.id}/{passage.id}", "title": passage.title, "text": passage.text}
        for question in questions
        for passage in question.passages
    ]
    log.write_text("".join(json.dumps({"question": q.question, "answer": q.answer}) + "\n" for q in questions))

    def build(some: list[dict[str, str]]) -> None:
        passages.write_text("".join(json.dumps(record) + "\n" for record in some))
        assert rechain("index", passages, "--out", index, "--workers", 0).code == 0

    build(records)
    options = ("--model", "lexical", "--corpus", index, "--workers", 0)
    expected = rechain("recover", log, *options, "--batch-size", 2).out
    outcome = on_ray(log, out, "--corpus", index)
    assert (outcome.code, report(outcome.err)) == (0, "12 questions, 12 with a chain.\n")
    assert joined(out).decode() == expected
    stamps = {json.loads(line)["collection"] for line in expected.splitlines()}
    assert stamps == {json.loads(content(out)["_rechain.json"])["settings"]["collection"]}

    (out / "00000-000001.jsonl").unlink()
    resumed = on_ray(log, out, "--corpus", index, "--resume")
    assert report(resumed.err) == "4 questions after the 8 that were there, 4 with a chain.\n"
    assert joined(out).decode() == expected
    build(records[1:])
    outcome = on_ray(log, out, "--corpus", index, "--resume")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.startswith(f"rechain: {out} was begun with another input, model or option (")


@pytest.mark.slow
def test_whether_too_many_failed_is_a_matter_of_the_whole_folder(
    on_ray: Command, town_file: Path, tmp_path: Path
) -> None:
    """The part that is made again is of the one question that cannot be read."""
    town_file.write_text(town_file.read_text() + '{"id": "x"\n')
    assert on_ray(town_file, tmp_path / "out").code == 0
    (tmp_path / "out" / "00000-000003.jsonl").unlink()
    outcome = on_ray(town_file, tmp_path / "out", "--resume")
    summary = "1 question after the 12 that were there, 0 with a chain; without: 1 bad_json.\n"
    assert (outcome.code, report(outcome.err)) == (0, summary)
    assert on_ray(town_file, tmp_path / "out", "--resume", "--max-error-rate", 0.01).code == 3


@pytest.mark.slow
@pytest.mark.parametrize("option", [[], ["--overwrite"], ["--resume"]], ids=str)
def test_a_folder_of_other_files_is_refused_and_untouched(
    on_ray: Command, town_file: Path, tmp_path: Path, option: list[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("precious")
    outcome = on_ray(town_file, out, *option)
    expected = f"rechain: {out} is there and was not made by this command; name another folder.\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", expected)
    assert content(out) == {"thesis.tex": b"precious"}


@pytest.mark.slow
def test_what_is_wrong_gets_one_sentence(on_ray: Command, town_file: Path, tmp_path: Path) -> None:
    outcome = on_ray(town_file, tmp_path / "a", "--model", "nonsense")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("rechain: there is no model 'nonsense'; ")
    assert outcome.err.count("\n") == 1

    outcome = on_ray(tmp_path / "missing.jsonl", tmp_path / "b")
    expected = f"{tmp_path / 'missing.jsonl'} is not there, or holds no Parquet, JSON or CSV files."
    assert (outcome.code, outcome.err) == (2, f"rechain: {expected}\n")

    town_file.write_text(town_file.read_text() + '{"id": "x"\n')
    outcome = on_ray(town_file, tmp_path / "c", "--strict")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"rechain: {town_file}, line 13: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith(f" What was done before is in {tmp_path / 'c'}: go on with --resume.\n")
    assert not {"00000-000003.jsonl", "_SUCCESS"} & content(tmp_path / "c").keys()


@pytest.mark.parametrize("options", [[], ["--out", "o", "--overwrite", "--resume"]], ids=["no folder", "both"])
def test_a_folder_is_needed_and_either_replaced_or_gone_on_with(
    rechain: Command, town_file: Path, options: list[str]
) -> None:
    outcome = rechain("recover", town_file, "--engine", "ray", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("rechain: --")


def run_apart(*arguments: object, folder: Path, seconds: int = 300, **environment: str) -> Any:
    """Run a command in a process and a folder of its own."""
    command = [sys.executable, "-m", "rechain.cli.main", *map(str, arguments)]
    known = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=folder, env=known, check=False)


@pytest.mark.slow
def test_relative_paths_are_those_of_the_command_and_not_of_the_cluster(
    nodes: Any, towns: Callable[..., list[Question]], tmp_path: Path
) -> None:
    (question,) = towns(1)
    row = question.model_dump(include={"id", "question", "answer", "hops"})
    row["passage_ids"] = [passage.id for passage in question.passages]
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "passages.jsonl").write_text("".join(p.model_dump_json() + "\n" for p in question.passages))
    options = ("--engine", "ray", "--out", "out", "--model", "lexical", "--passages", "passages.jsonl")
    ended = run_apart("recover", "questions.jsonl", *options, folder=tmp_path, RAY_ADDRESS=nodes.address)
    assert ended.returncode == 0
    assert ended.stderr.splitlines()[-1] == "1 question, 1 with a chain."


@pytest.mark.slow
def test_without_a_cluster_the_machine_is_one_and_only_the_report_is_said(
    town_file: Path, tmp_path: Path, chains: bytes
) -> None:
    options = ("--engine", "ray", "--out", "out", "--model", "lexical")
    ended = run_apart("recover", town_file, *options, folder=tmp_path)
    assert ended.returncode == 0
    assert joined(tmp_path / "out") == chains
    assert (ended.stdout, report(ended.stderr)) == ("", "12 questions, 12 with a chain.\n")


ABSENT = ["nonsense", "127.0.0.1:1"]


@pytest.mark.slow
@pytest.mark.parametrize("address", ABSENT)
def test_a_cluster_that_is_not_there_gets_one_sentence(town_file: Path, tmp_path: Path, address: str) -> None:
    options = ("--engine", "ray", "--out", "out", "--model", "lexical")
    ended = run_apart("recover", town_file, *options, folder=tmp_path, RAY_ADDRESS=address)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"rechain: there is no Ray cluster at {address}, which RAY_ADDRESS names: ")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_sigterm_ends_a_run_as_ctrl_c_does_and_it_is_gone_on_with(
    nodes: Any, on_ray: Command, towns: Callable[..., list[Question]], tmp_path: Path
) -> None:
    """Ray would end the process with a code of its own."""
    path, out = tmp_path / "questions.jsonl", tmp_path / "out"
    path.write_text("".join(question.model_dump_json(exclude_none=True) + "\n" for question in towns(600) * 5))
    command = [sys.executable, "-m", "rechain.cli.main", "recover", str(path), "--engine", "ray", "--out", str(out)]
    command += ["--model", "lexical", "--batch-size", "2", "--part-size", "4"]
    environment = os.environ | {"RAY_ADDRESS": nodes.address}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not list(out.glob("0*")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 143, said
    assert said.endswith("rechain: stopped by SIGTERM.\n")  # after the first result also: how to go on
    assert "Traceback" not in said
