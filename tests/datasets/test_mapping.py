"""Fields that a map names."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from rechain.datasets import read_entries, read_questions
from rechain.datasets.mapping import TARGETS, FieldMap
from rechain.datasets.reading import read_chunks
from rechain.errors import InputError, QuestionError, RechainError
from rechain.schema import Passage

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


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


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


def test_a_map_can_be_sent_to_other_processes_and_written(tmp_path: Path) -> None:
    import pickle

    mapping = FieldMap.of("question=q,answer=a,passages=docs")
    assert pickle.loads(pickle.dumps(mapping)) == mapping == FieldMap.of(str(mapping))
    (chunk,) = read_chunks(write_lines(tmp_path / "f", {"q": "Who?"}), 9, mapping)
    assert chunk.form == "mapped"
