"""Progress on standard error, quiet where that is no terminal."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rechain.bulk.work import Tally, WorkResult
    from rechain.datasets import Entry


def with_progress(entries: "Iterable[Entry]", what: str) -> "Iterator[Entry]":
    """Go through a file's entries under a bar: share of the file, questions, questions a second, time left."""
    with _bar(what) as show:
        for number, entry in enumerate(entries, start=1):
            yield entry
            show(entry.share, number, None)


def with_tally(results: "Iterable[WorkResult]", what: str, tally: "Tally") -> "Iterator[WorkResult]":
    """Yield results under a bar that shows their tally; after its turn each is added, and raised what stopped it."""
    with _bar(what) as show:
        for result in results:
            yield result
            tally.add(result.tally)
            show(result.share, tally.questions, tally)
            if result.stopped_by:
                raise result.stopped_by


def _outcome(tally: "Tally") -> str:
    share = f"{100 * tally.with_chain / max(tally.questions, 1):.1f} % with a chain"
    confidence = tally.mean_confidence
    return f", {share}" + ("" if confidence is None else f", mean confidence {confidence:.2f}")


@contextmanager
def _bar(what: str) -> "Iterator[Callable[[float | None, int, Tally | None], None]]":
    """Show a bar and yield what sets it: the share of the file, the number of questions, and their tally."""
    if not sys.stderr.isatty():
        yield lambda share, questions, tally: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    counter = TextColumn("{task.fields[questions]} questions, {task.fields[rate]:.0f}/s{task.fields[more]}")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),
        TaskProgressColumn(),
        counter,
        TimeRemainingColumn(),
    )
    redirect = sys.stdout.isatty()  # else what is printed meanwhile would go to standard error
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirect) as progress:
        task = progress.add_task(what, total=None, questions=0, rate=0.0, more="")

        def show(share: float | None, questions: int, tally: "Tally | None") -> None:
            rate = questions / max(progress.tasks[task].elapsed or 0.0, 0.001)
            total, more = None if share is None else 1.0, _outcome(tally) if tally else ""
            progress.update(task, total=total, completed=share or 0.0, questions=questions, rate=rate, more=more)

        yield show


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is being done whose length is not known."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
