"""Tables of text."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import InputError
from rechain.formats.datasets import delimited, read_entries, read_questions
from rechain.schema import Question

NAMES = ["user_input", "response", "retrieved_contexts"]
TEXTS = ['The "head office", is in Graz;\tyes.', "Thalerhof airport\nlies south of Graz."]
ROW = ["Which airport, and why?", "Thalerhof; it is near.", json.dumps(TEXTS)]


def table(*rows: list[str], separator: str = ",", end: str = "\r\n") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=end).writerows(rows)
    return text.getvalue()


def read(path: Path, content: bytes) -> list[Question]:
    path.write_bytes(content)
    return list(read_questions(path))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_table_is_recognised_by_its_first_row(tmp_path: Path, separator: str, encoding: str, end: str) -> None:
    text = table(NAMES, ROW, ["", "", ""], ROW, separator=separator, end=end)
    first, second = read(tmp_path / "log", text.encode(encoding))
    assert (first.id, first.question, first.answer) == ("1", ROW[0], ROW[1])
    assert [passage.text for passage in first.passages] == TEXTS
    assert second.id == "2"


def test_a_packed_table_is_read(tmp_path: Path) -> None:
    assert len(read(tmp_path / "log.csv.gz", gzip.compress(table(NAMES, ROW, ROW).encode()))) == 2


@pytest.mark.parametrize(
    "cell",
    [
        json.dumps(TEXTS),
        repr(TEXTS),
        repr([{"page_content": text} for text in TEXTS]),
        json.dumps([{"text": text} for text in TEXTS]),
        "[" + "\n ".join(map(repr, TEXTS)) + "]",
        TEXTS[0] + "\n\n" + TEXTS[1],
        TEXTS[0] + "\n---\n" + TEXTS[1],
        TEXTS[0] + "\r\n\r\n" + TEXTS[1].replace("\n", "\r\n"),
    ],
    ids=["JSON", "Python", "Python dicts", "JSON objects", "numpy", "blank lines", "rules", "Windows"],
)
def test_a_cell_holds_passages(tmp_path: Path, cell: str) -> None:
    (question,) = read(tmp_path / "log.csv", table(NAMES, [*ROW[:2], cell]).encode())
    assert [passage.text for passage in question.passages] == TEXTS


@pytest.mark.parametrize("cell", ["[1] See the handbook.", "[" * 5000, "['a", "{'a': b}", "[" + "-" * 5000 + "1]"])
def test_a_cell_that_only_begins_like_a_list_is_text(tmp_path: Path, cell: str) -> None:
    (question,) = read(tmp_path / "log.csv", table(NAMES, [*ROW[:2], cell]).encode())
    assert [passage.text for passage in question.passages] == [cell]


def test_ids_and_other_columns_are_kept_and_blank_cells_are_null(tmp_path: Path) -> None:
    text = table(["id", *NAMES, "tag"], ["7", *ROW, "travel"], ["", *ROW, ""])
    first, second = read(tmp_path / "log.csv", text.encode())
    assert (first.id, first.model_extra) == ("7", {"tag": "travel"})
    assert (second.id, second.model_extra) == ("2", {})


def contents(path: Path) -> list[Any]:
    return [
        entry.content if isinstance(entry.content, Question) else entry.content.code for entry in read_entries(path)
    ]


def test_a_bad_row_is_an_error_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    good = table(ROW).encode()
    rows = [table(NAMES).encode(), good, b'"a"b,c,d\r\n', b"a,b,c,d\r\n", b"caf\xe9,b,c\r\n", b"only\r\n", good]
    path.write_bytes(b"".join(rows))
    first, *bad, last = contents(path)
    assert isinstance(first, Question) and isinstance(last, Question)
    assert (first.id, last.id) == ("1", "6")
    assert bad == ["bad_record", "bad_record", "bad_encoding", "missing_field"]


def test_a_quotation_mark_that_is_not_closed_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(table(NAMES, ROW) + 'Who?,"Anton,\n' + "Who?,Anton,Anton.\n" * 9)
    entries = []
    with pytest.raises(InputError, match="row 2: a quotation mark is not closed"):
        for entry in read_entries(path):
            entries.append(entry)
    assert len(entries) == 1


def test_a_row_without_an_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LARGEST_RECORD", 1 << 16)
    path = tmp_path / "log.csv"
    for content in ('Who?,"' + "Anton,\n" * 20_000, "Who?," + "a" * 200_000 + "\n"):
        path.write_text(table(NAMES, ROW) + content)
        with pytest.raises(InputError, match=r"not closed|has a line of more than"):
            list(read_entries(path))
    csv.field_size_limit(131_072)


@pytest.mark.parametrize("names", [["a", "b", "a"], ["question", "answer", "question"]])
def test_columns_of_the_same_name_are_a_mistake(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text(table(names, ROW))
    with pytest.raises(InputError, match="two columns have the name"):
        list(read_entries(path))


def test_a_table_of_other_columns_names_them(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(table(["prompt", "reply", "docs"], ROW))
    with pytest.raises(InputError, match=r"its first record has prompt, reply and docs: name those .* with --map"):
        list(read_entries(path))


def test_a_folder_of_tables_is_read_and_ids_name_the_file(tmp_path: Path) -> None:
    for name in ("a.csv", "b.tsv"):
        (tmp_path / name).write_text(table(NAMES, ROW, ROW, separator="\t" if name == "b.tsv" else ","))
    assert [question.id for question in read_questions(tmp_path)] == ["a.csv:1", "a.csv:2", "b.tsv:1", "b.tsv:2"]


def test_a_row_of_the_plain_format_is_read(tmp_path: Path) -> None:
    row = ["q", "Who?", "Anton", json.dumps([{"id": 3, "text": "Anton."}])]
    (question,) = read(tmp_path / "f", table(["id", "question", "answer", "passages"], row).encode())
    assert [passage.id for passage in question.passages] == ["3"]


def test_the_column_without_a_name_that_pandas_writes_first_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(",question,answer,contexts\n0,Who?,Anton,Anton sings.\n")
    (question,) = read_questions(path)
    assert (question.question, question.answer, question.model_extra) == ("Who?", "Anton", {})


def test_json_in_utf_16_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"question": "Who?", "answer": "Anton", "contexts": ["Anton."]}\n', "utf-16")
    with pytest.raises(InputError, match="is JSON in UTF-16; save it as UTF-8"):
        list(read_entries(path))


@pytest.mark.parametrize(
    "content",
    [
        b'?{"id": "1", "question": "Who?", "answer": "Ann"}\n{"id": "2"}\n',
        b'"id": "1", "question": "Who?", "answer": "Ann"}\n{"id": "2"}\n',
        '{"id": "1", "question": "Who?", "answer": "Ann"}\n'.encode("utf-16-be"),
        b"a\x01,b\x02,c\x03\n1,2,3\n",
    ],
    ids=["a character too many", "a brace lost", "UTF-16 without its mark", "control characters"],
)
def test_what_was_never_a_table_is_not_read_as_one(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="neither"):
        read(tmp_path / "log", content)
