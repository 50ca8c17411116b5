"""Chains as an Arrow table: its schema, its rows, and Parquet files of them. `read_rows` reads them back.

`SCHEMA` is made when it is first used, as pyarrow is an extra.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from rechain.errors import InputError, MissingExtraError
from rechain.exports.joining import FileExport
from rechain.schema import Recovered
from rechain.system.batches import batches
from rechain.system.files import replacing
from rechain.system.provenance import Facts, without_times

METADATA = "rechain"
"""the key of a file's metadata under which JSON says what made it"""
# Questions that are written together: a few megabytes of memory, and groups large enough for readers to be quick.
ROW_GROUP = 1000


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
    link = pa.struct({"entity": text, "kind": text, "weight": number, "mentions": lists(lists(pa.int32()))})
    span = lists(pa.int32())
    answer = pa.struct({"match": text, "passage": text, "span": span})
    chain = pa.struct(
        {
            "shape": text,
            "passages": lists(text),
            "links": lists(link),
            "answer": answer,
            "own": lists(text),
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
    """Write Parquet into an open file, in memory that does not grow with it; its metadata says what made it.

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


EXPORT = FileExport("Parquet", write)
