"""What is listed as a file: the same questions in the same order, whole texts, and nothing that a table runs."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from rechain.errors import QuestionError
from rechain.schema import Question, Recovered
from rechain.web.site import Site

Make = Callable[..., Any]


def lines(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/download", params=query)
    assert answer.headers["content-disposition"] == 'attachment; filename="questions.jsonl"'
    return [json.loads(line) for line in answer.text.splitlines()]


def table(client: TestClient, **query: Any) -> list[dict[str, str]]:
    answer = client.get("/download", params={"format": "csv", **query})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_lines_are_those_of_the_filter_in_its_order(client: TestClient) -> None:
    assert [line["id"] for line in lines(client)] == [f"town-{number}" for number in range(6)]
    wrong = lines(client, judgement="wrong", order="id", reverse="yes")
    assert [line["judgement"] for line in wrong] == ["wrong", "wrong"]
    assert [line["id"] for line in wrong] == sorted((line["id"] for line in wrong), reverse=True)
    assert lines(client, text="zzzz") == []


def test_a_line_is_one_of_a_chains_file_with_the_best_chain(client: TestClient, town_site: Site) -> None:
    for position, line in enumerate(lines(client)):
        found, stored = town_site.index.recovered(0, position), town_site.index.at(position)
        assert found is not None and isinstance(stored.content, Question)
        assert Recovered.model_validate(line) == found.model_copy(update={"chains": found.chains[:1]})
        assert (line["question"], line["answer"]) == (stored.content.question, stored.content.answer)


def test_a_table_has_a_row_a_question(client: TestClient) -> None:
    rows = table(client, judgement="right")
    assert [row["id"] for row in rows] == [line["id"] for line in lines(client, judgement="right")]
    assert rows[0]["passages"] == "work | maker"
    assert rows[0]["judgement"] == "right" and " | " not in rows[0]["links"] != ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\n=1", " =1", "＝1"])
def test_no_text_of_a_table_is_a_formula(make_site: Make, connect: Make, towns: Make, text: str) -> None:
    question = towns(1)[0].model_copy(update={"question": text + "?", "answer": text})
    client = connect(make_site([question]))
    assert [(row["question"], row["answer"]) for row in table(client)] == [(f"'{text}?", f"'{text}")]
    assert lines(client)[0]["question"] == f"{text}?"


def test_texts_are_whole_and_what_cannot_be_read_says_why(make_site: Make, connect: Make, towns: Make) -> None:
    long = towns(1)[0].model_copy(update={"question": "Who? " * 200, "answer": 'A "quoted",\nbroken line'})
    client = connect(make_site([long, QuestionError("bad_json", "line 2: not JSON.")]))
    assert [line["question"] for line in lines(client)] == ["Who? " * 200, "line 2: not JSON."]
    assert table(client)[0]["answer"] == 'A "quoted",\nbroken line'


def test_many_questions_come_in_parts(make_site: Make, connect: Make, towns: Make) -> None:
    client = connect(make_site(towns(230)))
    assert [line["id"] for line in lines(client)] == [f"town-{number}" for number in range(230)]
    assert len(table(client)) == 230


def test_a_form_that_there_is_not(client: TestClient) -> None:
    answer = client.get("/download?format=xml")
    assert (answer.status_code, answer.json()["error"]["message"]) == (422, "format: input should be 'jsonl' or 'csv'.")
