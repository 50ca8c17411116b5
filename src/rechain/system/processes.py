"""Work that is done in batches and in processes: a pool, and one that answers the requests of many.

Standard library alone. The pool takes tasks and yields results in their order. `concurrent.futures` and
`multiprocessing.Pool` break promises that are kept here:

- A process that is killed is replaced and its tasks are repeated, and a task that kills three is named. An executor is
  unusable after one death; a Pool waits forever for the lost result.
- No process outlives this one, even if it is killed by SIGKILL.
- Few tasks are read ahead, so that memory does not grow with the input: `Executor.map` reads all of them.
- An error of the source, or of one task, is raised after the results of all tasks before it.
- A worker loads what it keeps, such as a model, by itself; if that fails, there is one error, not one per task.
"""

import ctypes
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from multiprocessing import AuthenticationError, current_process, resource_tracker
from multiprocessing.connection import Client, Connection, Listener, Pipe, wait
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast
from weakref import finalize

from rechain.errors import RechainError, ResumableError

Task = TypeVar("Task")
Result = TypeVar("Result")
MakeWorker = Callable[[], Callable[[Task], Result]]
"""makes, in a worker process, the function that does tasks"""

# A task that has killed three processes will kill the next: it takes too much memory, or crashes a library.
_MOST_DEATHS = 3
# One that is being done and the next: a process never waits for a task, and a long one delays only one other.
_MOST_IN_HAND = 2
_TRIM_SECONDS = 1.0  # a trim takes a few milliseconds, so once a second costs nothing


@dataclass
class DeferredErrors(Generic[Task]):
    """Items whose source may fail: iteration ends at the error, which is kept to be raised later."""

    items: Iterable[Task]
    error: Exception | None = None

    def __iter__(self) -> Iterator[Task]:
        try:
            yield from self.items
        except Exception as error:
            self.error = error


def batches(
    items: Iterable[Task], size: int, weigh: Callable[[Task], int] = lambda _: 0, heaviest: float = inf
) -> Iterator[list[Task]]:
    """Gather items into lists of `size`, or fewer if these weigh as much as the heaviest.

    What was read before an error is yielded before it is raised.
    """
    source, batch, weight = DeferredErrors(items), list[Task](), 0
    for item in source:
        batch.append(item)
        weight += weigh(item)
        if len(batch) == size or weight >= heaviest:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch
    if source.error:
        raise source.error


def usable_cores() -> int:
    """Return the number of cores that this process may use, which a container or `taskset` may restrict."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Outcome(NamedTuple):
    """The result of a task, or its error: what one process sends to another."""

    result: Any
    error: Exception | None = None

    def unwrap(self) -> Any:
        """Return the result, or raise the error."""
        if self.error:
            raise self.error
        return self.result


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
    of two per process keeps all busy if tasks take about the same time. `preload` names modules that the processes
    share: they are imported once, before the processes are forked. `substitute` returns the result of a task that
    kills its processes, given the task and how they ended; without it, such a task is an error.
    """
    source, pending = DeferredErrors(tasks), deque[_Job]()
    pool = _Pool(make_worker, workers, preload, substitute)
    most_pending = ahead or _MOST_IN_HAND * workers
    try:
        for task in source:
            pending.append(pool.submit(task, describe))
            while pending and (len(pending) >= most_pending or pool.is_done(pending[0])):
                yield pool.result(pending.popleft())
        while pending:
            yield pool.result(pending.popleft())
        if source.error:
            raise source.error
    finally:
        pool.close()


@dataclass(eq=False)
class _Job:
    """A task that is not yielded yet."""

    description: str
    task: bytes
    """pickled"""
    deaths: int = 0
    """how many processes have died over it"""
    outcome: Outcome | None = None


class _Pool(Generic[Task, Result]):
    """Processes, and the tasks that no process has yet."""

    def __init__(
        self,
        make_worker: MakeWorker[Task, Result],
        workers: int,
        preload: Sequence[str],
        substitute: Callable[[Task, str], Result] | None,
    ) -> None:
        self._make_worker, self._workers, self._substitute = pickle.dumps(make_worker), workers, substitute
        # A fork server, as fork itself is unsafe next to the threads of torch. All pools share one, so that the first
        # of them decides what it imports.
        self._context: Any = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*preload])
        self._processes: list[_Process] = []
        self._waiting: deque[_Job] = deque()
        if current_process().daemon:
            raise RechainError("a process that is itself a worker cannot start others; let it work alone (workers=0).")

    def submit(self, task: Task, describe: Callable[[Task], str]) -> _Job:
        """Send a task to a process; one that cannot be pickled fails when its turn comes."""
        try:
            job = _Job(describe(task), pickle.dumps(task))
        except Exception as error:
            return _Job("", b"", outcome=Outcome(None, error))
        self._assign(job)
        return job

    def is_done(self, job: _Job) -> bool:
        """Return whether the result of a task has arrived."""
        self._gather(timeout=0)
        return job.outcome is not None

    def result(self, job: _Job) -> Result:
        """Wait for the result of a task, and return it or raise its error."""
        while job.outcome is None:
            self._gather(timeout=None)
        return cast(Result, job.outcome.unwrap())

    def _assign(self, job: _Job) -> None:
        """Send a task to the process that has fewest; all are started before one gets a second."""
        if all(process.jobs for process in self._processes) and len(self._processes) < self._workers:
            threads = max(1, usable_cores() // self._workers)
            self._processes.append(_Process(self._context, self._make_worker, threads))
        process = min(self._processes, key=lambda process: len(process.jobs))
        if len(process.jobs) == _MOST_IN_HAND:
            self._waiting.append(job)
            return
        process.jobs.append(job)
        with suppress(OSError):  # a process that has died is noticed when its results are received
            process.connection.send_bytes(job.task)

    def _gather(self, timeout: float | None) -> None:
        """Receive results; replace processes that have died."""
        by_connection = {process.connection: process for process in self._processes}
        for connection in wait(list(by_connection), timeout):
            process = by_connection[cast(Connection, connection)]
            try:
                outcome = cast(Outcome, process.connection.recv())
            except (EOFError, OSError):
                self._replace(process)
                continue
            if not process.is_ready:
                outcome.unwrap()
                process.is_ready = True
                continue
            process.jobs.popleft().outcome = outcome
            if self._waiting:
                self._assign(self._waiting.popleft())

    def _replace(self, dead: "_Process") -> None:
        """Give the tasks of a dead process to others; its death counts for the task that it was doing."""
        self._processes.remove(dead)
        how = dead.end()
        # A process that exits by itself before it is ready fails on start; a signal can come at any time.
        if not dead.is_ready and not how.startswith("signal"):
            raise RechainError(
                "worker processes cannot start: they import the script that starts them, which must be a file "
                'and do so under `if __name__ == "__main__":` alone.'
            )
        for job in dead.jobs:
            job.deaths += job is dead.jobs[0]
            if job.deaths < _MOST_DEATHS:
                self._assign(job)
            elif self._substitute is None:
                raise ResumableError(
                    f"a worker process died {_MOST_DEATHS} times at {job.description} ({how}); try fewer workers."
                )
            else:
                job.outcome = Outcome(self._substitute(pickle.loads(job.task), how))

    def close(self) -> None:
        """End the processes, whatever they are doing: they exit when their connection is closed."""
        for process in self._processes:
            process.connection.close()
        for process in self._processes:
            process.end()


class _Process:
    """A worker process, and its tasks, which it does in their order."""

    def __init__(self, context: Any, make_worker: bytes, threads: int) -> None:
        self.jobs: deque[_Job] = deque()
        self.is_ready = False
        """whether it has loaded its worker, which is the first that it reports"""
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, make_worker, threads), daemon=True)
        for seconds in (0.1, 0.5, None):
            try:
                with _interrupts_blocked():
                    self._process.start()
                break
            except (OSError, EOFError) as error:  # a fork server that was killed just now is replaced after a moment
                if seconds is None:
                    reason = getattr(error, "strerror", None) or type(error).__name__
                    raise ResumableError(f"a worker process cannot be started: {reason}; try fewer workers.") from error
                time.sleep(seconds)
        theirs.close()

    def end(self) -> str:
        """Wait for the end of the process, and return how it ended."""
        self.connection.close()
        self._process.join()
        code = self._process.exitcode or 0
        return f"signal {-code}" if code < 0 else f"exit code {code}"


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in processes that are started meanwhile: it would end them before they can ignore it."""
    resource_tracker.ensure_running()  # which lets interrupts through when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# What runs in the processes

Requests = SimpleQueue[tuple[Connection, bytes]]
"""pickled tasks, each with the connection to which its outcome is sent"""
Answers = Callable[[Sequence[Any]], Sequence[Any]]


def _work(parent: Connection, make_worker: bytes, threads: int) -> None:
    """Do tasks one by one: the body of a worker process."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if "OMP_NUM_THREADS" not in os.environ:  # as many threads in all as there are cores: more wait for each other
        os.environ["OMP_NUM_THREADS"] = str(threads)
        if torch := sys.modules.get("torch"):  # imported by the fork server, it does not read the variable again
            torch.set_num_threads(threads)

    def load() -> Answers:
        worker = _load_worker(make_worker)
        return lambda tasks: [worker(task) for task in tasks]

    _answer_requests(parent, SimpleQueue(), load, at_once=1)


def _answer_requests(
    parent: Connection, requests: Requests, load: Callable[[], Answers], at_once: int, folder: str = ""
) -> None:
    """Answer requests, up to `at_once` together; the first outcome is that of `load`.

    When the starting process is gone, however it ended, or closes its connection, this one removes the folder, if it
    has one, and exits.
    """

    def receive() -> None:
        _receive(parent, requests)
        if folder:
            rmtree(folder, ignore_errors=True)
        os._exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the first one then ends the others
    threading.Thread(target=receive, daemon=True).start()
    answers: Answers | None = None
    ready = pickle.dumps(Outcome(None))
    try:
        answers = load()
        relax_collector()
    except Exception as error:
        ready = _pickled_error(error)
    with suppress(OSError):  # the starting process is gone
        parent.send_bytes(ready)
    trimmed = time.monotonic()
    while answers:
        waiting = [requests.get()]
        with suppress(Empty):
            while len(waiting) < at_once:
                waiting.append(requests.get_nowait())
        outcomes = _answer(answers, [request for _, request in waiting])
        for (connection, _), outcome in zip(waiting, outcomes, strict=True):
            with suppress(OSError):  # a process that has died does not wait for its answer
                connection.send_bytes(outcome)
        trimmed = trim_memory(trimmed)


def _answer(answers: Answers, requests: Sequence[bytes]) -> list[bytes]:
    """Return the pickled outcomes of requests; if they cannot be answered together, each is answered alone."""
    try:
        return [pickle.dumps(Outcome(answer)) for answer in answers([pickle.loads(request) for request in requests])]
    except Exception as error:
        if len(requests) == 1:
            return [_pickled_error(error)]
        return [outcome for request in requests for outcome in _answer(answers, [request])]


def _load_worker(make_worker: bytes) -> Callable[[Any], Any]:
    """Return what a pickled function makes."""
    try:
        make = pickle.loads(make_worker)
    except (AttributeError, ImportError) as error:
        raise RechainError(
            f"worker processes cannot load what they are to do: {error}; it must be in a file, "
            'outside `if __name__ == "__main__":`.'
        ) from error
    worker: Callable[[Any], Any] = make()
    return worker


def _pickled_error(error: Exception) -> bytes:
    """Return the outcome of a task that failed; an error that does not survive pickling keeps its message."""
    error.add_note(traceback.format_exc())
    try:
        outcome = pickle.dumps(Outcome(None, error))
        pickle.loads(outcome)
    except Exception:
        return pickle.dumps(Outcome(None, RuntimeError(f"{type(error).__name__}: {error}")))
    return outcome


def _receive(connection: Connection, requests: Requests) -> None:
    """Put all requests of a connection into a queue, until it is closed."""
    with suppress(EOFError, OSError):
        while True:
            requests.put((connection, connection.recv_bytes()))


def relax_collector(full: int = 20) -> None:
    """Collect garbage less often, and not among loaded modules and models, which took a tenth of the time.

    `full` is after how many collections all objects are searched.
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


# One process that answers the requests of others, all that are waiting at once

MakeAnswers = Callable[[], Callable[[Sequence[Task]], Sequence[Result]]]
"""makes, in the process, the function that answers requests, several or one"""
_MOST_TOGETHER = 256
"""requests that are answered together; a process that asks waits for its answer, so there are no more than processes"""
_DIED = "the process that computes for all workers has died; it may need more memory than there is."


class OverdueError(Exception):
    """A process has not answered in time and was ended."""


class Service(Generic[Task, Result]):
    """A process that answers requests; it is started when it is needed, and again after it has died.

    What it loads, such as a network on a GPU, exists once, however many processes use it. It is a new interpreter and
    no fork, so that any process can start one: a worker too, and a script that is not written to be imported.
    """

    def __init__(self, make_answers: MakeAnswers[Task, Result], is_shared: bool = False) -> None:
        """Take what makes its function. If it is shared, other processes ask it by its address."""
        self._make_answers = pickle.dumps(make_answers)
        self._is_shared = is_shared
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        """how often the process was started"""
        self.address = ""

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def __call__(self, request: Task, seconds: float | None = None) -> Result:
        """Return the answer to a request or raise its error; raises ResumableError if the process dies over it.

        If it takes longer than so many seconds, the process is ended and OverdueError raised: work in it cannot be
        stopped in any other way.
        """
        with self._lock:
            # a process that was forked from the one that has started it needs another
            if not self.is_running or self._owner != os.getpid():
                self.start()
            try:
                outcome = _ask(self._connection, request, seconds)
            except (ResumableError, OverdueError):
                self.close()
                raise
        return cast(Result, outcome.unwrap())

    def start(self) -> None:
        """Start the process; raises why it cannot do its work."""
        with self._lock:
            self.close()
            folder = mkdtemp(prefix="rechain-") if self._is_shared else ""
            self.address = folder and str(Path(folder, "requests"))
            self._connection, theirs = Pipe()
            # Linux ends a process when the thread that has started it ends: only the first lives as long as this one.
            is_tied = not folder and threading.current_thread() is threading.main_thread()
            arguments = f"{theirs.fileno()}, is_tied={is_tied}"
            serve = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({arguments})"
            with _interrupts_blocked():
                self._process = subprocess.Popen(
                    [sys.executable, "-c", serve], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
                )
            theirs.close()
            self.starts += 1
            self._owner = os.getpid()
            self._end = finalize(self, _end_service, self._connection, self._process, folder)
            try:
                _ask(self._connection, (self._make_answers, self.address, bytes(current_process().authkey))).unwrap()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process = None
            self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end_service(connection: Connection, process: "subprocess.Popen[bytes]", folder: str) -> None:
    connection.close()
    process.kill()
    process.wait()
    if folder:
        rmtree(folder, ignore_errors=True)


def asking(address: str) -> Callable[[Any], Any]:
    """Return a function that asks a shared Service, which another process of the same program has started."""
    try:
        connection = Client(address, authkey=current_process().authkey)
    except (EOFError, OSError) as error:
        raise ResumableError(_DIED) from error
    return lambda request: _ask(connection, request).unwrap()


def _ask(connection: Connection, request: object, seconds: float | None = None) -> Outcome:
    try:
        connection.send(request)
        if not connection.poll(seconds):
            raise OverdueError
        return cast(Outcome, connection.recv())
    except (EOFError, OSError) as error:
        raise ResumableError(_DIED) from error


_PR_SET_PDEATHSIG = 1


def serve(descriptor: int, is_tied: bool = False) -> None:
    """Answer requests: the body of the process. If it is tied, Linux kills it with its parent, whatever it does."""
    if is_tied and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = Connection(descriptor)
    make_answers, address, authkey = parent.recv()
    current_process().authkey = authkey
    requests: Requests = SimpleQueue()

    def load() -> Answers:
        answers = _load_worker(make_answers)
        if address:
            listener = Listener(address, backlog=256, authkey=authkey)
            threading.Thread(target=accept, args=(listener,), daemon=True).start()
        return answers

    def accept(listener: Listener) -> None:
        while True:
            with suppress(OSError, EOFError, AuthenticationError):  # a process that died while it connected
                threading.Thread(target=_receive, args=(listener.accept(), requests), daemon=True).start()

    _answer_requests(parent, requests, load, _MOST_TOGETHER, folder=address and str(Path(address).parent))
