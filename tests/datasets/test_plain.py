"""The plain format, with passages in the questions or in a file of their own."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from rechain.datasets import read_entries, read_questions
from rechain.datasets.plain import Plain
from rechain.datasets.records import read_by_id
from rechain.errors import InputError, QuestionError
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


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def as_lines(path: Path, records: list[dict[str, Any]]) -> None:
    write_lines(path, *records)


def as_gzip(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress(json.dumps(records).encode()))


def as_parquet(path: Path, records: list[dict[str, Any]]) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)


def as_dataset(path: Path, records: list[dict[str, Any]]) -> None:
    datasets.Dataset.from_list(records).save_to_disk(path)


LAYOUTS = [as_lines, as_gzip, as_parquet, as_dataset]
Write = Callable[[Path, list[dict[str, Any]]], None]


@pytest.mark.parametrize("write", LAYOUTS)
def test_questions_are_the_same_in_every_layout(tmp_path: Path, write: Write) -> None:
    write(tmp_path / "questions", [WITH_PASSAGES])
    assert list(read_questions(tmp_path / "questions")) == [Question.model_validate(WITH_PASSAGES)]


@pytest.mark.parametrize("write", LAYOUTS)
def test_passages_are_the_same_in_every_layout(tmp_path: Path, write: Write) -> None:
    empty = {"title": None, "mentions": None}
    write(
        tmp_path / "passages",
        [empty | passage if write in (as_parquet, as_dataset) else passage for passage in PASSAGES],
    )
    assert list(read_by_id(tmp_path / "passages", Passage).values()) == [
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
