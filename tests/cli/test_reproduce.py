"""rechain reproduce: whole small tables in the official layouts, and what is said about mistakes."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.common import Command

from rechain.paper.plays import play_all, read_plays

NAMES = ("Quillfeather", "Brimlad", "Zimbelot", "Ostrela", "Vornhame", "Lithgrew", "Purvane", "Hosselby")
TINY = """
hidden = 2
max_tokens = 30
pretrain_epochs = 1
game_epochs = 1
batch_size = 4
precision = "float32"
"""


@pytest.fixture
def reproduce(rechain: Command) -> Command:
    """Run `rechain reproduce` in this process; the plays run in others."""
    return partial(rechain, "reproduce")


def hotpotqa(number: int) -> dict[str, Any]:
    """A question in HotpotQA's layout; every sixth is a comparison."""
    name = NAMES[number % len(NAMES)]
    return {
        "_id": f"h{number}",
        "question": f"Where was the composer of opera number {number} born?",
        "answer": "Prague",
        "type": "comparison" if number % 6 == 5 else "bridge",
        "supporting_facts": [[f"Opera number {number}", 0], [name, 0]],
        "context": [
            [f"Opera number {number}", [f"An opera by {name}."]],
            ["A rumour", [f"It is said that {name} went away."]],
            [name, [f"{name} was born in Prague."]],
        ],
    }


def medhop(number: int) -> dict[str, Any]:
    """A question in QAngaroo's layout, with two chains: by the first protein or by another."""
    asked, answer = f"DB{number:05}", f"DB{500 + number:05}"
    return {
        "id": f"MH_{number}",
        "query": f"interacts_with {asked}?",
        "answer": answer,
        "candidates": [answer, "DB00999"],
        "supports": [
            f"{asked} binds P12345 . Then P99999 was seen .",
            "P12345 activates Q23456 .",
            f"Q23456 is cut by {answer} .",
            "P99999 was seen . Then Q23456 was seen .",
        ],
    }


def labels(number: int) -> list[dict[str, Any]]:
    """Pairs that make the first chain right."""
    asked, answer = f"DB{number:05}", f"DB{500 + number:05}"
    told = [(0, asked, "P12345", True), (1, "P12345", "Q23456", True), (2, "Q23456", answer, True)]
    told += [(0, asked, "P99999", False), (3, "P99999", "Q23456", False)]
    return [
        {"id": f"MH_{number}", "support": support, "a": a, "b": b, "interacts": interacts}
        for support, a, b, interacts in told
    ]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([hotpotqa(number) for number in range(24)]))
    return path


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("was 1 0 0\nborn 0 1 0\nopera 0 0 1\n")
    return path


def test_a_whole_table_of_hotpotqa(
    tmp_path: Path, reproduce: Command, config: Path, questions: Path, vectors: Path
) -> None:
    out = tmp_path / "out"
    options = ("--out", out, "--folds", 2, "--seeds", 1, "--device", "cpu", "--vectors", vectors)
    done = reproduce("hotpotqa", questions, *options, "--config", config, "--processes", 2)
    assert done.code == 0, done.err
    assert all(row in done.out for row in ("random", "independent", "head-to-tail", "tail-to-head", "cooperative"))
    report = (out / "report.md").read_text()
    assert "Of 20 questions, the right chain of 20 is known" in report
    assert "Played: 2 folds (0, 1) and 1 seed (0)." in report
    assert "still to be played" not in report
    assert "| cooperative, without features |" in report
    assert "| 25 % |" in report
    assert (out / "learning_curve.svg").exists()
    plays = {path: path.stat().st_mtime_ns for path in (out / "plays").iterdir()}

    again = reproduce("hotpotqa", questions, *options, "--config", config)
    assert again.out == done.out
    assert {path: path.stat().st_mtime_ns for path in (out / "plays").iterdir()} == plays
    assert reproduce("hotpotqa", questions, "--out", out, "--folds", 2, "--judge-only", "--config", config).code == 0
    _check_mistakes_about(out, tmp_path, reproduce, questions)


def _check_mistakes_about(out: Path, tmp_path: Path, reproduce: Command, questions: Path) -> None:
    """Say what is wrong where a prepared folder does not fit."""
    wide = tmp_path / "wide.txt"
    wide.write_text("was 1 0 0 0\n")
    other = tmp_path / "other.json"
    other.write_text(json.dumps([hotpotqa(number) for number in range(6, 12)]))
    ready = ("--out", out)
    done = reproduce("hotpotqa", questions, *ready, "--folds", 2, "--vectors", wide)
    assert "has vectors of 4 numbers, but 3 are needed" in done.err
    assert "prepared for other questions" in reproduce("hotpotqa", other, *ready, "--folds", 2).err
    assert "prepared for 2 folds" in reproduce("hotpotqa", questions, *ready).err


def test_the_papers_own_setting_prepared_played_elsewhere_and_judged(
    tmp_path: Path, reproduce: Command, config: Path, questions: Path
) -> None:
    out = tmp_path / "out"
    options = ("--out", out, "--folds", 2, "--seeds", 1, "--config", config, "--no-ablations")
    prepared = reproduce("hotpotqa", questions, *options, "--table", "paper", "--prepare-only")
    assert prepared.code == 0, prepared.err
    play_all(out, read_plays(out), "cpu", processes=1, is_quiet=True)
    done = reproduce("hotpotqa", questions, *options, "--table", "paper", "--judge-only")
    assert done.code == 0, done.err
    assert "untaught" in done.out
    report = (out / "report.md").read_text()
    assert "## The paper's own setting: hard C, no features, REINFORCE" in report
    assert "| cooperative - cooperative untaught |" in report
    assert "| cooperative + vote - cooperative untaught + vote |" in report
    assert "AUC of the bonus by evidence, %" in report
    assert "still to be played" not in report


def test_official_files_of_medhop_with_labelled_pairs(tmp_path: Path, reproduce: Command, config: Path) -> None:
    train, dev, pairs = tmp_path / "train.json", tmp_path / "dev.json", tmp_path / "pairs.jsonl"
    train.write_text(json.dumps([medhop(number) for number in range(8)]))
    dev.write_text(json.dumps([medhop(number) for number in range(8, 12)]))
    pairs.write_text("".join(json.dumps(row) + "\n" for number in range(8, 12) for row in labels(number)))
    out = tmp_path / "out"
    options = ("--out", out, "--seeds", 1, "--no-ablations", "--device", "cpu", "--config", config)
    done = reproduce("medhop", train, "--test", dev, "--gold", pairs, *options)
    assert done.code == 0, done.err
    report = (out / "report.md").read_text()
    assert "Of 4 questions, the right chain of 4 is known" in report
    assert "Played: 1 fold (0) and 1 seed (0)." in report
    assert "head-to-tail" not in report
    assert "| lexical | 100.0 (100.0 to 100.0) | 20 |" in report
    assert "| a guess among the mentions |" in report
    assert "| Reasoner of cooperative.0.0.model |" in report
    assert "Interacting pairs" in done.out


def test_a_folder_can_be_prepared_here_and_played_elsewhere(
    tmp_path: Path, reproduce: Command, questions: Path
) -> None:
    out = tmp_path / "out"
    done = reproduce("hotpotqa", questions, "--out", out, "--folds", 2, "--prepare-only")
    assert done.code == 0
    assert "python -m rechain.paper.plays" in done.err
    names = {path.name for path in out.iterdir()}
    assert names == {"index.json", "questions.safetensors", "vectors.safetensors", "plays.json"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wikihop",), "there is no data set 'wikihop' to reproduce; the data sets are hotpotqa, drughop, medhop."),
        (("hotpotqa", "--judge-only"), "nothing was played in"),
        (("hotpotqa", "--table", "theirs"), "there is no table 'theirs'; the tables are paper, features, ours."),
        (("hotpotqa", "--config", "absent.toml"), "absent.toml cannot be read"),
        (("hotpotqa", "--test", "comparisons.json"), "comparisons.json has no question of type bridge."),
        (("hotpotqa", "--test", "hotpot.json"), "hotpot.json share the question 'h0'; test on other questions."),
        (("hotpotqa", "--vectors", "empty.txt"), "empty.txt is empty"),
        (("hotpotqa", "--more", "comparisons.json"), "--more adds a row to the table paper; add --table paper."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes_are_told_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reproduce: Command,
    questions: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "comparisons.json").write_text(json.dumps([hotpotqa(5)]))
    (tmp_path / "empty.txt").touch()
    done = reproduce(arguments[0], questions, "--out", "out", *arguments[1:])
    assert done.code == 2
    assert done.err.startswith("rechain: ")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_without_gold_there_is_nothing_to_judge_by(tmp_path: Path, reproduce: Command) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps([medhop(number) for number in range(4)]))
    done = reproduce("medhop", path, "--out", tmp_path / "out")
    assert done.code == 2
    assert "has gold chains in" in done.err
    assert "name their file with --gold" in done.err
    assert not (tmp_path / "out").exists()
