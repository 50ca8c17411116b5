"""Progress on standard error, quiet where that is no terminal."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rechain.datasets import Entry


def with_progress(entries: "Iterable[Entry]", what: str) -> "Iterator[Entry]":
    """Go through a file's entries under a bar: share of the file, questions, questions a second, time left."""
    if not sys.stderr.isatty():
        yield from entries
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    counter = TextColumn("{task.fields[questions]} questions, {task.fields[rate]:.0f}/s")
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), counter, TimeRemainingColumn())
    redirect = sys.stdout.isatty()  # else what is printed meanwhile would go to standard error
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirect) as progress:
        task = progress.add_task(what, total=None, questions=0, rate=0.0)
        for number, entry in enumerate(entries, start=1):
            yield entry
            rate = number / max(progress.tasks[task].elapsed or 0.0, 0.001)
            total = None if entry.share is None else 1.0
            progress.update(task, total=total, completed=entry.share or 0.0, questions=number, rate=rate)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something is being done whose length is not known."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
