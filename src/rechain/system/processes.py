"""The package's one pool of worker processes: tasks in, results out in the order of the tasks. Standard library alone.

It is not `concurrent.futures` or `multiprocessing.Pool`, as these break promises that are kept here:

- A process that is killed is replaced and its tasks are repeated, and a task that kills three is named. An executor is
  broken for good by one death; a Pool waits for ever for the result that was lost.
- No process outlives this one, even if it is killed by SIGKILL.
- Few tasks are read ahead, so that memory does not grow with the input: `Executor.map` reads all of them.
- An error of the source, or of one task, comes after the results of all tasks before it.
- A worker makes what it keeps, such as a model, by itself; if that fails, there is one error, not one a task.
"""

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar, cast

from rechain.errors import RechainError, ResumableError
from rechain.system.batches import DeferredErrors

Task = TypeVar("Task")
Result = TypeVar("Result")
MakeWorker = Callable[[], Callable[[Task], Result]]
"""makes, in a worker process, the function that does tasks"""

# A task that has killed three processes will kill the next: it takes too much memory, or crashes a library.
_MOST_DEATHS = 3
# One that is being done and the next: a process never waits for a task, and a long one delays only one other.
_MOST_IN_HAND = 2
_TRIM_SECONDS = 1.0  # a trim takes a few milliseconds, so that once a second costs nothing


def usable_cores() -> int:
    """Return the number of cores that this process may use, which a container or `taskset` may restrict."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    make_worker: MakeWorker[Task, Result],
    tasks: Iterable[Task],
    workers: int,
    describe: Callable[[Task], str] = str,
    ahead: int | None = None,
    preload: Sequence[str] = (),
    substitute: Callable[[Task, str], Result] | None = None,
) -> Iterator[Result]:
    """Do tasks in worker processes, and yield the results in the order of the tasks.

    `describe` names a task in errors. `ahead` is how many tasks are taken before the first of them is done; the default
    of two a process keeps all busy with tasks of about the same length. `preload` names modules that the processes
    share: they are imported once, before the processes are forked. An error of the source is raised after the results
    of the tasks before it. `substitute` returns, from a task and how its processes ended, what stands for the result of
    a task that kills them; without it, that is an error.
    """
    source = DeferredErrors(tasks)
    pool = _Pool(make_worker, workers, describe, process_context(preload), substitute)
    most_pending = ahead or _MOST_IN_HAND * workers
    try:
        for task in source:
            pool.submit(task)
            while pool.pending >= most_pending or pool.has_result():
                yield pool.result()
        while pool.pending:
            yield pool.result()
        if source.error:
            raise source.error
        pool.end()
    finally:
        pool.close()


class _Pool(Generic[Task, Result]):
    """Processes, the tasks that they have, and the results that wait for those of earlier tasks."""

    def __init__(
        self,
        make_worker: MakeWorker[Task, Result],
        workers: int,
        describe: Callable[[Task], str],
        context: Any,
        substitute: Callable[[Task, str], Result] | None,
    ) -> None:
        self._substitute = substitute
        self._context = context
        self._make_worker = pickle.dumps(make_worker)
        self._workers = workers
        self._describe = describe
        self._processes: list[_Process] = []
        self._tasks: dict[int, tuple[str, bytes]] = {}
        """the description and the pickled task, by number"""
        self._waiting: deque[int] = deque()
        """numbers of tasks that no process has yet"""
        self._deaths: Counter[int] = Counter()
        self._outcomes: dict[int, Outcome] = {}
        self._submitted = self._yielded = 0
        self._has_begun = False
        if multiprocessing.current_process().daemon:
            raise RechainError("a process that is itself a worker cannot start others; let it work alone (workers=0).")

    @property
    def pending(self) -> int:
        """The number of tasks whose results have not been yielded."""
        return self._submitted - self._yielded

    def has_result(self) -> bool:
        """Return whether the next result has arrived."""
        self._gather(timeout=0)
        return self._yielded in self._outcomes

    def submit(self, task: Task) -> None:
        """Send a task to a process; one that cannot be pickled fails when its turn comes."""
        number = self._submitted
        self._submitted += 1
        try:
            self._tasks[number] = self._describe(task), pickle.dumps(task)
        except Exception as error:
            self._outcomes[number] = Outcome(None, error)
        else:
            self._give(number)

    def result(self) -> Result:
        """Wait for the next result in the order of the tasks, and return it or raise its error."""
        while self._yielded not in self._outcomes:
            self._gather(timeout=None)
        outcome = self._outcomes.pop(self._yielded)
        self._yielded += 1
        if outcome.error:
            raise outcome.error
        return cast(Result, outcome.result)

    def _give(self, number: int) -> None:
        """Send a task to the process that has fewest; all are started before one gets a second."""
        if all(process.in_hand for process in self._processes) and len(self._processes) < self._workers:
            threads = max(1, usable_cores() // self._workers)
            self._processes.append(_Process(self._context, self._make_worker, threads))
        process = min(self._processes, key=lambda process: len(process.in_hand))
        if len(process.in_hand) == _MOST_IN_HAND:
            self._waiting.append(number)
            return
        process.in_hand.append(number)
        process.send(self._tasks[number][1])

    def _gather(self, timeout: float | None) -> None:
        """Receive results; replace processes that have died."""
        by_connection = {process.connection: process for process in self._processes}
        for connection in wait(list(by_connection), timeout):
            process = by_connection[cast(Connection, connection)]
            if outcome := process.receive():
                self._has_begun = True
                number = process.in_hand.popleft()
                self._outcomes[number] = outcome
                del self._tasks[number]
                if self._waiting:
                    self._give(self._waiting.popleft())
            else:
                self._replace(process)

    def _replace(self, dead: "_Process") -> None:
        """Give the tasks of a dead process to others; its death counts for the task that it was doing."""
        self._processes.remove(dead)
        how = dead.end()
        # An exit before any result means that workers fail on start, not at a task; a signal can come at any time.
        if not self._has_begun and not how.startswith("signal"):
            raise RechainError(
                "worker processes cannot start: they import the script that starts them, which must be a file "
                'and do so under `if __name__ == "__main__":` alone.'
            )
        for number in dead.in_hand:
            self._deaths[number] += number == dead.in_hand[0]
            if self._deaths[number] < _MOST_DEATHS:
                self._give(number)
                continue
            description, task = self._tasks.pop(number)
            if self._substitute is None:
                raise ResumableError(
                    f"a worker process died {_MOST_DEATHS} times at {description} ({how}); try fewer workers."
                )
            self._outcomes[number] = Outcome(self._substitute(pickle.loads(task), how))

    def end(self) -> None:
        """End the idle processes and wait for them."""
        for process in self._processes:
            process.send(_END)
        for process in self._processes:
            process.end()
        self._processes.clear()

    def close(self) -> None:
        """End the processes, whatever they are doing: they exit when their connection is closed."""
        for process in self._processes:
            process.connection.close()
        for process in self._processes:
            process.end()


_END = b""
"""sent in place of a pickled task to end a process"""


class Outcome(NamedTuple):
    """The result of a task, or its error: what one process sends to another."""

    result: Any
    error: Exception | None = None


class _Process:
    """A worker process, and the numbers of its tasks, which it does in their order."""

    def __init__(self, context: Any, make_worker: bytes, threads: int) -> None:
        self.in_hand: deque[int] = deque()
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, make_worker, threads), daemon=True)
        start_process(self._process)
        theirs.close()

    def send(self, task: bytes) -> None:
        """Send a task; a process that has died is noticed when its results are received."""
        with suppress(OSError):
            self.connection.send_bytes(task)

    def receive(self) -> Outcome | None:
        """Return the outcome of the first task, or None if the process has died."""
        try:
            return cast(Outcome, self.connection.recv())
        except (EOFError, OSError):
            return None

    def end(self) -> str:
        """Wait for the end of the process, and return how it ended."""
        self.connection.close()
        self._process.join()
        code = self._process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def start_process(process: Any) -> None:
    """Start a process; a fork server that was killed just now is replaced by multiprocessing after a moment."""
    for seconds in (0.1, 0.5, None):
        try:
            with _interrupts_held():
                process.start()
            return
        except (OSError, EOFError) as error:
            if seconds is None:
                reason = getattr(error, "strerror", None) or type(error).__name__
                raise ResumableError(f"a worker process cannot be started: {reason}; try fewer workers.") from error
            time.sleep(seconds)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C from a fork server, and its processes, from the first: it ignores it only after its imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which lets interrupts through when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_context(preload: Sequence[str]) -> Any:
    """Return how processes are started: by a fork server, as fork itself is unsafe beside the threads of torch.

    The server imports `preload` once for all; it is one for all pools, so that the first pool decides. Where there is
    none (Windows), each process starts anew.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload])
    return context


def _work(connection: Connection, make_worker: bytes, threads: int) -> None:
    """Do tasks until there are none left: the body of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the first one then ends the others
    _limit_threads(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tasks: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    worker: Callable[[Any], Any] | None = None
    trimmed = time.monotonic()
    while True:
        try:
            if (task := tasks.get()) == _END:
                return
            worker = worker or _load_worker(make_worker)
            outcome = pickle.dumps(Outcome(worker(pickle.loads(task))))
        except Exception as error:
            outcome = pickled_error(error)
        try:
            connection.send_bytes(outcome)
        except OSError:  # the starting process is gone
            os._exit(1)
        trimmed = trim_memory(trimmed)


def _limit_threads(threads: int) -> None:
    """Let libraries compute with so many threads, unless the user says how many.

    Threads of all processes together should be as many as there are cores: more of them only wait for each other.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if torch := sys.modules.get("torch"):  # one that the fork server has imported does not read the variable again
        torch.set_num_threads(threads)


def pickled_error(error: Exception) -> bytes:
    """Return the outcome of a task that failed; an error that does not survive pickling keeps its message."""
    error.add_note(traceback.format_exc())
    try:
        outcome = pickle.dumps(Outcome(None, error))
        pickle.loads(outcome)
    except Exception:
        return pickle.dumps(Outcome(None, RuntimeError(f"{type(error).__name__}: {error}")))
    return outcome


def _load_worker(make_worker: bytes) -> Callable[[Any], Any]:
    try:
        make = pickle.loads(make_worker)
    except (AttributeError, ImportError) as error:
        raise RechainError(
            f"worker processes cannot load what they are to do: {error}; it must stand in a file, "
            'outside `if __name__ == "__main__":`.'
        ) from error
    worker: Callable[[Any], Any] = make()
    relax_collector()
    return worker


def relax_collector(full: int = 20) -> None:
    """Collect garbage less often, and not among loaded modules and models: it took a tenth of the time for nothing.

    All of it is gone through at every so many collections.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, full)


def trim_memory(last: float) -> float:
    """Return free memory to the system once a second; return when that was last done.

    glibc keeps what was freed between small objects that live on, so that a process would grow for hours.
    """
    if time.monotonic() - last < _TRIM_SECONDS:
        return last
    gc.collect()
    with suppress(OSError, TypeError, AttributeError):  # other C libraries lack it
        ctypes.CDLL(None).malloc_trim(0)
    return time.monotonic()


def _receive(connection: Connection, tasks: "SimpleQueue[bytes]") -> None:
    """Receive tasks while others are done; exit at once when the starting process is gone, however it ended."""
    try:
        while (task := connection.recv_bytes()) != _END:
            tasks.put(task)
        tasks.put(_END)
    except (EOFError, OSError):
        os._exit(1)
