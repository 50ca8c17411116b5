"""Streams of items: in batches, and with errors that wait until what came before them is dealt with."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
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


def batches(
    items: Iterable[T], size: int, weigh: Callable[[T], int] = lambda _: 0, heaviest: float = inf
) -> Iterator[list[T]]:
    """Gather items into lists of `size`, or fewer if these weigh as much as the heaviest.

    What was read before an error is yielded before it is raised.
    """
    batch: list[T] = []
    weight = 0
    try:
        for item in items:
            batch.append(item)
            weight += weigh(item)
            if len(batch) == size or weight >= heaviest:
                yield batch
                batch, weight = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
