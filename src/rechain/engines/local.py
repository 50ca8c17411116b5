"""Worker processes of this machine: tasks in, results out in the order of the tasks, few of them at a time.

A process that dies is replaced and its task done again. No process outlives the one that started it.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from rechain.batches import HeldBack
from rechain.datasets.reading import Chunk
from rechain.engines.work import Done, Work, Worker
from rechain.errors import RechainError

Task = TypeVar("Task")
Result = TypeVar("Result")
MakeWorker = Callable[[], Callable[[Task], Result]]
"""Makes, in the process that is to work, what does a task."""

_MOST_DEATHS = 3
"""when so many processes have died and not one task was done meanwhile, it is given up"""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def recover_chunks(work: Work, chunks: Iterable[Chunk], size: int, workers: int | None = None) -> Iterator[Done]:
    """Recover the chains of chunks, of so many records if they are full, in worker processes: by default one a core.

    With 0 workers, or where there is but one chunk, this process does it.
    """
    source = HeldBack(chunks)
    remaining = iter(source)
    begun = list(islice(remaining, 1))
    is_short = all(len(chunk.records) < size for chunk in begun)
    begun += islice(remaining, 1) if is_short else ()  # a chunk that is not full may be the only one
    tasks = chain(begun, remaining)
    if workers == 0 or (is_short and len(begun) < 2):
        yield from map(Worker(work), tasks)
    else:
        yield from in_order(partial(Worker, work), tasks, workers or usable_cores(), lambda chunk: chunk.where)
    source.check()


def in_order(
    make_worker: MakeWorker[Task, Result],
    tasks: Iterable[Task],
    workers: int,
    describe: Callable[[Task], str] = str,
) -> Iterator[Result]:
    """Have worker processes do tasks, and yield the results in the order of the tasks.

    No more tasks are taken ahead than keep the processes busy. If the next task cannot be had, the results of those
    before it come first and the error then.
    """
    source = HeldBack(tasks)
    pool = _Pool(make_worker, workers, describe)
    try:
        for task in source:
            pool.submit(task)
            while pool.is_full or pool.has_result:
                yield pool.result()
        while not pool.is_idle:
            yield pool.result()
        source.check()
    finally:
        pool.close()


class _Pool(Generic[Task, Result]):
    """Processes, and the tasks that they have not yet done."""

    def __init__(self, make_worker: MakeWorker[Task, Result], workers: int, describe: Callable[[Task], str]) -> None:
        self._make_worker = make_worker
        self._workers = workers
        self._describe = describe
        self._waiting: deque[tuple[Task, Future[Result]]] = deque()
        self._deaths = 0
        self._context = _context()
        self._ended, self._alive = self._context.Pipe(duplex=False)
        self._executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        threads = max(1, usable_cores() // self._workers)
        arguments = (pickle.dumps(self._make_worker), self._ended, threads)
        return ProcessPoolExecutor(self._workers, self._context, _begin, arguments)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= 2 * self._workers

    @property
    def has_result(self) -> bool:
        return bool(self._waiting) and self._waiting[0][1].done()

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def submit(self, task: Task) -> None:
        """Have a task done."""
        try:
            self._waiting.append((task, self._executor.submit(_do, task)))
        except BrokenProcessPool:
            self._restart([*(task for task, _ in self._waiting), task])

    def result(self) -> Result:
        """Return the result of the task that was submitted first."""
        while True:
            try:
                result = self._waiting[0][1].result()
            except BrokenProcessPool:
                self._restart([task for task, _ in self._waiting])
            else:
                self._waiting.popleft()
                self._deaths = 0
                return result

    def _restart(self, tasks: list[Task]) -> None:
        """Do again in new processes what was to be done in those that have died."""
        self._deaths += 1
        if self._deaths == _MOST_DEATHS:
            raise RechainError(
                f"worker processes died {_MOST_DEATHS} times at {self._describe(tasks[0])}, or shortly after it, "
                "perhaps for lack of memory; try fewer with --workers."
            )
        self._executor.shutdown(wait=False)
        self._executor = self._start()
        self._waiting = deque((task, self._executor.submit(_do, task)) for task in tasks)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        if not self.is_idle:
            self._alive.close()
        self._executor.shutdown(cancel_futures=True)
        self._alive.close()
        self._ended.close()


def _context() -> Any:
    """Return a way to start processes that is safe beside threads."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rechain.engines.work"])
    return context


_worker: Callable[[Any], Any] | bytes
"""what does tasks in this process or, before the first of them, what makes it"""


def _begin(make_worker: bytes, ended: Connection, threads: int) -> None:
    """Set up a worker process. An interrupt is the starting process's affair, which then ends this one."""
    global _worker
    _worker = make_worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_end_with, args=(ended,), daemon=True).start()


def _end_with(ended: Connection) -> None:
    """End this process when the pipe's other end is closed, be it that the process that had it was killed."""
    try:
        ended.recv()
    except (EOFError, OSError):
        os._exit(1)


def _do(task: Any) -> Any:
    """Do a task; the worker is made with the first, so that what is wrong with it is told like any other error."""
    global _worker
    worker = pickle.loads(_worker)() if isinstance(_worker, bytes) else _worker
    _worker = worker
    return worker(task)
