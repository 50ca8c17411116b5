"""Chains as a table, and back."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rechain.datasets import read_entries
from rechain.datasets.records import read_rows
from rechain.errors import InputError, MissingExtraError
from rechain.exports import parquet
from rechain.recovery import Recoverer
from rechain.schema import Chain, Claim, HeldAnswer, Link, Match, Problem, Recovered, Shape, Verdict

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SPANS = st.none() | st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
LINKS = st.builds(
    Link, entity=st.text(), kind=st.sampled_from(["title", "name"]), weight=NUMBERS, mentions=st.tuples(SPANS, SPANS)
)
WHYS = st.none() | st.dictionaries(st.text(), NUMBERS | st.lists(st.dictionaries(st.text(), st.text())), max_size=3)
SHAPES, VERDICTS = (st.sampled_from(get_args(kind)) for kind in (Shape, Verdict))
ANSWERS = st.builds(HeldAnswer, match=st.sampled_from(get_args(Match)), passage=st.text(), span=SPANS)
CLAIMS = st.builds(Claim, text=st.text(), verdict=VERDICTS, passage=st.none() | st.text(), span=SPANS)
CHAINS = st.builds(
    Chain,
    shape=SHAPES,
    answer=st.none() | ANSWERS,
    passages=st.lists(st.text(), min_size=1, max_size=3),
    links=st.lists(LINKS, max_size=2),
    score=NUMBERS,
    confidence=st.none() | st.floats(0, 1),
    why=WHYS,
)
PROBLEMS = st.none() | st.builds(Problem, code=st.text(), message=st.text())
RECOVERED = st.builds(
    Recovered,
    id=st.none() | st.text(),
    collection=st.none() | st.text(),
    verdict=st.none() | VERDICTS,
    verdict_probability=st.none() | st.floats(0, 1),
    claims=st.lists(CLAIMS, max_size=2),
    chains=st.lists(CHAINS, max_size=2),
    error=PROBLEMS,
)


def read(path: Path) -> list[Recovered]:
    return [recovered for _, recovered in read_rows(path, Recovered)]


@given(st.lists(RECOVERED, max_size=3))
def test_rows_of_the_table_are_what_they_were_made_of(chains: list[Recovered]) -> None:
    table = pyarrow.Table.from_pylist([parquet.to_row(one) for one in chains], schema=parquet.SCHEMA)
    assert [parquet.from_row(row) for row in table.to_pylist()] == chains


def test_the_schema() -> None:
    chain = parquet.SCHEMA.field("chains").type.value_type
    assert parquet.SCHEMA.names == ["id", "collection", "verdict", "verdict_probability", "claims", "chains", "error"]
    names = ["shape", "passages", "links", "answer", "own", "score", "confidence", "why"]
    assert [field.name for field in chain] == names
    assert str(chain.field("links").type.value_type.field("mentions").type.value_type.value_type) == "int32"
    assert parquet.SCHEMA is parquet.SCHEMA


def test_real_chains_read_back_from_the_file(real_data: Path, tmp_path: Path) -> None:
    recoverer = Recoverer("lexical", top=3, explain=True)
    chains = list(recoverer.recover_many(read_entries(real_data / "2wiki/train_500.json.gz")))
    parquet.write(tmp_path / "chains.parquet", chains)
    assert read(tmp_path / "chains.parquet") == chains
    assert any(one.error for one in chains)


def test_files_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovered: Any) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 4)
    parquet.write(tmp_path / "chains", (recovered(str(number), ["a", "b"]) for number in range(10)))
    assert pyarrow.parquet.ParquetFile(tmp_path / "chains").metadata.num_row_groups == 3
    assert [one.id for one in read(tmp_path / "chains")] == list(map(str, range(10)))


def test_no_chains_are_a_table_without_rows(tmp_path: Path) -> None:
    parquet.write(tmp_path / "chains", [])
    assert read(tmp_path / "chains") == []


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, recovered: Any) -> None:
    def broken() -> Iterator[Recovered]:
        yield recovered("q1", ["a", "b"])
        raise InputError("no more")

    path = tmp_path / "chains"
    path.write_text("before")
    with pytest.raises(InputError, match="no more"):
        parquet.write(path, broken())
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_does_not_fit_the_table_is_told(tmp_path: Path, recovered: Any) -> None:
    link = {"entity": "x", "kind": "name", "weight": 1, "mentions": [[0, 2**40], None]}
    with pytest.raises(InputError, match="cannot be written as Parquet"):
        parquet.write(tmp_path / "chains", [recovered("q1", ["a", "b"], links=[link])])
    assert list(tmp_path.iterdir()) == []


def test_what_explains_a_score_may_be_json_text_but_nothing_else() -> None:
    chain = {"passages": ["a"], "links": [], "score": 1}
    assert Chain.model_validate(chain | {"why": '{"bm25": 1.5}'}).why == {"bm25": 1.5}
    for text in ("{", "7", "because"):
        with pytest.raises(ValidationError, match="why"):
            Chain.model_validate(chain | {"why": text})


def test_the_module_needs_no_pyarrow_and_knows_no_other_name() -> None:
    code = "import sys; import rechain.exports.parquet; print('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    with pytest.raises(AttributeError, match="NONSENSE"):
        _ = parquet.NONSENSE


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    parquet._schema.cache_clear()
    with pytest.raises(MissingExtraError, match=r"rechain\[parquet\]"):
        parquet.write(tmp_path / "chains", [])


@given(RECOVERED)
def test_a_table_of_before_there_were_shapes_and_verdicts_reads_as_chains_without_them(recovered: Recovered) -> None:
    new = {"shape", "answer"}
    chain = parquet.SCHEMA.field("chains").type.value_type
    old = pyarrow.list_(pyarrow.struct([field for field in chain if field.name not in new]))
    schema = pyarrow.schema({"id": pyarrow.string(), "chains": old, "error": parquet.SCHEMA.field("error").type})
    (row,) = pyarrow.Table.from_pylist([parquet.to_row(recovered)], schema=schema).to_pylist()
    plain = [one.model_copy(update={"shape": "chain", "answer": None}) for one in recovered.chains]
    assert parquet.from_row(row) == Recovered(id=recovered.id, chains=plain, error=recovered.error)
