"""What a run shows on standard error: notes, and a bar on a terminal or a log with a line every 30 seconds.

Control characters in data are shown on a terminal, never executed by it.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from rechain.errors import RechainError

T = TypeVar("T")
Show = Callable[[float | None, int, str], None]
"""sets a bar: the share of the input that is done, the number of units, further text"""

# Often enough to see that a run is alive, seldom enough to read the log of a night.
_EVERY_SECONDS = 30.0
_VARIABLE = "RECHAIN_LOG_SECONDS"
_UNITS = {"mb": " MB", "s": " s"}
_is_logged: ContextVar[bool] = ContextVar("is_logged", default=False)
"""whether a log was requested, which replaces all bars"""
_LONGEST = 2000
"""characters of a line for people; a name that it quotes may be a whole text"""

# Control characters, which move the cursor, set a title or begin such a sequence (C0, DELETE, C1), and their pictures,
# if Unicode has any; characters that turn the direction of text around, so that it reads as something else
# (CVE-2021-42574); invisible separators of lines; halves of surrogate pairs, by which Python names files that are not
# UTF-8 and which cannot be printed.
_UNSAFE = {**{code: 0x2400 + code for code in range(0x20)}, 0x7F: 0x2421}
for _codes in (range(0x80, 0xA0), range(0x2028, 0x202F), range(0x2066, 0x206A), range(0xD800, 0xE000)):
    _UNSAFE |= dict.fromkeys(_codes, 0xFFFD)
_UNSAFE_IN_TEXT = {code: picture for code, picture in _UNSAFE.items() if chr(code) not in "\n\t"}
_ESCAPES = {code: f"\\u{code:04x}" for code in _UNSAFE_IN_TEXT}


def printable(text: object, *, keep_lines: bool = False) -> str:
    """Return a text of the same length in which every control character is replaced by a picture.

    So are line ends and tabs, unless `keep_lines`: a name must not look like another line of output.
    """
    return str(text).translate(_UNSAFE_IN_TEXT if keep_lines else _UNSAFE)


def note(text: object) -> None:
    """Print a line for people on standard error; a very long line is shortened in the middle."""
    line, half = printable(text), _LONGEST // 2
    write_line(line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}")


def write_line(line: str) -> None:
    """Write a line to standard error at once, so that no other process or thread can write into it."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def print_records(lines: str) -> None:
    """Print lines of JSON: exactly, but on a terminal with control characters as JSON escapes."""
    if sys.stdout.isatty():
        lines = lines.translate(_ESCAPES)
    sys.stdout.write(lines)


class LogFormat(StrEnum):
    """What is logged."""

    text = "text"
    json = "json"
    none = "none"


class RunLog(AbstractContextManager["RunLog"]):
    """Logs the progress of a run. The work sets the attributes; a thread reads them now and then.

    Unless a format is chosen, a terminal has a bar instead, and elsewhere a run that ends within 30 seconds has only
    its last line: scripts that call the command often want no others.
    """

    questions: int | None = None
    share: float | None = None
    """the share of the input that is done, if it is known"""
    doing: str | None = None
    """what is being done, such as an epoch of training"""

    def __init__(
        self,
        format: LogFormat | None,
        command: str,
        facts: Mapping[str, object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the format, the command, and the facts of the first line; those that are None are left out."""
        self.shows_bar = format is None and sys.stderr.isatty()
        self.format = format or (LogFormat.none if self.shows_bar else LogFormat.text)
        self.is_text = self.format == LogFormat.text or self.shows_bar
        """whether people read what is printed, in a log or above a bar"""
        self.errors: Counter[str] = Counter()
        self._is_chosen = format is not None
        self._command, self._facts = command, facts
        self._clock, self._start, self._every = clock, clock(), _every_seconds()
        self._first: tuple[float, float] | None = None
        """when the share of the input was first known, and that share: a resumed run does not begin at 0"""
        self._has_begun = False
        self._ended = threading.Event()
        self._writing = threading.Lock()

    def __enter__(self) -> "RunLog":
        self._token = _is_logged.set(self._is_chosen)
        if self.format != LogFormat.none:
            if self._is_chosen:
                self._begin()
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        _is_logged.reset(self._token)
        if self._ended.is_set():
            return
        if error is None:
            self._end("done", None)
        elif isinstance(error, KeyboardInterrupt):
            self._end("interrupted", str(error) or "interrupted")
        else:
            self._end("failed", str(error) or type(error).__name__)

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self.tick()

    def tick(self) -> None:
        """Log the progress."""
        with self._writing:
            if self._ended.is_set():
                return
            if not self._has_begun:
                self._begin()
            self._write("progress", self._state())

    def event(self, name: str, text: str, facts: Mapping[str, object]) -> None:
        """Log an event: as its text for people, as its facts for programs."""
        with self._writing:
            if self.format == LogFormat.json:
                self._write(name, facts)
            elif self.is_text:
                note(text)

    def note(self, text: str) -> None:
        """Log a sentence."""
        self.event("note", text, {"note": text})

    def end(self, summary: str, failure: str = "") -> None:
        """Log the result of the run and, if there is one, its failure, which is printed whatever the format is."""
        whole = f"{summary} {failure}".strip()
        self._end("failed" if failure else "done", whole)
        if self.is_text:
            note(whole)
        elif failure and self.format == LogFormat.none:
            note(failure)

    def _begin(self) -> None:
        self._has_begun = True
        self._write("start", self._facts)

    def _end(self, outcome: str, summary: str | None) -> None:
        with self._writing:  # no line may follow the last
            self._ended.set()
            if self._has_begun:
                # in a text log the summary is a separate line
                summary = None if self.format == LogFormat.text else summary
                self._write("end", {"outcome": outcome, **self._state(), "left_s": None, "summary": summary})

    def _state(self) -> dict[str, object]:
        elapsed = self._clock() - self._start
        own, others = memory()
        state: dict[str, object] = {"doing": self.doing, "questions": self.questions}
        if self.questions is not None:
            state["questions_a_second"] = round(self.questions / max(elapsed, 1e-3), 2)
            state["errors"] = dict(self.errors.most_common())
        state |= {"share": self.share and round(self.share, 4), "left_s": self._left(elapsed)}
        return state | {"memory_mb": own, "workers_memory_mb": others, "elapsed_s": round(elapsed, 1)}

    def _left(self, elapsed: float) -> float | None:
        """Return how many seconds are left, by the pace since the share was first known."""
        if self.share is None:
            return None
        self._first = since, before = self._first or (elapsed, self.share)
        done = self.share - before
        return round((1 - self.share) * (elapsed - since) / done, 1) if done > 0 else None

    def _write(self, event: str, facts: Mapping[str, object]) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        present = {name: value for name, value in facts.items() if value is not None}
        if self.format == LogFormat.json:
            # ASCII alone, so that terminals and readers of logs show it as it is
            write_line(json.dumps({"time": now, "command": self._command, "event": event, **present}))
        else:
            note(f"{now} {self._command} {event}: {', '.join(map(_phrase, present.items()))}")


def _every_seconds() -> float:
    """Return the number of seconds between two lines."""
    chosen = os.environ.get(_VARIABLE, _EVERY_SECONDS)
    with suppress(ValueError):
        if 0 < (seconds := float(chosen)) <= threading.TIMEOUT_MAX:
            return seconds
    raise RechainError(f"{_VARIABLE} should be a number of seconds, not '{chosen}'.")


def _phrase(item: tuple[str, Any]) -> str:
    """Return a fact as text."""
    name, value = item
    unit = _UNITS.get(name.rpartition("_")[2], "")
    name = name.rpartition("_")[0] if unit else name
    if isinstance(value, dict):
        value = " ".join(f"{count} {code}" for code, count in value.items()) or "none"
    elif name == "share":
        value, unit = f"{100 * value:.1f}", " %"
    return f"{name.replace('_', ' ')} {value}{unit}"


def memory() -> tuple[int | None, int | None]:
    """Return the megabytes that this process uses, and those that all processes below it use together.

    Pages that several share count in parts, so that the sum is what is in use. Without /proc both are None.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        return None, None
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it may have ended
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    below, new = set[int](), {os.getpid()}
    while new := {process for process, parent in parents.items() if parent in new}:
        below |= new

    def used(process: int) -> int:
        with suppress(OSError, IndexError):  # it may have ended, or be of the system
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            return int(rollup.partition("\nPss:")[2].split(maxsplit=1)[0])
        return 0

    return used(os.getpid()) // 1024, sum(map(used, below)) // 1024


def shows_bars() -> bool:
    """Return whether bars are shown: on a terminal, unless a log was requested."""
    return sys.stderr.isatty() and not _is_logged.get()


@contextmanager
def bar(activity: str, unit: str = "questions", stays: bool = False) -> Iterator[Show]:
    """Yield a function that sets a bar, if bars are shown; one that stays is shown in any case."""
    if not (stays or shows_bars()):
        yield lambda share, done, more: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    counter = TextColumn(f"{{task.fields[done]}} {unit}, {{task.fields[rate]:.0f}}/s{{task.fields[more]}}")
    columns = [TextColumn("{task.description}"), BarColumn(10), TaskProgressColumn(), counter, TimeRemainingColumn()]
    # On a terminal rich prints lines above the bar; elsewhere it would move them from standard output to the bar's.
    redirect = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=not stays, redirect_stdout=redirect) as progress:
        task = progress.add_task(activity, total=None, done=0, rate=0.0, more="")

        def show(share: float | None, done: int, more: str) -> None:
            rate = done / max(progress.tasks[task].elapsed or 0.0, 0.001)
            total = None if share is None else 1.0
            progress.update(task, total=total, completed=share or 0.0, done=done, rate=rate, more=more)

        yield show


def counted(questions: Iterable[T], activity: str, total: int | None) -> Iterator[T]:
    """Yield questions under a bar that shows how many are done; for callers of the Python API."""
    with bar(activity, stays=True) as show:
        for number, question in enumerate(questions, start=1):
            show(number / total if total else None, number, "")
            yield question


@contextmanager
def working(activity: str) -> Iterator[None]:
    """Show that something of unknown length is being done, if bars are shown."""
    if not shows_bars():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(activity))):
        yield
