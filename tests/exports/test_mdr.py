"""Training data of MDR."""

from typing import Any

import pytest

from rechain.errors import QuestionError
from rechain.exports.joining import Joined
from rechain.exports.mdr import row


@pytest.fixture
def town(towns: Any, recovered: Any) -> Joined:
    question = towns(1, first=1)[0]
    return Joined(question, recovered(question.id, ["work", "maker"]), {})


def test_a_chain_has_a_start_a_bridge_and_negatives(town: Joined) -> None:
    passages = {passage.id: {"title": passage.title, "text": passage.text} for passage in town.question.passages}
    (record,) = row(town)
    assert record["pos_paras"] == [passages["work"], passages["maker"]]
    assert [para for para in record["pos_paras"] if para["title"] == record["bridge"]] == [passages["maker"]]
    assert record["neg_paras"] == record["tfidf_neg"]
    assert sorted(para["title"] for para in record["neg_paras"]) == sorted(
        passages[name]["title"] for name in ("guest", "other")
    )
    assert (record["_id"], record["type"], record["answers"]) == (town.question.id, "bridge", [town.question.answer])


def test_confidence_is_a_field_where_the_model_tells_one(town: Joined, recovered: Any) -> None:
    assert "confidence" not in row(town)[0]
    sure = town._replace(recovered=recovered(town.question.id, ["work", "maker"], confidence=0.75))
    assert row(sure)[0]["confidence"] == 0.75


def test_what_mdr_cannot_read_is_refused(town: Joined, recovered: Any) -> None:
    untitled = [passage.model_copy(update={"title": ""}) for passage in town.question.passages]
    few = [passage for passage in town.question.passages if passage.id != "other"]
    refused = {
        "not_two_passages": town._replace(recovered=recovered("q", ["work", "guest", "maker"])),
        "same_title": town._replace(question=town.question.model_copy(update={"passages": untitled})),
        "no_negative": town._replace(question=town.question.model_copy(update={"passages": few})),
    }
    for code, joined in refused.items():
        with pytest.raises(QuestionError) as failure:
            row(joined)
        assert failure.value.code == code


def test_two_passages_side_by_side_are_a_comparison_and_one_is_refused(town: Joined, recovered: Any) -> None:
    (record,) = row(town._replace(recovered=recovered("q", ["guest", "maker"], shape="parallel", links=[])))
    assert record["type"] == "comparison"
    assert "bridge" not in record
    with pytest.raises(QuestionError, match="1 passages"):
        row(town._replace(recovered=recovered("q", ["maker"], shape="single", links=[])))
