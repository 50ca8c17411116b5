"""A question that a user pastes: as text, as JSON, and whatever else ends up in a form; and its result."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from rechain.errors import QuestionError
from rechain.formats.datasets import Entry
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question
from rechain.web.forms import MOST_CHARACTERS, MOST_PASSAGES, PastedQuestion, Result, Results, split_passages

TEXT = {"question": " Where? ", "answer": " Prague ", "passages": "# A\nIn Prague.\n\nNo title.\n"}


def pasted_entry(form: dict[str, str]) -> Entry:
    return PastedQuestion.model_validate(form).entry()


def test_text_becomes_a_question() -> None:
    entry = pasted_entry(TEXT | {"hops": "3"})
    assert entry.content == Question(
        id="pasted",
        question="Where?",
        answer="Prague",
        hops=3,
        passages=[Passage(id="A", title="A", text="In Prague."), Passage(id="1", text="No title.")],
    )


@pytest.mark.parametrize("hops", ["", "x", "²", "9" * 5000, "-2"])
def test_hops_that_are_no_number_do_not_count(hops: str) -> None:
    content = pasted_entry(TEXT | {"hops": hops}).content
    assert isinstance(content, Question)
    assert content.hops is None


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("", []),
        (" \n\n \n", []),
        ("one", [{"text": "one"}]),
        ("one\ntwo", [{"text": "one\ntwo"}]),
        ("one\n\ntwo", [{"text": "one"}, {"text": "two"}]),
        ("one\r\n \t\r\ntwo\r\n", [{"text": "one"}, {"text": "two"}]),
        ("## A title \n text \n more", [{"title": "A title", "text": "text \n more"}]),
        ("# only a title", [{"title": "only a title", "text": ""}]),
        ("C# is a language", [{"text": "C# is a language"}]),
    ],
)
def test_blank_lines_part_passages(text: str, passages: list[dict[str, str]]) -> None:
    assert split_passages(text) == passages


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "question is empty"),
        (TEXT | {"hops": "99"}, "hops"),
        (TEXT | {"passages": "# A"}, "passages[0].text is empty"),
        ({"question": "{"}, "begins like JSON but is not valid JSON"),
        ({"question": '{"a":' * 3000}, "begins like JSON but is not valid JSON"),
        ({"question": '{"question": "\\ud800"}'}, "begins like JSON but is not valid JSON"),
        ({"question": '{"question": "Who?", "answer": "x", "passages": [5]}'}, "passages[0] should be a text"),
    ],
)
def test_mistakes_are_one_sentence(form: dict[str, str], message: str) -> None:
    try:
        content = pasted_entry(form).content
    except QuestionError as error:
        content = error
    assert isinstance(content, QuestionError)
    assert message in str(content)
    assert "\n" not in str(content)


def test_a_blank_answer_is_no_mistake_but_none_given() -> None:
    content = pasted_entry(TEXT | {"answer": " "}).content
    assert isinstance(content, Question)
    assert content.answer == ""


def test_json_is_read_as_a_line_of_a_file() -> None:
    record = {"question": "Who?", "answer": "Anna", "hops": 3, "passages": ["Anna.", {"id": "p", "text": "Bob."}]}
    content = pasted_entry({"question": f"  {json.dumps(record)}", "answer": "does not count"}).content
    assert isinstance(content, Question)
    assert (content.id, content.answer, content.hops) == ("pasted", "Anna", 3)
    assert [passage.id for passage in content.passages] == ["0", "p"]


@pytest.mark.parametrize("levels", [240, 600, 1000])
@pytest.mark.parametrize("place", ["extra", "passages"])
def test_json_that_is_nested_too_deeply_is_a_mistake(place: str, levels: int) -> None:
    deep = f'"{place}": {"[" * levels}{"]" * levels}'
    content = pasted_entry({"question": f'{{"question": "Who?", "answer": "A", "passages": ["A"], {deep}}}'}).content
    assert isinstance(content, QuestionError)
    assert content.code == {"extra": "too_deep", "passages": "bad_field"}[place]


@given(st.dictionaries(st.sampled_from(["question", "answer", "passages", "hops"]), st.text()))
def test_whatever_is_in_a_form_is_a_question_or_a_mistake(form: dict[str, str]) -> None:
    try:
        assert isinstance(pasted_entry(form).content, Question | QuestionError)
    except QuestionError as error:
        assert error.code == "bad_json"


def test_millions_of_passages_or_fields_are_not_read(client: TestClient) -> None:
    with pytest.raises(QuestionError, match="2,000 passages"):
        split_passages("a\n \n" * (MOST_PASSAGES + 1))
    assert len(split_passages("a\n \n\n" * MOST_PASSAGES)) == MOST_PASSAGES
    answer = client.post("/try", content="a&" * 100, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (422, "a form has 100 fields at most.")


@pytest.mark.parametrize(
    ("passages", "more"),
    [
        ("".join(f"{n}\n\n" for n in range(MOST_PASSAGES)), "a"),
        ("ab " * (MOST_CHARACTERS // 3 - len("Who? Anna")), "too much " * 4),
    ],
)
def test_a_question_that_is_too_large_is_refused(passages: str, more: str) -> None:
    form = {"question": "Who?", "answer": "Anna", "passages": passages}
    assert not isinstance(pasted_entry(form).content, QuestionError)
    content = pasted_entry(form | {"passages": passages + more}).content
    assert isinstance(content, QuestionError) and "may have 2,000 passages and 250,000" in str(content)


def result(answer: str) -> Result:
    form = PastedQuestion(question="Where?", answer=answer, passages="In Prague.")
    content = form.entry().content
    assert isinstance(content, Question)
    return Result(form=form, question=content, own=frozenset({"0"}), recovered=Recoverer("lexical").recover(content))


def test_a_result_is_given_back_as_it_was() -> None:
    results, kept = Results(), result("Prague")
    key = results.add(kept)
    assert results.get(key) == kept
    assert (len(key), results.get("other")) == (22, None)
    assert results.add(kept) == key
    results.close()


def test_the_oldest_make_room() -> None:
    results = Results(most=3)
    keys = [results.add(result(str(number))) for number in range(5)]
    assert [results.get(key) is not None for key in keys] == [False, False, True, True, True]
    results.add(result("2"))  # asked again, so it is not the oldest any more
    results.add(result("5"))
    assert [results.get(key) is not None for key in keys] == [False, False, True, False, True]
    results.close()


def test_all_together_are_of_bounded_size() -> None:
    one = result("Prague")
    results = Results(most_bytes=3 * len(one.model_dump_json()))
    keys = [results.add(result(f"Prague {number}")) for number in range(6)]
    kept = [results.get(key) is not None for key in keys]
    assert kept[-1] and not kept[0]
    assert 1 <= sum(kept) <= 3
    results.close()
