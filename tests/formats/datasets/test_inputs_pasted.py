"""What somebody pastes is told apart: text, JSON, tables, records of tools."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import QuestionError
from rechain.formats.datasets.inputs import Pasted, read_pasted

RAGAS = {"user_input": "Who?", "response": "Anna", "retrieved_contexts": ["Anna."]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Anna was born in Prague.",
        "# Anna\nBorn in Prague.\n\nMore.",
        "[1] Anna was born in Prague.\n\n[2] She left.",
        "Warsaw, Paris, and Rome\nare cities.",
        "{curly} braces begin it",
    ],
)
def test_plain_text_is_left_to_others(text: str) -> None:
    assert read_pasted(text) is None


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        (' [{"text": "a"}]', [{"text": "a"}]),
        ('{"text": "a"}', [{"text": "a"}]),
        ('{"text": "a"}\n{"page_content": "b"}\n', [{"text": "a"}, {"page_content": "b"}]),
        ('{"documents": [{"content": "a"}]}', [{"content": "a"}]),
        ("title,text\nA,a\nB,\n", [{"title": "A", "text": "a"}, {"title": "B"}]),
        ("id;title;text\n1;A;a\n", [{"id": "1", "title": "A", "text": "a"}]),
        ("[]", []),
    ],
)
def test_passages_of_json_and_tables(text: str, passages: list[Any]) -> None:
    assert read_pasted(text) == Pasted(passages)


@pytest.mark.parametrize("text", [json.dumps(RAGAS), f"[{json.dumps(RAGAS)}]", json.dumps(RAGAS, indent=2)])
def test_a_record_is_whole(text: str) -> None:
    assert read_pasted(text) == Pasted(record=RAGAS)


def test_of_several_records_one_is_chosen() -> None:
    text = "\n".join(json.dumps(RAGAS | {"response": name}) for name in ("Anna", "Bob"))
    assert read_pasted(text, 2) == Pasted(record=RAGAS | {"response": "Bob"}, records=2)
    with pytest.raises(QuestionError, match="there is no record 3"):
        read_pasted(text, 3)


def test_a_table_of_records_is_read_by_row() -> None:
    table = 'question,answer,contexts\nWho?,Anna,"[""Anna.""]"\nWhere?,Rome,"[""Rome.""]"\n'
    chosen = read_pasted(table, 2)
    assert chosen is not None and chosen.record is not None
    assert (chosen.record["question"], chosen.records) == ("Where?", 2)


def test_where_an_index_finds_passages_a_record_needs_none() -> None:
    bare = {"question": "Who?", "answer": "Anna"}
    assert read_pasted(json.dumps(bare), needs_passages=False) == Pasted(record=bare)
    with pytest.raises(QuestionError, match="neither passages nor a question; it has question and answer"):
        read_pasted(json.dumps(bare))


@pytest.mark.parametrize("text", ['[{"a": ', '{"a"', '["a" "b', 'title,text\nA,"a'])
def test_what_is_cut_off_is_one_sentence(text: str) -> None:
    with pytest.raises(QuestionError) as raised:
        read_pasted(text)
    assert "\n" not in str(raised.value)


@given(st.text() | st.from_regex(r"(\[|\{|title,text\n)[\[\]{}\"',:a\n ]*", fullmatch=True))
def test_whatever_is_pasted_is_read_or_refused(text: str) -> None:
    with suppress(QuestionError):
        assert isinstance(read_pasted(text), Pasted | None)
