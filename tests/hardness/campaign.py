"""Many numbered cases in worker processes, each under a limit of time and of memory; a number makes a case again.

A script calls `main` with a function that runs one case. The same script, started with --worker, runs some of the cases
and prints a line before and after each; so a case that kills its process, or never ends, is known by its number.
"""

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import copytree, rmtree
from typing import Any

SECONDS = 60
"""the longest a case may take"""
_GRACE = 30
"""seconds after which a process is killed that does not heed its alarm: the alarm interrupts Python, not C"""
MEGABYTES = 1500
"""the most memory that a process may hold at any moment of a case"""
_MOST_DATA = 6 << 30
"""bytes after which the system refuses more, so that a case that would fill the memory fails alone"""
_CASES_A_PROCESS = 1000
"""so that what cases leave behind does not add up; fewer would spend most of the time on imports"""
_NOTE_SECONDS = 30
_ALIKE = re.compile(r"\d+|'.*?'|\".*?\"")
"""what differs between failures of one kind"""


@dataclass
class Result:
    """What came of a case."""

    label: str
    """what was done: the command and the kind of its input"""
    outcome: str
    """how it ended, in a word or two"""
    failures: list[str] = field(default_factory=list)


@dataclass
class Limits:
    """What a case may take."""

    seconds: int = SECONDS


limits = Limits()
RunCase = Callable[[int, int, Path], Result]
"""Runs the case of a seed and a number in an empty folder."""


class HangError(BaseException):
    """A case has taken too long; not an Exception, so that no handler of the package takes it for one of its own."""


def main(
    what: str,
    documentation: str | None,
    run_case: RunCase,
    count: int,
    prepare: Callable[[], object],
    seconds: int = SECONDS,
) -> None:
    """Run cases as the command line says; exit 1 if one failed. `prepare` makes, before all, what cases share."""
    limits.seconds = seconds
    options = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=count, help=f"how many cases ({count})")
    options.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first case")
    options.add_argument("--case", type=int, metavar="N", help="this case alone, in a folder that is kept")
    options.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options.add_argument("--keep", type=Path, default=Path("build") / what, help="where inputs of failures are kept")
    options.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # cases share the cores
    if chosen.worker:
        first, end = map(int, chosen.worker.split(":"))
        _work(run_case, chosen.seed, range(first, end), chosen.keep)
        return
    prepare()
    if chosen.case is not None:
        _show_case(run_case, chosen.seed, chosen.case, chosen.keep)
        return
    summary = _Campaign(what, chosen.seed, chosen.keep, run_case).run(chosen.first, chosen.count, chosen.workers)
    raise SystemExit(summary.report())


# ---- the worker


def _work(run_case: RunCase, seed: int, numbers: range, keep: Path) -> None:
    """Run cases, and print a line of JSON before and after each to what was standard output at the start."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_DATA, _MOST_DATA))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        report.write(json.dumps({"begin": number}) + "\n")
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"case{number}-", dir=_quick_folder()) as folder:
            result = run_limited(run_case, seed, number, Path(folder))
            if result.failures:
                _keep(Path(folder), keep / f"{seed}-{number}")
        line = {"end": number, "seconds": time.monotonic() - start, "megabytes": _peak(), **vars(result)}
        report.write(json.dumps(line) + "\n")


def run_limited(run_case: RunCase, seed: int, number: int, folder: Path) -> Result:
    """Run a case under the limits; what it raises is a failure."""
    _forget_peak()
    before = Path.cwd()
    try:
        with _alarm():
            result = run_case(seed, number, folder)
    except HangError:
        result = Result("?", "hang", [f"took longer than {limits.seconds} s:\n{_tail(traceback.format_exc())}"])
    except Exception:
        result = Result("?", "harness", [f"the harness failed:\n{_tail(traceback.format_exc())}"])
    finally:
        os.chdir(before)
    if _peak() > MEGABYTES:
        result.failures.append(f"{_peak()} MB of memory in use, more than {MEGABYTES}")
    return result


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise HangError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(limits.seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _tail(text: str, lines: int = 14) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])


def _forget_peak() -> None:
    """Let the system measure the peak of this process's memory anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Return the most megabytes that this process has held since it was last forgotten."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


def _quick_folder() -> str | None:
    """Return a folder in memory, where there is one: cases write many small files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _keep(folder: Path, place: Path) -> None:
    rmtree(place, ignore_errors=True)
    copytree(folder, place, symlinks=True, ignore_dangling_symlinks=True)


def _show_case(run_case: RunCase, seed: int, number: int, keep: Path) -> None:
    """Run one case here and print all about it."""
    folder = (keep / f"{seed}-{number}").absolute()
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    result = run_limited(run_case, seed, number, folder)
    print(f"{result.label}: {result.outcome}; its files are in {folder}.")
    for failure in result.failures:
        print(f"\nFAILED: {failure}")
    raise SystemExit(bool(result.failures))


# ---- the campaign


class _Summary:
    """What came of all cases."""

    def __init__(self, what: str, seed: int) -> None:
        self.what, self.seed, self.start = what, seed, time.monotonic()
        self.outcomes: dict[str, Counter[str]] = {}
        self.failures: dict[str, list[int]] = {}
        """the numbers of the cases that failed, by the kind of failure"""
        self.slowest, self.largest = (0.0, 0), (0, 0)
        self.lock = threading.Lock()
        self.noted = time.monotonic()

    def add(self, line: dict[str, Any]) -> None:
        number = line["end"]
        with self.lock:
            self._note_progress()
            self.outcomes.setdefault(line["label"], Counter())[line["outcome"]] += 1
            self.slowest = max(self.slowest, (round(line["seconds"], 1), number))
            self.largest = max(self.largest, (line["megabytes"], number))
            for failure in line["failures"]:
                kind = _ALIKE.sub("…", failure.strip().splitlines()[-1])[:150]
                if kind not in self.failures:
                    print(f"seed {self.seed}, case {number}, {line['label']}: {failure}\n", flush=True)
                self.failures.setdefault(kind, []).append(number)

    @property
    def total(self) -> int:
        """The number of cases that have ended."""
        return sum(sum(outcomes.values()) for outcomes in self.outcomes.values())

    def _note_progress(self) -> None:
        if time.monotonic() > self.noted + _NOTE_SECONDS:
            self.noted = time.monotonic()
            print(f"{self.total} cases in {self.noted - self.start:.0f} s", file=sys.stderr, flush=True)

    def report(self) -> int:
        """Print the table; return the exit code."""
        print("| case | number | outcomes |\n|---|---|---|")
        for label, outcomes in sorted(self.outcomes.items()):
            ends = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
            print(f"| {label} | {sum(outcomes.values())} | {ends} |")
        failed = set(chain.from_iterable(self.failures.values()))
        print(
            f"\n{self.what}, seed {self.seed}: {self.total} cases in {time.monotonic() - self.start:.0f} s, "
            f"{len(failed)} failed; the slowest took {self.slowest[0]} s (case {self.slowest[1]}), "
            f"the most memory was {self.largest[0]} MB (case {self.largest[1]})."
        )
        for kind, numbers in sorted(self.failures.items(), key=lambda item: -len(item[1])):
            print(f"{len(numbers)} times: {kind} (cases {' '.join(map(str, sorted(numbers)[:8]))})")
        return int(bool(failed))


class _Campaign:
    """Worker processes, each of which runs some cases and is replaced by a new one."""

    def __init__(self, what: str, seed: int, keep: Path, run_case: RunCase) -> None:
        self.summary = _Summary(what, seed)
        self._keep = keep
        self._blocks: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._script = sys.modules[run_case.__module__].__file__ or ""

    def run(self, first: int, count: int, workers: int) -> _Summary:
        end = first + count
        for start in range(first, end, _CASES_A_PROCESS):
            self._blocks.put((start, min(start + _CASES_A_PROCESS, end)))
        threads = [threading.Thread(target=self._run_blocks) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.summary

    def _run_blocks(self) -> None:
        while True:
            try:
                start, end = self._blocks.get_nowait()
            except Empty:
                return
            while start < end:
                start = self._run_block(start, end)

    def _run_block(self, start: int, end: int) -> int:
        """Run cases in a new process; return the number of the next that is to run."""
        command = [sys.executable, self._script, "--seed", str(self.summary.seed), "--keep", str(self._keep)]
        process = subprocess.Popen([*command, "--worker", f"{start}:{end}"], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        current: int | None = None
        watch: threading.Timer | None = None
        for line in process.stdout:
            if watch:
                watch.cancel()
            told = json.loads(line)
            current = told.get("begin")
            if "end" in told:
                self.summary.add(told)
                start = told["end"] + 1
            watch = threading.Timer(limits.seconds + _GRACE, process.kill)
            watch.start()
        if watch:
            watch.cancel()
        code = process.wait()
        if current is not None or start < end:
            lost = start if current is None else current
            outcome = "hang or killed" if code == -signal.SIGKILL else f"process ended with {code}"
            failure = {"label": "?", "outcome": outcome, "failures": [outcome], "seconds": 0, "megabytes": 0}
            self.summary.add({"end": lost, **failure})
            return lost + 1
        return end
