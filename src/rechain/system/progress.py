"""A progress bar for callers of the Python API."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def counted(items: Iterable[T], what: str, total: int | None) -> Iterator[T]:
    """Yield items under a bar on standard error: the count, the total, and how many a second."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("questions, {task.fields[rate]:.1f}/s")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    redirect = sys.stdout.isatty()  # else rich would move what is printed meanwhile to standard error
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=redirect) as progress:
        task = progress.add_task(what, total=total, rate=0.0)
        for number, item in enumerate(items, start=1):
            elapsed = max(progress.tasks[task].elapsed or 0.0, 0.001)
            progress.update(task, completed=number, rate=number / elapsed)
            yield item
