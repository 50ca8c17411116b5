"""What CONTRIBUTING shows works: its dataset, linker, model and export are added in the way it says, and used."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.questions import FORMATS
from rechain.formats.exports.joining import Joined
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question
from rechain.scoring import BASELINES
from rechain.text.candidates import CandidateSettings, find_candidates
from rechain.text.linking import LINKERS

CONTRIBUTING = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
YEARS = Question(
    id="q",
    question="Which river does the older town lie on?",
    answer="Vistula",
    hops=2,
    passages=[Passage(id="0", text="it was built in 1843"), Passage(id="1", text="since 1843 on the Vistula")],
)


def example(heading: str) -> dict[str, Any]:
    """Run the example of a section, and return its names."""
    block = re.search(rf"^## {heading}\n.*?^```python\n(.*?)^```$", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    assert block, f"CONTRIBUTING shows no code under '{heading}'"
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names


def test_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "toy", example("Add a dataset")["Toy"]())
    record = {"key": "t1", "ask": "Where?", "reply": "Prague", "texts": ["Anton.", "Prague."], "good": ["0", "1"]}
    (tmp_path / "toy.jsonl").write_text(json.dumps(record))
    (question,) = read_questions(tmp_path / "toy.jsonl")
    assert [passage.text for passage in question.passages] == ["Anton.", "Prague."]
    assert read_gold(tmp_path / "toy.jsonl", [question])["t1"].chains[0].passages == ["0", "1"]


def test_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    linker = example("Add a linker")["LINKER"]
    monkeypatch.setitem(LINKERS, linker.name, linker)
    found = find_candidates(YEARS, CandidateSettings(linkers=frozenset({linker.name}), min_weight=1.0))
    assert [chain.links[0].entity for chain in found.chains] == ["1843"]


def test_export(bridge_question: Question) -> None:
    recovered = Recoverer("lexical").recover(bridge_question)
    (row,) = example("Add an export")["rows"](Joined(bridge_question, recovered, {}))
    assert row == {"question": bridge_question.question, "entity": "Anton Quillfeather"}


def test_model(monkeypatch: pytest.MonkeyPatch, bridge_question: Question) -> None:
    monkeypatch.setitem(BASELINES, "weakest", example("Add a model")["WeakestLink"])
    recovered = Recoverer("weakest", explain=True).recover(bridge_question)
    assert recovered[0].passages == ["opera", "composer"]
    assert recovered[0].why is not None
    assert "weakest link" in recovered[0].why
