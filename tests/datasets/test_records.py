"""Files of one kind of row."""

import json
from pathlib import Path

import pytest

from rechain.datasets.records import read_by_id, read_with_id
from rechain.errors import InputError
from rechain.schema import Recovered


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_chains_of_questions_that_could_not_be_read_are_passed_over(tmp_path: Path) -> None:
    unread = {"id": None, "chains": [], "error": {"code": "bad_json", "message": "not valid JSON"}}
    path = write(tmp_path / "chains.jsonl", unread, {"id": "town-1", "chains": [], "error": None}, unread)
    assert [name for name, _ in read_with_id(path, Recovered)] == ["town-1"]
    assert list(read_by_id(path, Recovered)) == ["town-1"]


def test_no_two_rows_have_the_same_id(tmp_path: Path) -> None:
    row = {"id": "x", "chains": []}
    path = write(tmp_path / "chains.jsonl", row, {"id": "y", "chains": []}, row)
    with pytest.raises(InputError, match="line 3: the id 'x' stands there twice"):
        read_by_id(path, Recovered)


@pytest.mark.parametrize("levels", [240, 600, 1000, 5000])
def test_a_chain_whose_reasons_are_nested_too_deeply_stops_the_reading(tmp_path: Path, levels: int) -> None:
    chain = {"passages": ["p"], "links": [], "score": 1.0, "why": {"steps": "VALUE"}}
    path = write(tmp_path / "chains.jsonl", {"id": "x", "chains": [chain]})
    path.write_text(path.read_text().replace('"VALUE"', "[" * levels + "null" + "]" * levels))
    with pytest.raises(InputError, match=r"line 1: .* nested"):
        read_by_id(path, Recovered)


def test_a_deep_field_that_nobody_reads_is_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "chains.jsonl"
    path.write_text('{"id": "x", "chains": [], "extra": ' + "[" * 1000 + "null" + "]" * 1000 + "}")
    assert list(read_by_id(path, Recovered)) == ["x"]
