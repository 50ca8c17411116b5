"""What commands that read questions do with an index: one without passages, and chains of more passages than found."""

import json
from pathlib import Path

import pytest
from tests.cli.common import Command, write_lines

ASKED = {"id": "q", "question": "In which city is the office that grants parental leave?", "answer": "Lisbon"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one answer, without passages."""
    return write_lines(tmp_path / "log.jsonl", ASKED)


@pytest.fixture
def empty(tmp_path: Path, rechain: Command) -> Path:
    """An index of a document without text."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "empty.md").write_text("")
    assert rechain("index", tmp_path / "documents", "--out", tmp_path / "empty.index").code == 0
    return tmp_path / "empty.index"


def test_an_index_without_passages_has_no_candidates(empty: Path, log: Path, rechain: Command) -> None:
    outcome = rechain("candidates", log, "--corpus", empty, "--json", "--max-error-rate", 1)
    assert outcome.code == 0
    assert json.loads(outcome.out)["questions without a chain"] == {"too_few_passages": 1}


def test_an_index_without_passages_supports_nothing(empty: Path, log: Path, rechain: Command) -> None:
    outcome = rechain("recover", log, "--corpus", empty, "--model", "lexical", "--max-error-rate", 1)
    assert outcome.code == 0
    assert outcome.rows[0]["error"]["code"] == "too_few_passages"


@pytest.fixture
def index(tmp_path: Path, rechain: Command) -> Path:
    """An index of three passages, one of which has all words of the question."""
    passages = [
        ("leave", "Parental leave", "Parental leave is granted by the Quillfeather Office."),
        ("office", "Quillfeather Office", "The Quillfeather Office is in Lisbon."),
        ("city", "Lisbon", "In the city of Lisbon an office grants parental leave to sailors."),
    ]
    rows = write_lines(
        tmp_path / "rows.jsonl", *({"id": name, "title": title, "text": text} for name, title, text in passages)
    )
    assert rechain("index", rows, "--out", tmp_path / "index").code == 0
    return tmp_path / "index"


@pytest.fixture
def chains(index: Path, log: Path, tmp_path: Path, rechain: Command) -> Path:
    """What was recovered from more passages than are looked for later."""
    out = tmp_path / "chains.jsonl"
    assert rechain("recover", log, "--corpus", index, "--found", 12, "--hops", 2, "--out", out).code == 0
    return out


def test_chains_of_more_passages_than_are_found_are_exported(
    chains: Path, index: Path, log: Path, rechain: Command
) -> None:
    options = ("export", chains, "--to", "paths", "--questions", log, "--corpus", index)
    whole, fewer = rechain(*options), rechain(*options, "--found", 1)
    assert (whole.code, fewer.code) == (0, 0), fewer.err
    assert whole.rows == fewer.rows


def test_chains_of_more_passages_than_are_found_are_audited(
    chains: Path, index: Path, log: Path, tmp_path: Path, rechain: Command
) -> None:
    options = ("audit", log, "--chains", chains, "--corpus", index, "--out", tmp_path / "page.html", "--overwrite")
    pages = []
    for more in ((), ("--found", 1)):
        assert rechain(*options, *more).code == 0
        pages.append((tmp_path / "page.html").read_text())
    assert pages[1].count("Quillfeather Office") == pages[0].count("Quillfeather Office") > 0


def test_candidates_are_those_that_recovery_has(tmp_path: Path, rechain: Command) -> None:
    texts = {"a": "The lodge keeper works for Quorvath.", "b": "At Quorvath the fee is 12 krones."}
    texts |= {str(number): f"Rule {number} of Quorvath." for number in range(40)}
    passages = write_lines(tmp_path / "passages.jsonl", *({"id": id, "text": text} for id, text in texts.items()))
    asked = {"id": "q", "question": "What does the keeper pay?", "answer": "12 krones", "passage_ids": ["a", "b"]}
    path = write_lines(tmp_path / "asked.jsonl", asked)
    assert rechain("index", passages, "--out", tmp_path / "index").code == 0
    for where in (("--passages", passages), ("--corpus", tmp_path / "index")):
        options = (path, *where, "--max-error-rate", 1)
        (recovered,) = rechain("recover", *options, "--model", "lexical").rows
        counted = json.loads(rechain("candidates", *options, "--json").out)
        assert counted["questions without a chain"] == {recovered["error"]["code"]: 1} == {"no_link": 1}
