"""A recoverer in a separate process: pages do not wait while the model computes, and have priority over it."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from rechain.errors import RechainError, ResumableError
from rechain.formats.datasets import Entry
from rechain.recoverer import RecovererConfig
from rechain.schema import Recovered
from rechain.scoring.results import Options
from rechain.system.service import Service

NICENESS = 10
"""lowers the priority of the process: if cores are few, it gets about a tenth of what a page gets"""

Batch = Sequence[tuple[Entry, Options]]


class ProcessRecoverer:
    """Recovers questions in another process, which is started again if it dies."""

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
