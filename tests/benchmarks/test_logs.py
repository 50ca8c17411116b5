"""Our own set of logged questions: every quote is found, the build is the same every time, and README counts right."""

import subprocess
import sys
from pathlib import Path

import pytest

from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_questions

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "benchmarks" / "logs"


def build(out: Path) -> str:
    command = [sys.executable, str(LOGS / "build.py"), str(out)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("logs")
    return out, build(out)


def test_readme_counts_what_is_built(built: tuple[Path, str]) -> None:
    assert built[1] in (LOGS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("split", ["fit", "dev", "test"])
def test_evidence_is_among_the_passages(built: tuple[Path, str], split: str) -> None:
    questions = list(read_questions(built[0] / f"questions.{split}.jsonl"))
    gold = read_gold(built[0] / f"gold.{split}.jsonl", questions)
    assert len(gold) == len(questions)
    for question in questions:
        ids = [passage.id for passage in question.passages]
        assert 8 <= len(ids) <= 12
        assert all(set(chain.passages) <= set(ids) for chain in gold[question.id].chains), question.id


def test_build_is_the_same_every_time(built: tuple[Path, str], tmp_path: Path) -> None:
    build(tmp_path)
    for path in built[0].iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_gold_is_apart(built: tuple[Path, str]) -> None:
    for path in built[0].glob("questions.*"):
        text = path.read_text(encoding="utf-8")
        assert not any(f'"{field}":' in text for field in ("evidence", "verdict", "shape", "chains")), path.name
