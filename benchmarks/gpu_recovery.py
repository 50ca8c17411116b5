"""Recovery on a GPU from a file to a file: questions a second of the whole command, and its chains against the CPU's.

    python benchmarks/gpu_recovery.py FILE [--device cuda] [--runs 1:1500 8:12000 14:36000 24:36000] [--compared 50]

FILE has questions in any known format. First `--compared` of them are recovered on the GPU and on the CPU: how often
the best chain is another, and by how little it then led there. Then each of `--runs`, WORKERS:QUESTIONS, recovers so
many questions, those of the file over and over. The command is that of users, `rechain recover --device cuda`: workers
find candidates and evidence, and one process reads for all of them on the GPU. `--device cpu` tries the script alone:
there each worker reads by itself.

For a machine that has PyTorch but nothing else of ours, and no network,

    python benchmarks/gpu_recovery.py --prepare DATA

puts into build/gpu what has to travel with the repository: the missing libraries, for Python 3.12, and 3,000 questions
of HotpotQA open (seed 0); 19 MB, 11 MB compressed. There, the one command is

    PYTHONPATH=src:build/gpu/site python3 benchmarks/gpu_recovery.py build/gpu/questions.jsonl.gz
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import orjson
from common import Seen, print_heading, print_rows, recover_command, watched

from rechain.formats.datasets.records import read_records

FOLDER = Path("build/gpu")
LIBRARIES = (
    *("ahocorasick_rs", "annotated-doc", "annotated-types", "click", "orjson", "pydantic", "pydantic_core", "rich"),
    *("shellingham", "text2num", "typer", "typing-extensions", "typing-inspection"),
)
"""what recovery without an index needs in addition to numpy, safetensors, tokenizers and torch"""
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
WHEELS = (
    *("--only-binary=:all:", "--no-deps", "--no-compile", "--upgrade", "--quiet"),
    *("--implementation", "cp", "--python-version", "3.12"),
    *(f"--platform={platform}" for platform in PLATFORMS),
)


def prepare(data: Path, number: int = 3000) -> None:
    """Put the libraries and some questions into a folder that git ignores."""
    (FOLDER / "site").mkdir(parents=True, exist_ok=True)
    constraints = Path(__file__).parents[1] / "constraints.txt"
    target = ["--target", str(FOLDER / "site"), "--constraint", str(constraints)]
    subprocess.run([sys.executable, "-m", "pip", "install", *target, *WHEELS, *LIBRARIES], check=True)
    records = [record.value for record in read_records(data / "hotpotqa/open.json.gz")]
    sample = random.Random(0).sample(records, number)
    lines = b"".join(orjson.dumps(record) + b"\n" for record in sample)
    (FOLDER / "questions.jsonl.gz").write_bytes(gzip.compress(lines, mtime=0))


class Timing(NamedTuple):
    """How long a command took."""

    seconds: float
    first: float
    """the seconds after which the first chains were written"""
    steady: float
    """the share of the output that was written a second, without its first quarter"""
    seen: Seen


def recover(questions: Path, out: Path, *options: object) -> Timing:
    """Run the command, and watch its output grow."""
    out.unlink(missing_ok=True)
    command = recover_command("local", questions, "--out", out, "--top", 2, *options)
    start, sizes = time.perf_counter(), [(0.0, 0)]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(command, stderr=errors) as process:
        with watched(process.pid, 1.0, weighs=False) as seen:
            while process.poll() is None:
                time.sleep(0.05)
                sizes.append((time.perf_counter() - start, out.stat().st_size if out.exists() else 0))
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {errors.read().decode()}")
    end, whole = sizes[-1]
    first = next(at for at, size in sizes if size > 0)
    quarter, written = next((at, size) for at, size in sizes if size >= whole / 4)
    return Timing(end, first, (1 - written / whole) / max(end - quarter, 1e-9), seen)


def difference(one: Path, other: Path) -> tuple[int, list[float], float]:
    """Compare lines: how many there are, by how much other best chains led, and the mean difference of confidence."""
    leads, gaps, count = [], [], 0
    with one.open("rb") as first, other.open("rb") as second:
        for lines in zip(first, second, strict=True):
            count += 1
            mine, theirs = (json.loads(line)["chains"] for line in lines)
            if not mine or not theirs:
                assert bool(mine) == bool(theirs)
                continue
            gaps.append(abs(mine[0]["confidence"] - theirs[0]["confidence"]))
            if mine[0]["passages"] != theirs[0]["passages"]:
                leads.append(theirs[0]["score"] - theirs[1]["score"] if len(theirs) > 1 else float("inf"))
    return count, leads, sum(gaps) / max(len(gaps), 1)


def compare(lines: Sequence[bytes], device: str, folder: Path) -> None:
    """Print how the chains of some questions differ from those of the CPU."""
    questions = folder / "compared.jsonl"
    questions.write_bytes(b"".join(lines))
    outs = {name: folder / f"{name}.jsonl" for name in (device, "cpu")}
    for name, out in outs.items():  # several small chunks, so that one process reads for others
        recover(questions, out, "--device", name, "--workers", 2, "--batch-size", max(len(lines) // 8, 1))
    count, leads, gap = difference(outs[device], outs["cpu"])
    print(f"Of {count} questions {len(leads)} have another best chain than on the CPU, mean difference of confidence")
    by = ", ".join(f"{lead:.3f}" for lead in sorted(leads)) or "-"
    print(f"{gap:.4f}; there the CPU's led by a score of {by}.\n")


def measure(lines: Sequence[bytes], device: str, run: str, batch_size: int, folder: Path) -> tuple[object, ...]:
    """Recover many questions, and return a row of the table."""
    workers, number = map(int, run.split(":"))
    questions = folder / "questions.jsonl"
    with questions.open("wb") as file:
        file.writelines(islice(cycle(lines), number))
    options = ("--device", device, "--workers", workers, "--batch-size", batch_size)
    timing = recover(questions, folder / "chains.jsonl", *options)
    processor = 1000 * timing.seen.cpu(0, 1, 2) / number
    rates = f"{number / timing.seconds:.0f}", f"{number * timing.steady:.0f}"
    return device, workers, batch_size, number, f"{timing.first:.1f}", *rates, f"{processor:.1f}"


def main() -> None:
    """Print how the chains differ, and the rates."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path, nargs="?")
    options.add_argument("--prepare", type=Path, metavar="DATA")
    options.add_argument("--device", default="cuda")
    options.add_argument("--runs", nargs="+", default=["1:1500", "8:12000", "14:36000", "24:36000"])
    options.add_argument("--batch-size", type=int, default=64)
    options.add_argument("--compared", type=int, default=50)
    arguments = options.parse_args()
    if arguments.prepare:
        prepare(arguments.prepare)
        return
    print_heading()
    lines = [orjson.dumps(record.value) + b"\n" for record in read_records(arguments.file)]
    columns = ("device", "workers", "in a chunk", "questions", "first chains after, s")
    header = (*columns, "questions/s", "without the first quarter", "processor time a question, ms")
    with tempfile.TemporaryDirectory() as folder:
        compare(lines[: arguments.compared], arguments.device, Path(folder))
        rows = [measure(lines, arguments.device, run, arguments.batch_size, Path(folder)) for run in arguments.runs]
    print_rows(header, rows)


if __name__ == "__main__":
    main()
