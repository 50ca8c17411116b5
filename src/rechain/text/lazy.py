"""An attribute that is computed when it is first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - used like functools.cached_property
    """As functools.cached_property, without the lock that it takes before Python 3.12, which costs more than the work.

    Once computed, the value stands in the instance's dictionary and this descriptor is no longer asked.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
