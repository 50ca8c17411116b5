"""A new format is one module and one entry in `reading.FORMATS`; CONTRIBUTING shows how."""

import json
from pathlib import Path
from typing import Any

import pytest

from rechain.datasets import read_entries, read_questions, reading
from rechain.datasets.formats import Format
from rechain.datasets.passages import make_passages
from rechain.errors import InputError
from rechain.evaluation.gold import read_gold
from rechain.schema import Gold, GoldChain, Passage, Question

RECORD = {
    "key": "t1",
    "ask": "Where was Anton born?",
    "reply": "Prague",
    "texts": ["Anton.", "Prague."],
    "good": [0, 1],
}


class Toy(Format):
    """Texts and the positions of the gold ones."""

    name = "toy"

    def recognises(self, record: dict[str, Any]) -> bool:
        return "ask" in record and "texts" in record

    def question(self, record: dict[str, Any]) -> Question:
        passages = make_passages("texts", ({"id": str(n), "text": text} for n, text in enumerate(record["texts"])))
        return Question(id=record["key"], question=record["ask"], answer=record["reply"], passages=passages)

    def gold(self, record: dict[str, Any]) -> Gold | None:
        chain = GoldChain(passages=[str(number) for number in record["good"]])
        return Gold(id=record["key"], chains=[chain], same=self.same)


@pytest.fixture
def toy_file(tmp_path: Path) -> Path:
    path = tmp_path / "toy.jsonl"
    path.write_text(json.dumps(RECORD) + "\n")
    return path


def test_a_format_that_is_listed_is_read(toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FORMATS", (*reading.FORMATS, Toy()))
    (question,) = read_questions(toy_file)
    assert (question.id, question.answer) == ("t1", "Prague")
    assert question.passages == [Passage(id="0", text="Anton."), Passage(id="1", text="Prague.")]
    assert read_gold(toy_file, [])["t1"].chains == [GoldChain(passages=["0", "1"])]
    assert reading.same_chain(toy_file) == "passages"


def test_a_format_that_is_not_listed_is_not_read_and_the_known_ones_are_named(toy_file: Path) -> None:
    with pytest.raises(InputError) as failure:
        list(read_entries(toy_file))
    assert ", ".join(form.name for form in reading.FORMATS) in str(failure.value)


def test_no_two_formats_have_the_same_name() -> None:
    assert len({form.name for form in reading.FORMATS}) == len(reading.FORMATS)
