"""Recovery for many requests at once: one thread, batches of the questions that wait, a limit on how long they may.

Whoever would have to wait too long is told at once when to ask again, by how quick the model was with the last ones.
"""

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

from rechain.errors import RechainError, ResumableError
from rechain.formats.datasets import Entry
from rechain.recoverer import BATCH_SIZE, RecovererConfig
from rechain.schema import Question, Recovered
from rechain.scoring.results import Options
from rechain.system.processes import Service

MOST_WAITING = 256
"""questions that may wait, and that one request may have"""
MOST_SECONDS = 3.5
"""seconds for which a question may wait: with its batch it is answered, or refused, within five"""
_log = logging.getLogger("rechain.web")
_FIRST_PACE = 1e-5
"""seconds a unit of weight, until some were measured: 0.08 for a typical question"""
_TYPICAL_WEIGHT = 8_000
"""that of a question of HotpotQA: time is divided by no less, as what a tiny one takes is no measure of others"""
_MOST_WEIGHT = 250_000
"""work in one batch, about a second: what was given up meanwhile keeps others waiting no longer than that"""
_BATCH_SHARE = 0.04
"""share of the time for which questions may wait that one batch may take by the pace of the last ones: once others need
the processor it may take twenty times as long"""
_MEMORY = 0.8
"""weight of the past in the running mean of the pace where it becomes quicker: about the last five batches count"""


Batch = Sequence[tuple[Entry, Options]]
RecoverTogether = Callable[[Batch], Sequence[Recovered]]


class Recovers(Protocol):
    """What recovers questions together, here or in another process."""

    def recover_together(self, batch: Batch, /) -> Sequence[Recovered]: ...


class BusyError(Exception):
    """Too many questions wait for another one to be taken now."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many questions wait to be recovered; ask again in {retry_after} s.")
        self.retry_after = retry_after


@dataclass(eq=False)
class _Job:
    """Questions of one caller, and what was recovered of them so far."""

    entries: Sequence[Entry]
    options: Options
    asked_at: float = 0.0
    done: list[Recovered] = field(default_factory=list)
    future: Future[list[Recovered]] = field(default_factory=Future)

    @property
    def left(self) -> int:
        return len(self.entries) - len(self.done)

    @property
    def weight(self) -> int:
        """The work that is left, none if it was given up."""
        return 0 if self.future.cancelled() else sum(map(_weight, self.entries[len(self.done) :]))


class RecoveryService:
    """Recovers questions in batches, in the order of the requests, and does other work when there are none."""

    def __init__(
        self,
        make: Callable[[], Recovers],
        *,
        idle: Callable[[RecoverTogether], bool] | None = None,
        most_waiting: int = MOST_WAITING,
        most_seconds: float = MOST_SECONDS,
        batch_size: int = BATCH_SIZE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take a function that loads the recoverer when needed, and one that does a bit of other work, until False."""
        self._make, self._idle, self._clock = make, idle, clock
        self._recoverer: Recovers | None = None
        self._most_waiting, self.most_seconds, self._batch_size = most_waiting, most_seconds, batch_size
        self._jobs: deque[_Job] = deque()
        self._running: Sequence[_Job] = ()
        """the jobs with questions in the current batch; one that is not ended by it waits with the others too"""
        self._began = clock()
        """when the current batch was begun"""
        self._pace = _FIRST_PACE
        self._changed = Condition()
        self._thread: Thread | None = None
        self._is_closed = False
        self.outcomes: Counter[str | None] = Counter()
        """questions recovered so far, by the code of their error; None: with a chain"""

    @property
    def recoverer(self) -> Recovers:
        """The recoverer, loaded when it is first needed."""
        if self._recoverer is None:
            self._recoverer = self._make()
        return self._recoverer

    @property
    def waiting(self) -> int:
        """How many questions wait or are being recovered; those that were given up do not count."""
        with self._changed:
            return sum(job.left for job in self._unfinished if not job.future.cancelled())

    @property
    def _unfinished(self) -> list[_Job]:
        return [*(job for job in self._running if job not in self._jobs), *self._jobs]

    @property
    def _seconds_waiting(self) -> float:
        """How long it is likely to take until all that waits is done."""
        running = self._clock() - self._began if self._running else 0.0
        return max(self._pace * sum(job.weight for job in self._unfinished) - running, 0.0)

    def recover_together(self, requests: Batch) -> Sequence[Recovered]:
        """Recover some questions now, in the calling thread, count them, and note how long that took."""
        recoverer = self.recoverer
        began, starts = self._clock(), getattr(recoverer, "starts", 0)  # of its process, if it has one
        recovered = recoverer.recover_together(requests)
        if requests and getattr(recoverer, "starts", 0) == starts:  # to load a model again is no measure of its pace
            weight = sum(_weight(entry) for entry, _ in requests)
            pace = (self._clock() - began) / max(weight, _TYPICAL_WEIGHT)
            # a slower one counts at once: who waits now would else be promised too much
            self._pace = max(pace, _MEMORY * self._pace + (1 - _MEMORY) * pace)
        self.outcomes.update(one.error.code if one.error else None for one in recovered)
        return recovered

    def start(self) -> None:
        """Start the thread; `ask` does so by itself."""
        with self._changed:
            if self._thread is None and not self._is_closed:
                self._thread = Thread(target=self._work, name="recovery", daemon=True)
                self._thread.start()

    def ask(self, entries: Sequence[Entry], options: Options) -> Future[list[Recovered]]:
        """Return a future of the chains of some questions; raises BusyError where they would wait too long.

        So does the future where it took longer than was expected, once `refuse_late` is called.
        """
        job = _Job(entries, options, self._clock())
        if not entries:
            job.future.set_result([])
            return job.future
        with self._changed:
            self.check_room(entries)
            self._jobs.append(job)
            self._changed.notify()
        self.start()
        return job.future

    def check_room(self, entries: Sequence[Entry]) -> None:
        """Raise BusyError where some questions cannot be taken now, and RechainError where they never can.

        Where nothing waits any number is taken that one may ask at once, as it would never be quicker.
        """
        if len(entries) > self._most_waiting:
            raise RechainError(
                f"{len(entries)} questions are more than the {self._most_waiting} that one may ask at once."
            )
        with self._changed:
            waiting, seconds = self.waiting, self._seconds_waiting
            needed = seconds + self._pace * sum(map(_weight, entries))
            is_slow = waiting > 0 and needed > self.most_seconds
            if self._is_closed or is_slow or waiting + len(entries) > self._most_waiting:
                raise BusyError(max(ceil(min(needed - self.most_seconds, seconds)), 1))

    def refuse_late(self) -> None:
        """Refuse the questions that have waited too long and of which none is recovered yet, or just now."""
        with self._changed:
            latest = self._clock() - self.most_seconds
            for job in self._jobs:
                if not job.done and job not in self._running and job.asked_at < latest:
                    _fail(job, BusyError(max(ceil(self._seconds_waiting), 1)))

    def close(self) -> None:
        """Stop when the current batch is done; questions that still wait are cancelled."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._is_closed:
            if batch := self._next_batch():
                try:
                    self._deliver(batch)
                finally:
                    self._running = ()
            elif not self._do_other_work():
                with self._changed:
                    self._changed.wait_for(lambda: self._jobs or self._is_closed)
        for job in self._jobs:
            job.future.cancel()

    def _next_batch(self) -> list[tuple[_Job, int]]:
        """Take the questions that wait longest, up to the size and weight of a batch; cancelled jobs are dropped."""
        batch: list[tuple[_Job, int]] = []
        weight, most_weight = 0, min(_MOST_WEIGHT, _BATCH_SHARE * self.most_seconds / self._pace)
        with self._changed:
            self.refuse_late()
            while self._jobs and len(batch) < self._batch_size and weight < most_weight:
                job = self._jobs[0]
                for number in range(len(job.done), 0 if job.future.done() else len(job.entries)):
                    if len(batch) == self._batch_size or weight >= most_weight:
                        break
                    batch.append((job, number))
                    weight += _weight(job.entries[number])
                else:
                    self._jobs.popleft()
            self._running, self._began = list({id(job): job for job, _ in batch}.values()), self._clock()
        return batch

    def _deliver(self, batch: Sequence[tuple[_Job, int]]) -> None:
        """Recover a batch; if that fails, each question alone, so that an error reaches its own caller only."""
        try:
            recovered = self.recover_together([(job.entries[number], job.options) for job, number in batch])
        except Exception as error:
            if len(batch) == 1:
                _fail(batch[0][0], error)
                return
            for one in batch:
                if not one[0].future.done():
                    self._deliver([one])
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
    return 250 + sum(len(passage.text) + 250 for passage in passages)


def _fail(job: _Job, error: Exception) -> None:
    job.done += [Recovered(chains=[])] * job.left
    if not job.future.done() and job.future.set_running_or_notify_cancel():
        job.future.set_exception(error)


NICENESS = 10
"""lowers the priority of the process: if cores are few, it gets about a tenth of what a page gets"""


class ProcessRecoverer:
    """Recovers questions in another process, over which pages have priority; it is started again if it dies."""

    def __init__(self, config: RecovererConfig) -> None:
        """Start the process and load the model there; raises why that cannot be done."""
        self._service: Service[Batch, Sequence[Recovered]] = Service(partial(_answers, config))
        self._service.start()

    @property
    def starts(self) -> int:
        """How often the process was started; this takes long and says nothing about the speed of the model."""
        return self._service.starts

    def recover_together(self, batch: Batch) -> Sequence[Recovered]:
        """Recover the chains of questions that are scored together, each with its own options."""
        with suppress(ResumableError):
            return self._service(batch)
        try:
            self._service.start()
        except RechainError as error:  # a fault of the server, not of the request
            raise RuntimeError("the process of the model has died and cannot be started again") from error
        try:
            return self._service(batch)
        except ResumableError as error:
            raise RuntimeError("the process of the model has died twice over the same questions") from error


def _answers(config: RecovererConfig) -> Callable[[Sequence[Batch]], list[Sequence[Recovered]]]:
    """Return the function that runs in the process."""
    os.nice(NICENESS)
    recoverer = config.load()
    return lambda batches: [recoverer.recover_together(batch) for batch in batches]
