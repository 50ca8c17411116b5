"""Data as the benchmarks find it, and the machine that they borrow."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rechain.schema import Passage, Question

ROOT = Path(__file__).parents[2]
_ABSENT = ("ahocorasick_rs", "bm25s", "markdown_it", "orjson", "pydantic", "tantivy", "text_to_num", "typer")
"""modules that rechain needs and a borrowed GPU machine may lack"""
_BARE = """
import runpy, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")

sys.meta_path.insert(0, Absent())
sys.argv = sys.argv[1:]
sys.path[:0] = {folders!r}
runpy.run_path(sys.argv[0], run_name="__main__") if sys.argv[0].endswith(".py") else __import__(sys.argv[0])
"""


def _hotpotqa(question: Question, **fields: Any) -> dict[str, Any]:
    titles = {passage.id: passage.title for passage in question.passages}
    return {
        "_id": question.id,
        "question": question.question,
        "answer": question.answer,
        "type": "bridge",
        "context": [[passage.title, [passage.text]] for passage in question.passages],
        "supporting_facts": [[titles["work"], 0], [titles["maker"], 0]],
        **fields,
    }


def _musique(question: Question) -> dict[str, Any]:
    places = {passage.id: place for place, passage in enumerate(question.passages)}
    steps = [("Who made it?", "maker", "work"), ("Where was #1 born?", question.answer, "maker")]
    return {
        "id": f"2hop__{question.id}",
        "question": question.question,
        "answer": question.answer,
        "paragraphs": [
            {"idx": place, "title": p.title, "paragraph_text": p.text} for place, p in enumerate(question.passages)
        ],
        "question_decomposition": [
            {"question": asked, "answer": answer, "paragraph_support_idx": places[name]}
            for asked, answer, name in steps
        ],
    }


def _drughop(questions: list[Question]) -> dict[str, list[dict[str, Any]]]:
    """Return questions of drugs as DrugHop has them: passages apart, chains over gene X are right."""
    passages = {passage.id: passage for question in questions for passage in question.passages}
    return {
        "drughop/passages.jsonl.gz": [passage.model_dump(exclude_none=True) for passage in passages.values()],
        "drughop/open.jsonl.gz": [
            question.model_dump(exclude={"passages"}, exclude_none=True, exclude_defaults=True)
            | {"passage_ids": [passage.id for passage in question.passages]}
            for question in questions
        ],
        "drughop/open.gold.jsonl.gz": [
            {"id": question.id, "chains": [{"passages": [question.passages[0].id, "good"], "links": ["gene:X"]}]}
            for question in questions
        ],
    }


@pytest.fixture(scope="session")
def data(
    tmp_path_factory: pytest.TempPathFactory,
    towns: Callable[..., list[Question]],
    drugs: Callable[[int, int], list[Question]],
) -> Path:
    """A folder as ../shared/data: towns as HotpotQA, 2Wiki and MuSiQue would ask of them, drugs as DrugHop."""

    def asked(count: int, first: int) -> list[Question]:
        """Return questions of towns, whose passages name the town of the next one, too: a wrong answer."""
        questions = towns(count, first=first)
        others = [
            Passage(id="next", title=q.answer, text="Nobody paints there.") for q in towns(count, first=first + 1)
        ]
        pairs = zip(questions, others, strict=True)
        return [q.model_copy(update={"passages": [*q.passages, other]}) for q, other in pairs]

    sets = _drughop(drugs(10, 10)) | {
        "hotpotqa/open.json.gz": [_hotpotqa(question) for question in asked(30, 0)],
        "hotpotqa/train_300.json.gz": [_hotpotqa(question) for question in asked(6, 300)],
        "hotpotqa/train_914.jsonl.gz": [_hotpotqa(question) for question in asked(4, 400)],
        "2wiki/open_582.jsonl.gz": [_hotpotqa(q, type="compositional", evidences=[]) for q in asked(10, 500)],
        "musique/open_519.jsonl.gz": [_musique(question) for question in asked(10, 600)],
        "2wiki/train_500.json.gz": [_hotpotqa(q, type="compositional", evidences=[]) for q in asked(6, 100)],
        "musique/train_100.json.gz": [_musique(question) for question in asked(6, 200)],
    }
    folder = tmp_path_factory.mktemp("data")
    for name, records in sets.items():
        lines = "\n".join(map(json.dumps, records)) if ".jsonl" in name else json.dumps(records)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(gzip.compress(lines.encode()))
    return folder


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test import the scripts."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture(scope="session")
def on_a_bare_machine() -> Callable[..., str]:
    """Run a script, or import a module, with only what a borrowed GPU machine has."""

    def run(what: str, *arguments: object, without: str = "") -> str:
        program = _BARE.format(
            absent=(*_ABSENT, without), folders=[str(ROOT / name) for name in ("research", "benchmarks")]
        )
        command = [sys.executable, "-c", program, what, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
