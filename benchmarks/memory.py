"""That bulk recovery holds as much memory for many questions as for few.

    python benchmarks/memory.py ../shared/data
    python benchmarks/memory.py ../shared/data --sizes lexical 500 5000 --sizes default 100 200

Records of HotpotQA open, over and over, go to the standard input of `rechain recover -`, so that no large file is
needed. What the command and its workers hold is read every half second from /proc/PID/smaps_rollup: the sum of Pss,
in which shared memory counts once, and of Rss, in which it counts in every process. The last quarter is that of the
run's time: what grows shows there. Takes about half an hour.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import Memory, open_lines, parser, print_heading, print_rows, recover_with

SIZES = (("lexical", 10_000, 1_000_000), ("default", 1_000, 10_000))
EVERY = 0.5


class Peaks:
    """The most memory that a run held, in MB."""

    def __init__(self, samples: Sequence[Memory]) -> None:
        first, last = samples[0].at, samples[-1].at
        late = [sample for sample in samples if sample.at >= last - (last - first) / 4 and sample.pss]
        self.pss, self.rss = max(sample.pss for sample in samples), max(sample.rss for sample in samples)
        self.late_pss, self.late_rss = max(sample.pss for sample in late), max(sample.rss for sample in late)

    def all(self) -> list[float]:
        """Return all of them, a column each."""
        return [self.pss, self.late_pss, self.rss, self.late_rss]


def measured(data: Path, model: str, number: int, folder: Path) -> tuple[float, Peaks]:
    """Recover so many questions; return questions a second and the most memory."""
    out = folder / "chains.jsonl"
    run = recover_with(
        "local", "-", "--model", model, "--out", out, lines=open_lines(data, number), every=EVERY, weighs=True
    )
    with out.open("rb") as file:
        assert sum(1 for _ in file) == number
    out.unlink()
    return number / run.seconds, Peaks(run.seen.memory)


def rows(data: Path, model: str, sizes: Sequence[int], folder: Path) -> list[Sequence[object]]:
    """Measure a model with few and many questions, and compare the last with the first."""
    found, table = [], []
    for number in sizes:
        rate, peaks = measured(data, model, number, folder)
        found.append(peaks.all())
        table.append((model, number, f"{rate:.0f}", *(f"{value:.0f}" for value in peaks.all())))
    times = [many / few for few, many in zip(found[0], found[-1], strict=True)]
    what = f"{sizes[-1]} against {sizes[0]}, times"
    return [*table, (model, what, "", *(f"{value:.3f}" for value in times))]


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument(
        "--sizes", nargs="+", action="append", metavar=("MODEL", "QUESTIONS"), help="a model, and two numbers or more"
    )
    chosen = options.parse_args()
    sizes = [(model, *map(int, numbers)) for model, *numbers in chosen.sizes] if chosen.sizes else SIZES
    print_heading()
    header = ("model", "questions", "questions/s")
    columns = ("peak Pss, MB", "in the last quarter", "peak Rss, MB", "in the last quarter")
    with tempfile.TemporaryDirectory() as folder:
        table = [row for model, *numbers in sizes for row in rows(chosen.data, model, numbers, Path(folder))]
    print("Command and workers together, default number of workers, one run each:\n")
    print_rows((*header, *columns), table)


if __name__ == "__main__":
    main()
