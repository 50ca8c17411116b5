"""MedHop and WikiHop, masked or not, as published and in Parquet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.datasets.layouts import LAYOUTS, check_bad_record

from rechain.formats.datasets import read_questions
from rechain.formats.datasets.published import Qangaroo
from rechain.schema import Passage, Question

MEDHOP: dict[str, Any] = {
    "id": "MH_train_7",
    "query": "interacts_with DB00001?",
    "answer": "DB00002",
    "candidates": ["DB00002", "DB00003"],
    "supports": ["DB00001 binds P12345 .", "P12345 activates Q23456 .", "Q23456 is cut by DB00002 ."],
}
MASKED = MEDHOP | {
    "answer": "___MASK5___",
    "candidates": ["___MASK5___", "___MASK6___"],
    "supports": [text.replace("DB00002", "___MASK5___") for text in MEDHOP["supports"]],
}
WIKIHOP = {
    "id": "WH_dev_0",
    "query": "country sms braunschweig",
    "answer": "german empire",
    "candidates": ["austria", "german empire"],
    "annotations": [["follows", "multiple"]],
    "supports": ["SMS Braunschweig was a ship of Kiel .", "Kiel belonged to the German Empire ."],
}


@pytest.mark.parametrize("write", LAYOUTS)
@pytest.mark.parametrize("record", [MEDHOP, MASKED, WIKIHOP], ids=["medhop", "masked", "wikihop"])
def test_every_layout_holds_the_same_question(
    tmp_path: Path, write: Callable[..., Path], record: dict[str, Any]
) -> None:
    assert list(read_questions(write(tmp_path / "questions", record))) == [Qangaroo().question(record)]


def test_medhop_asks_for_a_chain_of_two_proteins_between_two_drugs() -> None:
    assert Qangaroo().question(MEDHOP) == Question(
        id="MH_train_7",
        question="interacts_with DB00001?",
        answer="DB00002",
        question_entities=["drug:DB00001"],
        answer_entity="drug:DB00002",
        hops=3,
        link_types=["protein", "protein"],
        passages=[Passage(id=str(number), text=text) for number, text in enumerate(MEDHOP["supports"])],
    )


def test_a_masked_answer_is_an_entity() -> None:
    question = Qangaroo().question(MASKED)
    assert question.answer_entity == "mask:___MASK5___"
    assert question.question_entities == ["drug:DB00001"]
    assert question.link_types == ["protein", "protein"]


def test_wikihop_names_no_entities() -> None:
    question = Qangaroo().question(WIKIHOP)
    assert question.question == "country sms braunschweig"
    assert (question.answer_entity, question.question_entities, question.hops) == (None, [], None)
    assert [passage.id for passage in question.passages] == ["0", "1"]


def test_a_question_holds_neither_annotations_nor_gold() -> None:
    assert "follows" not in Qangaroo().question(WIKIHOP).model_dump_json()
    assert Qangaroo().gold(WIKIHOP) is None


def test_equal_supports_keep_their_positions() -> None:
    question = Qangaroo().question(WIKIHOP | {"supports": ["a", "a", "b"]})
    assert [passage.id for passage in question.passages] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"id": ""}, "empty_field", "id"),
        ({"query": 7}, "bad_field", "query"),
        ({"query": " "}, "empty_field", "query"),
        ({"supports": "text"}, "bad_field", "supports"),
        ({"supports": ["a", 7]}, "bad_field", "supports[1]"),
        ({"supports": ["a", " "]}, "empty_field", "supports[1]"),
    ],
    ids=str,
)
def test_a_bad_record_is_an_error_that_names_the_field(
    tmp_path: Path, change: dict[str, object], code: str, field: str
) -> None:
    check_bad_record(tmp_path / "questions", MEDHOP, Qangaroo().question(MEDHOP), MEDHOP | change, code, field)


@pytest.mark.parametrize(
    ("file", "questions"),
    [
        ("medhop/train_11.json.gz", 11),
        ("medhop/dev_5.json.gz", 5),
        ("medhop/dev_5.masked.json.gz", 5),
        ("wikihop/train.first22.json.gz", 22),
        ("wikihop/dev.first28.json.gz", 28),
    ],
)
def test_the_real_questions_are_read(real_data: Path, file: str, questions: int) -> None:
    assert sum(1 for _ in read_questions(real_data / file)) == questions
