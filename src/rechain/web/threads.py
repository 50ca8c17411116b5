"""Threads for requests, so that the event loop stays free.

The event loop reads requests, sends answers and waits for models. What reads a database or draws a page runs in one of
a few threads: FastAPI runs handlers that are plain functions there, and coroutines use `run_in_threadpool`. What may
take longer (an export, an import) has a separate thread, so that no page waits for it.

There are few threads because Python runs one at a time: with many, each would wait long for its turn.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import current_default_thread_limiter, run_sync

_PAGES, _LONG = 3, 1
"""threads for pages, and threads for long work"""
_TURN_S = 0.001
"""seconds after which a thread lets another run, a fifth of Python's default"""
_long: RunVar[CapacityLimiter] = RunVar("long work")  # one for each event loop, as tests have several

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def set_up_threads() -> None:
    """Bound the threads of the running event loop, and their turns."""
    current_default_thread_limiter().total_tokens = _PAGES
    sys.setswitchinterval(_TURN_S)


async def run_long(work: Callable[Parameters, Result], *args: Parameters.args, **options: Parameters.kwargs) -> Result:
    """Return the result of work that may take long."""
    limiter = _long.get(None)
    if limiter is None:
        _long.set(limiter := CapacityLimiter(_LONG))
    return await run_sync(lambda: work(*args, **options), limiter=limiter)


async def iterate_long(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts of an answer that take long to make; other long work runs in between."""
    while (part := await run_long(next, parts, None)) is not None:
        yield part
