"""Answers of a log: in which order they are looked at, and what the log files them under."""

from typing import Any

import pytest

from rechain.audit.answers import AuditedAnswer, audited
from rechain.datasets.reading import Entry
from rechain.errors import QuestionError
from rechain.schema import Problem, Recovered


def test_the_most_doubtful_come_first(answered: Any) -> None:
    told = [
        ("unsupported", 0.9),
        ("unsupported", 0.6),
        ("unsupported", None),
        ("partly", 0.7),
        ("supported", 0.5),
        ("supported", 0.99),
        (None, None),
        ("no_answer", 0.9),
    ]
    answers = [answered(verdict, chance) for verdict, chance in told]
    reversed_log = answers[::-1]
    assert sorted(reversed_log, key=lambda one: one.doubt) == answers


@pytest.mark.parametrize(
    ("fields", "tags"),
    [
        ({"tag": "travel"}, ["travel"]),
        ({"tags": ["a", "b", "a", " ", {"x": 1}, 7]}, ["a", "b", "7"]),
        ({"category": 3}, ["3"]),
        ({"topic": "x" * 300}, ["x" * 100]),
        ({"tag": None, "topic": "hotels"}, ["hotels"]),
        ({"tag": {"nested": True}}, []),
        ({}, []),
    ],
)
def test_tags(answered: Any, fields: dict[str, Any], tags: list[str]) -> None:
    assert answered(**fields).tags == tags


@pytest.mark.parametrize(
    ("fields", "day"),
    [
        ({"day": "2024-06-11"}, "2024-06-11"),
        ({"date": "2024-06-11 23:59"}, "2024-06-11"),
        ({"created_at": "2024-06-11T10:00:00Z"}, "2024-06-11"),
        ({"timestamp": 1_718_100_000}, "2024-06-11"),
        ({"timestamp": 1_718_100_000_000}, "2024-06-11"),
        ({"timestamp": 1e300}, None),
        ({"day": "Tuesday"}, None),
        ({"day": True}, None),
        ({}, None),
    ],
)
def test_days(answered: Any, fields: dict[str, Any], day: str | None) -> None:
    assert answered(**fields).day == day


def test_a_record_has_question_answer_and_all_that_was_recovered(answered: Any, chain: Any) -> None:
    record = answered(chains=[chain], tag="travel", day="2024-06-11").to_dict()
    assert list(record)[:6] == ["id", "question", "answer", "tags", "day", "reason"]
    assert (record["verdict"], record["verdict_probability"]) == ("supported", 0.9)
    assert record["chains"][0]["passages"] == ["travel", "rates"]


def test_a_record_that_cannot_be_read_says_why() -> None:
    error = QuestionError("bad_json", "log, line 3: not JSON.")
    answer = audited(Entry("log, line 3", None, error), Recovered(chains=[], error=Problem.of(error)))
    assert isinstance(answer, AuditedAnswer)
    assert (answer.verdict, answer.reason, answer.tags, answer.day) == (None, "log, line 3: not JSON.", [], None)
    assert answer.to_dict()["error"] == {"code": "bad_json", "message": "log, line 3: not JSON."}
