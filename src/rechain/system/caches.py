"""What is kept in memory, up to a limit, as it may be needed again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """Values by key, of limited size in all; those that nobody asked for longest are dropped first."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        """Take how much may be kept, and what says how much a value is."""
        self._most, self._size_of = most, size
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["BoundedCache[T]"], tuple[int, Callable[[T], int]]]:
        """Return how pickle makes it again: empty, as what is in it can be made again."""
        return type(self), (self._most, self._size_of)

    def find(self, key: Hashable) -> T | None:
        """Return the value of a key if it is there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def add(self, key: Hashable, value: T) -> None:
        """Keep a value, unless it is too large or there is one."""
        size = self._size_of(value)
        with self._lock:
            if key not in self._values and size <= self._most:
                self._values[key] = value, size
                self._size += size
            while self._size > self._most:
                self._size -= self._values.popitem(last=False)[1][1]

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, which is made where it is not there. Two threads may make it at once."""
        value = self.find(key)
        if value is None:
            value = make()
            self.add(key, value)
        return value
