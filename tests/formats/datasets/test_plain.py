"""The plain format, and records whose fields a map names."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.datasets.layouts import LAYOUTS, write_dataset, write_lines, write_parquet

from rechain.errors import InputError, QuestionError, RechainError
from rechain.formats.datasets import read_entries, read_questions
from rechain.formats.datasets.plain import TARGETS, FieldMap, Plain
from rechain.formats.datasets.questions import read_chunks
from rechain.formats.datasets.records import read_by_id
from rechain.schema import Mention, Passage, Question

PASSAGES: list[dict[str, Any]] = [
    {"id": "p1", "title": "Zorilla", "text": "Zorilla is an opera by Anton."},
    {"id": "p2", "text": "Anton was born in Prague.", "mentions": [{"entity": "person:anton", "start": 0, "end": 5}]},
]
REST = {
    "id": "q1",
    "question": "Where was the composer of Zorilla born?",
    "answer": "Prague",
    "answer_aliases": ["Praha"],
    "question_entities": ["opera:zorilla"],
    "answer_entity": "city:prague",
    "hops": 2,
    "link_types": ["person"],
    "source": "log 7",
}
WITH_PASSAGES = REST | {"passages": PASSAGES}
WITH_IDS = REST | {"passage_ids": ["p2", "p1"]}


@pytest.mark.parametrize("write", LAYOUTS)
def test_questions_are_the_same_in_every_layout(tmp_path: Path, write: Callable[..., Path]) -> None:
    assert list(read_questions(write(tmp_path / "questions", WITH_PASSAGES))) == [
        Question.model_validate(WITH_PASSAGES)
    ]


@pytest.mark.parametrize("write", LAYOUTS)
def test_passages_are_the_same_in_every_layout(tmp_path: Path, write: Callable[..., Path]) -> None:
    empty = {"title": None, "mentions": None} if write in (write_parquet, write_dataset) else {}
    path = write(tmp_path / "passages", *(empty | passage for passage in PASSAGES))
    assert list(read_by_id(path, Passage).values()) == [
        Passage(id="p1", title="Zorilla", text="Zorilla is an opera by Anton."),
        Passage(
            id="p2",
            text="Anton was born in Prague.",
            mentions=[Mention(entity="person:anton", start=0, end=5)],
        ),
    ]


def test_every_field_is_read(tmp_path: Path) -> None:
    (question,) = read_questions(write_lines(tmp_path / "questions", WITH_PASSAGES))
    assert {field: getattr(question, field) for field in REST} == REST


def test_questions_may_name_passages_of_another_file(tmp_path: Path) -> None:
    passages = write_lines(tmp_path / "passages", *PASSAGES)
    questions = write_lines(tmp_path / "questions", WITH_IDS)
    expected = Question.model_validate(REST | {"passages": PASSAGES[::-1], "passage_ids": ["p2", "p1"]})
    assert list(read_questions(questions, passages=passages)) == [expected]
    assert list(read_questions(questions, passages=read_by_id(passages, Passage))) == [expected]


def test_passages_that_stand_in_the_question_come_first(tmp_path: Path) -> None:
    both = WITH_PASSAGES | {"passage_ids": ["elsewhere"]}
    (question,) = read_questions(write_lines(tmp_path / "questions", both))
    assert [passage.id for passage in question.passages] == ["p1", "p2"]


def test_the_plain_format_has_its_gold_elsewhere() -> None:
    assert Plain().gold(WITH_PASSAGES) is None


def passage(**fields: object) -> dict[str, object]:
    return REST | {"passages": [PASSAGES[0], {"id": "p2", "text": "Prague."} | fields]}


@pytest.mark.parametrize(
    ("record", "code", "field"),
    [
        (passage(id=["p2"]), "bad_field", "passages[1].id"),
        (passage(id="p1"), "duplicate_passage", "passages[1].id"),
        (passage(text=""), "empty_field", "passages[1].text"),
        (passage(text=["a"]), "bad_field", "passages[1].text"),
        (passage(title=["a"]), "bad_field", "passages[1].title"),
        (passage(mentions="none"), "bad_field", "passages[1].mentions"),
        (passage(mentions=[{"entity": "a", "start": 0}]), "missing_field", "passages[1].mentions[0].end"),
        (passage(mentions=[{"entity": "a", "start": 0, "end": 99}]), "bad_field", "passages[1].mentions[0]"),
        (passage(mentions=[{"entity": "a", "start": -1, "end": 2}]), "bad_field", "passages[1].mentions[0].start"),
        (passage(mentions=[{"entity": "a", "start": 0, "end": 10**30}]), "bad_field", "passages[1].mentions[0].end"),
        (WITH_PASSAGES | {"passages": 7}, "bad_field", "passages"),
        (WITH_PASSAGES | {"passages": [7]}, "bad_field", "passages[0]"),
        (WITH_PASSAGES | {"passages": None}, "missing_field", "passages"),
        (WITH_PASSAGES | {"id": ""}, "empty_field", "id"),
        (WITH_PASSAGES | {"question": None}, "missing_field", "question"),
        (WITH_PASSAGES | {"answer": ["1869"]}, "bad_field", "answer"),
        (WITH_PASSAGES | {"hops": 0}, "bad_field", "hops"),
        (WITH_PASSAGES | {"hops": 10**30}, "bad_field", "hops"),
        (WITH_PASSAGES | {"hops": 3}, "bad_field", "link_types"),
        (WITH_PASSAGES | {"link_types": "person"}, "bad_field", "link_types"),
        (REST, "missing_field", "passages"),
        ({}, "missing_field", "question, answer and passages"),
        (7, "bad_record", "an object"),
        (None, "bad_record", "an object"),
        ([WITH_PASSAGES], "bad_record", "an object"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_record_is_an_error_that_names_the_field(tmp_path: Path, record: object, code: str, field: str) -> None:
    path = write_lines(tmp_path / "f.jsonl", WITH_PASSAGES, record, WITH_PASSAGES)
    first, bad, last = [entry.content for entry in read_entries(path)]
    assert isinstance(first, Question)
    assert first == last
    assert isinstance(bad, QuestionError)
    assert bad.code == code
    assert str(bad).startswith(f"{path}, line 2: ")
    assert field in str(bad).removeprefix(str(path))


@pytest.mark.parametrize(
    ("ids", "code", "field"),
    [
        (["p1", "p9"], "unknown_passage", "passage_ids[1] ('p9')"),
        (["p1", 7], "unknown_passage", "passage_ids[1] (7)"),
        (["p1", ["p2"]], "unknown_passage", "passage_ids[1]"),
        ("p1", "bad_field", "passage_ids"),
        (["p1", "p1"], "duplicate_passage", "'p1'"),
    ],
    ids=str,
)
def test_bad_passage_ids_are_an_error_that_names_them(tmp_path: Path, ids: object, code: str, field: str) -> None:
    passages = write_lines(tmp_path / "passages", *PASSAGES)
    path = write_lines(tmp_path / "questions", REST | {"passage_ids": ids}, WITH_IDS)
    bad, good = [entry.content for entry in read_entries(path, passages=passages)]
    assert isinstance(good, Question)
    assert isinstance(bad, QuestionError)
    assert bad.code == code
    assert str(bad).startswith(f"{path}, line 1: ")
    assert field in str(bad)


def test_a_passage_id_that_is_nested_deeply_is_shown_in_short(tmp_path: Path) -> None:
    questions = tmp_path / "questions"
    questions.write_text(json.dumps(REST | {"passage_ids": ["ID"]}).replace('"ID"', "[" * 1000 + "]" * 1000))
    (entry,) = read_entries(questions, passages={})
    assert isinstance(entry.content, QuestionError) and entry.content.code == "unknown_passage"
    assert "passage_ids[0] ([[[[[[[...]]]]]]])" in str(entry.content)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"id": "p2"}', "line 2: the field text is missing"),
        ('{"id": "p2", "text": " "}', "line 2: text is empty"),
        ('{"id": "p1", "text": "again"}', "line 2: the id 'p1' stands there twice"),
        ('{"id": "p2", ', "line 2: not valid JSON"),
        ("7", "line 2: "),
    ],
)
def test_a_bad_passage_stops_the_reading(tmp_path: Path, line: str, what: str) -> None:
    path = write_lines(tmp_path / "passages", PASSAGES[0])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError) as failure:
        read_by_id(path, Passage)
    assert str(failure.value).startswith(f"{path}, {what}")


def test_the_real_questions_are_read(real_data: Path) -> None:
    folder = real_data / "drughop"
    passages = read_by_id(folder / "passages.jsonl.gz", Passage)
    assert len(passages) == 3594
    assert sum(1 for _ in read_questions(folder / "blind.jsonl.gz", passages=passages)) == 762


def test_ids_without_a_passages_file_are_a_mistake_about_the_whole_file(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "questions", WITH_IDS)
    with pytest.raises(InputError, match="--passages"):
        list(read_entries(path))


@pytest.mark.parametrize(
    ("answer", "text"), [(1869, "1869"), (27.0, "27"), (0.5, "0.5"), (True, "yes"), (False, "no"), (None, "")]
)
def test_answers_may_be_numbers_booleans_or_null(tmp_path: Path, answer: object, text: str) -> None:
    (question,) = read_questions(write_lines(tmp_path / "f.jsonl", WITH_PASSAGES | {"answer": answer}))
    assert question.answer == text


def test_a_title_may_be_a_number(tmp_path: Path) -> None:
    (question,) = read_questions(write_lines(tmp_path / "f.jsonl", passage(title=2023)))
    assert question.passages[1].title == "2023"


RUN: dict[str, Any] = {
    "run": {
        "key": 7,
        "inputs": [{"role": "system", "content": "Help."}, {"role": "user", "content": "Who wrote Zorilla?"}],
        "outputs": {
            "text": "Anton",
            "documents": [{"body": "Zorilla is by Anton.", "info": {"name": "Zorilla", "n": 3}}],
        },
    },
    "tag": "operas",
}
MAP = (
    "question=run.inputs.-1.content, answer=run.outputs.text, passages=run.outputs.documents, id=run.key,"
    "passage.text=body,passage.title=info.name,passage.id=info.n"
)


def one_error(path: Path, mapping: Any) -> str:
    (error,) = [e.content for e in read_entries(path, mapping=mapping) if isinstance(e.content, QuestionError)]
    return str(error)


@pytest.mark.parametrize("mapping", [MAP, dict(pair.strip().split("=") for pair in MAP.split(",")), FieldMap.of(MAP)])
def test_paths_lead_through_objects_and_lists(tmp_path: Path, mapping: Any) -> None:
    (question,) = read_questions(write_lines(tmp_path / "f", RUN), mapping=mapping)
    assert (question.id, question.question, question.answer) == ("7", "Who wrote Zorilla?", "Anton")
    (passage,) = question.passages
    assert (passage.id, passage.title, passage.text) == ("3", "Zorilla", "Zorilla is by Anton.")
    assert question.model_extra == RUN


def test_a_map_wins_over_what_a_format_would_recognise(tmp_path: Path) -> None:
    record = {
        "question": "No?",
        "answer": "no",
        "passages": ["No."],
        "q": "Who?",
        "a": "Anton",
        "p": ["Anton.", "Anton."],
    }
    path = write_lines(tmp_path / "f", record)
    (question,) = read_questions(path, mapping="question=q,answer=a,passages=p")
    assert (question.question, question.answer, [passage.text for passage in question.passages]) == (
        "Who?",
        "Anton",
        ["Anton."],
    )
    (half,) = read_questions(path, mapping={"answer": "a"})
    assert (half.question, half.answer, half.passages) == ("No?", "Anton", [Passage(id="0", text="No.")])


def test_a_field_after_a_list_is_that_of_every_item(tmp_path: Path) -> None:
    record = {"q": "Who?", "a": "Anton", "hits": [{"doc": {"t": "Anton."}}, {"none": 1}, {"doc": {"t": "Berta."}}]}
    (question,) = read_questions(write_lines(tmp_path / "f", record), mapping="question=q,answer=a,passages=hits.doc.t")
    assert [passage.text for passage in question.passages] == ["Anton.", "Berta."]


def test_a_field_may_have_dots_in_its_name_and_a_cell_may_hold_json(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    with path.open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["inputs.question", "outputs", "run"])
        rows.writerow(["Who?", json.dumps({"answer": "Anton"}), json.dumps([{"docs": ["Anton."]}])])
    (question,) = read_questions(path, mapping="question=inputs.question,answer=outputs.answer,passages=run.0.docs")
    assert (question.question, question.answer, question.passages) == (
        "Who?",
        "Anton",
        [Passage(id="0", text="Anton.")],
    )


def test_passages_may_be_named_by_id(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", {"q": "Who?", "a": "Anton", "ids": [3]})
    passages = {"3": Passage(id="3", text="Anton.")}
    (question,) = read_questions(path, passages=passages, mapping="question=q,answer=a,passage_ids=ids")
    assert question.passages == [passages["3"]]


def test_all_fields_that_a_record_lacks_are_named(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "f", {"q": "Who?", "a": "Anton", "docs": ["Anton."]}, {"a": "Anton", "prompt": "Who?"}
    )
    error = one_error(path, "question=q,answer=a,passages=docs")
    assert "line 2: the fields q and docs are missing; the record has a and prompt" in error


def test_what_no_map_names_is_missing(tmp_path: Path) -> None:
    error = one_error(write_lines(tmp_path / "f", {"q": "Who?", "a": "Anton", "docs": ["Anton."]}), "question=q")
    assert "the fields answer and passages are missing; the record has" in error


@pytest.mark.parametrize("path", ["docs.--1", "docs.-", "docs..x", "docs.²"])
def test_a_path_that_leads_nowhere_is_a_missing_field_beside_the_others(tmp_path: Path, path: str) -> None:
    record = {"q": "Who?", "docs": ["Anton."]}
    error = one_error(write_lines(tmp_path / "f", record), f"question=q,answer=nope,passages={path}")
    assert f"the fields nope and {path} are missing; the record has q and docs" in error


@pytest.mark.parametrize("record", [{"a": None}, {"a": {"text": None}}], ids=repr)
def test_an_answer_that_is_mapped_and_null_was_not_given(tmp_path: Path, record: dict[str, Any]) -> None:
    path = write_lines(tmp_path / "f", {"q": "Who?", "docs": ["Anton."]} | record)
    (question,) = read_questions(path, mapping="question=q,answer=a.text,passages=docs")
    assert question.answer == ""


def test_a_blank_cell_of_a_mapped_column_is_null(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("q,a,docs\nWho?,,Anton.\nWho?,Anton,\n")
    first, second = read_questions(path, mapping="question=q,answer=a,passages=docs")
    assert (first.answer, len(first.passages), second.answer, second.passages) == ("", 1, "Anton", [])


@pytest.mark.parametrize("hits", [[], None, [{"doc": None}], [{"doc": {"t": None}}]], ids=repr)
def test_passages_that_are_mapped_and_not_retrieved_are_none(tmp_path: Path, hits: object) -> None:
    path = write_lines(tmp_path / "f", {"q": "Who?", "a": "Anton", "hits": hits})
    (question,) = read_questions(path, mapping="question=q,answer=a,passages=hits.doc.t")
    assert question.passages == []


def test_a_mistake_in_the_name_of_the_answer_is_the_error_of_every_record(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", {"q": "Who?", "a": "Anton", "docs": ["Anton."]})
    assert "the field answr is missing; the record has q, a and docs" in one_error(
        path, "question=q,answer=answr,passages=docs"
    )


def test_a_file_without_any_mapped_field_says_so(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "f", *[{"prompt": "Who?"}] * 3)
    with pytest.raises(
        InputError, match=r"has none of the fields that --map names \(question=q\); its first record has prompt"
    ):
        list(read_entries(path, mapping="question=q"))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("frage=q", f"--map names 'frage', which is none of {', '.join(TARGETS)}."),
        ("question", "--map names no field for question; write question=FIELD."),
        ("question=", "--map names no field for question"),
        (" , ", "--map names each thing once, and one at least"),
        ("question=a,question=b", "--map names each thing once"),
        (7, "a map should be a text or a dict, not 7."),
    ],
)
def test_what_is_no_map_is_a_mistake(given: Any, why: str) -> None:
    with pytest.raises(RechainError) as failure:
        FieldMap.of(given)
    assert str(failure.value).startswith(why)


def test_lists_in_lists_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text('{"q": "Who?", "docs": ' + "[" * 900 + "]" * 900 + "}")
    assert "docs.text" in one_error(path, "question=q,answer=a,passages=docs.text")


@pytest.mark.parametrize("place", ["9" * 5000, "²", "-"], ids=["long", "square", "sign"])
def test_what_is_no_place_in_a_list_leads_nowhere(tmp_path: Path, place: str) -> None:
    path = write_lines(tmp_path / "f", {"q": "Who?", "a": "Ann", "docs": ["x", "y"]})
    assert "docs." in one_error(path, f"question=q,answer=a,passages=docs.{place}")


def test_a_map_can_be_sent_to_other_processes_and_written(tmp_path: Path) -> None:
    import pickle

    mapping = FieldMap.of("question=q,answer=a,passages=docs")
    assert pickle.loads(pickle.dumps(mapping)) == mapping == FieldMap.of(str(mapping))
    (chunk,) = read_chunks(write_lines(tmp_path / "f", {"q": "Who?"}), 9, mapping)
    assert chunk.form == "mapped"
