"""Streams of items: in batches, and with errors that wait until what came before them is dealt with."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class DeferredErrors(Generic[T]):
    """Items whose source may fail: iteration ends at the error, which `raise_error` raises later."""

    items: Iterable[T]
    error: Exception | None = None

    def __iter__(self) -> Iterator[T]:
        try:
            yield from self.items
        except Exception as error:
            self.error = error

    def raise_error(self) -> None:
        """Raise the error, if there was one."""
        if self.error:
            raise self.error


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Gather items into lists; what was read before an error is yielded before it is raised."""
    source = DeferredErrors(items)
    remaining = iter(source)
    while batch := list(islice(remaining, size)):
        yield batch
    source.raise_error()
