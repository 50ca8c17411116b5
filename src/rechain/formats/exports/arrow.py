"""Chains as Arrow tables: Parquet files, and columns added to a table of questions.

`read_rows` reads them back. `SCHEMA` is made when it is first used, as pyarrow is an extra.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.formats.datasets.inputs import as_entry
from rechain.formats.datasets.plain import FieldMap
from rechain.formats.datasets.questions import Entry
from rechain.schema import Passage, Recovered
from rechain.system.files import replacing
from rechain.system.processes import batches
from rechain.system.provenance import Facts, without_times
from rechain.version import __version__

METADATA = "rechain"  # the key of a file's metadata of the JSON that describes how it was made
# Questions that are written together: a few megabytes of memory, and groups large enough for readers to be quick.
ROW_GROUP = 1000
COLUMNS = ("verdict", "verdict_probability", "claims", "chains", "error")
_OURS = {"batched", "features", "function", "input_columns", "with_indices"}
"""options of a dataset's `map` that are not the caller's to set"""


def __getattr__(name: str) -> Any:
    if name == "SCHEMA":
        return _schema()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


@cache
def _schema() -> Any:
    """Return the Arrow schema of chains."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("Writing Parquet", "parquet") from error
    text, number, lists = pa.string(), pa.float64(), pa.list_
    span = lists(pa.int32())
    link = pa.struct({"entity": text, "kind": text, "weight": number, "mentions": lists(span), "between": span})
    answer = pa.struct({"match": text, "passage": text, "span": span})
    whole = pa.int64()
    source = pa.struct({"passage": text, "file": text, "page": whole, "anchor": text, "line": whole, "heading": text})
    chain = pa.struct(
        {
            "shape": text,
            "passages": lists(text),
            "links": lists(link),
            "answer": answer,
            "own": lists(text),
            "sources": lists(source),
            "score": number,
            "confidence": number,
            "why": text,
        }
    )
    claim = pa.struct({"text": text, "verdict": text, "passage": text, "span": span})
    verdict = {"verdict": text, "verdict_probability": number, "claims": lists(claim)}
    problem = pa.struct({"code": text, "message": text})
    return pa.schema({"id": text, "collection": text, **verdict, "chains": lists(chain), "error": problem})


def to_row(recovered: Recovered) -> dict[str, Any]:
    """Return a row of the table: plain values, with `why` as JSON text, since its fields differ between models."""
    row = recovered.model_dump(mode="json")
    for fields, chain in zip(row["chains"], recovered.chains, strict=True):
        for link in fields["links"]:
            link.setdefault("between", None)
        fields["why"] = None if chain.why is None else orjson.dumps(chain.why).decode()
    return row


def from_row(row: dict[str, Any]) -> Recovered:
    """Return the chains of a row of the table."""
    return Recovered.model_validate(row)


def write(path: Path, chains: Iterable[Recovered], made_by: Facts | None = None) -> None:
    """Write a Parquet file, which gets its name when it is whole."""
    with replacing(path) as file:
        write_to(file, chains, made_by)


def write_to(file: BinaryIO, chains: Iterable[Recovered], made_by: Facts | None = None) -> None:
    """Write Parquet into an open file, in memory that does not grow with it; its metadata describes how it was made.

    The times are left out of that: the same chains of the same model are the same bytes.
    """
    schema = _schema().with_metadata({METADATA: orjson.dumps(without_times(made_by))} if made_by else None)
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            for batch in batches(map(to_row, chains), ROW_GROUP):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    except (pa.ArrowException, OverflowError) as error:
        raise InputError(f"one of the chains cannot be written as Parquet: {error}.") from error


@dataclass(frozen=True)
class ChainColumns:
    """The columns of chains that a table of questions gets."""

    recover: Callable[[Iterable[Entry]], Iterable[Recovered]]
    """recovers the chains of questions, in their order"""
    has_collection: bool = False
    """whether there is a column `collection` too; without one the table may have one of that name itself"""
    mapping: FieldMap | None = None
    index: Mapping[str, Passage] | None = None
    """a collection in which `recover` finds passages, so that rows need none"""
    stamp: object = None
    """changes with the model: `datasets` keeps what it mapped, and compares all fields of the mapping function"""
    version: str = __version__

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        return ("collection", *COLUMNS) if self.has_collection else COLUMNS

    def of(self, rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> dict[str, list[Any]]:
        """Return the columns for rows, each given with its place and with the id that it gets if it has none."""
        records = list(map(to_row, self.recover([as_entry(*row, self.mapping, self.index) for row in rows])))
        return {name: [record[name] for record in records] for name in self.names}

    def check(self, names: Iterable[str]) -> None:
        """Raise RechainError if a column of the table's own would be lost; those of an earlier run are replaced."""
        lost = [name for name in self.names if name in names]
        if lost and "chains" not in lost:
            raise RechainError(
                f"the dataset has a column '{lost[0]}' of its own, which would be lost; rename it first."
            )

    def __call__(self, columns: Mapping[str, Sequence[Any]], places: Sequence[int]) -> dict[str, list[Any]]:
        """Return the columns for a batch of columns, as the `map` of a dataset passes it."""
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        return self.of([(f"row {place}", str(place), row) for place, row in zip(places, rows, strict=True)])

    def add_to(self, dataset: Any, batch_size: int, **options: Any) -> Any:
        """Return a Hugging Face dataset, or a dict of several, with these columns."""
        if isinstance(dataset, dict):
            return type(dataset)({name: self.add_to(split, batch_size, **options) for name, split in dataset.items()})
        if ours := options.keys() & _OURS:
            raise RechainError(
                f"{min(ours)} cannot be set here: columns of questions go in, columns of chains come out."
            )
        if not hasattr(dataset, "features"):
            raise RechainError(f"map takes a Hugging Face dataset, not a {type(dataset).__name__}; see recover_many.")
        self.check(dataset.features or ())
        features = self._features(dataset, options.get("remove_columns") or ())
        if features and getattr(dataset, "num_rows", None) == 0:  # whose map does nothing
            return type(dataset).from_dict({name: [] for name in features}, features=features, split=dataset.split)
        is_plain = getattr(dataset, "format", {}).get("type") is None  # a stream has lists in any format
        mapped = (dataset if is_plain else dataset.with_format(None)).map(
            self, batched=True, batch_size=batch_size, with_indices=True, features=features, **options
        )
        return mapped if is_plain else mapped.with_format(dataset.format["type"], **dataset.format["format_kwargs"])

    def _features(self, dataset: Any, removed: str | Sequence[str]) -> Any:
        """Return the columns of the result: `datasets` would infer them from the first rows, which may lack a field."""
        from datasets import Features

        if not dataset.features:
            return None
        ours = Features.from_arrow_schema(_schema())
        gone = {removed} if isinstance(removed, str) else set(removed)
        kept = {name: kind for name, kind in dataset.features.items() if name not in gone}
        return Features({**kept, **{name: ours[name] for name in self.names}})
