"""Chains as columns beside those of a table of questions, for libraries that map over tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rechain.exports.parquet import to_row
from rechain.given import as_entry

if TYPE_CHECKING:
    from rechain.recovery import Recoverer

COLUMNS = ("chains", "error")


def recovered_columns(
    recoverer: "Recoverer", rows: Sequence[tuple[str, str, Mapping[str, Any]]]
) -> dict[str, list[Any]]:
    """Return the columns for some rows, each told with where it stands and the id it has if it has none of its own."""
    entries = [as_entry(*row) for row in rows]
    recovered = map(to_row, recoverer.recover_many(entries, batch_size=max(1, len(entries))))
    made = list(recovered)
    return {name: [row[name] for row in made] for name in COLUMNS}


def map_dataset(dataset: Any, recoverer: "Recoverer", batch_size: int, **options: Any) -> Any:
    """Return a Hugging Face dataset with the columns of chains."""
    from datasets import Features

    from rechain.exports import parquet

    ours = Features.from_arrow_schema(parquet.SCHEMA)
    features = dataset.features and Features({**dataset.features, **{name: ours[name] for name in COLUMNS}})
    return dataset.map(
        _Mapped(recoverer), batched=True, batch_size=batch_size, with_indices=True, features=features, **options
    )


class _Mapped:
    """Turns columns of questions into columns of chains."""

    def __init__(self, recoverer: "Recoverer") -> None:
        self._recoverer = recoverer

    def __call__(self, columns: Mapping[str, Sequence[Any]], places: Sequence[int]) -> dict[str, list[Any]]:
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        located = [(f"row {place}", str(place), row) for place, row in zip(places, rows, strict=True)]
        return recovered_columns(self._recoverer, located)
