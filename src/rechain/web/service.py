"""Recovery for many requests at once: one thread, batches of the questions that wait, a limit on how many may wait."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import ceil
from threading import Condition, Thread
from time import monotonic

from rechain.datasets import Entry
from rechain.errors import RechainError
from rechain.recovery import BATCH_SIZE, Options, Recoverer
from rechain.schema import Question, Recovered

MOST_WAITING = 256
"""questions that may wait: about 15 seconds of work of the default model on two cores (docs/measured/web.md)"""
_log = logging.getLogger("rechain.web")
_FIRST_GUESS = 0.1
"""seconds a question, until some were measured"""
_MOST_WEIGHT = 500_000
"""work in one batch, about two seconds: what was given up meanwhile keeps others waiting no longer than that"""
_MEMORY = 0.8
"""weight of the past in the running mean of seconds a question: about the last five batches count"""


RecoverTogether = Callable[[Sequence[tuple[Entry, Options]]], Sequence[Recovered]]


class BusyError(Exception):
    """Too many questions wait for another one to be taken now."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many questions wait to be recovered; ask again in {retry_after} s.")
        self.retry_after = retry_after


@dataclass
class _Job:
    """Questions of one caller, and what was recovered of them so far."""

    entries: Sequence[Entry]
    options: Options
    done: list[Recovered] = field(default_factory=list)
    future: Future[list[Recovered]] = field(default_factory=Future)

    @property
    def left(self) -> int:
        return len(self.entries) - len(self.done)


class RecoveryService:
    """Recovers questions in batches, in the order of the requests, and does other work when there are none."""

    def __init__(
        self,
        make: Callable[[], Recoverer],
        *,
        idle: Callable[[RecoverTogether], bool] | None = None,
        most_waiting: int = MOST_WAITING,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Take a function that loads the recoverer when needed, and one that does a bit of other work, until False."""
        self._make = make
        self._recoverer: Recoverer | None = None
        self._idle = idle
        self._most_waiting = most_waiting
        self._batch_size = batch_size
        self._jobs: deque[_Job] = deque()
        self._running = 0
        self._seconds_each = _FIRST_GUESS
        self._changed = Condition()
        self._thread: Thread | None = None
        self._is_closed = False
        self.outcomes: Counter[str | None] = Counter()
        """questions recovered so far, by the code of their error; None: with a chain"""

    @property
    def recoverer(self) -> Recoverer:
        """The recoverer, loaded when it is first needed."""
        if self._recoverer is None:
            self._recoverer = self._make()
        return self._recoverer

    @property
    def waiting(self) -> int:
        """How many questions wait or are being recovered; those that were given up do not count."""
        with self._changed:
            return self._running + sum(job.left for job in self._jobs if not job.future.cancelled())

    def recover_together(self, requests: Sequence[tuple[Entry, Options]]) -> Sequence[Recovered]:
        """Recover some questions now, in the calling thread, and count them."""
        recovered = self.recoverer.recover_together(requests)
        self.outcomes.update(one.error.code if one.error else None for one in recovered)
        return recovered

    def start(self) -> None:
        """Start the thread; `ask` does so by itself."""
        with self._changed:
            if self._thread is None and not self._is_closed:
                self._thread = Thread(target=self._work, name="recovery", daemon=True)
                self._thread.start()

    def ask(self, entries: Sequence[Entry], options: Options) -> Future[list[Recovered]]:
        """Return a future of the chains of some questions; raises BusyError where too many wait."""
        job = _Job(entries, options)
        if not entries:
            job.future.set_result([])
            return job.future
        with self._changed:
            self.check_room(len(entries))
            self._jobs.append(job)
            self._changed.notify()
        self.start()
        return job.future

    def check_room(self, questions: int) -> None:
        """Raise BusyError where so many questions cannot be taken now, and RechainError where they never can."""
        if questions > self._most_waiting:
            raise RechainError(
                f"{questions} questions are more than the {self._most_waiting} that one may ask at once."
            )
        with self._changed:
            if self._is_closed or self.waiting + questions > self._most_waiting:
                raise BusyError(max(ceil(self.waiting * self._seconds_each), 1))

    def close(self) -> None:
        """Stop when the current batch is done; questions that still wait are cancelled."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._is_closed:
            batch = self._next_batch()
            if batch:
                self._recover(batch)
            elif not self._do_other_work():
                self._wait()
        for job in self._jobs:
            job.future.cancel()

    def _wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._is_closed)

    def _next_batch(self) -> list[tuple[_Job, int]]:
        """Take the questions that wait longest, up to the size and weight of a batch; cancelled jobs are dropped."""
        batch: list[tuple[_Job, int]] = []
        weight = 0
        with self._changed:
            self._running = 0
            while self._jobs and len(batch) < self._batch_size and weight < _MOST_WEIGHT:
                job = self._jobs[0]
                for number in range(len(job.done), 0 if job.future.cancelled() else len(job.entries)):
                    if len(batch) == self._batch_size or weight >= _MOST_WEIGHT:
                        break
                    batch.append((job, number))
                    weight += _weight(job.entries[number])
                else:
                    self._jobs.popleft()
                    self._running += 0 if job.future.cancelled() else job.left
        return batch

    def _recover(self, batch: Sequence[tuple[_Job, int]]) -> None:
        began = monotonic()
        try:
            self._deliver(batch, [(job.entries[number], job.options) for job, number in batch])
        finally:
            self._running = 0
        each = (monotonic() - began) / len(batch)
        self._seconds_each = _MEMORY * self._seconds_each + (1 - _MEMORY) * each

    def _deliver(self, batch: Sequence[tuple[_Job, int]], requests: Sequence[tuple[Entry, Options]]) -> None:
        """Recover a batch; where that fails, each question alone, so that an error reaches its own caller only."""
        try:
            recovered = self.recover_together(requests)
        except Exception as error:
            if len(batch) == 1:
                _fail(batch[0][0], error)
                return
            for one, request in zip(batch, requests, strict=True):
                if not one[0].future.done():
                    self._deliver([one], [request])
            return
        for (job, _), one_recovered in zip(batch, recovered, strict=True):
            job.done.append(one_recovered)
            if job.left == 0 and job.future.set_running_or_notify_cancel():
                job.future.set_result(job.done)

    def _do_other_work(self) -> bool:
        """Do a bit of the other work; return whether there may be more."""
        if self._idle is None:
            return False
        try:
            is_more = self._idle(self.recover_together)
        except Exception:
            _log.exception("what is done when nobody asks has failed and is given up")
            is_more = False
        self._idle = self._idle if is_more else None
        return is_more


def _weight(entry: Entry) -> int:
    """Return about how much work a question is, in characters: a passage is as much as 250 of its characters."""
    passages = entry.content.passages if isinstance(entry.content, Question) else ()
    return sum(len(passage.text) + 250 for passage in passages)


def _fail(job: _Job, error: Exception) -> None:
    job.done += [Recovered(chains=[])] * job.left
    if not job.future.done() and job.future.set_running_or_notify_cancel():
        job.future.set_exception(error)
