"""What the benchmarks share: data, a heading that says where figures come from, timing, and watching a command."""

import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from shutil import which
from typing import NamedTuple

import orjson

from rechain.errors import QuestionError
from rechain.evaluation.gold import read_gold
from rechain.evaluation.judging import JudgedChain, is_unambiguous, judge
from rechain.evaluation.statistics import Figure
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_records
from rechain.recoverer import Recoverer
from rechain.schema import Gold, Question
from rechain.scoring.interface import BatchModel, Model
from rechain.text.candidates import Candidates, CandidateSettings, find_candidates

Pair = tuple[Question, Gold]


def data_folder() -> Path:
    """Return the data folder named on the command line."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        raise SystemExit(f"usage: python {sys.argv[0]} DATA_FOLDER")
    return Path(sys.argv[1])


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """Return a parser that takes the data folder; a script adds its other options."""
    options = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, help="the data folder")
    return options


def print_heading() -> None:
    """Print the command, date and machine that the figures below come from."""
    print(f"Command: `python {' '.join(sys.argv)}`  ")
    print(f"Date: {datetime.date.today()}  ")
    device, python = gpu("name") or "no GPU", f"Python {platform.python_version()}"
    print(f"Machine: {platform.machine()}, {os.cpu_count()} cores, {device}, {platform.system()}, {python}\n")


def gpu(field: str) -> str:
    """Return a field of nvidia-smi for every GPU, e.g. name or memory.used; an empty text without a GPU."""
    if which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
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
    questions = list(questions)
    golds = read_gold(gold, questions)
    return [(question, golds[question.id]) for question in questions if question.id in golds]


def bridge_pairs(data: Path, name: str = "open", unambiguous: bool = True) -> list[Pair]:
    """Return the bridge questions of a HotpotQA file; unambiguous ones unless all are needed."""
    file = data / f"hotpotqa/{name}.json.gz"
    pairs = with_gold(read_questions(file, only=["bridge"]), file)
    return [pair for pair in pairs if is_unambiguous(*pair)] if unambiguous else pairs


def drughop_questions(data: Path) -> Iterator[Question]:
    """Yield the questions of DrugHop open."""
    return read_questions(data / "drughop/open.jsonl.gz", passages=data / "drughop/passages.jsonl.gz")


def drughop_pairs(data: Path) -> list[Pair]:
    """Return the questions of DrugHop open with their gold."""
    return with_gold(drughop_questions(data), data / "drughop/open.gold.jsonl.gz")


def two_wiki_pairs(data: Path) -> list[Pair]:
    """Return the questions of 2Wiki train_500 that have chains."""
    file = data / "2wiki/train_500.json.gz"
    return with_gold(read_questions(file, only=["compositional", "inference"]), file)


MUSIQUE_HOPS = {"2hop": 2, "3hop1": 3, "4hop1": 4}
"""the passages in a chain of each linear type of MuSiQue"""


def musique_pairs(data: Path, kind: str) -> list[Pair]:
    """Return the questions of one type of MuSiQue train_100."""
    file = data / "musique/train_100.json.gz"
    return with_gold(read_questions(file, only=[kind]), file)


def candidates_of(
    questions: Iterable[Question], find_chains: Callable[[Question], Candidates] = find_candidates
) -> Iterator[Candidates]:
    """Build C of the questions that have one."""
    for question in questions:
        try:
            yield find_chains(question)
        except QuestionError:
            continue


def verdicts(pairs: Sequence[Pair], model: str | Model | BatchModel, hops: int | None = None) -> list[JudgedChain]:
    """Recover the chain of every question and judge it."""
    recoverer = Recoverer(model, settings=CandidateSettings(hops=hops))
    recovered = recoverer.recover_many([question for question, _ in pairs])
    return [judge(chains[0] if chains else None, gold) for chains, (_, gold) in zip(recovered, pairs, strict=True)]


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternated(ways: Sequence[Callable[[], object]], repeats: int) -> list[list[float]]:
    """Return how long each way takes, time after time; they take turns, so that a busy moment hits all alike."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for place, way in enumerate(ways):
            times[place].append(seconds(way))
    return times


def spread(values: Sequence[float], form: str = "{:.0f}") -> str:
    """Return the median of some values, and their range."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{form.format(middle)} ({form.format(low)} to {form.format(high)})"


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Divide the figures of one side by those of the other, round by round."""
    return [one / other for one, other in zip(above, below, strict=True)]


def open_lines(data: Path, number: int) -> Iterator[bytes]:
    """Yield `number` records of HotpotQA open as JSON lines; after the last the first comes again."""
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
    processes = {int(path.name): state for path in Path("/proc").glob("[0-9]*") if (state := parent_and_cpu(path))}
    members: dict[int, Member] = {}
    generation = [root] if root in processes else []
    for depth in range(len(processes)):
        members |= {number: Member(depth, processes[number][1]) for number in generation}
        generation = [
            number for number, (parent, _) in processes.items() if parent in generation and number not in members
        ]
    return members


def parent_and_cpu(path: Path) -> tuple[int, float] | None:
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
