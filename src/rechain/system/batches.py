"""Streams of items: in batches, and with errors that wait until what came before them is dealt with."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class DeferredErrors(Generic[T]):
    """Items whose source may fail: iteration ends at the error, which is kept to be raised later."""

    items: Iterable[T]
    error: Exception | None = None

    def __iter__(self) -> Iterator[T]:
        try:
            yield from self.items
        except Exception as error:
            self.error = error


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Gather items into lists; what was read before an error is yielded before it is raised."""
    batch: list[T] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
