"""A recoverer in a process of its own: the model computes beside the pages, and gives way to them."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from weakref import finalize

from rechain.datasets import Entry
from rechain.errors import RechainError, ResumableError
from rechain.recovery import Options, Recoverer
from rechain.schema import Recovered
from rechain.system.service import Asker, Service

NICENESS = 10
"""how far the process stands back where cores are few: it then has about a tenth of what a page has"""

Batch = Sequence[tuple[Entry, Options]]


class ProcessRecoverer:
    """Recovers questions in another process, which is started anew if it dies."""

    def __init__(self, make: Callable[[], Recoverer], preload: Sequence[str] = ()) -> None:
        """Start the process and load the model there; raises why that cannot be done."""
        self._make = make
        self._preload = preload
        self.starts = 0
        """how often the process was started, which takes long: who measures how quick it is leaves that out"""
        self._start()

    def recover_together(self, batch: Batch) -> Sequence[Recovered]:
        """Recover the chains of questions that are scored together, each with its own options."""
        with suppress(ResumableError):
            return self._ask(batch)
        try:
            self._start()
        except RechainError as error:  # of the server, not of who asks
            raise RuntimeError("the process of the model has died and cannot be started anew") from error
        try:
            return self._ask(batch)
        except ResumableError as error:
            raise RuntimeError("the process of the model has died twice over the same questions") from error

    def _start(self) -> None:
        self.starts += 1
        service: Service[Batch, Sequence[Recovered]] = Service(partial(_answers, self._make), preload=self._preload)
        self._ask: Asker[Batch, Sequence[Recovered]] = Asker(service.__enter__().address)
        finalize(self._ask, service.__exit__)  # with the last use of it, or when Python ends


def _answers(make: Callable[[], Recoverer]) -> Callable[[Sequence[Batch]], list[Sequence[Recovered]]]:
    """Return what answers in the process."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    recoverer = make()
    return lambda batches: [recoverer.recover_together(batch) for batch in batches]
