import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.documents.reading import check_refusal, sources_of

from rechain.formats.documents import Extract, Refusal, read_source
from rechain.formats.documents.passage_files import BATCH
from rechain.schema import Passage


def read(path: Path, *rows: Any) -> tuple[list[Passage], list[Refusal]]:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return read_file(path)


def read_file(path: Path) -> tuple[list[Passage], list[Refusal]]:
    [source] = sources_of(path)
    outcomes = list(read_source(source))
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    for refusal in refusals:
        check_refusal(refusal)
    extracts = [outcome for outcome in outcomes if isinstance(outcome, Extract)]
    assert all(extract.text is None and 0 < len(extract.passages) <= BATCH for extract in extracts)
    return [passage for extract in extracts for passage in extract.passages], refusals


def test_rows_of_many_tools(tmp_path: Path) -> None:
    passages, refusals = read(
        tmp_path / "c.jsonl",
        {"id": "p1", "title": "Rome", "text": "Rome is old.", "year": 1},
        {"id": 2, "text": "No title."},
        {"text": "No id."},
        {"page_content": "Of LangChain.", "metadata": {"source": "a.pdf"}, "id": "l1"},
        {"node": {"id_": "n1", "text": "Of LlamaIndex.", "metadata": {}}, "score": 0.5},
        {"_id": "b1", "title": "", "text": "Of BEIR."},
    )
    assert not refusals
    assert [passage.id for passage in passages] == ["p1", "2", "3", "l1", "n1", "b1"]
    assert [passage.title for passage in passages] == ["Rome", "", "", "a.pdf", "", ""]
    assert passages[0].model_extra == {"year": 1}


def test_bad_rows_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    passages, refusals = read(
        tmp_path / "c.jsonl", {"id": "1", "text": " "}, {"id": "2", "text": "Good."}, '{"id": ', "7", {"title": "x"}
    )
    assert [passage.id for passage in passages] == ["2"]
    assert [refusal.name for refusal in refusals] == [f"c.jsonl, line {n}" for n in (1, 3, 4, 5)]


@pytest.mark.parametrize("content", ['{"name": "x"}\n', "[1, 2]", "{", "", "[]", '{"a": 1}\n' * 5_000])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet", "a.csv", "a.json.gz"])
def test_a_file_without_passages_is_one_refusal(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    passages, refusals = read_file(tmp_path / name)
    assert not passages and [refusal.name for refusal in refusals] == [name]


def test_arrays_and_packed_files(tmp_path: Path) -> None:
    rows = [{"id": str(n), "text": f"Text {n}."} for n in range(2_500)]
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    passages, refusals = read_file(tmp_path / "c.json.gz")
    assert len(passages) == 2_500 and not refusals


def test_what_comes_before_damage_is_read(tmp_path: Path) -> None:
    packed = gzip.compress("".join(f'{{"id": "{n}", "text": "Text {n * n}."}}\n' for n in range(9_000)).encode())
    (tmp_path / "c.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    passages, refusals = read_file(tmp_path / "c.jsonl.gz")
    assert passages and refusals[-1].name == "c.jsonl.gz" and "cut off" in refusals[-1].message


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"id": n, "title": None, "text": f"Text {n}." if n != 3 else None} for n in range(5)]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "c.parquet")
    passages, refusals = read_file(tmp_path / "c.parquet")
    assert [passage.id for passage in passages] == ["0", "1", "2", "4"]
    assert [refusal.name for refusal in refusals] == ["c.parquet, row 4"]


@pytest.mark.parametrize("replace", [lambda path, secret: path.symlink_to(secret), lambda path, _: os.mkfifo(path)])
def test_a_collection_that_was_replaced_is_not_read(tmp_path: Path, replace: Callable[[Path, Path], None]) -> None:
    secret, path = tmp_path / "secret.jsonl", tmp_path / "docs" / "a.jsonl"
    path.parent.mkdir()
    for file in (secret, path):
        file.write_text('{"id": "1", "text": "A text."}\n')
    [source] = sources_of(path.parent)
    path.unlink()
    replace(path, secret)
    [outcome] = read_source(source)
    assert isinstance(outcome, Refusal)
    check_refusal(outcome)


def test_a_collection_that_vanished_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "text": "A text."}\n')
    [source] = sources_of(path)
    path.unlink()
    [outcome] = read_source(source)
    assert isinstance(outcome, Refusal) and outcome.message == "a.jsonl cannot be read: No such file or directory."
