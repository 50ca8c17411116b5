"""Recovery for many requests at once: one thread, batches of the questions that wait, a limit on how long they may.

Each request gets its share: a batch has one question of each in turn, and a small request waits no longer for a large
one than for one of its own size.

Whoever would have to wait too long is told at once when to ask again, by how quick the model was with the last ones.
"""

import gc
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf
from threading import Condition, Thread
from time import monotonic
from typing import Literal, Protocol

from rechain.errors import RechainError, ResumableError
from rechain.formats.datasets import Entry
from rechain.recoverer import BATCH_SIZE, RecovererConfig
from rechain.schema import Passage, Question, Recovered
from rechain.scoring.results import Options
from rechain.system.processes import OverdueError, Service

MOST_WAITING = 256
"""questions that may wait, and that one request may have"""
MOST_SECONDS = 3.5
"""seconds for which a question may wait: with its batch it is answered, or refused, within five"""
_log = logging.getLogger("rechain.web")
_FIRST_PACE = 1e-5
"""seconds a unit of weight, until some were measured: 0.08 for a typical question"""
_TYPICAL_WEIGHT = 8_000
"""that of a question of HotpotQA: time is divided by no less, as what a tiny one takes is no measure of others"""
_ANSWER_WEIGHT, _LONGEST_ANSWER = 10, 10_000
"""what a character of an answer is, up to so many: each of its claims is sought and judged"""
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


State = Literal["ok", "starting", "failed", "unused"]
"""of a part of the server; a model is unused until something is first asked of it"""


class BusyError(Exception):
    """Too many questions wait for another one to be taken now."""

    status, code, reason = 429, "busy", "too many questions are waiting"

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"{self.reason}; ask again in {retry_after} s.")
        self.retry_after = retry_after


class StartingError(BusyError):
    """The model is still being loaded."""

    status, code, reason = 503, "starting", "the model is still being loaded"


class TooSlowError(RechainError):
    """Questions took so long that the process of the model was ended."""


@dataclass(eq=False)
class _Job:
    """Questions of one caller, and what was recovered of them so far."""

    entries: Sequence[Entry]
    options: Options
    asked_at: float = 0.0
    taken: int = 0
    """questions that were put into batches"""
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
        self._state: State = "unused"
        """of the recoverer until it is loaded"""
        self.outcomes: Counter[str | None] = Counter()
        """questions recovered so far, by the code of their error; None: with a chain"""

    @property
    def recoverer(self) -> Recovers:
        """The recoverer, loaded when it is first needed."""
        if self._recoverer is None:
            self._state = "starting"
            try:
                self._recoverer = self._make()
            except BaseException:
                self._state = "failed"
                raise
        return self._recoverer

    @property
    def state(self) -> State:
        """Whether it can recover questions now."""
        return self._state if self._recoverer is None else getattr(self._recoverer, "state", "ok")

    @property
    def waiting(self) -> int:
        """How many questions wait or are being recovered; those that were given up do not count."""
        with self._changed:
            return sum(job.left for job in self._unfinished if not job.future.cancelled())

    @property
    def _unfinished(self) -> list[_Job]:
        return [*(job for job in self._running if job not in self._jobs), *self._jobs]

    def _seconds_before(self, weight: float = inf) -> float:
        """Return how long others are likely to take before a job of some weight is done: of each as much as of it."""
        running = self._clock() - self._began if self._running else 0.0
        return max(self._pace * sum(min(job.weight, weight) for job in self._unfinished) - running, 0.0)

    def _busy(self, seconds: float) -> BusyError:
        return StartingError(_LOADING_S) if self.state == "starting" else BusyError(max(ceil(seconds), 1))

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
        weight = sum(map(_weight, entries))
        with self._changed:
            waiting = sum(min(job.left, len(entries)) for job in self._unfinished if not job.future.cancelled())
            seconds = self._seconds_before(weight)
            needed = seconds + self._pace * weight
            is_slow = waiting > 0 and needed > self.most_seconds
            if self._is_closed or is_slow or waiting + len(entries) > self._most_waiting:
                raise self._busy(min(needed - self.most_seconds, seconds))

    def refuse_late(self) -> None:
        """Refuse the questions that have waited too long and of which none is recovered yet, or just now."""
        with self._changed:
            latest = self._clock() - self.most_seconds
            for job in self._jobs:
                if not job.done and job not in self._running and job.asked_at < latest:
                    _fail(job, self._busy(self._seconds_before()))

    def close(self) -> None:
        """Stop when the current batch is done; questions that still wait are cancelled."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._is_closed:
            self._prepare()
            if batch := self._next_batch():
                try:
                    self._deliver(batch)
                finally:
                    self._running = ()
            elif not self._do_other_work():
                with self._changed:
                    self._changed.wait_for(lambda: self._jobs or self._is_closed, _LOOK_S)
        for job in self._jobs:
            job.future.cancel()

    def _prepare(self) -> None:
        """Load the recoverer, or its process again, before questions are taken: those that wait can be refused."""
        if isinstance(self._recoverer, ProcessRecoverer):
            self._recoverer.revive()
        elif self._jobs:
            try:
                _ = self.recoverer
            except Exception as error:
                with self._changed:
                    while self._jobs:
                        _fail(self._jobs.popleft(), error)

    def _next_batch(self) -> list[tuple[_Job, int]]:
        """Take questions up to the size and weight of a batch, one of each job in turn, so that many delay no few."""
        batch: list[tuple[_Job, int]] = []
        weight, most_weight = 0, min(_MOST_WEIGHT, _BATCH_SHARE * self.most_seconds / self._pace)
        with self._changed:
            self.refuse_late()
            while self._jobs and len(batch) < self._batch_size and weight < most_weight:
                job = self._jobs.popleft()
                if job.future.done():  # given up
                    continue
                more = _weight(job.entries[job.taken])
                if batch and more > most_weight:  # it comes next, alone, so that small ones do not wait for it
                    self._jobs.appendleft(job)
                    break
                weight += more
                batch.append((job, job.taken))
                job.taken += 1
                if job.taken < len(job.entries):
                    self._jobs.append(job)
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
            _log.exception("recovering questions in the background has failed; it is given up")
            is_more = False
        self._idle = self._idle if is_more else None
        return is_more


def _weight(entry: Entry) -> int:
    """Return about how much work a question is, in characters of passages; each is as much as 250 of its own."""
    if not isinstance(entry.content, Question):
        return 250
    answer = _ANSWER_WEIGHT * min(len(entry.content.answer), _LONGEST_ANSWER)
    return 250 + answer + sum(len(passage.text) + 250 for passage in entry.content.passages)


def _fail(job: _Job, error: Exception) -> None:
    job.done += [Recovered(chains=[])] * job.left
    if not job.future.done() and job.future.set_running_or_notify_cancel():
        job.future.set_exception(error)


_LOADING_S, _LOOK_S = 5, 5.0
"""seconds after which to ask again while a model is loaded, and between looks at whether its process is there"""
_LEAST_S, _SECONDS_A_UNIT = 5.0, 3 * _FIRST_PACE
"""seconds that a batch may take, and those for each unit of its weight: far more than it needs, also if others need the
processor, so that only what would block all others is ended"""
NICENESS = 4
"""lowers the priority of the process: if cores are few, it gets about two fifths of what a page gets. With 10, a tenth,
100 clients on a busy machine with two cores had 36 to 107 answers in 15 s instead of 777 to 875, and pages no sooner"""


_GARBAGE = 100_000, 20, 100
"""new objects, and rounds, after which the process looks for garbage"""


class ProcessRecoverer:
    """Recovers questions in another process, over which pages have priority; it is started again if it dies."""

    def __init__(self, config: RecovererConfig) -> None:
        """Start the process and load the model there; raises why that cannot be done."""
        self._config = config
        self._state: State = "starting"
        self.starts = 0
        """how often the process was started; this takes long and says nothing about the speed of the model"""
        self._start()

    def _start(self) -> None:
        self._config = self._config.with_newest_index()  # the one that was opened first may be gone
        self._service: Service[Batch, Sequence[Recovered]] = Service(partial(_answers, self._config))
        self.starts += 1
        self._service.start()
        self._state = "ok"

    @property
    def state(self) -> State:
        """Whether the process is ready; one that has died is started within seconds."""
        return "starting" if self._state == "ok" and not self._service.is_running else self._state

    def revive(self) -> bool:
        """Start the process again if it has died; return whether it is there."""
        if not self._service.is_running:
            self._state = self.state
            try:
                self._start()
            except Exception:
                if self._state != "failed":  # it is tried every few seconds
                    _log.exception("the process of the model has died and cannot be started again")
                self._state = "failed"
        return self._service.is_running

    def recover_together(self, batch: Batch) -> Sequence[Recovered]:
        """Recover the chains of questions that are scored together, each with its own options.

        Raises TooSlowError if that takes far longer than it should; the process is ended then.
        """
        seconds = _LEAST_S + _SECONDS_A_UNIT * sum(_weight(entry) for entry, _ in batch)
        for _ in range(2):
            if not self.revive():
                raise RuntimeError("the process of the model cannot be started")  # a fault of the server
            with suppress(ResumableError):  # it died, perhaps by itself
                try:
                    return self._service(batch, seconds)
                except OverdueError as error:
                    raise TooSlowError(f"this took longer than {seconds:.0f} s; send less text at once.") from error
        raise RuntimeError("the process of the model has died twice over the same questions")


_WARM_UP = Question(
    id="warm-up",
    question="Where was the maker of Zorilla born?",
    answer="Prague",
    passages=[
        Passage(id="1", title="Zorilla", text="Zorilla was made by Anton Quill."),
        Passage(id="2", title="Anton Quill", text="Anton Quill was born in Prague."),
    ],
)


def _answers(config: RecovererConfig) -> Callable[[Sequence[Batch]], list[Sequence[Recovered]]]:
    """Return the function that runs in the process."""
    os.nice(NICENESS)
    recoverer = config.load()
    if isinstance(config.model, str):  # whatever it loads late is loaded before it counts as started
        recoverer.recover_together([(Entry("", "warm-up", _WARM_UP), Options())])
    # Reading makes hundreds of thousands of small objects without cycles; to look for such took half of the time.
    gc.freeze()
    gc.set_threshold(*_GARBAGE)

    def answer(batches: Sequence[Batch]) -> list[Sequence[Recovered]]:
        recoverer.take_newest_index()
        return [recoverer.recover_together(batch) for batch in batches]

    return answer
