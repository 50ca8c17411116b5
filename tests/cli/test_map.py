"""--map and logs of tools, through the commands that read questions."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.common import Command, write_lines

DOCS = [
    {"body": "Zorilla is an opera by Anton Quillfeather.", "name": "Zorilla"},
    {"body": "Anton Quillfeather was born in Prague.", "name": "Anton Quillfeather"},
    {"body": "It rains often.", "name": "Weather"},
]
RUN = {"run": {"input": "Where was the composer of Zorilla born?", "output": {"text": "Prague"}, "docs": DOCS}}
FIELDS = "question=run.input,answer=run.output.text,passages=run.docs,passage.text=body,passage.title=name"
GOLD = {"id": "2", "chains": [{"passages": ["Zorilla", "Anton Quillfeather"]}]}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "runs.jsonl", RUN, RUN, RUN)


@pytest.fixture
def chains(rechain: Command, runs: Path, tmp_path: Path) -> Path:
    path = tmp_path / "chains.jsonl"
    arguments = ("--model", "lexical", "--workers", 0, "--batch-size", 1, "--out", path)
    assert rechain("recover", runs, "--map", FIELDS, *arguments).code == 0
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_command_reads_what_a_map_names(rechain: Command, runs: Path, chains: Path, tmp_path: Path) -> None:
    assert [row["id"] for row in rows(chains)] == ["1", "2", "3"]
    assert rows(chains)[1]["chains"][0]["passages"] == ["Zorilla", "Anton Quillfeather"]
    gold = write_lines(tmp_path / "gold.jsonl", GOLD)
    assert rechain("evaluate", chains, runs, "--map", FIELDS, "--gold", gold, "--json").code == 0
    assert rechain("candidates", runs, "--map", FIELDS, "--gold", gold, "--json").figures["gold chain in C"] == 1.0
    for to in ("triplets", "hotpotqa"):
        out = tmp_path / to
        assert rechain("export", chains, "--to", to, "--questions", runs, "--map", FIELDS, "--out", out).code == 0
        assert "Quillfeather" in out.read_text()


def test_a_run_with_a_map_can_be_resumed_with_the_same_alone(rechain: Command, runs: Path, chains: Path) -> None:
    whole = chains.read_bytes()
    provenance = chains.with_name(chains.name + ".provenance")
    kept = b"".join(whole.splitlines(keepends=True)[:1])
    sealed = b"".join(provenance.read_bytes().splitlines(keepends=True)[:2])
    chains.write_bytes(kept)
    provenance.write_bytes(sealed)
    arguments = ("--model", "lexical", "--workers", 0, "--batch-size", 1, "--out", chains, "--resume")
    other = rechain("recover", runs, "--map", FIELDS + ",type=tag", *arguments)
    assert (other.code, chains.read_bytes()) == (2, kept)
    assert rechain("recover", runs, "--map", FIELDS, *arguments).code == 0
    assert chains.read_bytes() == whole


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("frage=run.input", "--map names 'frage', which is none of id, question, answer"),
        ("question", "--map names no field for question; write question=FIELD."),
        ("question=prompt", "has none of the fields that --map names (question=prompt); its first record has run."),
    ],
)
@pytest.mark.parametrize("command", ["recover", "candidates"])
def test_a_map_that_is_wrong_is_one_sentence(rechain: Command, runs: Path, command: str, fields: str, why: str) -> None:
    options = ("--workers", 0, "--model", "lexical") if command == "recover" else ()
    outcome = rechain(command, runs, "--map", fields, *options)
    assert outcome.code == 2
    assert why in " ".join(outcome.err.split())


def test_a_log_of_unknown_fields_says_which_it_has_and_that_a_map_can_name_them(rechain: Command, runs: Path) -> None:
    outcome = rechain("candidates", runs)
    assert outcome.code == 2
    assert "its first record has run: name those of question, answer and passages with --map" in " ".join(
        outcome.err.split()
    )


def test_a_table_is_recovered(rechain: Command, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    texts = json.dumps([doc["body"] for doc in DOCS]).replace('"', '""')
    path.write_text(f'user_input,response,retrieved_contexts\n"Where was Anton born?",Prague,"{texts}"\n')
    outcome = rechain("recover", path, "--model", "lexical", "--workers", 0)
    assert (outcome.code, [row["id"] for row in outcome.rows]) == (0, ["1"])
