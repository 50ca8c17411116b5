"""Training data of retrievers: triplets, paths for Beam Retriever that read back as questions, and MDR."""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from rechain.errors import InputError, QuestionError
from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_entries, read_questions
from rechain.formats.exports.joining import Joined, Selection, join
from rechain.formats.exports.retriever_training import hard_negatives, mdr, path, text_of, triplets
from rechain.recoverer import Recoverer
from rechain.schema import GoldChain, Passage, Question

CITY = "Prague lies on a river and has many bridges."


def test_every_passage_of_the_chain_is_a_positive(bridge: Joined) -> None:
    asked = "Where was the composer of the Zorilla opera born?"
    assert triplets(bridge) == [
        {"query": asked, "positive": "Zorilla is an opera by Anton Quillfeather.", "negative": CITY},
        {"query": asked, "positive": "Anton Quillfeather was born in Prague.", "negative": CITY},
    ]
    assert list(triplets(bridge)[0]) == ["query", "positive", "negative"]


def test_there_may_be_several_negatives_a_positive(towns: Any, recovered: Any) -> None:
    question = towns(1, first=1)[0]
    joined = Joined(question, recovered(question.id, ["work", "maker"]), {})
    one, two = triplets(joined), triplets(joined, negatives=2)
    assert (len(one), len(two), len(triplets(joined, negatives=9))) == (2, 4, 4)
    assert two[::2] == one
    assert two[0]["positive"] == two[1]["positive"] != two[2]["positive"]
    assert two[0]["negative"] == two[2]["negative"] != two[1]["negative"]


def test_confidence_is_a_weight_in_a_column_that_trainers_take_for_labels(bridge: Joined, recovered: Any) -> None:
    sure = bridge._replace(recovered=recovered("q1", ["opera", "composer"], confidence=0.75))
    assert triplets(sure, weights=True) == [row | {"score": 0.75} for row in triplets(sure)]
    with pytest.raises(InputError, match=r"q1.*tells no confidence"):
        triplets(bridge, weights=True)


def test_a_question_without_a_negative_is_refused(bridge: Joined) -> None:
    few = bridge.question.model_copy(update={"passages": bridge.question.passages[:2]})
    with pytest.raises(QuestionError) as refused:
        triplets(bridge._replace(question=few))
    assert refused.value.code == "no_negative"


def test_the_datasets_library_reads_them(bridge: Joined, tmp_path: Path) -> None:
    written = tmp_path / "triplets.jsonl"
    written.write_text("".join(json.dumps(row) + "\n" for row in triplets(bridge)))
    read = datasets.load_dataset("json", data_files=str(written), split="train", cache_dir=str(tmp_path / "cache"))
    assert read.column_names == ["query", "positive", "negative"]
    assert list(read) == triplets(bridge)


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_chain_is_a_record_of_musique(bridge: Joined) -> None:
    (record,) = path(bridge)
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
    (record,) = path(Joined(bridge_question, recovered("q1", ["city", "opera", "composer"]), {}))
    assert [step["paragraph_support_idx"] for step in record["question_decomposition"]] == [2, 0, 1]


@pytest.mark.parametrize("links", [[], None], ids=["no links", "links"])
def test_question_and_chain_read_back(tmp_path: Path, recovered: Any, bridge_question: Question, links: Any) -> None:
    question = bridge_question.model_copy(update={"question": "Which #7 hit?", "answer_aliases": ["Praha"]})
    fields = {} if links is None else {"links": links}
    chain = recovered("q1", ["opera", "composer", "city"], **fields)
    written = write(tmp_path / "paths.jsonl", path(Joined(question, chain, {})))
    (read,) = read_questions(written)
    assert (read.id, read.question, read.answer, read.answer_aliases) == ("q1", "Which #7 hit?", "Prague", ["Praha"])
    assert [(p.title, p.text) for p in read.passages] == [(p.title, p.text) for p in question.passages]
    named = ["composer", "city"] if links is None else ["", ""]
    assert read_gold(written, [])["q1"].chains == [GoldChain(passages=["0", "1", "2"], links=named)]


def test_the_real_musique_reads_back(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "musique/train_100.json.gz"
    recovered = list(Recoverer("lexical").recover_many(read_entries(source)))
    joined = list(join((("", one) for one in recovered), ((entry, {}) for entry in read_entries(source)), Selection()))
    written = write(tmp_path / "paths.jsonl", [record for one in joined for record in path(one)])
    assert len(joined) > 80
    assert list(read_questions(written)) == [one.question for one in joined]
    told = read_gold(written, [])
    for one in joined:
        links = [link.entity for link in one.best.links]
        assert told[one.question.id].chains == [GoldChain(passages=one.best.passages, links=links)]


def test_what_is_read_back_is_recovered_alike(bridge: Joined, tmp_path: Path) -> None:
    (entry,) = read_entries(write(tmp_path / "paths.jsonl", path(bridge)))
    assert not isinstance(entry.content, QuestionError)
    assert Recoverer("lexical").recover(entry.content)[0].passages == ["0", "1"]


def test_passages_side_by_side_are_steps_that_do_not_refer_to_one_another(bridge: Joined) -> None:
    chain = bridge.best.model_copy(update={"shape": "parallel"})
    bridge = bridge._replace(recovered=bridge.recovered.model_copy(update={"chains": [chain]}))
    steps = path(bridge)[0]["question_decomposition"]
    assert [(step["question"], step["answer"]) for step in steps] == [
        (bridge.question.question, ""),
        (bridge.question.question, "Prague"),
    ]


def test_steps_of_a_graph_refer_to_those_that_lead_to_them(bridge: Joined) -> None:
    link, names = bridge.best.links[0], [*bridge.best.passages, "more"]
    links = [link.model_copy(update={"entity": name, "between": ends}) for name, ends in (("x", (0, 2)), ("y", (1, 2)))]
    graph = bridge.best.model_copy(update={"shape": "graph", "passages": names, "links": links})
    passages = [*bridge.question.passages, Passage(id="more", text="Prague")]
    question = bridge.question.model_copy(update={"passages": passages})
    (record,) = path(Joined(question, bridge.recovered.model_copy(update={"chains": [graph]}), {}))
    steps = [(step["question"], step["answer"]) for step in record["question_decomposition"]]
    assert steps == [(question.question, "x"), (question.question, "y"), ("#1 #2", "Prague")]


@pytest.fixture
def town(towns: Any, recovered: Any) -> Joined:
    question = towns(1, first=1)[0]
    return Joined(question, recovered(question.id, ["work", "maker"]), {})


def test_a_chain_has_a_start_a_bridge_and_negatives(town: Joined) -> None:
    passages = {passage.id: {"title": passage.title, "text": passage.text} for passage in town.question.passages}
    (record,) = mdr(town)
    assert record["pos_paras"] == [passages["work"], passages["maker"]]
    assert [para for para in record["pos_paras"] if para["title"] == record["bridge"]] == [passages["maker"]]
    assert record["neg_paras"] == record["tfidf_neg"]
    assert sorted(para["title"] for para in record["neg_paras"]) == sorted(
        passages[name]["title"] for name in ("guest", "other")
    )
    assert (record["_id"], record["type"], record["answers"]) == (town.question.id, "bridge", [town.question.answer])


def test_confidence_is_a_field_where_the_model_tells_one(town: Joined, recovered: Any) -> None:
    assert "confidence" not in mdr(town)[0]
    sure = town._replace(recovered=recovered(town.question.id, ["work", "maker"], confidence=0.75))
    assert mdr(sure)[0]["confidence"] == 0.75


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
            mdr(joined)
        assert failure.value.code == code


def test_two_passages_side_by_side_are_a_comparison_and_one_is_refused(town: Joined, recovered: Any) -> None:
    (record,) = mdr(town._replace(recovered=recovered("q", ["guest", "maker"], shape="parallel", links=[])))
    assert record["type"] == "comparison"
    assert "bridge" not in record
    with pytest.raises(QuestionError, match="1 passages"):
        mdr(town._replace(recovered=recovered("q", ["maker"], shape="single", links=[])))


@pytest.mark.parametrize(
    ("title", "text", "whole"),
    [
        ("", "It rains.", "It rains."),
        ("  ", "It rains.", "It rains."),
        ("Weather", "It rains.", "Weather: It rains."),
        ("Weather", "Weather, bad.", "Weather, bad."),
        ("Rain", "Rainy days.", "Rain: Rainy days."),
    ],
)
def test_a_passage_has_its_title_once(title: str, text: str, whole: str) -> None:
    assert text_of(Passage(id="p", title=title, text=text)) == whole


def asked(*texts: str, answer: str = "Prague") -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    return Question(id="q", question="Which green river has a bridge?", answer=answer, passages=passages)


TEXTS = ("A river.", "Prague.", "It rains.", "A green river with a bridge.", "A green river.", "A bridge in Prague.")


def names(question: Question, chains: Any) -> list[str]:
    return [passage.id for passage in hard_negatives(Joined(question, chains, {}))]


def test_those_that_hold_the_answer_come_first_then_those_most_like_the_question(recovered: Any) -> None:
    assert names(asked(*TEXTS), recovered("q", ["0", "1"])) == ["5", "3", "4", "2"]


def test_those_that_hold_a_link_come_first_too(recovered: Any) -> None:
    link = {"entity": "It Rains", "kind": "name", "weight": 9.0, "mentions": [None, None]}
    assert names(asked(*TEXTS), recovered("q", ["0", "1"], links=[link])) == ["5", "2", "3", "4"]


def test_passages_of_other_chains_are_no_negatives(recovered: Any) -> None:
    assert names(asked(*TEXTS), recovered("q", ["0", "1"], ["4", "1"])) == ["5", "3", "2"]


def test_a_passage_that_says_the_same_as_one_of_the_chain_is_no_negative(recovered: Any) -> None:
    assert names(asked(*TEXTS, "A river."), recovered("q", ["0", "1"])) == ["5", "3", "4", "2"]


def test_equals_stay_in_the_order_of_the_file(recovered: Any) -> None:
    question = asked("A river.", "Prague.", "It rains.", "It snows.", "It hails.")
    assert names(question, recovered("q", ["0", "1"])) == ["2", "3", "4"]


def test_an_entity_of_the_answer_decides_what_holds_it(recovered: Any) -> None:
    question = asked("DB00001 and P12345", "P12345 and DB00002", "no drug", "river DB00002", answer="DB00002")
    question = question.model_copy(update={"answer_entity": "drug:DB00002"})
    assert names(question, recovered("q", ["0", "1"])) == ["3", "2"]
