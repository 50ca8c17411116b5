"""rechain export, as a user sees it."""

import json
import os
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.cli.common import Command

from rechain.formats.datasets.records import read_rows
from rechain.schema import Question, Recovered
from rechain.system import provenance
from rechain.system.files import file_digest
from rechain.system.provenance import describe_input, read_provenance, sidecar_of, without_times
from rechain.version import __version__

TEXTS = ("hotpotqa", "triplets", "paths", "mdr")


@pytest.fixture
def questions(town_file: Path) -> Path:
    """Twelve questions, and one without a chain."""
    with town_file.open("a") as file:
        file.write('{"id": "bare", "question": "Why?", "answer": "so", "passages": [{"id": "p", "text": "No."}]}\n')
    return town_file


@pytest.fixture
def recovered(rechain: Command, questions: Path, tmp_path: Path) -> Path:
    path = tmp_path / "chains.jsonl"
    assert rechain("recover", questions, "--model", "lexical", "--out", path).code == 0
    return path


@pytest.fixture
def chains(recovered: Path) -> Path:
    """Chains of which nothing tells what made them."""
    sidecar_of(recovered).unlink()
    return recovered


def test_the_chains_are_digested_once(
    rechain: Command, recovered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digested: list[Path] = []
    monkeypatch.setattr(provenance, "file_digest", lambda path: digested.append(path) or file_digest(path))
    assert rechain("export", recovered, "--to", "parquet", "--out", tmp_path / "table.parquet").code == 0
    assert digested.count(recovered) == 1


def test_what_made_the_chains_is_shown_and_goes_with_the_export(
    rechain: Command, recovered: Path, questions: Path, tmp_path: Path
) -> None:
    out, table = tmp_path / "triplets.jsonl", tmp_path / "chains.parquet"
    for _ in range(2):
        command = ["export", recovered, "--to", "triplets", "--questions", questions, "--out", out, "--overwrite"]
        first, shown = rechain(*command).err.splitlines()
    assert first == "12 questions exported; left out: 1 no_tail."
    assert shown.startswith(f"{recovered}: by rechain {__version__} recover with model lexical from towns.jsonl, 20")
    assert shown.endswith(", 13 questions, 1 with an error")
    made = read_provenance(out)
    assert made and made.end and not made.misfits()
    assert made.end["lines"] == out.read_text().count("\n") == 24
    facts = made.made_by
    assert (facts["model"]["name"], facts["settings"]["to"], facts["command"]) == ("lexical", "triplets", "export")
    assert (facts["input"], facts["questions"]) == (describe_input(recovered), describe_input(questions))
    tables = []
    for _ in range(2):
        assert rechain("export", recovered, "--to", "parquet", "--out", table, "--overwrite").code == 0
        tables.append(table.read_bytes())
    assert tables[0] == tables[1]
    metadata = json.loads(pyarrow.parquet.read_schema(table).metadata[b"rechain"])
    written = read_provenance(table)
    assert written and not written.misfits()
    assert metadata == without_times(written.made_by)
    questions.write_text(questions.read_text() + "\n")
    assert rechain(*command).err.splitlines()[2:] == [
        f"warning: {recovered} was recovered from other questions (towns.jsonl) than {questions}."
    ]


@pytest.fixture
def confident(chains: Path) -> Path:
    """The same chains, each a twentieth more confident than the one before."""
    told = [recovered for _, recovered in read_rows(chains, Recovered)]
    for number, recovered in enumerate(told):
        sure = [chain.model_copy(update={"confidence": number / 20}) for chain in recovered.chains]
        told[number] = recovered.model_copy(update={"chains": sure})
    chains.write_text("".join(recovered.to_json() + "\n" for recovered in told))
    return chains


def test_predictions_are_one_object(rechain: Command, chains: Path, questions: Path) -> None:
    outcome = rechain("export", chains, "--to", "hotpotqa", "--questions", questions)
    assert (outcome.code, outcome.err) == (0, "12 questions exported; left out: 1 no_tail.\n")
    (told,) = outcome.rows
    assert told.keys() == {"answer", "sp"}
    assert len(told["answer"]) == len(told["sp"]) == 12
    assert all(number == 0 for facts in told["sp"].values() for _, number in facts)


@pytest.mark.parametrize(("to", "rows"), [("triplets", 24), ("paths", 12), ("mdr", 12)])
def test_records_are_a_line_each(
    rechain: Command, chains: Path, questions: Path, tmp_path: Path, to: str, rows: int
) -> None:
    out = tmp_path / "out"
    outcome = rechain("export", chains, "--to", to, "--questions", questions, "--out", out)
    assert (outcome.code, outcome.out) == (0, "")
    assert len([json.loads(line) for line in out.read_text().splitlines()]) == rows
    assert outcome.err == "12 questions exported; left out: 1 no_tail.\n"
    printed = rechain("export", chains, "--to", to, "--questions", questions).out
    assert printed == out.read_text()


def test_triplets_may_have_several_negatives(rechain: Command, chains: Path, questions: Path) -> None:
    outcome = rechain("export", chains, "--to", "triplets", "--questions", questions, "--negatives", 2)
    assert len(outcome.rows) == 2 * 2 * 12
    outcome = rechain("export", chains, "--to", "paths", "--questions", questions, "--negatives", 2)
    assert (outcome.code, outcome.err) == (2, "rechain: --negatives is for triplets; leave it out.\n")


def test_weights_are_confidences_which_the_lexical_rule_does_not_tell(
    rechain: Command, chains: Path, questions: Path, tmp_path: Path
) -> None:
    outcome = rechain("export", chains, "--to", "triplets", "--questions", questions, "--weights")
    assert (outcome.code, outcome.out) == (2, "")
    assert "tells no confidence" in outcome.err
    default, out = tmp_path / "default.jsonl", tmp_path / "triplets.jsonl"
    assert rechain("recover", questions, "--out", default, "--workers", 0).code == 0
    assert rechain("export", default, "--to", "triplets", "--questions", questions, "--weights", "--out", out).code == 0
    assert all(0 < json.loads(line)["score"] <= 1 for line in out.read_text().splitlines())
    outcome = rechain("export", chains, "--to", "mdr", "--questions", questions, "--weights")
    assert (outcome.code, outcome.err) == (2, "rechain: --weights is for triplets; leave it out.\n")


def test_the_table_holds_the_whole_file(rechain: Command, chains: Path, tmp_path: Path) -> None:
    out = tmp_path / "chains.parquet"
    outcome = rechain("export", chains, "--to", "parquet", "--out", out)
    assert outcome == (0, "", "13 questions exported.\n")
    read = [[recovered for _, recovered in read_rows(path, Recovered)] for path in (chains, out)]
    assert read[0] == read[1]
    again = rechain("export", out, "--to", "parquet", "--out", tmp_path / "again")
    assert (again.code, again.out, again.err.splitlines()[0] + "\n") == outcome


def test_chains_are_read_from_the_table_and_from_parts(
    rechain: Command, chains: Path, questions: Path, tmp_path: Path
) -> None:
    rechain("export", chains, "--to", "parquet", "--out", tmp_path / "chains.parquet")
    sidecar_of(tmp_path / "chains.parquet").unlink()
    (tmp_path / "parts").mkdir()
    lines = chains.read_text().splitlines(keepends=True)
    (tmp_path / "parts/part-0.jsonl").write_text("".join(lines[:5]))
    (tmp_path / "parts/part-1.jsonl").write_text("".join(lines[5:]))
    sources = (chains, tmp_path / "chains.parquet", tmp_path / "parts")
    first, *others = (rechain("export", path, "--to", "paths", "--questions", questions) for path in sources)
    assert first.code == 0
    assert others == [first, first]


@pytest.mark.parametrize("to", ["triplets", "parquet"])
def test_chains_of_less_confidence_are_left_out(
    rechain: Command, confident: Path, questions: Path, tmp_path: Path, to: str
) -> None:
    arguments = ("--to", to, "--questions", questions, "--min-confidence", 0.5, "--out", tmp_path / "out")
    outcome = rechain("export", confident, *arguments)
    assert outcome == (0, "", "2 questions exported; left out: 10 low_confidence, 1 no_tail.\n")


@pytest.mark.parametrize("to", [*TEXTS, "parquet"])
def test_confidence_cannot_be_demanded_of_every_model(
    rechain: Command, chains: Path, questions: Path, tmp_path: Path, to: str
) -> None:
    out = tmp_path / "out"
    arguments = ("--to", to, "--questions", questions, "--min-confidence", 0.5, "--out", out)
    outcome = rechain("export", chains, *arguments)
    told = "the model that recovered this chain tells no confidence, so none can be demanded of it"
    assert outcome == (2, "", f"rechain: {chains}, line 1: {told}.\n")
    assert not out.exists()


def test_only_the_table_needs_no_questions(rechain: Command, chains: Path) -> None:
    for to in TEXTS:
        outcome = rechain("export", chains, "--to", to)
        told = f"rechain: {to} needs the texts of the questions; name their file with --questions FILE.\n"
        assert outcome == (2, "", told)
    outcome = rechain("export", chains, "--to", "parquet")
    assert outcome == (2, "", "rechain: Parquet is no text to print; name a file for it with --out FILE.\n")


@pytest.mark.parametrize("to", [*TEXTS, "parquet"])
def test_an_output_file_is_not_replaced_unasked(
    rechain: Command, chains: Path, questions: Path, tmp_path: Path, to: str
) -> None:
    out = tmp_path / "out"
    out.write_text("before")
    arguments = ("export", chains, "--to", to, "--questions", questions, "--out")
    outcome = rechain(*arguments, out)
    assert outcome == (2, "", f"rechain: {out} exists; name another file, or replace it with --overwrite.\n")
    assert out.read_text() == "before"
    assert rechain(*arguments, out, "--overwrite").code == 0
    assert out.read_bytes() != b"before"
    for path in (chains, questions):
        before = path.read_bytes()
        assert "is what is read" in rechain(*arguments, path, "--overwrite").err
        assert path.read_bytes() == before


@pytest.mark.parametrize("to", TEXTS)
def test_what_does_not_belong_together_leaves_the_output_alone(
    rechain: Command, chains: Path, questions: Path, tmp_path: Path, to: str
) -> None:
    out, other = tmp_path / "out", tmp_path / "other.jsonl"
    out.write_text("before")
    other.write_text(questions.read_text().splitlines()[-1])
    outcome = rechain("export", chains, "--to", to, "--questions", other, "--out", out, "--overwrite")
    assert outcome.code == 2
    assert outcome.err.startswith(f"rechain: {chains}, line 1: the question 'town-0' does not come next")
    assert out.read_text() == "before"


@pytest.mark.parametrize(
    ("line", "what"), [('{"id": ', "not valid JSON"), ('{"id": "q1"}', "the field chains is missing"), ("", "is empty")]
)
def test_chains_that_cannot_be_read_are_a_mistake(
    rechain: Command, questions: Path, tmp_path: Path, line: str, what: str
) -> None:
    path = tmp_path / "chains.jsonl"
    path.write_text(line)
    for to in ("paths", "parquet"):
        outcome = rechain("export", path, "--to", to, "--questions", questions, "--out", tmp_path / "out")
        assert outcome.code == 2
        assert str(path) in outcome.err
        assert what in outcome.err
        assert not (tmp_path / "out").exists()


def test_questions_may_name_their_passages_by_id(rechain: Command, bridge_question: Question, tmp_path: Path) -> None:
    record = bridge_question.model_dump(mode="json", exclude={"passages"}, exclude_none=True)
    questions, passages, chains = (tmp_path / name for name in ("questions", "passages", "chains"))
    questions.write_text(json.dumps(record | {"passage_ids": [passage.id for passage in bridge_question.passages]}))
    passages.write_text("".join(passage.model_dump_json() + "\n" for passage in bridge_question.passages))
    rechain("recover", questions, "--passages", passages, "--model", "lexical", "--out", chains)
    arguments = ("export", chains, "--to", "triplets", "--questions", questions)
    assert len(rechain(*arguments, "--passages", passages).rows) == 2
    outcome = rechain(*arguments)
    assert outcome.code == 2
    assert "--passages FILE" in outcome.err


def test_pipes_are_read_once(
    rechain: Command, chains: Path, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", chains.open())
    assert len(rechain("export", "-", "--to", "paths", "--questions", questions).rows) == 12
    outcome = rechain("export", "-", "--to", "paths", "--questions", "-")
    assert outcome.code == 2
    assert "cannot hold both" in outcome.err
    os.mkfifo(tmp_path / "pipe")
    for pipe in ("-", tmp_path / "pipe"):
        outcome = rechain("export", chains, "--to", "hotpotqa", "--questions", pipe)
        assert outcome.code == 2
        assert "reads the questions twice" in outcome.err


def test_real_chains_are_exported(rechain: Command, real_data: Path, tmp_path: Path) -> None:
    chains, questions = tmp_path / "chains.jsonl", real_data / "hotpotqa/train_300.json.gz"
    rechain("recover", questions, "--only", "bridge", "--model", "lexical", "--out", chains)
    for to in ("hotpotqa", "triplets"):
        outcome = rechain("export", chains, "--to", to, "--questions", questions)
        assert outcome.code == 0
        assert int(outcome.err.split()[0]) > 200
