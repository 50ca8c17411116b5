"""2WikiMultihopQA, as published and with fields that are JSON text, as on the Hub."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.datasets.layouts import write_array, write_dataset, write_lines, write_parquet

from rechain.errors import QuestionError
from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_entries, read_questions
from rechain.formats.datasets.published import TwoWiki
from rechain.schema import Gold, GoldChain, Passage, Question, Shape

RECORD: dict[str, Any] = {
    "_id": "93402dbc",
    "type": "compositional",
    "question": "Where was the composer of Zorilla born?",
    "answer": "Prague",
    "supporting_facts": [["Zorilla (opera)", 0], ["Anton Quillfeather", 0]],
    "evidences": [["Zorilla", "composer", "Anton Quillfeather"], ["Anton Quillfeather", "place of birth", "Prague"]],
    "evidences_id": [["Q1", "composer", "Q2"], ["Q2", "place of birth", "Q3"]],
    "context": [
        ["Zorilla (opera)", ["Zorilla is an opera.", "It is by Anton Quillfeather."]],
        ["Anton Quillfeather", ["Anton Quillfeather was born in Prague."]],
        ["Zorilla (opera)", ["Zorilla is an opera.", "It is by Anton Quillfeather."]],
    ],
}
NESTED = ("context", "supporting_facts", "evidences")
JSON_TEXT = RECORD | {field: json.dumps(RECORD[field]) for field in NESTED}
QUESTION = Question(
    id="93402dbc",
    question="Where was the composer of Zorilla born?",
    answer="Prague",
    hops=2,
    type="compositional",
    passages=[
        Passage(
            id="Zorilla (opera)", title="Zorilla (opera)", text="Zorilla is an opera. It is by Anton Quillfeather."
        ),
        Passage(id="Anton Quillfeather", title="Anton Quillfeather", text="Anton Quillfeather was born in Prague."),
    ],
)
GOLD = Gold(
    id="93402dbc",
    chains=[GoldChain(passages=["Zorilla (opera)", "Anton Quillfeather"], links=["Anton Quillfeather"])],
    same="passages",
)


COLUMNS = RECORD | {
    "context": {"title": [t for t, _ in RECORD["context"]], "sentences": [s for _, s in RECORD["context"]]},
    "supporting_facts": {"title": ["Zorilla (opera)", "Anton Quillfeather"], "sent_id": [0, 0]},
}


@pytest.mark.parametrize(
    ("write", "record"),
    [(write_array, RECORD), (write_lines, JSON_TEXT), (write_parquet, JSON_TEXT), (write_dataset, COLUMNS)],
)
def test_questions_and_gold_are_the_same_in_every_layout(
    tmp_path: Path, write: Callable[..., Path], record: dict[str, Any]
) -> None:
    path = write(tmp_path / "questions", record)
    assert list(read_questions(path)) == [QUESTION]
    assert read_gold(path, []) == {GOLD.id: GOLD}


def test_a_question_holds_no_gold() -> None:
    written = TwoWiki().question(RECORD).model_dump_json()
    assert "evidence" not in written
    assert "place of birth" not in written
    assert json.loads(written).keys() == Question.model_fields.keys()


@pytest.mark.parametrize(("kind", "shape"), [("comparison", "parallel"), ("bridge_comparison", None)])
def test_comparisons_have_no_order(kind: str, shape: Shape | None) -> None:
    gold = TwoWiki().gold(RECORD | {"type": kind})
    assert gold is not None
    assert gold.chains == [GoldChain(shape=shape, passages=["Zorilla (opera)", "Anton Quillfeather"], ordered=False)]


def test_inference_questions_are_chains() -> None:
    assert TwoWiki().gold(RECORD | {"type": "inference"}) == GOLD


def test_test_questions_have_no_gold() -> None:
    assert TwoWiki().gold(RECORD | {"supporting_facts": [], "evidences": []}) is None


@pytest.mark.parametrize("field", NESTED)
@pytest.mark.parametrize("text", ["[[", "no JSON", "7", '"text"', '["\\ud800"]', "[" * 5000], ids=lambda t: t[:12])
def test_text_that_is_no_json_harms_its_own_record_alone(tmp_path: Path, field: str, text: str) -> None:
    path = write_lines(tmp_path / "questions.jsonl", RECORD, RECORD | {field: text}, RECORD)
    first, bad, last = [entry.content for entry in read_entries(path)]
    assert first == last == QUESTION
    if field == "context":
        assert isinstance(bad, QuestionError)
        assert bad.code == "bad_field"
        assert str(bad).startswith(f"{path}, line 2: context")
    else:
        assert bad == QUESTION
    assert read_gold(path, []) == {GOLD.id: GOLD}


def test_the_real_questions_are_read(real_data: Path) -> None:
    path = real_data / "2wiki" / "train_500.json.gz"
    questions = list(read_questions(path))
    assert len(questions) == 500
    assert len(read_gold(path, [])) == 500
    assert all(question.hops == 2 for question in questions if question.type == "compositional")
