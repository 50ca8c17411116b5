"""Time and memory that one document may take: documents are converted in a process of their own, which has limits.

A file of a few kilobytes can keep a reader busy for years (a PDF with forms that draw forms that draw forms), fill the
memory, or crash a library. Here that costs one process, and the next file gets another.
"""

import os
import resource
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from rechain.errors import InputError, ResumableError
from rechain.system.processes import Service

MOST_SECONDS = 120
"""of a core's time for one file: 100,000 pages of prose, and thirty times the longest of books. A limit by the clock
would refuse files because a machine is busy."""
MOST_MEMORY = 1_000_000_000
"""bytes that a file may add to the address space of the process"""
_STATUS = Path("/proc/self/statm")

Task = TypeVar("Task")
Result = TypeVar("Result")


class Limited(Service[Task, Result]):
    """A process that calls a function, with limits on the time and memory of each call."""

    def __init__(
        self, function: Callable[[Task], Result], seconds: int = MOST_SECONDS, memory: int = MOST_MEMORY
    ) -> None:
        self._limits = f"over {seconds} seconds or {memory // 1_000_000:,} MB"
        super().__init__(partial(_limit, function, seconds, memory))

    def __call__(self, request: Task, seconds: float | None = None) -> Result:
        """Return what the function returns or raise its error; raises InputError if a limit ends it."""
        try:
            return super().__call__(request, seconds)
        except ResumableError as error:
            raise InputError(f"is damaged, or too much work to read ({self._limits})") from error


# What runs in the process


def _limit(function: Callable[[Task], Result], seconds: int, memory: int) -> Callable[[Sequence[Task]], list[Result]]:
    if _STATUS.exists():  # where there is no such file, the time alone is limited
        resource.setrlimit(resource.RLIMIT_AS, (most := _address_space() + memory, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    return lambda tasks: [_call(function, task, seconds) for task in tasks]


def _address_space() -> int:
    """Return the bytes of address space that the process has, of which its libraries take most."""
    return int(_STATUS.read_bytes().split()[0]) * resource.getpagesize()


def _call(function: Callable[[Task], Result], task: Task, seconds: int) -> Result:
    """Call the function; the system ends this process after that many more seconds of computing."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    try:
        return function(task)
    except MemoryError:
        raise InputError("takes too much memory to read; split it") from None
