"""Worker processes: tasks in, results out in the order of the tasks, few of them at a time.

A process that dies is replaced and its task done again. No process outlives the one that started it.
"""

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar, cast

from rechain.errors import RechainError
from rechain.system.batches import DeferredErrors

Task = TypeVar("Task")
Result = TypeVar("Result")
MakeWorker = Callable[[], Callable[[Task], Result]]
"""Makes, in the process that is to work, what does a task."""

_MOST_DEATHS = 3
"""a task at which so many processes have died is given up"""
_MOST_IN_HAND = 2
"""one that is done and the next: a process never waits for a task, and a long one holds up only one other"""
_TIDY_EVERY = 1.0


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    make_worker: MakeWorker[Task, Result],
    tasks: Iterable[Task],
    workers: int,
    describe: Callable[[Task], str] = str,
    ahead: int | None = None,
) -> Iterator[Result]:
    """Have worker processes do tasks, and yield the results in the order of the tasks.

    `ahead` is how many tasks are taken before the first of them is done; by default two for each process, which keeps
    tasks of about the same length busy. If the next task cannot be had, the results of those before it come first and
    the error then.
    """
    source = DeferredErrors(tasks)
    pool = _Pool(make_worker, workers, describe, ahead or 2 * workers)
    try:
        for task in source:
            pool.submit(task)
            while pool.is_full or pool.has_result:
                yield pool.result()
        while not pool.is_idle:
            yield pool.result()
        source.raise_error()
        pool.end()
    finally:
        pool.close()


class _Pool(Generic[Task, Result]):
    """Processes, the tasks that are in their hands, and the results that wait for those of earlier tasks."""

    def __init__(
        self, make_worker: MakeWorker[Task, Result], workers: int, describe: Callable[[Task], str], ahead: int
    ) -> None:
        self._make_worker = pickle.dumps(make_worker)
        self._workers = workers
        self._ahead = ahead
        self._describe = describe
        self._processes: list[_Process] = []
        self._tasks: dict[int, tuple[str, bytes]] = {}
        """by number what a task is called, and the task itself"""
        self._waiting: deque[int] = deque()
        """tasks that no process has in hand yet"""
        self._deaths: Counter[int] = Counter()
        self._outcomes: dict[int, _Outcome] = {}
        self._submitted = self._yielded = 0
        self._has_begun = False
        if multiprocessing.current_process().daemon:
            raise RechainError("a process that is itself a worker cannot start others; let it work alone (workers=0).")

    @property
    def is_full(self) -> bool:
        return self._submitted - self._yielded >= self._ahead

    @property
    def is_idle(self) -> bool:
        return self._submitted == self._yielded

    @property
    def has_result(self) -> bool:
        """Whether the next result is there already."""
        self._gather(timeout=0)
        return self._yielded in self._outcomes

    def submit(self, task: Task) -> None:
        """Have a task done; what cannot be sent to other processes fails when its turn comes."""
        number = self._submitted
        self._submitted += 1
        try:
            self._tasks[number] = self._describe(task), pickle.dumps(task)
        except Exception as error:
            self._outcomes[number] = _Outcome(None, error)
        else:
            self._give(number)

    def result(self) -> Result:
        """Return the result of the first task whose result was not yet returned."""
        while self._yielded not in self._outcomes:
            self._gather(timeout=None)
        outcome = self._outcomes.pop(self._yielded)
        self._yielded += 1
        if outcome.error:
            raise outcome.error
        return cast(Result, outcome.result)

    def _give(self, number: int) -> None:
        """Put a task into the hands of the process that has fewest; all are started before one gets a second."""
        if all(process.in_hand for process in self._processes) and len(self._processes) < self._workers:
            self._processes.append(_Process(self._make_worker, max(1, usable_cores() // self._workers)))
        process = min(self._processes, key=lambda process: len(process.in_hand))
        if len(process.in_hand) == _MOST_IN_HAND:
            self._waiting.append(number)
            return
        process.in_hand.append(number)
        process.give(self._tasks[number][1])

    def _gather(self, timeout: float | None) -> None:
        """Take what processes have done; do again what was in the hands of one that has died."""
        by_connection = {process.connection: process for process in self._processes}
        for connection in wait(list(by_connection), timeout):
            process = by_connection[cast(Connection, connection)]
            if outcome := process.take():
                self._has_begun = True
                number = process.in_hand.popleft()
                self._outcomes[number] = outcome
                del self._tasks[number]
                if self._waiting:
                    self._give(self._waiting.popleft())
            else:
                self._replace(process)

    def _replace(self, dead: "_Process") -> None:
        self._processes.remove(dead)
        how = dead.end()
        if not self._has_begun and not how.startswith("signal"):
            raise RechainError(
                "worker processes cannot start: they import the script that starts them, which must be a file "
                'and do so under `if __name__ == "__main__":` alone.'
            )
        for number in dead.in_hand:
            self._deaths[number] += number == dead.in_hand[0]
            if self._deaths[number] == _MOST_DEATHS:
                task = self._tasks[number][0]
                raise RechainError(f"a worker process died {_MOST_DEATHS} times at {task} ({how}); try fewer workers.")
            self._give(number)

    def end(self) -> None:
        """Let the processes end, which have nothing left to do."""
        for process in self._processes:
            process.give(pickle.dumps(_END))
        for process in self._processes:
            process.end()
        self._processes.clear()

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for process in self._processes:
            process.connection.close()
        for process in self._processes:
            process.end()


_END = None
"""what is given to a process that may end"""


class _Outcome(NamedTuple):
    """What has come of a task."""

    result: Any
    error: Exception | None = None


class _Process:
    """A worker process, and the numbers of the tasks in its hands, which it does in their order."""

    def __init__(self, make_worker: bytes, threads: int) -> None:
        context = _context()
        self.in_hand: deque[int] = deque()
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, make_worker, threads), daemon=True)
        _insist(self._process.start)
        theirs.close()

    def give(self, task: bytes) -> None:
        """Hand over a task; that the process has died is found when its results are taken."""
        with suppress(OSError):
            self.connection.send_bytes(task)

    def take(self) -> _Outcome | None:
        """Return what has come of the first task in hand, or None if the process has died."""
        try:
            return cast(_Outcome, self.connection.recv())
        except (EOFError, OSError):
            return None

    def end(self) -> str:
        """Wait for the end of the process, and tell how it ended."""
        self.connection.close()
        self._process.join()
        code = self._process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _insist(start: Callable[[], None]) -> None:
    """Start a process; should what starts processes have died, it is there again after a moment."""
    for moment in (0.1, 0.5, None):
        try:
            return start()
        except (OSError, EOFError) as error:
            if moment is None:
                reason = getattr(error, "strerror", None) or type(error).__name__
                raise RechainError(f"a worker process cannot be started: {reason}; try fewer workers.") from error
            time.sleep(moment)


@cache
def _context() -> Any:
    """Return a way to start processes that is safe beside threads."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rechain.bulk.work"])
    return context


def _work(connection: Connection, make_worker: bytes, threads: int) -> None:
    """Do tasks until there are none left. An interrupt is the starting process's affair, which then ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tasks: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    worker: Callable[[Any], Any] | None = None
    tidied = time.monotonic()
    while True:
        try:
            if (task := pickle.loads(tasks.get())) is _END:
                return
            worker = worker or _made(make_worker)
            outcome = pickle.dumps(_Outcome(worker(task)))
        except Exception as error:
            outcome = _failed(error)
        try:
            connection.send_bytes(outcome)
        except OSError:  # nobody is there any more
            os._exit(1)
        tidied = tidy(tidied)


def _failed(error: Exception) -> bytes:
    """Return an error as it is sent; one that cannot be sent as what it says."""
    error.add_note(traceback.format_exc())
    try:
        sent = pickle.dumps(_Outcome(None, error))
        pickle.loads(sent)
    except Exception:
        return pickle.dumps(_Outcome(None, RuntimeError(f"{type(error).__name__}: {error}")))
    return sent


def _made(make_worker: bytes) -> Callable[[Any], Any]:
    try:
        make = pickle.loads(make_worker)
    except (AttributeError, ImportError) as error:
        raise RechainError(
            f"worker processes cannot load what they are to do: {error}; it must stand in a file, "
            'outside `if __name__ == "__main__":`.'
        ) from error
    worker: Callable[[Any], Any] = make()
    spare_collector()
    return worker


def spare_collector() -> None:
    """Have garbage collected less often and not among what is loaded: it took a tenth of the time and found nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def tidy(last: float) -> float:
    """Give free memory back to the system once a second, as it would else grow for hours; return when that was."""
    if time.monotonic() - last < _TIDY_EVERY:
        return last
    gc.collect()
    if trim := _trim():
        trim(0)
    return time.monotonic()


@cache
def _trim() -> Callable[[int], int] | None:
    """Return glibc's function for that, where there is one."""
    with suppress(OSError, TypeError):
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None


def _receive(connection: Connection, tasks: "SimpleQueue[bytes]") -> None:
    """Take tasks while others are done; end this process at once if nobody is there any more who gives them."""
    end = pickle.dumps(_END)
    try:
        while (task := connection.recv_bytes()) != end:
            tasks.put(task)
        tasks.put(end)
    except (EOFError, OSError):
        os._exit(1)
