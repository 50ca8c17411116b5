"""What was worked out and may be asked for again, up to a limit."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T", bound=Sized)


class BoundedCache(Generic[T]):
    """Values by key, of limited length in all; those that nobody asked for longest are dropped first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._length = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, which is made where it is not there. Two threads may make it at once."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            if key not in self._values and len(value) <= self._most:
                self._values[key] = value
                self._length += len(value)
            while self._length > self._most:
                self._length -= len(self._values.popitem(last=False)[1])
        return value
