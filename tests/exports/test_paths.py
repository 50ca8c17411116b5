"""Paths for Beam Retriever: records of MuSiQue, which read back as what they were made of."""

import json
from pathlib import Path
from typing import Any

import pytest

from rechain.datasets import read_entries, read_questions
from rechain.errors import QuestionError
from rechain.evaluation.gold import read_gold
from rechain.exports.joining import Joined, Selection, join
from rechain.exports.paths import row
from rechain.recovery import Recoverer
from rechain.schema import GoldChain, Question


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_chain_is_a_record_of_musique(bridge: Joined) -> None:
    (record,) = row(bridge)
    assert record["paragraphs"][1] == {
        "idx": 1,
        "title": "Anton Quillfeather",
        "paragraph_text": "Anton Quillfeather was born in Prague.",
        "is_supporting": True,
    }
    assert [paragraph["is_supporting"] for paragraph in record["paragraphs"]] == [True, True, False, False]
    asked = "Where was the composer of the Zorilla opera born?"
    assert record["question_decomposition"] == [
        {"id": 0, "question": asked, "answer": "Anton Quillfeather", "paragraph_support_idx": 0},
        {"id": 1, "question": "#1", "answer": "Prague", "paragraph_support_idx": 1},
    ]
    assert (record["id"], record["question"], record["answer"]) == ("q1", asked, "Prague")


def test_supports_are_positions_in_the_order_of_the_chain(recovered: Any, bridge_question: Question) -> None:
    (record,) = row(Joined(bridge_question, recovered("q1", ["city", "opera", "composer"]), {}))
    assert [step["paragraph_support_idx"] for step in record["question_decomposition"]] == [2, 0, 1]


@pytest.mark.parametrize("links", [[], None], ids=["no links", "links"])
def test_question_and_chain_read_back(tmp_path: Path, recovered: Any, bridge_question: Question, links: Any) -> None:
    question = bridge_question.model_copy(update={"question": "Which #7 hit?", "answer_aliases": ["Praha"]})
    fields = {} if links is None else {"links": links}
    chain = recovered("q1", ["opera", "composer", "city"], **fields)
    path = write(tmp_path / "paths.jsonl", row(Joined(question, chain, {})))
    (read,) = read_questions(path)
    assert (read.id, read.question, read.answer, read.answer_aliases) == ("q1", "Which #7 hit?", "Prague", ["Praha"])
    assert [(p.title, p.text) for p in read.passages] == [(p.title, p.text) for p in question.passages]
    named = ["composer", "city"] if links is None else ["", ""]
    assert read_gold(path, [])["q1"].chains == [GoldChain(passages=["0", "1", "2"], links=named)]


def test_the_real_musique_reads_back(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "musique/train_100.json.gz"
    recovered = list(Recoverer("lexical").recover_many(read_entries(source)))
    joined = list(join((("", one) for one in recovered), ((entry, {}) for entry in read_entries(source)), Selection()))
    path = write(tmp_path / "paths.jsonl", [record for one in joined for record in row(one)])
    assert len(joined) > 80
    assert list(read_questions(path)) == [one.question for one in joined]
    told = read_gold(path, [])
    for one in joined:
        links = [link.entity for link in one.best.links]
        assert told[one.question.id].chains == [GoldChain(passages=one.best.passages, links=links)]


def test_what_is_read_back_is_recovered_alike(bridge: Joined, tmp_path: Path) -> None:
    (entry,) = read_entries(write(tmp_path / "paths.jsonl", row(bridge)))
    assert not isinstance(entry.content, QuestionError)
    assert Recoverer("lexical").recover(entry.content)[0].passages == ["0", "1"]


def test_passages_side_by_side_are_steps_that_do_not_refer_to_one_another(bridge: Joined) -> None:
    chain = bridge.best.model_copy(update={"shape": "parallel"})
    bridge = bridge._replace(recovered=bridge.recovered.model_copy(update={"chains": [chain]}))
    steps = row(bridge)[0]["question_decomposition"]
    assert [(step["question"], step["answer"]) for step in steps] == [
        (bridge.question.question, ""),
        (bridge.question.question, "Prague"),
    ]
