"""The whole command, `rechain recover` with the default model, of this source against that of another checkout.

    python research/against.py OTHER DATA [--questions 300] [--repeats 3] [--margin 5]

OTHER is the `src` folder of the other checkout, DATA a folder as ../shared/data. Both recover the same questions of
HotpotQA open (drawn with seed 0) with two workers, in turn, round by round, so that a busy moment hits both. Processor
time is of the command and all its workers; on a machine that others use it says more than the time on the clock. With
--margin the other's bundled model is copied and reads chains within that margin.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import parser, print_heading, print_rows, ratios, spread, watched

from rechain.formats.datasets.records import read_records
from rechain.system.files import SHA256, sealed

OWN = Path(__file__).parents[1] / "src"
MODEL = "rechain/data/default"


def drawn(data: Path, number: int, file: Path) -> Path:
    """Write questions of HotpotQA open, of every type."""
    records = [record.value for record in read_records(data / "hotpotqa/open.json.gz")]
    file.write_text(json.dumps(random.Random(0).sample(records, number)), encoding="utf-8")
    return file


def with_margin(source: Path, margin: float, folder: Path) -> Path:
    """Copy the bundled model of a checkout, and let it read chains within another margin."""
    shutil.copytree(source / MODEL, folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    digests = {name: value for name, value in config.pop(SHA256).items() if name != "config.json"}
    config["settings"]["margin"] = margin
    (folder / "config.json").write_text(json.dumps(sealed(config, "config.json", digests)), encoding="utf-8")
    return folder


def run(source: Path, questions: Path, model: str, out: Path) -> tuple[float, float]:
    """Run the command; return its seconds on the clock and of the processor."""
    command = [sys.executable, "-m", "rechain.cli.main", "recover", str(questions), "--model", model, "--workers", "2"]
    env = os.environ | {"PYTHONPATH": str(source.absolute())}
    start = time.perf_counter()
    options = ["--device", "cpu", "--out", str(out), "--overwrite"]
    with (
        subprocess.Popen([*command, *options], env=env, stderr=subprocess.PIPE) as process,
        watched(process.pid, 0.1, weighs=False) as seen,
    ):
        _, errors = process.communicate()
    if process.returncode:
        raise SystemExit(errors.decode())
    return time.perf_counter() - start, seen.cpu(0, 1, 2)


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=300)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--margin", type=float)
    arguments = sys.argv[1:]
    other, told = Path(arguments[0]), options.parse_args(arguments[1:])
    print_heading()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        questions = drawn(told.data, told.questions, place / "questions.json")
        model = "default" if told.margin is None else str(with_margin(other, told.margin, place / "model"))
        sides = {"other": (other, model), "own": (OWN, "default")}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for _ in range(told.repeats):
            for name, (source, chosen) in sides.items():
                times[name].append(run(source, questions, chosen, place / f"{name}.jsonl"))
        chains = [_best_chains(place / f"{name}.jsonl") for name in sides]
    same = sum(one == two for one, two in zip(*chains, strict=True)) / told.questions
    clock, processor = ({name: [one[place] for one in times[name]] for name in sides} for place in (0, 1))
    rows = [
        (name, *(spread([told.questions / one for one in by[name]], "{:.1f}") for by in (processor, clock)))
        for name in sides
    ]
    own = [spread(ratios(by["other"], by["own"]), "{:.2f}") for by in (processor, clock)]
    rows.append(("own against other, times, round by round", *own))
    header = ("source", "questions a second of processor time", "questions/s")
    print_rows((*header,), rows)
    print(f"The best chain is the same for {100 * same:.1f} % of the questions.")


def _best_chains(file: Path) -> list[object]:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line["chains"][0]["passages"] if line["chains"] else None for line in lines]


if __name__ == "__main__":
    main()
