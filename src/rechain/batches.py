"""Items gathered by their position."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Gather items into lists; what was read before an error is given out before it is raised."""
    source = iter(items)
    while True:
        batch: list[T] = []
        problem: Exception | None = None
        try:
            for item in islice(source, size):
                batch.append(item)
        except Exception as error:
            problem = error
        if batch:
            yield batch
        if problem:
            raise problem
        if len(batch) < size:
            return
