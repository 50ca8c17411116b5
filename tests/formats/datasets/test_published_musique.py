"""MuSiQue, as published and in Parquet."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.datasets.layouts import LAYOUTS, check_bad_record, write_lines

from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_entries, read_questions
from rechain.formats.datasets.published import MuSiQue
from rechain.schema import Gold, GoldChain, Passage, Question


def step(question: str, answer: str, paragraph: int | None) -> dict[str, Any]:
    return {"id": 7, "question": question, "answer": answer, "paragraph_support_idx": paragraph}


def paragraph(idx: int, title: str, text: str, supporting: bool) -> dict[str, Any]:
    return {"idx": idx, "title": title, "paragraph_text": text, "is_supporting": supporting}


RECORD: dict[str, Any] = {
    "id": "2hop__150763_14904",
    "paragraphs": [
        paragraph(0, "Zorilla", "Zorilla is an opera by Anton Quillfeather.", True),
        paragraph(1, "Weather", "It rains often.", False),
        paragraph(2, "Anton Quillfeather", "Anton Quillfeather was born in Prague.", True),
    ],
    "question": "Where was the composer of Zorilla born?",
    "question_decomposition": [
        step("Who composed Zorilla?", "Quillfeather the composer", 0),
        step("Where was #1 born?", "Prague", 2),
    ],
    "answer": "Prague",
    "answer_aliases": ["Praha"],
    "answerable": True,
}
QUESTION = Question(
    id="2hop__150763_14904",
    question="Where was the composer of Zorilla born?",
    answer="Prague",
    answer_aliases=["Praha"],
    type="2hop",
    passages=[
        Passage(id="0", title="Zorilla", text="Zorilla is an opera by Anton Quillfeather."),
        Passage(id="1", title="Weather", text="It rains often."),
        Passage(id="2", title="Anton Quillfeather", text="Anton Quillfeather was born in Prague."),
    ],
)
GOLD = Gold(
    id="2hop__150763_14904",
    chains=[GoldChain(passages=["0", "2"], links=["Quillfeather the composer"])],
    same="passages",
)


@pytest.mark.parametrize("write", LAYOUTS)
def test_questions_and_gold_are_the_same_in_every_layout(tmp_path: Path, write: Callable[..., Path]) -> None:
    path = write(tmp_path / "questions", RECORD)
    assert list(read_questions(path)) == [QUESTION]
    assert read_gold(path, []) == {GOLD.id: GOLD}


def test_a_question_holds_no_gold() -> None:
    written = MuSiQue().question(RECORD).model_dump_json()
    assert "support" not in written
    assert "decomposition" not in written
    assert "Quillfeather the composer" not in written
    assert MuSiQue().question(RECORD).hops is None


def decomposed(*steps: dict[str, Any]) -> GoldChain:
    gold = MuSiQue().gold(RECORD | {"question_decomposition": list(steps)})
    assert gold is not None
    return gold.chains[0]


def test_a_decomposition_in_which_each_step_asks_about_the_last_is_ordered() -> None:
    chain = decomposed(step("Who?", "Anton", 2), step("Where was #1 born?", "Prague", 0), step("#2 is in?", "A", 1))
    assert chain == GoldChain(passages=["2", "0", "1"], links=["Anton", "Prague"])


@pytest.mark.parametrize(
    "questions", [("Who?", "What?", "#1 or #2?"), ("Who?", "#1?", "#1?"), ("Who?", "#1?", "When?")]
)
def test_other_decompositions_are_not_ordered(questions: tuple[str, ...]) -> None:
    chain = decomposed(*(step(question, "A", number) for number, question in enumerate(questions)))
    assert chain == GoldChain(passages=["0", "1", "2"], ordered=False)


def test_ten_references_are_not_one() -> None:
    assert not decomposed(step("Who?", "Anton", 0), step("Where was #10 born?", "Prague", 2)).ordered


def test_an_unanswerable_question_has_no_gold_chain() -> None:
    steps = [step("Who composed Zorilla?", "Anton", 0), step("Where was #1 born?", "Prague", None)]
    assert MuSiQue().gold(RECORD | {"question_decomposition": steps, "answerable": False}) is None


def test_test_questions_have_no_gold() -> None:
    assert MuSiQue().gold({field: RECORD[field] for field in ("id", "question", "paragraphs")}) is None


def bad_paragraph(**fields: object) -> dict[str, Any]:
    return RECORD | {"paragraphs": [RECORD["paragraphs"][0], RECORD["paragraphs"][1] | fields]}


@pytest.mark.parametrize(
    ("record", "code", "field"),
    [
        (RECORD | {"paragraphs": 7}, "bad_field", "paragraphs"),
        (RECORD | {"paragraphs": ["text"]}, "bad_field", "paragraphs[0]"),
        (RECORD | {"paragraphs": [{"idx": 0}]}, "missing_field", "paragraphs[0].paragraph_text"),
        (RECORD | {"answer": ["Prague"]}, "bad_field", "answer"),
        (bad_paragraph(idx="one"), "bad_field", "paragraphs[1].idx"),
        (bad_paragraph(idx=1.5), "bad_field", "paragraphs[1].idx"),
        (bad_paragraph(idx=0), "duplicate_passage", "'0'"),
        (bad_paragraph(paragraph_text=""), "empty_field", "paragraphs[1]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_record_is_an_error_that_names_the_field(
    tmp_path: Path, record: dict[str, Any], code: str, field: str
) -> None:
    check_bad_record(tmp_path / "questions", RECORD, QUESTION, record, code, field)


@pytest.mark.parametrize("digits", [20, 30, 400])
def test_a_huge_index_harms_its_own_record_at_most(tmp_path: Path, digits: int) -> None:
    huge = json.dumps(bad_paragraph(idx=424242)).replace("424242", "9" * digits)
    path = write_lines(tmp_path / "questions.jsonl", RECORD, huge, RECORD)
    first, _, last = [entry.content for entry in read_entries(path)]
    assert first == last == QUESTION


def test_the_real_questions_are_read(real_data: Path) -> None:
    path = real_data / "musique" / "train_100.json.gz"
    assert sum(1 for _ in read_questions(path)) == 100
    golds = read_gold(path, []).values()
    assert len(golds) == 100
    assert all(gold.chains[0].ordered for gold in golds if gold.id.startswith("2hop"))
