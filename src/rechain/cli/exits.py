"""How a command ends: exit codes, SIGTERM, and a closed pipe."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import NoReturn


class ExitCode(IntEnum):
    """Exit codes other than 0, and 1 for a bug; above 128 as in shells, for signals."""

    MISTAKE = 2
    TOO_MANY_ERRORS = 3
    INTERRUPTED = 130
    READER_GONE = 141
    TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; it is handled like Ctrl+C."""

    def __str__(self) -> str:
        return "stopped by SIGTERM"


@contextmanager
def raising_terminated() -> Iterator[None]:
    """Raise Terminated on SIGTERM, so that workers end and the user reads how to resume."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_terminated(number: int, frame: object) -> NoReturn:
    raise Terminated


def code_of(ended: SystemExit) -> int:
    """Return the exit code: typer and rich use one code for all signals, and 1 for a closed pipe."""
    causes = list(_causes(ended))
    if ended.code == ExitCode.INTERRUPTED and any(isinstance(cause, Terminated) for cause in causes):
        return ExitCode.TERMINATED
    if ended.code == 1 and any(isinstance(cause, BrokenPipeError) for cause in causes):
        return ExitCode.READER_GONE
    return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those during whose handling it was raised."""
    cause: BaseException | None = error
    while cause:
        yield cause
        cause = cause.__cause__ or cause.__context__


def too_many_errors(failed: int, questions: int, most: float | None) -> str:
    """Return a sentence if more questions failed than `most`, a share, allows; without it, if all of them failed."""
    if most is None:
        return "Every question failed." if questions and failed == questions else ""
    if failed <= most * questions:
        return ""
    return f"{100 * failed / questions:.1f} % of the questions failed, but only {100 * most:g} % may."


def flush(code: int) -> int:
    """Flush standard output and return the exit code, which is another if its reader is gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = ExitCode.READER_GONE
    if code == ExitCode.READER_GONE:  # or Python would print an error when it exits
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
