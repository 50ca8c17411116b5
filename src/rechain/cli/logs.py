"""The log of a long run on standard error: a line at its start, every 30 seconds, and at its end."""

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from rechain.cli.progress import is_logged
from rechain.errors import RechainError
from rechain.system.terminal import note, write_line

# Often enough to see that a run lives, seldom enough to read the log of a night.
_EVERY_SECONDS = 30.0
_VARIABLE = "RECHAIN_LOG_SECONDS"
_MEGABYTE = 1 << 20


class LogFormat(StrEnum):
    """What is logged."""

    text = "text"
    json = "json"
    none = "none"


Log = Annotated[
    LogFormat | None,
    Option(
        "--log", help="Log to standard error: lines of text or json, or none but errors. (a terminal: bar; else text)"
    ),
]


class RunLog(AbstractContextManager["RunLog"]):
    """Logs how far a run has come. Whoever does the work sets the attributes; a thread reads them now and then.

    Unless a format was chosen, a terminal has a bar instead, and elsewhere a run that ends within 30 seconds has no
    more than its last line: a script that calls the command often wants no others.
    """

    questions: int | None = None
    share: float | None = None
    """the share of the input that is done, where that is known"""
    doing: str | None = None
    """what is being done, such as an epoch of training"""

    def __init__(
        self,
        format: LogFormat | None,
        command: str,
        facts: Mapping[str, object],
        *,
        clock: Callable[[], float] = time.monotonic,
        every: float | None = None,
    ) -> None:
        """Take the format, the command, and what the first line says about it; facts that are None are left out."""
        self.shows_bar = format is None and sys.stderr.isatty()
        self.format = format or (LogFormat.none if self.shows_bar else LogFormat.text)
        self.errors: Counter[str] = Counter()
        self._is_early = format is not None
        self._command = command
        self._facts = {name: value for name, value in facts.items() if value is not None}
        self._clock, self._every = clock, _every_seconds() if every is None else every
        self._start = clock()
        self._first: tuple[float, float] | None = None
        """when the share of the input was first known, and that share: a run that is resumed does not begin at 0"""
        self._has_begun = False
        self._ended = threading.Event()
        self._writing = threading.Lock()

    def __enter__(self) -> "RunLog":
        self._token = is_logged.set(self._is_early)
        if self.format != LogFormat.none:
            if self._is_early:
                self._begin()
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        is_logged.reset(self._token)
        if not self._ended.is_set():
            is_stopped = isinstance(error, KeyboardInterrupt)
            outcome = "interrupted" if is_stopped else "failed" if error else "done"
            self._end(
                outcome, None if error is None else str(error) or (outcome if is_stopped else type(error).__name__)
            )

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self.tick()

    def tick(self) -> None:
        """Log how far the run has come."""
        with self._writing:
            if self._ended.is_set():
                return
            if not self._has_begun:
                self._begin()
            self._write("progress", self._state())

    def event(self, name: str, text: str, facts: Mapping[str, object]) -> None:
        """Log something else that has happened: its text, or what it consists of."""
        with self._writing:
            if self.format == LogFormat.json:
                self._write(name, facts)
            elif self.is_text:
                note(text)

    @property
    def is_text(self) -> bool:
        """Whether people read what is printed, in a log or above a bar."""
        return self.format == LogFormat.text or self.shows_bar

    def note(self, text: str) -> None:
        """Log something of note."""
        self.event("note", text, {"note": text})

    def end(self, summary: str, failure: str = "") -> None:
        """Log the end: what came of the run and, even if nothing is to be logged, in which way it failed after all."""
        self._end("failed" if failure else "done", f"{summary} {failure}".strip())
        if self.is_text:
            note(f"{summary} {failure}".strip())
        elif failure and self.format == LogFormat.none:
            note(failure)

    def _begin(self) -> None:
        self._has_begun = True
        self._write("start", self._facts)

    def _end(self, outcome: str, summary: str | None) -> None:
        with self._writing:  # no line may follow the last
            self._ended.set()
            if not self._has_begun:
                return
            facts = {"outcome": outcome, **self._state(), "left_s": None, "summary": summary}
            if self.format == LogFormat.text:
                facts.pop("summary")  # which comes as a line of its own
            self._write("end", facts)

    def _state(self) -> dict[str, object]:
        elapsed = self._clock() - self._start
        state: dict[str, object] = {"doing": self.doing, "questions": self.questions}
        if self.questions is not None:
            state["questions_a_second"] = round(self.questions / max(elapsed, 1e-3), 2)
            state["errors"] = dict(self.errors.most_common())
        own, others = memory()
        state |= {"share": self.share and round(self.share, 4), "left_s": self._left(elapsed)}
        return state | {"memory_mb": own, "workers_memory_mb": others, "elapsed_s": round(elapsed, 1)}

    def _left(self, elapsed: float) -> float | None:
        """Return how many seconds are left if the rest goes on as what was done since the share was first known."""
        if self.share is None:
            return None
        if self._first is None:
            self._first = elapsed, self.share
        since, before = self._first
        done = self.share - before
        return round((1 - self.share) * (elapsed - since) / done, 1) if done > 0 else None

    def _write(self, event: str, facts: Mapping[str, object]) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        known = {name: value for name, value in facts.items() if value is not None}
        if self.format == LogFormat.json:
            # ASCII alone, so that no terminal and no reader of logs can take it for anything else
            write_line(json.dumps({"time": now, "command": self._command, "event": event, **known}))
        else:
            note(f"{now} {self._command} {event}: {', '.join(map(_phrase, known.items()))}")


def _every_seconds() -> float:
    """Return how many seconds there are between two lines."""
    chosen = os.environ.get(_VARIABLE, _EVERY_SECONDS)
    try:
        if 0 < (seconds := float(chosen)) <= threading.TIMEOUT_MAX:
            return seconds
    except ValueError:
        pass
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


_UNITS = {"mb": " MB", "s": " s"}


def memory() -> tuple[int | None, int | None]:
    """Return the megabytes that this process takes, and those that all processes below it take together.

    Pages that several share count in parts, so that the sum is what is in use. None where there is no /proc.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        return None, None
    others = sum(map(_memory_of, _descendants(os.getpid())))
    return _memory_of(os.getpid()) // _MEGABYTE, others // _MEGABYTE


def _memory_of(process: int) -> int:
    with suppress(OSError):  # it may have ended
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _descendants(process: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = stat.read_text().rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    waiting = [*children.get(process, ())]
    while waiting:
        yield (child := waiting.pop())
        waiting += children.get(child, ())
