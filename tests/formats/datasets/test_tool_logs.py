"""What tools that answer from documents write into their logs, as they write it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.formats.datasets.layouts import write_lines

from rechain.errors import QuestionError
from rechain.formats.datasets import questions, read_entries, read_questions

ASKED = "Which airport is near the head office?"
SAID = "The head office in Graz is near Thalerhof airport."
TEXTS = ["The head office is in Graz.", "Thalerhof airport lies south of Graz."]

LANGCHAIN = [
    {"id": None, "page_content": TEXTS[0], "metadata": {"source": "offices.md"}, "type": "Document"},
    {"id": "d2", "page_content": TEXTS[1], "metadata": {"title": "Airports"}, "type": "Document"},
]
DUMPED = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"], "kwargs": document}
    for document in LANGCHAIN
]
NODES = [
    {
        "node": {"id_": "n1", "text": TEXTS[0], "metadata": {"file_name": "offices.md"}, "embedding": [0.1]},
        "score": 0.9,
    },
    {"node": {"id_": "n2", "text_resource": {"text": TEXTS[1]}, "metadata": {"title": "Airports"}}, "score": 0.7},
]
HAYSTACK = [
    {"id": "h1", "content": TEXTS[0], "source": "offices.md", "score": 0.9, "embedding": None},
    {"id": "h2", "content": TEXTS[1], "meta": {"title": "Airports"}},
]
ANSWER = {"data": SAID, "query": ASKED, "documents": HAYSTACK, "meta": {}}

RECORDS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "ragas": ({"user_input": ASKED, "retrieved_contexts": TEXTS, "response": SAID}, ["0", "1"], ["", ""]),
    "ragas of before 0.2": (
        {"question": ASKED, "contexts": TEXTS, "answer": SAID, "ground_truths": ["Thalerhof"]},
        ["0", "1"],
        ["", ""],
    ),
    "ragas without a response": (
        {"user_input": ASKED, "retrieved_contexts": TEXTS, "reference": SAID},
        ["0", "1"],
        ["", ""],
    ),
    "ragas whose answer is a list": (
        {"question": ASKED, "contexts": TEXTS, "ground_truths": [SAID]},
        ["0", "1"],
        ["", ""],
    ),
    "langchain": (
        {"query": ASKED, "result": SAID, "source_documents": LANGCHAIN},
        ["offices.md", "d2"],
        ["offices.md", "Airports"],
    ),
    "langchain's retrieval chain": (
        {"input": ASKED, "answer": SAID, "context": LANGCHAIN},
        ["offices.md", "d2"],
        ["offices.md", "Airports"],
    ),
    "langchain, dumped": (
        {"question": ASKED, "answer": {"content": SAID, "type": "ai"}, "context": DUMPED},
        ["offices.md", "d2"],
        ["offices.md", "Airports"],
    ),
    "one text": ({"question": ASKED, "answer": SAID, "context": "\n\n".join(TEXTS)}, ["0", "1"], ["", ""]),
    "llamaindex": (
        {"query": ASKED, "response": SAID, "source_nodes": NODES},
        ["n1", "n2"],
        ["offices.md", "Airports"],
    ),
    "llamaindex, response as a whole": (
        {"query": ASKED, "response": {"response": SAID, "source_nodes": NODES, "metadata": {}}},
        ["n1", "n2"],
        ["offices.md", "Airports"],
    ),
    "haystack": (ANSWER, ["h1", "h2"], ["offices.md", "Airports"]),
    "haystack, serialised": (
        {"type": "haystack.dataclasses.answer.GeneratedAnswer", "init_parameters": ANSWER},
        ["h1", "h2"],
        ["offices.md", "Airports"],
    ),
    "haystack, result of a pipeline": (
        {"answer_builder": {"answers": [ANSWER]}, "retriever": {}},
        ["h1", "h2"],
        ["offices.md", "Airports"],
    ),
}


def error_of(path: Path) -> QuestionError:
    errors = [entry.content for entry in read_entries(path) if isinstance(entry.content, QuestionError)]
    assert len(errors) == 1
    return errors[0]


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_recognised_by_itself(tmp_path: Path, name: str) -> None:
    record, ids, titles = RECORDS[name]
    (question,) = read_questions(write_lines(tmp_path / "log.jsonl", record))
    assert (question.id, question.question, question.answer) == ("1", ASKED, SAID)
    assert [passage.text for passage in question.passages] == TEXTS
    assert [passage.id for passage in question.passages] == ids
    assert [passage.title for passage in question.passages] == titles


def test_every_tool_is_a_format_of_its_own(tmp_path: Path) -> None:
    names = {}
    for number, (record, _, _) in enumerate(RECORDS.values()):
        (chunk,) = questions.read_chunks(write_lines(tmp_path / str(number), record), 1)
        names[list(RECORDS)[number]] = chunk.form
    assert all(
        form == name.split(",")[0].split(" ")[0].split("'")[0] for name, form in names.items() if name != "one text"
    )


def test_other_fields_are_kept(tmp_path: Path) -> None:
    record = RECORDS["ragas"][0] | {"tag": "travel", "created_at": "2026-03-01", "reference": "Thalerhof"}
    (question,) = read_questions(write_lines(tmp_path / "f", record))
    assert question.model_extra == {"tag": "travel", "created_at": "2026-03-01", "reference": "Thalerhof"}


def test_vectors_are_not_kept_and_scores_are(tmp_path: Path) -> None:
    (question,) = read_questions(write_lines(tmp_path / "f", RECORDS["llamaindex"][0]))
    extra = question.passages[0].model_extra or {}
    assert extra["score"] == 0.9
    assert "embedding" not in extra


def test_what_a_retriever_returns_twice_or_blank_is_taken_once_or_not(tmp_path: Path) -> None:
    documents = [*LANGCHAIN, {**LANGCHAIN[1], "id": "again"}, {"page_content": " "}]
    record = {"query": ASKED, "result": SAID, "source_documents": documents}
    (question,) = read_questions(write_lines(tmp_path / "f", record))
    assert [passage.id for passage in question.passages] == ["offices.md", "d2"]


def test_pieces_of_a_document_with_its_id_get_ids_of_their_own(tmp_path: Path) -> None:
    pieces = [{"id": 7, "content": text} for text in (*TEXTS, "A third piece.")]
    (question,) = read_questions(write_lines(tmp_path / "f", ANSWER | {"documents": pieces}))
    assert [passage.id for passage in question.passages] == ["7", "7.2", "7.3"]


@pytest.mark.parametrize("response", ["", None])
def test_a_response_that_was_not_given_is_not_replaced_by_the_reference(tmp_path: Path, response: str | None) -> None:
    record = {"user_input": ASKED, "retrieved_contexts": TEXTS, "reference": "Thalerhof", "response": response}
    (question,) = read_questions(write_lines(tmp_path / "f", record))
    assert question.answer == ""


def test_a_record_without_any_answer_is_an_error_and_one_whose_answer_is_null_has_none(tmp_path: Path) -> None:
    without = {"user_input": ASKED, "retrieved_contexts": TEXTS}
    error = error_of(write_lines(tmp_path / "f", without))
    assert error.code == "missing_field"
    assert "line 1: the field response is missing; the record has user_input and retrieved_contexts: " in str(error)
    (question,) = read_questions(write_lines(tmp_path / "f", without | {"response": None}))
    assert question.answer == ""


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    error = error_of(write_lines(tmp_path / "f", RECORDS["ragas"][0], {"prompt": ASKED, "docs": TEXTS}))
    assert "the fields user_input, response and retrieved_contexts are missing; the record has prompt and docs" in str(
        error
    )
    assert "--map" in str(error)


@pytest.mark.parametrize("value", [7, {"a": 1}, [7], [{"node": {"node": {}}}], [{"score": 1}]], ids=repr)
def test_what_is_no_passage_is_the_error_of_its_record(tmp_path: Path, value: object) -> None:
    bad = RECORDS["ragas"][0] | {"retrieved_contexts": value}
    error = error_of(write_lines(tmp_path / "f", RECORDS["ragas"][0], bad))
    assert "line 2: " in str(error)
    assert "retrieved_contexts" in str(error)


def test_wrappers_without_end_are_an_error(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"text": "a"}
    for _ in range(300):
        deep = {"node": deep}
    assert "is missing" in str(
        error_of(write_lines(tmp_path / "f", RECORDS["llamaindex"][0] | {"source_nodes": [deep]}))
    )
    wrapped = json.loads('{"answers": [' * 300 + "{}" + "]}" * 300)
    path = write_lines(tmp_path / "f", RECORDS["haystack"][0], wrapped)
    assert "query, data and documents are missing" in str(error_of(path))


def test_contexts_that_are_null_are_none_that_were_retrieved(tmp_path: Path) -> None:
    record = RECORDS["ragas"][0]
    path = write_lines(
        tmp_path / "f", record | {"retrieved_contexts": [None, TEXTS[0]]}, record | {"retrieved_contexts": None}
    )
    assert [[passage.text for passage in question.passages] for question in read_questions(path)] == [[TEXTS[0]], []]
