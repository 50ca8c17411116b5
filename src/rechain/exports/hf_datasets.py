"""Chains as columns beside those of a table of questions, for libraries that map over tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rechain.datasets.inputs import as_entry
from rechain.datasets.mapping import FieldMap
from rechain.datasets.reading import Entry
from rechain.errors import RechainError
from rechain.exports.parquet import to_row
from rechain.schema import Passage, Recovered
from rechain.version import __version__

COLUMNS = ("verdict", "verdict_probability", "claims", "chains", "error")
Recover = Callable[[Iterable[Entry]], Iterable[Recovered]]
"""what recovers the chains of questions, in their order"""
Index = Mapping[str, Passage] | None
"""a collection in which `recover` finds passages, so that rows need none"""
_OURS = {"batched", "features", "function", "input_columns", "with_indices"}
"""options of a dataset's `map` that are not the caller's to set"""


def recovered_columns(
    recover: Recover,
    rows: Sequence[tuple[str, str, Mapping[str, Any]]],
    mapping: FieldMap | None = None,
    columns: Sequence[str] = COLUMNS,
    index: Index = None,
) -> dict[str, list[Any]]:
    """Return the columns for rows, each given with its place and with the id that it gets if it has none."""
    records = [to_row(recovered) for recovered in recover([as_entry(*row, mapping, index) for row in rows])]
    return {name: [record[name] for record in records] for name in columns}


def map_dataset(
    dataset: Any,
    recover: Recover,
    stamp: object,
    batch_size: int,
    mapping: FieldMap | None = None,
    columns: Sequence[str] = COLUMNS,
    index: Index = None,
    **options: Any,
) -> Any:
    """Return a Hugging Face dataset, or a dict of several, with the columns of chains.

    `stamp` changes with the model: `datasets` keeps what it mapped, and looks at all that the mapping function holds.
    """
    if isinstance(dataset, dict):
        arguments = recover, stamp, batch_size, mapping, columns, index
        return type(dataset)({name: map_dataset(split, *arguments, **options) for name, split in dataset.items()})
    if taken := options.keys() & _OURS:
        raise RechainError(f"{min(taken)} cannot be set here: columns of questions go in, columns of chains come out.")
    if not hasattr(dataset, "features"):
        raise RechainError(f"map takes a Hugging Face dataset, not a {type(dataset).__name__}; see recover_many.")
    check_columns(dataset.features or (), columns)
    features = _features(dataset, options.get("remove_columns") or (), columns)
    if features and getattr(dataset, "num_rows", None) == 0:  # whose map does nothing
        return type(dataset).from_dict({name: [] for name in features}, features=features, split=dataset.split)
    is_plain = getattr(dataset, "format", {}).get("type") is None  # a stream's columns are lists whatever its format
    mapped = (dataset if is_plain else dataset.with_format(None)).map(
        _Mapping(recover, stamp, mapping, columns, index),
        batched=True,
        batch_size=batch_size,
        with_indices=True,
        features=features,
        **options,
    )
    return mapped if is_plain else mapped.with_format(dataset.format["type"], **dataset.format["format_kwargs"])


def columns_with(collection: bool) -> Sequence[str]:
    """Return the columns that a table of questions gets; without a collection it may have one of that name itself."""
    return ("collection", *COLUMNS) if collection else COLUMNS


def check_columns(names: Iterable[str], columns: Sequence[str] = COLUMNS) -> None:
    """Raise RechainError where a column of the dataset's own would be lost; those of an earlier run are replaced."""
    taken = [name for name in columns if name in names]
    if taken and "chains" not in taken:
        raise RechainError(f"the dataset has a column '{taken[0]}' of its own, which would be lost; rename it first.")


def _features(dataset: Any, removed: str | Sequence[str], columns: Sequence[str]) -> Any:
    """Return the columns of the result: `datasets` would infer them from the first rows, which may lack a field."""
    from datasets import Features

    from rechain.exports import parquet

    if not dataset.features:
        return None
    ours = Features.from_arrow_schema(parquet.SCHEMA)
    gone = {removed} if isinstance(removed, str) else set(removed)
    kept = {name: kind for name, kind in dataset.features.items() if name not in gone}
    return Features({**kept, **{name: ours[name] for name in columns}})


class _Mapping:
    """Turns columns of questions into columns of chains."""

    def __init__(
        self,
        recover: Recover,
        stamp: object,
        mapping: FieldMap | None = None,
        columns: Sequence[str] = COLUMNS,
        index: Index = None,
    ) -> None:
        self._index = index
        self._recover = recover
        self._mapping = mapping
        self._columns = columns
        self.stamp = __version__, stamp

    def __call__(self, columns: Mapping[str, Sequence[Any]], places: Sequence[int]) -> dict[str, list[Any]]:
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        located = [(f"row {place}", str(place), row) for place, row in zip(places, rows, strict=True)]
        return recovered_columns(self._recover, located, self._mapping, self._columns, self._index)
