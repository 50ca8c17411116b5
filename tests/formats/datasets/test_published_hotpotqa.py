"""HotpotQA, distractor and fullwiki, as published and as on the Hub."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.datasets.layouts import LAYOUTS, check_bad_record, write_array

from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.published import HotpotQA
from rechain.schema import Gold, GoldChain, Passage, Question

RECORD: dict[str, Any] = {
    "_id": "5a8b57f2",
    "question": "Where was the composer of Zorilla born?",
    "answer": "Prague",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Anton Quillfeather", 0], ["Zorilla", 1], ["Zorilla", 0]],
    "context": [
        ["Weather", ["It rains often.", " Even in autumn. "]],
        ["Zorilla", ["Zorilla is an opera.", " It is by Anton Quillfeather."]],
        ["Anton Quillfeather", ["Anton Quillfeather was born in Prague."]],
    ],
}
HUB = {
    **{field: RECORD[field] for field in ("question", "answer", "type", "level")},
    "id": RECORD["_id"],
    "supporting_facts": {"title": ["Anton Quillfeather", "Zorilla", "Zorilla"], "sent_id": [0, 1, 0]},
    "context": {"title": [t for t, _ in RECORD["context"]], "sentences": [s for _, s in RECORD["context"]]},
}
QUESTION = Question(
    id="5a8b57f2",
    question="Where was the composer of Zorilla born?",
    answer="Prague",
    hops=2,
    type="bridge",
    passages=[
        Passage(id="Weather", title="Weather", text="It rains often. Even in autumn."),
        Passage(id="Zorilla", title="Zorilla", text="Zorilla is an opera. It is by Anton Quillfeather."),
        Passage(id="Anton Quillfeather", title="Anton Quillfeather", text="Anton Quillfeather was born in Prague."),
    ],
)
GOLD = Gold(id="5a8b57f2", chains=[GoldChain(passages=["Zorilla", "Anton Quillfeather"])], same="passages")
UNORDERED = GoldChain(passages=["Anton Quillfeather", "Zorilla"], ordered=False)
AS_GIVEN = Gold(id="5a8b57f2", chains=[UNORDERED], same="passages")
"""as the record has it: evaluation finds the tail"""


@pytest.mark.parametrize(("write", "record"), [(write_array, RECORD), *((write, HUB) for write in LAYOUTS)])
def test_questions_and_gold_are_the_same_in_every_layout(
    tmp_path: Path, write: Callable[..., Path], record: dict[str, Any]
) -> None:
    path = write(tmp_path / "questions", record)
    assert list(read_questions(path)) == [QUESTION]
    assert read_gold(path, []) == {GOLD.id: GOLD}


def test_the_order_of_the_hubs_columns_does_not_matter() -> None:
    turned = HUB | {field: dict(reversed(HUB[field].items())) for field in ("context", "supporting_facts")}
    assert HotpotQA().question(turned) == QUESTION
    assert HotpotQA().gold(turned) == AS_GIVEN


def test_a_question_holds_no_gold() -> None:
    written = HotpotQA().question(RECORD).model_dump_json()
    assert "supporting" not in written
    assert json.loads(written).keys() == Question.model_fields.keys()


def test_gold_that_fullwiki_did_not_retrieve_is_still_gold(tmp_path: Path) -> None:
    fullwiki = RECORD | {"context": [*RECORD["context"][:1], RECORD["context"][2]]}
    assert [passage.id for passage in HotpotQA().question(fullwiki).passages] == ["Weather", "Anton Quillfeather"]
    assert HotpotQA().gold(fullwiki) == AS_GIVEN
    (tmp_path / "questions").write_text(json.dumps([fullwiki]))
    assert read_gold(tmp_path / "questions", []) == {GOLD.id: GOLD}


def test_test_questions_have_no_gold_but_can_be_asked() -> None:
    blind = {field: value for field, value in RECORD.items() if field not in ("supporting_facts", "type", "level")}
    assert HotpotQA().gold(blind) is None
    assert HotpotQA().gold(RECORD | {"supporting_facts": []}) is None
    assert HotpotQA().question(blind) == QUESTION.model_copy(update={"type": None})


@pytest.mark.parametrize("answer", ["Anton Quillfeather", "yes"], ids=["in both", "in none"])
def test_gold_is_unordered_unless_just_one_passage_holds_the_answer(tmp_path: Path, answer: str) -> None:
    (tmp_path / "questions").write_text(json.dumps([RECORD | {"answer": answer}]))
    gold = read_gold(tmp_path / "questions", [])["5a8b57f2"]
    assert set(gold.chains[0].passages) == {"Zorilla", "Anton Quillfeather"}
    assert not gold.chains[0].ordered


def test_a_passage_that_stands_there_twice_counts_once() -> None:
    twice = RECORD | {"context": [*RECORD["context"], RECORD["context"][0]]}
    assert HotpotQA().question(twice) == QUESTION


def change(**fields: object) -> dict[str, Any]:
    return {field: value for field, value in (RECORD | fields).items() if value is not ...}


@pytest.mark.parametrize(
    ("record", "code", "field"),
    [
        (change(_id=["a"]), "bad_field", "id"),
        (change(question=7), "bad_field", "question"),
        (change(question=...), "missing_field", "question"),
        (change(answer=...), "missing_field", "answer"),
        (change(context=...), "missing_field", "context"),
        (change(context="text"), "bad_field", "context"),
        (change(context=[["Zorilla"]]), "missing_field", "context[0]"),
        (change(context=[["Zorilla", "no list"]]), "bad_field", "context[0]"),
        (change(context=[["A", ["a"]], ["B", [""]]]), "empty_field", "context[1]"),
        (change(context=[["A", ["a"]], ["", ["b"]]]), "empty_field", "context[1]"),
        (change(context=[["A", ["a"]], ["A", ["b"]]]), "duplicate_passage", "'A'"),
        (change(context={"title": ["A", "B"], "sentences": [["a"]]}), "bad_field", "context: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_record_is_an_error_that_names_the_field(
    tmp_path: Path, record: dict[str, Any], code: str, field: str
) -> None:
    check_bad_record(tmp_path / "questions", RECORD, QUESTION, record, code, field)


def test_bad_supporting_facts_do_not_harm_the_question(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps([change(supporting_facts="none")]))
    assert list(read_questions(path)) == [QUESTION]
    assert read_gold(path, []) == {}


def test_the_real_questions_are_read(real_data: Path) -> None:
    path = real_data / "hotpotqa" / "train_300.json.gz"
    assert sum(1 for _ in read_questions(path)) == 300
    assert sum(1 for _ in read_questions(path, only=["bridge"])) == 229
    assert len(read_gold(path, [])) == 300
