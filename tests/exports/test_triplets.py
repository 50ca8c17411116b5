"""Triplets to train a retriever on."""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from rechain.errors import InputError, QuestionError
from rechain.exports.joining import Joined
from rechain.exports.triplets import rows

CITY = "Prague lies on a river and has many bridges."


def test_every_passage_of_the_chain_is_a_positive(bridge: Joined) -> None:
    asked = "Where was the composer of the Zorilla opera born?"
    assert rows(bridge) == [
        {"query": asked, "positive": "Zorilla is an opera by Anton Quillfeather.", "negative": CITY},
        {"query": asked, "positive": "Anton Quillfeather was born in Prague.", "negative": CITY},
    ]
    assert list(rows(bridge)[0]) == ["query", "positive", "negative"]


def test_there_may_be_several_negatives_a_positive(towns: Any, recovered: Any) -> None:
    question = towns(1, first=1)[0]
    joined = Joined(question, recovered(question.id, ["work", "maker"]), {})
    one, two = rows(joined), rows(joined, negatives=2)
    assert (len(one), len(two), len(rows(joined, negatives=9))) == (2, 4, 4)
    assert two[::2] == one
    assert two[0]["positive"] == two[1]["positive"] != two[2]["positive"]
    assert two[0]["negative"] == two[2]["negative"] != two[1]["negative"]


def test_confidence_is_a_weight_in_a_column_that_trainers_take_for_labels(bridge: Joined, recovered: Any) -> None:
    sure = bridge._replace(recovered=recovered("q1", ["opera", "composer"], confidence=0.75))
    assert rows(sure, weights=True) == [row | {"score": 0.75} for row in rows(sure)]
    with pytest.raises(InputError, match=r"q1.*tells no confidence"):
        rows(bridge, weights=True)


def test_a_question_without_a_negative_is_refused(bridge: Joined) -> None:
    few = bridge.question.model_copy(update={"passages": bridge.question.passages[:2]})
    with pytest.raises(QuestionError) as refused:
        rows(bridge._replace(question=few))
    assert refused.value.code == "no_negative"


def test_the_datasets_library_reads_them(bridge: Joined, tmp_path: Path) -> None:
    path = tmp_path / "triplets.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(bridge)))
    read = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert read.column_names == ["query", "positive", "negative"]
    assert list(read) == rows(bridge)
