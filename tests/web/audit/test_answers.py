"""An audited answer: its tags, its day, its doubt, and the reason of its verdict in one sentence."""

from typing import Any

import pytest

from rechain.errors import QuestionError
from rechain.formats.datasets.questions import Entry
from rechain.schema import Passage, Problem, Recovered
from rechain.web.audit_answers import AuditedAnswer, audited


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


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, "'City rates' holds the answer word for word; 'Travel' leads to it by 'City rates'."),
        (
            {"shape": "single", "passages": ["rates"], "links": []},
            "'City rates' holds the answer word for word.",
        ),
        (
            {"shape": "parallel", "passages": ["leave", "rates"], "links": []},
            "'City rates' holds the answer word for word; it stands side by side with 'Leave'.",
        ),
        (
            {
                "shape": "graph",
                "passages": ["leave", "travel", "rates"],
                "links": [
                    {"entity": name, "kind": "name", "weight": 1.0, "mentions": [None, None], "between": ends}
                    for name, ends in (("x", [0, 2]), ("y", [1, 2]))
                ],
            },
            "'City rates' holds the answer word for word; 'Leave' leads to 'City rates', "
            "and 'Travel' leads to 'City rates'.",
        ),
        ({"answer": None}, "'City rates' holds the answer; 'Travel' leads to it by 'City rates'."),
        (
            {"answer": {"match": "normalised", "passage": "rates"}, "links": []},
            "'City rates' holds the answer in another notation.",
        ),
    ],
)
def test_what_supports_an_answer(answered: Any, chain: Any, change: dict[str, Any], sentence: str) -> None:
    assert answered(chains=[chain | change]).reason == sentence


def test_of_several_links_the_weakest_is_named(answered: Any, chain: Any) -> None:
    weak = chain["links"][0] | {"entity": "How", "weight": 5.0}
    longer = chain | {"passages": ["leave", "travel", "rates"], "links": [chain["links"][0], weak]}
    assert answered(chains=[longer]).reason.endswith("'Leave' leads to it over 2 links, of which 'How' is the weakest.")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("The limit is EUR 999.", "No passage holds '999'."),
        ("The limit is EUR 210 in Zurich.", "No sentence holds '210' together with 'Zurich'."),
        ("It is 27 in Zurich.", "No passage holds '27' together with 'Zurich'."),
        ("Hotels in Zurich need approval from Jonas Feld.", "No passage holds 'need' or 'approval' or 'Jonas'."),
    ],
)
def test_what_a_doubtful_answer_lacks(answered: Any, answer: str, sentence: str) -> None:
    claim = {"text": answer, "verdict": "unsupported"}
    assert answered("unsupported", answer=answer, claims=[claim]).reason == sentence
    assert answered("unsupported", answer=answer).reason == sentence


def test_a_number_is_named_as_it_is_written(answered: Any) -> None:
    assert answered("unsupported", answer="It is EUR 1,250.50.").reason == "No passage holds '1,250.50'."


def test_inflection_does_not_make_a_word_missing(answered: Any) -> None:
    said = answered("unsupported", question="Whom do I ask?", answer="Mara Lind, each Monday.").reason
    assert "Monday" not in said


def test_an_answer_of_words_that_all_stand_together_is_said_to_be_so(answered: Any) -> None:
    said = answered("unsupported", question="who is it?", answer="Mara Lind").reason
    assert said == "The passages hold its words, but not what it says with them."


def test_part_of_an_answer_is_counted(answered: Any) -> None:
    claims = [
        {"text": "The limit is EUR 180.", "verdict": "supported", "passage": "rates", "span": [0, 23]},
        {"text": "Taxis are free.", "verdict": "unsupported"},
    ]
    said = answered("partly", answer="The limit is EUR 180. Taxis are free.", claims=claims).reason
    assert said == "1 of 2 claims held: no passage holds 'Taxis' or 'free'."


def test_an_answer_in_a_script_without_blanks_is_named_by_phrases(answered: Any) -> None:
    passages = [Passage(id="p", text="试用期为三个月。")]
    said = answered("unsupported", question="试用期多长？", answer="试用期为九个星期。", passages=passages).reason
    assert said.startswith("No passage holds '")
    assert "九" in said


def test_without_passages(answered: Any) -> None:
    assert answered("unsupported", passages=[]).reason == "There is no passage that could support it."


def test_without_an_answer_or_a_verdict(answered: Any) -> None:
    assert answered("no_answer", answer="I do not know.").reason == "The answer says that there is none."
    assert answered(None, error={"code": "no_link", "message": "no link."}).reason == "no link."
    assert answered(None).reason == "The model gives no verdict."
