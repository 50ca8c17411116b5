"""Progress on standard error, where that is a terminal."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from rechain.system.terminal import printable

if TYPE_CHECKING:
    from rechain.bulk.work import Tally, WorkResult
    from rechain.datasets import Entry


is_logged: ContextVar[bool] = ContextVar("is_logged", default=False)
"""whether a log was asked for, beside which there are no bars"""


def shows_bars() -> bool:
    """Return whether bars are shown: on a terminal, unless a log was asked for."""
    return sys.stderr.isatty() and not is_logged.get()


def with_progress(entries: "Iterable[Entry]", activity: str) -> "Iterator[Entry]":
    """Go through a file's entries under a bar: share of the file, questions, questions a second, time left."""
    with bar(activity) as show:
        for number, entry in enumerate(entries, start=1):
            yield entry
            show(entry.share, number, "")


def with_tally(results: "Iterable[WorkResult]", tally: "Tally") -> "Iterator[WorkResult]":
    """Go through the results of recovery under a bar that also shows how many questions have a chain, how confident.

    Whoever goes through them adds each to the tally before the next.
    """
    with bar("Recovering") as show:
        for result in results:
            yield result
            confidence = tally.mean_confidence
            more = f", {100 * tally.with_chain / max(tally.questions, 1):.1f} % with a chain"
            more += "" if confidence is None else f", mean confidence {confidence:.2f}"
            show(result.share, tally.questions, more)


@contextmanager
def bar(activity: str, unit: str = "questions") -> Iterator[Callable[[float | None, int, str], None]]:
    """Show a bar and yield a function that sets it: the share of the input, the number of units, further text."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    counter = TextColumn(f"{{task.fields[done]}} {unit}, {{task.fields[rate]:.0f}}/s{{task.fields[more]}}")
    columns = [TextColumn("{task.description}"), BarColumn(10), TaskProgressColumn(), counter, TimeRemainingColumn()]
    # On a terminal rich prints lines above the bar; elsewhere it would move them from standard output to the bar's.
    redirect = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirect) as progress:
        task = progress.add_task(activity, total=None, done=0, rate=0.0, more="")

        def show(share: float | None, done: int, more: str) -> None:
            rate = done / max(progress.tasks[task].elapsed or 0.0, 0.001)
            total = None if share is None else 1.0
            progress.update(task, total=total, completed=share or 0.0, done=done, rate=rate, more=more)

        yield show


@contextmanager
def working(activity: str) -> Iterator[None]:
    """Show that something goes on whose length is not known, where bars are shown."""
    if not shows_bars():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(activity))):
        yield
