"""Chains as Arrow tables: Parquet files, and columns beside those of a table of questions."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.formats.datasets import read_entries
from rechain.formats.datasets.records import read_rows
from rechain.formats.exports import arrow
from rechain.formats.exports.arrow import COLUMNS, ChainColumns, from_row, to_row
from rechain.models import describe_model
from rechain.recoverer import Recoverer
from rechain.schema import Chain, Claim, HeldAnswer, Link, Match, Passage, Problem, Question, Recovered, Shape, Verdict
from rechain.text.collection import PassageCollection

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SPANS = st.none() | st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
LINKS = st.builds(
    Link, entity=st.text(), kind=st.sampled_from(["title", "name"]), weight=NUMBERS, mentions=st.tuples(SPANS, SPANS)
)
WHYS = st.none() | st.dictionaries(st.text(), NUMBERS | st.lists(st.dictionaries(st.text(), st.text())), max_size=3)
SHAPES, VERDICTS = (st.sampled_from(get_args(kind)) for kind in (Shape, Verdict))
ANY_ORDER = SHAPES.filter(lambda shape: shape != "graph")  # whose links have to fit the passages
ANSWERS = st.builds(HeldAnswer, match=st.sampled_from(get_args(Match)), passage=st.text(), span=SPANS)
CLAIMS = st.builds(Claim, text=st.text(), verdict=VERDICTS, passage=st.none() | st.text(), span=SPANS)
CHAINS = st.builds(
    Chain,
    shape=ANY_ORDER,
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
    table = pyarrow.Table.from_pylist([arrow.to_row(one) for one in chains], schema=arrow.SCHEMA)
    assert [arrow.from_row(row) for row in table.to_pylist()] == chains


def test_a_graph_keeps_the_places_that_its_links_join() -> None:
    joined = [(0, 2), (1, 2)]
    links = [Link(entity="x", kind="name", weight=1.0, mentions=(None, (1, 2)), between=ends) for ends in joined]
    graph = Chain(shape="graph", passages=["a", "b", "c"], links=links, score=1.0)
    table = pyarrow.Table.from_pylist([arrow.to_row(Recovered(id="q", chains=[graph]))], schema=arrow.SCHEMA)
    assert [link["between"] for link in table.to_pylist()[0]["chains"][0]["links"]] == [[0, 2], [1, 2]]
    assert arrow.from_row(table.to_pylist()[0])[0] == graph


def test_the_schema() -> None:
    chain = arrow.SCHEMA.field("chains").type.value_type
    assert arrow.SCHEMA.names == ["id", "collection", "verdict", "verdict_probability", "claims", "chains", "error"]
    names = ["shape", "passages", "links", "answer", "own", "sources", "score", "confidence", "why"]
    assert [field.name for field in chain] == names
    assert str(chain.field("links").type.value_type.field("mentions").type.value_type.value_type) == "int32"
    assert arrow.SCHEMA is arrow.SCHEMA


def test_real_chains_read_back_from_the_file(real_data: Path, tmp_path: Path) -> None:
    recoverer = Recoverer("lexical", top=3, explain=True)
    chains = list(recoverer.recover_many(read_entries(real_data / "2wiki/train_500.json.gz")))
    arrow.write(tmp_path / "chains.parquet", chains)
    assert read(tmp_path / "chains.parquet") == chains
    assert any(one.error for one in chains)


def test_files_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovered: Any) -> None:
    monkeypatch.setattr(arrow, "ROW_GROUP", 4)
    arrow.write(tmp_path / "chains", (recovered(str(number), ["a", "b"]) for number in range(10)))
    assert pyarrow.parquet.ParquetFile(tmp_path / "chains").metadata.num_row_groups == 3
    assert [one.id for one in read(tmp_path / "chains")] == list(map(str, range(10)))


def test_no_chains_are_a_table_without_rows(tmp_path: Path) -> None:
    arrow.write(tmp_path / "chains", [])
    assert read(tmp_path / "chains") == []


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, recovered: Any) -> None:
    def broken() -> Iterator[Recovered]:
        yield recovered("q1", ["a", "b"])
        raise InputError("no more")

    path = tmp_path / "chains"
    path.write_text("before")
    with pytest.raises(InputError, match="no more"):
        arrow.write(path, broken())
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_does_not_fit_the_table_is_told(tmp_path: Path, recovered: Any) -> None:
    link = {"entity": "x", "kind": "name", "weight": 1, "mentions": [[0, 2**40], None]}
    with pytest.raises(InputError, match="cannot be written as Parquet"):
        arrow.write(tmp_path / "chains", [recovered("q1", ["a", "b"], links=[link])])
    assert list(tmp_path.iterdir()) == []


def test_what_explains_a_score_may_be_json_text_but_nothing_else() -> None:
    chain = {"passages": ["a"], "links": [], "score": 1}
    assert Chain.model_validate(chain | {"why": '{"bm25": 1.5}'}).why == {"bm25": 1.5}
    for text in ("{", "7", "because"):
        with pytest.raises(ValidationError, match="why"):
            Chain.model_validate(chain | {"why": text})


def test_the_module_needs_no_pyarrow_and_knows_no_other_name() -> None:
    code = "import sys; import rechain.formats.exports.arrow; print('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    with pytest.raises(AttributeError, match="NONSENSE"):
        _ = arrow.NONSENSE


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    arrow._schema.cache_clear()
    with pytest.raises(MissingExtraError, match=r"rechain\[parquet\]"):
        arrow.write(tmp_path / "chains", [])


@given(RECOVERED)
def test_a_table_of_before_there_were_shapes_and_verdicts_reads_as_chains_without_them(recovered: Recovered) -> None:
    new = {"shape", "answer"}
    chain = arrow.SCHEMA.field("chains").type.value_type
    old = pyarrow.list_(pyarrow.struct([field for field in chain if field.name not in new]))
    schema = pyarrow.schema({"id": pyarrow.string(), "chains": old, "error": arrow.SCHEMA.field("error").type})
    (row,) = pyarrow.Table.from_pylist([arrow.to_row(recovered)], schema=schema).to_pylist()
    plain = [one.model_copy(update={"shape": "chain", "answer": None}) for one in recovered.chains]
    assert arrow.from_row(row) == Recovered(id=recovered.id, chains=plain, error=recovered.error)


Row = dict[str, Any]


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    """What is mapped is computed, and not found where an earlier test has left it."""
    datasets.disable_caching()
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()
    datasets.enable_caching()


@pytest.fixture(scope="module")
def lexical() -> Recoverer:
    return Recoverer("lexical", top=2)


@pytest.fixture(scope="module")
def rows(towns: Callable[..., list[Question]]) -> list[Row]:
    """Eight questions in the plain format, the sixth of which has no chain."""
    rows = [question.model_dump(exclude_none=True) for question in towns(8)]
    for row in rows:
        row["passages"] = [{name: passage[name] for name in ("id", "title", "text")} for passage in row["passages"]]
        for unused in ("answer_aliases", "question_entities"):
            del row[unused]
    rows[5]["answer"] = "yes"
    return rows


@pytest.fixture(scope="module")
def expected(lexical: Recoverer, rows: list[Row]) -> list[Row]:
    """The rows with their columns of chains."""
    return [row | columns(recovered) for row, recovered in zip(rows, lexical.recover_many(rows), strict=True)]


def columns(recovered: Recovered) -> Row:
    row = to_row(recovered)
    return {name: row[name] for name in COLUMNS}


def test_the_fixture_is_what_it_should_be(expected: list[Row]) -> None:
    assert [len(row["chains"]) for row in expected] == [2, 1, 1, 2, 1, 0, 2, 1]
    assert [row["error"] and row["error"]["code"] for row in expected] == [None] * 5 + ["no_tail"] + [None] * 2
    assert expected[0].keys() == {"id", "question", "answer", "hops", "passages", *COLUMNS}


def test_columns_tell_the_chains_and_the_error_of_every_row(
    lexical: Recoverer, rows: list[Row], expected: list[Row]
) -> None:
    located = [(f"row {place}", str(place), row) for place, row in enumerate(rows)]
    made = ChainColumns(lexical.recover_entries).of(located)
    assert made == {name: [row[name] for row in expected] for name in COLUMNS}
    assert ChainColumns(lexical.recover_entries).of([]) == {name: [] for name in COLUMNS}


@pytest.mark.parametrize("size", [1, 3, 8, 32])
def test_a_dataset_keeps_its_columns_and_gets_those_of_chains(
    lexical: Recoverer, rows: list[Row], expected: list[Row], size: int
) -> None:
    dataset = datasets.Dataset.from_list(rows)
    mapped = lexical.map(dataset, batch_size=size)
    assert mapped.to_list() == expected
    assert mapped.column_names == [*dataset.column_names, *COLUMNS]
    assert dataset.to_list() == rows


def test_mapped_chains_read_back_as_they_were(lexical: Recoverer, rows: list[Row]) -> None:
    mapped = lexical.map(datasets.Dataset.from_list(rows))
    read = [from_row({name: row[name] for name in ("id", *COLUMNS)}) for row in mapped]
    assert read == list(lexical.recover_many(rows))


def test_several_processes_make_the_same(lexical: Recoverer, rows: list[Row], expected: list[Row]) -> None:
    mapped = lexical.map(datasets.Dataset.from_list(rows), num_proc=2, batch_size=3)
    assert mapped.to_list() == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 32])
def test_a_stream_is_mapped_as_it_comes(lexical: Recoverer, rows: list[Row], expected: list[Row], size: int) -> None:
    taken = []

    def stream() -> Iterator[Row]:
        for row in rows:
            taken.append(row["id"])
            yield row

    mapped = lexical.map(datasets.IterableDataset.from_generator(stream), batch_size=size)
    assert taken == []
    assert next(iter(mapped)) == expected[0]
    assert len(taken) <= size + 1
    assert list(mapped) == expected


def test_a_stream_that_knows_its_columns_knows_the_new_ones(
    lexical: Recoverer, rows: list[Row], expected: list[Row]
) -> None:
    stream = datasets.Dataset.from_list(rows).to_iterable_dataset()
    mapped = lexical.map(stream)
    assert list(mapped.features) == [*rows[0], *COLUMNS]
    assert list(mapped) == expected


def hub_row(row: Row) -> Row:
    """Return a question in the columns that HotpotQA has on the Hub."""
    return {
        "id": row["id"],
        "question": row["question"],
        "answer": row["answer"],
        "type": "bridge",
        "level": "hard",
        "supporting_facts": {"title": ["nobody may look here"], "sent_id": [0]},
        "context": {
            "title": [passage["title"] for passage in row["passages"]],
            "sentences": [[passage["text"]] for passage in row["passages"]],
        },
    }


@pytest.mark.parametrize("is_stream", [False, True], ids=["dataset", "stream"])
def test_the_columns_of_hotpotqa_on_the_hub_are_known(lexical: Recoverer, rows: list[Row], is_stream: bool) -> None:
    hub_rows = list(map(hub_row, rows))
    dataset = datasets.Dataset.from_list(hub_rows)
    mapped = list(lexical.map(dataset.to_iterable_dataset() if is_stream else dataset, batch_size=3))
    assert mapped == [
        row | columns(recovered) for row, recovered in zip(hub_rows, lexical.recover_many(hub_rows), strict=True)
    ]
    titles = {passage["id"]: passage["title"] for passage in rows[1]["passages"]}
    assert mapped[1]["chains"][0]["passages"] == [titles["work"], titles["maker"]]


@pytest.mark.parametrize("is_stream", [False, True], ids=["dataset", "stream"])
def test_a_first_batch_without_a_chain_does_not_decide_what_the_columns_are(
    lexical: Recoverer, rows: list[Row], expected: list[Row], is_stream: bool
) -> None:
    """A library that guesses types by the first batch would hold `chains` for empty and `error` for text."""
    dataset = datasets.Dataset.from_list([rows[5], rows[5], *rows[:3]])
    mapped = lexical.map(dataset.to_iterable_dataset() if is_stream else dataset, batch_size=2)
    assert list(mapped) == [expected[5], expected[5], *expected[:3]]


def test_a_last_batch_without_an_error_does_not_either(
    lexical: Recoverer, rows: list[Row], expected: list[Row]
) -> None:
    mapped = lexical.map(datasets.Dataset.from_list([*rows[:2], rows[5]]), batch_size=2)
    assert mapped.to_list() == [*expected[:2], expected[5]]


def test_an_explanation_is_json_text(rows: list[Row]) -> None:
    explaining = Recoverer("lexical", explain=True)
    (row,) = explaining.map(datasets.Dataset.from_list(rows[:1])).to_list()
    (recovered,) = explaining.recover_many(rows[:1])
    assert isinstance(row["chains"][0]["why"], str)
    assert from_row({"id": recovered.id, "chains": row["chains"], "error": None}) == recovered


def test_rows_without_an_id_are_told_by_their_place(lexical: Recoverer, rows: list[Row]) -> None:
    nameless = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    nameless[6] = nameless[6] | {"question": " "}
    mapped = lexical.map(datasets.Dataset.from_list(nameless), batch_size=4)
    errors = [row["error"] for row in mapped]
    assert [bool(error) for error in errors] == [False] * 5 + [True, True, False]
    assert errors[6]["message"].startswith("row 6: ")


def test_columns_of_an_earlier_run_are_replaced(lexical: Recoverer, rows: list[Row], expected: list[Row]) -> None:
    once = lexical.map(datasets.Dataset.from_list(rows))
    assert Recoverer("lexical", top=1).map(once)[0]["chains"] == expected[0]["chains"][:1]


def test_options_are_those_of_the_datasets_own_map(lexical: Recoverer, rows: list[Row], expected: list[Row]) -> None:
    dataset = datasets.Dataset.from_list(rows)
    mapped = lexical.map(dataset, keep_in_memory=True, desc="Recovering")
    assert mapped.to_list() == expected
    assert mapped.cache_files == []


def test_columns_may_be_removed_and_every_split_of_a_dict_is_mapped(towns: Callable[..., list[Question]]) -> None:
    rows = datasets.Dataset.from_list([question.model_dump(exclude_none=True) for question in towns(3)])
    mapped = Recoverer("lexical").map(datasets.DatasetDict(one=rows), remove_columns=rows.column_names)
    assert (list(mapped), mapped["one"].column_names) == (["one"], list(COLUMNS))
    assert mapped["one"]["chains"][:] == Recoverer("lexical").map(rows)["chains"][:]


@pytest.mark.parametrize("option", ["features", "input_columns"])
def test_options_that_are_not_the_callers_are_refused(option: str) -> None:
    with pytest.raises(RechainError, match=option):
        Recoverer("lexical").map(datasets.Dataset.from_list([{"id": "q"}]), **{option: None})


def test_what_is_no_dataset_is_refused() -> None:
    with pytest.raises(RechainError, match="not a list"):
        Recoverer("lexical").map([])


@pytest.mark.parametrize("form", ["numpy", "pandas", "arrow"])
def test_a_dataset_keeps_the_format_it_shows_its_rows_in(
    lexical: Recoverer, rows: list[Row], expected: list[Row], form: str
) -> None:
    mapped = lexical.map(datasets.Dataset.from_list(rows).with_format(form))
    assert mapped.format["type"] == form
    assert mapped.with_format(None).to_list() == expected


def test_an_empty_dataset_gets_the_same_columns_as_another(lexical: Recoverer, rows: list[Row]) -> None:
    whole = datasets.Dataset.from_list(rows)
    mapped = lexical.map(datasets.DatasetDict({"train": whole, "test": whole.select([])}), remove_columns="hops")
    assert mapped["test"].num_rows == 0
    assert mapped["test"].features == mapped["train"].features
    assert set(mapped["test"].column_names) == {"id", "question", "answer", "passages", *COLUMNS}


@pytest.mark.torch
def test_a_model_that_was_trained_again_is_not_answered_from_a_cache(tmp_path: Path) -> None:
    """What a library hashes to know what it has mapped already hangs on the model's files."""
    model, other = tmp_path / "model", tmp_path / "other.txt"
    Recoverer("default").save_pretrained(model)
    recoverer = Recoverer(str(model))

    def hashed() -> str:
        mapping = ChainColumns(recoverer.recover_entries, stamp=describe_model(recoverer.config.model))
        return str(datasets.fingerprint.Hasher.hash(mapping))

    before = hashed()
    other.write_text("not the model's")
    (model / "README.md").write_text("Better described.")
    assert hashed() == before
    config = json.loads((model / "config.json").read_text())
    config["sha256"]["config.json"] = "that of other weights"
    (model / "config.json").write_text(json.dumps(config))
    assert hashed() != before


def test_a_column_of_the_datasets_own_is_not_lost(lexical: Recoverer, rows: list[Row]) -> None:
    dataset = datasets.Dataset.from_list([row | {"verdict": "fine"} for row in rows])
    with pytest.raises(RechainError, match="the dataset has a column 'verdict' of its own"):
        lexical.map(dataset)


def test_with_a_collection_its_stamp_is_a_column(rows: list[Row]) -> None:
    collection = PassageCollection({"p": Passage(id="p", text="A text.")})
    mapped = Recoverer("lexical", corpus=collection).map(datasets.Dataset.from_list(rows))
    assert mapped["collection"][:] == [collection.stamp] * len(rows)
    assert mapped.column_names[-1 - len(COLUMNS) :] == ["collection", *COLUMNS]


def test_without_one_a_column_of_that_name_is_left_alone(lexical: Recoverer, rows: list[Row]) -> None:
    mapped = lexical.map(datasets.Dataset.from_list([row | {"collection": "mine"} for row in rows]))
    assert mapped["collection"][:] == ["mine"] * len(rows)
