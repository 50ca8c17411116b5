"""Items gathered by their position, and what comes of an error among them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class HeldBack(Generic[T]):
    """Items whose source may fail: the error is held back until what came before it is dealt with."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items
        self._problem: Exception | None = None

    def __iter__(self) -> Iterator[T]:
        try:
            yield from self._items
        except Exception as error:
            self._problem = error

    def check(self) -> None:
        """Raise the error, if there was one."""
        if self._problem:
            raise self._problem


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Gather items into lists; what was read before an error is given out before it is raised."""
    source = HeldBack(items)
    remaining = iter(source)
    while batch := list(islice(remaining, size)):
        yield batch
    source.check()
