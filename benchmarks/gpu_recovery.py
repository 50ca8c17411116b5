"""Recovery on a GPU from a file to a file: questions a second of the whole command, and its chains beside the CPU's.

    python benchmarks/gpu_recovery.py FILE [--device cuda] [--workers 16 24 32] [--times 4] [--compared 600]

FILE has questions in any known format; it is read `--times` times over, as JSON lines. The command is that of users:
`rechain recover --device cuda`, where workers find candidates and evidence, and one process reads for all of them on
the GPU. Then the first `--compared` questions are recovered on the CPU too: how often the best chain is another, and by
how little it then led there. With `--device cpu` the same is tried without a GPU.

On a machine that has PyTorch and transformers but nothing else of ours, and no network, carry the rest as wheels:

    pip install --target .device/site --only-binary=:all: --no-deps --python-version 3.12 --implementation cp \\
        --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 ahocorasick_rs annotated-types bm25s jinja2 \\
        markdown-it-py markupsafe mdurl orjson pydantic pydantic_core pygments rich shellingham tantivy text2num \\
        typer typing-extensions typing-inspection click annotated-doc

(48 MB unpacked) and run there `PYTHONPATH=src:.device/site python3 benchmarks/gpu_recovery.py FILE`. What that machine
has is better left out, numpy, torch, tokenizers and safetensors above all; `python3 -c "import NAME"` says what it has.
"""

import argparse
import json
import subprocess
import tempfile
import time
from itertools import islice
from pathlib import Path

import orjson
from common import print_heading, print_rows, recover_command

from rechain.datasets.files import read_records


def written(source: Path, times: int, file: Path) -> int:
    """Write the records of a file over and over as JSON lines; return how many lines that are."""
    lines = [orjson.dumps(record.value) + b"\n" for record in read_records(source)]
    with file.open("wb") as out:
        for _ in range(times):
            out.writelines(lines)
    return times * len(lines)


def recover(questions: Path, out: Path, *options: object) -> float:
    """Run the command; return the seconds that it took, from start to end."""
    start = time.perf_counter()
    command = recover_command("local", questions, "--out", out, "--overwrite", "--top", 2, *options)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return time.perf_counter() - start


def difference(one: Path, other: Path, number: int) -> tuple[int, list[float], float]:
    """Compare lines: how many there are, by how much other best chains led, and the mean difference of confidence."""
    leads, gaps, count = [], [], 0
    with one.open("rb") as first, other.open("rb") as second:
        for lines in islice(zip(first, second, strict=False), number):
            count += 1
            mine, theirs = (json.loads(line)["chains"] for line in lines)
            if not mine or not theirs:
                assert bool(mine) == bool(theirs)
                continue
            gaps.append(abs(mine[0]["confidence"] - theirs[0]["confidence"]))
            if mine[0]["passages"] != theirs[0]["passages"]:
                leads.append(theirs[0]["score"] - theirs[1]["score"] if len(theirs) > 1 else float("inf"))
    return count, leads, sum(gaps) / max(len(gaps), 1)


def main() -> None:
    """Print the rates, and how the chains differ."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path)
    options.add_argument("--device", default="cuda")
    options.add_argument("--workers", type=int, nargs="+", default=[16, 24, 32])
    options.add_argument("--batch-size", type=int, default=64)
    options.add_argument("--times", type=int, default=4)
    options.add_argument("--compared", type=int, default=600)
    told = options.parse_args()
    print_heading()
    with tempfile.TemporaryDirectory() as folder:
        questions, out = Path(folder) / "questions.jsonl", Path(folder) / "chains.jsonl"
        number = written(told.file, told.times, questions)
        rows = []
        for workers in told.workers:
            took = recover(
                questions, out, "--device", told.device, "--workers", workers, "--batch-size", told.batch_size
            )
            rows.append((told.device, workers, told.batch_size, number, f"{took:.1f}", f"{number / took:.0f}"))
        print_rows(("device", "workers", "in a chunk", "questions", "s", "questions/s"), rows)
        some, on_cpu = Path(folder) / "some.jsonl", Path(folder) / "cpu.jsonl"
        with questions.open("rb") as file:
            some.write_bytes(b"".join(islice(file, told.compared)))
        recover(some, on_cpu, "--device", "cpu")
        count, leads, gap = difference(out, on_cpu, told.compared)
    print(f"Of {count} questions {len(leads)} have another best chain than on the CPU, mean difference of confidence")
    print(f"{gap:.4f}; there the CPU's led by a score of {', '.join(f'{lead:.3f}' for lead in sorted(leads)) or '-'}.")


if __name__ == "__main__":
    main()
