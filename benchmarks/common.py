"""What the benchmarks share: data, a heading that says how figures came about, and watching a command at work."""

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from shutil import which
from typing import NamedTuple

import orjson

from rechain.candidates import CandidateSettings
from rechain.datasets.files import read_records
from rechain.evaluation.gold import read_gold
from rechain.evaluation.judging import Verdict, judge
from rechain.evaluation.statistics import Figure
from rechain.recovery import Recoverer
from rechain.schema import Gold, Question
from rechain.scoring.model import Model

Pair = tuple[Question, Gold]


def data_folder() -> Path:
    """Return the data folder named on the command line."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        raise SystemExit(f"usage: python {sys.argv[0]} DATA_FOLDER")
    return Path(sys.argv[1])


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """Return a parser that takes the data folder; what else a script takes is added to it."""
    made = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("data", type=Path, help="the data folder")
    return made


def print_heading() -> None:
    """Print the command, date and machine that the figures below come from."""
    print(f"Command: `python {' '.join(sys.argv)}`  ")
    print(f"Date: {datetime.date.today()}  ")
    python = f"Python {platform.python_version()}"
    print(f"Machine: {platform.machine()}, {os.cpu_count()} cores, {_gpu()}, {platform.system()}, {python}\n")


def _gpu() -> str:
    if which("nvidia-smi") is None:
        return "no GPU"
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().replace("\n", ", ")


def print_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def percent(figure: Figure | None) -> str:
    """Return a share with its 95 % interval."""
    if figure is None:
        return ""
    return f"{100 * figure.value:.1f} ({100 * figure.low:.1f} to {100 * figure.high:.1f})"


def with_gold(questions: Iterable[Question], gold: Path) -> list[Pair]:
    """Pair questions with their gold; questions without any are left out."""
    asked = list(questions)
    golds = read_gold(gold, asked)
    return [(question, golds[question.id]) for question in asked if question.id in golds]


def verdicts(pairs: Iterable[Pair], model: str | Model, hops: int | None = None) -> list[Verdict]:
    """Recover the chain of every question and judge it."""
    recoverer = Recoverer(model, settings=CandidateSettings(hops=hops))
    results = ((recoverer.recover(question), gold) for question, gold in pairs)
    return [judge(result.chains[0] if result.chains else None, gold) for result, gold in results]


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Divide the figures of one side by those of the other, round by round."""
    return [one / other for one, other in zip(above, below, strict=True)]


def open_lines(data: Path, number: int) -> Iterator[bytes]:
    """Yield so many records of HotpotQA open as JSON lines; after the last the first comes again."""
    lines = [orjson.dumps(record.value) + b"\n" for record in read_records(data / "hotpotqa/open.json.gz")]
    return islice(cycle(lines), number)


class Member(NamedTuple):
    """A process that descends from another."""

    generation: int
    """0 is the command, 1 what starts its workers, 2 a worker"""
    cpu: float
    """the seconds that it has computed so far"""


def family(root: int) -> dict[int, Member]:
    """Return a process and all that descend from it, by number."""
    known = {int(path.name): told for path in Path("/proc").glob("[0-9]*") if (told := _told(path))}
    found: dict[int, Member] = {}
    generation = [root] if root in known else []
    for depth in range(len(known)):
        found |= {number: Member(depth, known[number][1]) for number in generation}
        generation = [number for number, (parent, _) in known.items() if parent in generation and number not in found]
    return found


def _told(path: Path) -> tuple[int, float] | None:
    """Return the parent of a process and the seconds that it has computed, unless it has ended."""
    try:
        fields = (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Memory(NamedTuple):
    """What processes hold at a moment, in MB."""

    at: float
    pss: float
    """what is shared counts in parts"""
    rss: float
    """what is shared counts in every process"""


def memory_of(processes: Iterable[int]) -> Memory:
    """Return what processes hold together, by /proc/PID/smaps_rollup; those that have ended hold nothing."""
    total = {"Pss:": 0, "Rss:": 0}
    for number in processes:
        try:
            lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for name, *rest in map(str.split, lines):
            if name in total:
                total[name] += int(rest[0])
    return Memory(time.perf_counter(), total["Pss:"] / 1024, total["Rss:"] / 1024)


@dataclass
class Seen:
    """What was seen of a command and its workers while they ran."""

    memory: list[Memory] = field(default_factory=list)
    members: dict[int, Member] = field(default_factory=dict)

    def look(self, root: int, weighs: bool) -> None:
        """Look once; weighing costs the processes some time."""
        now = family(root)
        self.members |= now
        if weighs:
            self.memory.append(memory_of(now))

    def cpu(self, *generations: int) -> float:
        """Return the seconds that these generations have computed, as far as was seen."""
        return sum(member.cpu for member in self.members.values() if member.generation in generations)


@contextmanager
def watched(root: int, every: float, weighs: bool) -> Iterator[Seen]:
    """Look at a process and its descendants now and then while something is done."""
    seen, ended = Seen(), threading.Event()

    def watch() -> None:
        while not ended.is_set():
            seen.look(root, weighs)
            ended.wait(every)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


class Run(NamedTuple):
    """A command that has ended."""

    seconds: float
    seen: Seen


def recover_command(engine: str, questions: Path | str, *options: object) -> list[str]:
    """Return the command that recovers the chains of a file with an engine; options are those of `rechain recover`."""
    command = [sys.executable, "-m", "rechain.cli.main", "recover", str(questions), *map(str, options)]
    return command if engine == "local" else [*command, "--engine", engine]


def recover_with(
    engine: str,
    questions: Path | str,
    *options: object,
    lines: Iterable[bytes] = (),
    every: float = 0.2,
    weighs: bool = False,
) -> Run:
    """Run `rechain recover` as its users do, and watch it; `lines` go to its standard input."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        command = recover_command(engine, questions, *options)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
        with process, watched(process.pid, every, weighs) as seen:
            assert process.stdin is not None
            try:
                process.stdin.writelines(lines)
                process.stdin.close()
            except BrokenPipeError:  # it has ended before, and says why
                pass
            process.wait()
            seconds = time.perf_counter() - start
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {errors.read().decode()}")
    return Run(seconds, seen)
