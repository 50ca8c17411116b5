"""What callers may give as a question, and what is said about what is none."""

from typing import Any

import pytest

from rechain.datasets import Entry
from rechain.datasets.inputs import as_entry
from rechain.errors import QuestionError
from rechain.schema import Passage, Question

TEXTS = ["Zorilla is an opera by Anton Quillfeather.", "Anton Quillfeather was born in Prague."]


def read(given: Any) -> Entry:
    return as_entry("here", "7", given)


def test_a_question_is_taken_as_it_is(bridge_question: Question) -> None:
    assert read(bridge_question) == Entry("", "q1", bridge_question)


def test_an_entry_is_taken_as_it_is(bridge_question: Question) -> None:
    entry = Entry("file, line 3", "q1", bridge_question, share=0.5)
    assert read(entry) is entry


def test_a_dict_has_the_fields_of_a_question(bridge_question: Question) -> None:
    assert read(bridge_question.model_dump()) == Entry("", "q1", bridge_question)


def test_a_tuple_is_a_question_with_its_answer_and_passages() -> None:
    entry = read(("Where?", "Prague", iter([TEXTS[0], {"title": "Anton", "text": TEXTS[1]}])))
    passages = [Passage(id="0", text=TEXTS[0]), Passage(id="Anton", title="Anton", text=TEXTS[1])]
    assert entry == Entry("", "7", Question(id="7", question="Where?", answer="Prague", passages=passages))


@pytest.mark.parametrize(
    ("given", "name", "code", "message"),
    [
        (
            7,
            "7",
            "bad_record",
            "a question should be a Question, a dict or a tuple of question, answer and passages, not 7",
        ),
        ("Who?", "7", "bad_record", "a question should be"),
        (("Who?", "Anton"), "7", "bad_record", "a question should be"),
        (("Who?", "Anton", TEXTS[0]), "7", "bad_field", "passages should be a list of passages, not 'Zorilla"),
        (("Who?", "Anton", {"0": TEXTS[0]}), "7", "bad_field", "passages should be a list of passages, not {'0'"),
        (("Who?", "Anton", None), "7", "bad_field", "passages should be a list of passages, not None"),
        (("Who?", "Anton", [7]), "7", "bad_field", "passages[0] should be a text, a dict or a Passage, not 7"),
        ((7, "Anton", TEXTS), "7", "bad_field", "question: input should be a valid string"),
        ({}, "7", "missing_field", "the fields question, answer and passages are missing"),
        ({"id": "q"}, "q", "missing_field", "the fields question, answer and passages are missing; the record has id"),
        (
            {"user_input": "Who?", "response": "Anton"},
            "7",
            "missing_field",
            "the field retrieved_contexts is missing; the record has user_input and response",
        ),
        ({"id": 8}, "8", "missing_field", "the fields question, answer and passages are missing"),
        ({"id": ["q"]}, None, "missing_field", "the fields question, answer and passages are missing"),
    ],
    ids=str,
)
def test_what_is_no_question_says_why(given: object, name: str | None, code: str, message: str) -> None:
    entry = read(given)
    assert isinstance(entry.content, QuestionError)
    assert (entry.id, entry.content.code) == (name, code)
    assert str(entry.content).startswith(f"here: {message}")
    assert str(entry.content).endswith(".")


@pytest.mark.parametrize("field", ["id", "title"])
def test_a_field_of_a_passage_that_is_nested_deeply_is_its_error(field: str) -> None:
    """Its text would be made by recursion, and would be as long as it is deep."""
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    entry = read({"question": "Who?", "answer": "Anton", "passages": [{"text": TEXTS[0], field: deep}]})
    assert isinstance(entry.content, QuestionError)
    assert f"passages[0].{field}: input should be a valid string" in str(entry.content)
