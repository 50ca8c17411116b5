"""Chats with the results of tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import QuestionError
from rechain.formats.datasets import read_entries, read_questions
from rechain.schema import Question

TEXTS = ["The head office is in Graz.", "Thalerhof airport lies south of Graz."]
USER = {"role": "user", "content": "Which airport is near the head office?"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "search"}}]}
ANSWER = {"role": "assistant", "content": "Thalerhof."}


def tool(content: object) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": "c1", "content": content}


def read(tmp_path: Path, *messages: Any, **fields: Any) -> Question | QuestionError:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{"messages": messages, **fields}]))
    (entry,) = read_entries(path)
    return entry.content


@pytest.mark.parametrize(
    "content",
    [
        "\n\n".join(TEXTS),
        "\n---\n".join(TEXTS),
        json.dumps(TEXTS),
        json.dumps([{"text": text, "score": 0.5} for text in TEXTS]),
        json.dumps({"results": [{"content": text} for text in TEXTS]}),
        [{"type": "text", "text": TEXTS[0]}, {"type": "text", "text": "\n" + TEXTS[1]}],
    ],
)
def test_results_of_tools_are_the_passages(tmp_path: Path, content: object) -> None:
    question = read(tmp_path, USER, CALL, tool(content), ANSWER)
    assert isinstance(question, Question)
    assert (question.question, question.answer) == (USER["content"], "Thalerhof.")
    assert [passage.text for passage in question.passages] == TEXTS


def test_the_last_question_before_the_last_answer_counts_and_all_that_was_found_by_then(tmp_path: Path) -> None:
    earlier = [{"role": "user", "content": "Where is the head office?"}, tool(TEXTS[0]), {**ANSWER, "content": "Graz."}]
    question = read(tmp_path, *earlier, USER, tool(TEXTS[1]), ANSWER, {"role": "user", "content": "Thanks!"})
    assert isinstance(question, Question)
    assert (question.question, question.answer) == (USER["content"], "Thalerhof.")
    assert [passage.text for passage in question.passages] == TEXTS


@pytest.mark.parametrize(
    "prompt",
    [
        "Be brief.\n\nUse the following context to answer:\n{}",
        "Context:\n{}",
        "Answer from these. <context>{}</context> Be brief.",
        "## Retrieved documents:\n{}",
    ],
)
def test_the_context_of_a_system_message_is_passages(tmp_path: Path, prompt: str) -> None:
    system = {"role": "system", "content": prompt.format("\n\n".join(TEXTS))}
    question = read(tmp_path, system, USER, ANSWER)
    assert isinstance(question, Question)
    assert [passage.text for passage in question.passages] == TEXTS


@pytest.mark.parametrize("prompt", ["You help.\n\nBe brief.", "<context></context>", "Context:\n \n", ""])
def test_a_system_message_without_a_context_is_no_passage(tmp_path: Path, prompt: str) -> None:
    question = read(tmp_path, {"role": "system", "content": prompt}, USER, tool(TEXTS[0]), ANSWER)
    assert isinstance(question, Question)
    assert [passage.text for passage in question.passages] == TEXTS[:1]


def test_anthropics_results_and_the_roles_of_other_libraries_are_read(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": TEXTS[0]}]}
    messages = [
        {"type": "human", "content": USER["content"]},
        {"role": "user", "content": [result]},
        {"role": "function", "name": "search", "content": TEXTS[1]},
        {"type": "ai", "content": [{"type": "text", "text": "Thalerhof."}]},
    ]
    question = read(tmp_path, *messages)
    assert isinstance(question, Question)
    assert (question.question, question.answer) == (USER["content"], "Thalerhof.")
    assert [passage.text for passage in question.passages] == TEXTS


def test_the_result_of_a_tool_that_finds_no_passages_is_one_as_it_stands(tmp_path: Path) -> None:
    question = read(tmp_path, USER, tool('{"gate": 7}'), tool("[1, 2]"), tool("8"), ANSWER)
    assert isinstance(question, Question)
    assert [passage.text for passage in question.passages] == ['{"gate":7}', "1", "2", "8"]


def test_an_answer_beside_the_messages_is_taken(tmp_path: Path) -> None:
    question = read(tmp_path, USER, tool(TEXTS[0]), response="Thalerhof.", tag="travel")
    assert isinstance(question, Question)
    assert (question.answer, question.model_extra) == ("Thalerhof.", {"tag": "travel"})


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([USER, tool("a")], "messages hold no message of the assistant"),
        ([tool("a"), ANSWER], "messages hold no message of the user"),
        ([USER, 7, ANSWER], "messages[1] should be an object"),
    ],
)
def test_what_a_chat_lacks_is_its_error(tmp_path: Path, messages: list[Any], why: str) -> None:
    error = read(tmp_path, *messages)
    assert isinstance(error, QuestionError)
    assert f"record 1: {why}" in str(error)


def test_a_chat_of_ragas_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    turns = [
        {"type": "human", "content": "Who?"},
        {"type": "tool", "content": "Anton."},
        {"type": "ai", "content": "Anton"},
    ]
    path.write_text(json.dumps({"user_input": turns, "reference": "Anton Q."}))
    (question,) = read_questions(path)
    assert (question.question, question.answer, question.passages[0].text) == ("Who?", "Anton", "Anton.")


def test_what_a_tool_returned_in_parts_is_a_passage_a_part_and_nothing_is_none(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": text} for text in TEXTS]
    for content in (parts, TEXTS, json.dumps([None, {}, *TEXTS])):
        question = read(tmp_path, USER, CALL, tool(content), ANSWER)
        assert isinstance(question, Question)
        assert [passage.text for passage in question.passages] == TEXTS


def test_a_field_for_the_answer_that_is_null_does_not_replace_the_last_message(tmp_path: Path) -> None:
    question = read(tmp_path, USER, tool(TEXTS), ANSWER, output=None)
    assert isinstance(question, Question)
    assert question.answer == ANSWER["content"]
    unanswered = read(tmp_path, USER, tool(TEXTS), output=None)
    assert isinstance(unanswered, Question)
    assert unanswered.answer == ""


@pytest.mark.parametrize(
    "prompt",
    [
        "Context:\n{}\n\nQuestion: {}",
        "Context: {}\n\nQuestion: {}\nHelpful Answer:",
        "Use the following pieces of context to answer the question at the end:\n\n{}\n\nQuestion: {}\nAnswer:",
        "Answer from this.\n\n## Context:\n{}\n\n**Question:**\n{}",
        "<context>\n{}\n</context>\n\n{}",
    ],
)
def test_a_prompt_may_hold_its_context(tmp_path: Path, prompt: str) -> None:
    user = {"role": "user", "content": prompt.format("\n\n".join(TEXTS), USER["content"])}
    question = read(tmp_path, user, ANSWER)
    assert isinstance(question, Question)
    assert (question.question, [passage.text for passage in question.passages]) == (USER["content"], TEXTS)


@pytest.mark.parametrize(
    "prompt", ["Question: which one?", "In this context: which one?", "<context></context>", "Context:"]
)
def test_a_prompt_without_a_context_is_the_question(tmp_path: Path, prompt: str) -> None:
    question = read(tmp_path, {"role": "user", "content": prompt}, ANSWER)
    assert isinstance(question, Question)
    assert (question.question, question.passages) == (prompt, [])
