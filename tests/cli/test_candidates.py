"""rechain candidates: the statistics of C, and what is said about bad input."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
from tests.cli.common import HOTPOTQA, RECHAIN, Command

NO_TAIL = HOTPOTQA | {"_id": "q2", "answer": "yes", "type": "comparison"}


@pytest.fixture
def candidates(rechain: Command) -> Command:
    """Run `rechain candidates` in this process."""
    return partial(rechain, "candidates")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([HOTPOTQA, NO_TAIL]))
    return path


def test_statistics_count_every_question(candidates: Command, questions: Path) -> None:
    outcome = candidates(questions, "--json")
    assert outcome.code == 0
    assert outcome.figures == {
        "chains a question": 0.5,
        "tails a question": 0.5,
        "gold chain in C": 0.5,
        "accuracy of a random pick": 0.5,
        "questions without a chain": 0.5,
    }
    assert json.loads(outcome.out)["questions without a chain"] == {"no_tail": 1}


def test_a_table_says_why_there_is_no_chain(candidates: Command, questions: Path) -> None:
    outcome = candidates(questions)
    assert outcome.code == 0
    assert "gold chain in C" in outcome.out
    assert "no_tail" in outcome.out


def test_gold_may_stand_in_a_file_of_its_own(candidates: Command, questions: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps({"id": "q1", "chains": [{"passages": ["Weather", "Zorilla"]}]}) + "\n")
    assert candidates(questions, "--gold", gold, "--json").figures["gold chain in C"] == 0.0


def test_standard_input_is_counted_without_its_gold(questions: Path) -> None:
    done = subprocess.run([*RECHAIN, "candidates", "-", "--json"], input=questions.read_bytes(), capture_output=True)
    assert done.returncode == 0
    figures = json.loads(done.stdout)["figures"]
    assert figures["chains a question"]["value"] == 0.5
    assert "gold chain in C" not in figures


def test_bad_lines_are_counted_and_the_rest_goes_on(candidates: Command, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(f'{json.dumps(HOTPOTQA)}\n{{"cut\n{json.dumps(HOTPOTQA | {"answer": 7})}\n')
    outcome = candidates(path, "--json")
    assert outcome.code == 0
    assert outcome.figures["questions without a chain"] == pytest.approx(2 / 3)
    assert sum(json.loads(outcome.out)["questions without a chain"].values()) == 2


def test_strict_stops_at_the_first_question_without_a_chain(candidates: Command, questions: Path) -> None:
    outcome = candidates(questions, "--strict")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"rechain: {questions}, record 2: no tail")


def test_the_limit_is_told_where_it_cuts(candidates: Command, tmp_path: Path) -> None:
    names = [f"Anton Quillfeather {number}" for number in range(6)]
    context = [[name, [f"{name} was born in Prague with Anton Quillfeather."]] for name in names]
    context += [[f"Rain {number}", ["It rains."]] for number in range(3)]  # what nearly all passages hold does not link
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([HOTPOTQA | {"context": context}]))
    assert candidates(path, "--json").figures["chains a question"] > 3
    cut = candidates(path, "--limit", 3, "--json")
    assert cut.figures["chains a question"] == 3
    assert json.loads(cut.out)["questions cut at the limit"] == 1


def test_medhop_statistics(candidates: Command, real_data: Path) -> None:
    folder = real_data / "medhop"
    outcome = candidates(folder / "train_11.json.gz", "--gold", folder / "interactions.jsonl", "--json")
    assert outcome.figures["gold chain in C"] > 0


def test_a_table_without_rows(candidates: Command, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"id": pyarrow.array([], pyarrow.string())}), tmp_path / "empty.parquet")
    outcome = candidates(tmp_path / "empty.parquet")
    assert (outcome.code, outcome.err) == (2, f"rechain: {tmp_path / 'empty.parquet'} holds no question.\n")
