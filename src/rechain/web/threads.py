"""Where requests are worked on: in threads, so that the event loop is free for whoever comes next.

The event loop reads requests, sends answers, waits for models and says that the server is well. What reads a database
or draws a page runs in one of a few threads: handlers that are plain functions by FastAPI itself, parts of coroutines
by `run_in_threadpool`. Where there are two cores or more, pages of the explorer are drawn in processes (see `drawing`)
and the threads are left to the others. What may take longer (an export, an import) has a lane of its own, so that no
page waits for it.
Few threads, as one interpreter runs one at a time: with many, each would wait long for its turn, the loop among them.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import current_default_thread_limiter, run_sync

_PAGES, _LONG = 3, 1
"""threads that work at once on pages, and on what takes long; others wait for their turn, first come, first served"""
_TURN_S = 0.001
"""seconds after which a thread that computes lets another have its turn, a fifth of what Python has by itself"""
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
    """Yield parts of an answer each of which may take long; whoever else has long work gets a turn in between."""
    while (part := await run_long(next, parts, None)) is not None:
        yield part
