"""That a run which is killed again and again ends with the same bytes as one that is not.

    python benchmarks/kills.py ../shared/data

First the command itself is killed (SIGKILL) at random moments and started again with --resume; once its file is done
before enough kills, it begins anew. Then its worker processes are, one at a time, while it goes on by itself; where it
gives up, since workers died three times and nothing was done meanwhile, it is started again with --resume as it asks.
"""

import hashlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from common import family, open_lines, parser, print_heading, print_rows, recover_command

SEED = 0
PATIENCE = 10.0
"""seconds that workers have to end once the command was killed"""


class Trial(NamedTuple):
    """A file of questions, what is made of it undisturbed, and how long that takes."""

    questions: Path
    model: str
    made: bytes
    lines: int
    starting: float
    """seconds until the first lines are there"""
    seconds: float


class Story:
    """What happened to a command that was disturbed."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        """how many there were after every kill"""
        self.same: list[bool] = []
        """of every file that was finished, whether it has the bytes of an undisturbed run"""
        self.left = 0
        """processes that were still there after the command was killed"""
        self.given_up = 0
        """times that the command gave up by itself"""

    def row(self, trial: Trial, what: str) -> Sequence[object]:
        """Return a line of the table."""
        middle = sum(0 < lines < trial.lines for lines in self.lines)
        same = f"{sum(self.same)} of {len(self.same)} (sha256 {digest(trial.made)}…)"
        after = " ".join(map(str, self.lines))
        return trial.model, trial.lines, what, len(self.lines), middle, after, self.given_up, self.left, same


def started(trial: Trial | tuple[Path, str], out: Path) -> "subprocess.Popen[bytes]":
    """Start the command, or go on with it."""
    questions, model, *_ = trial
    command = recover_command("local", questions, "--model", model, "--out", out, "--resume")
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def undisturbed(questions: Path, model: str, out: Path) -> Trial:
    """Run the command without a kill."""
    start = time.perf_counter()
    with started((questions, model), out) as process:
        while process.poll() is None and not (out.exists() and out.stat().st_size):
            time.sleep(0.01)
        starting = time.perf_counter() - start
    assert process.returncode == 0, process.returncode
    trial = Trial(questions, model, out.read_bytes(), lines_of(out), starting, time.perf_counter() - start)
    out.unlink()
    return trial


def digest(content: bytes) -> str:
    """Return the beginning of a hash."""
    return hashlib.sha256(content).hexdigest()[:12]


def difference(expected: bytes, found: bytes) -> str:
    """Say how a file differs from what it should be."""
    theirs, ours = expected.splitlines(), found.splitlines()
    lines = [number for number, pair in enumerate(zip(theirs, ours, strict=False), 1) if pair[0] != pair[1]]
    if not lines:
        return f"{len(ours)} lines, not {len(theirs)}"
    place = lines[0] - 1
    return f"{len(ours)} lines, {len(lines)} differ, first line {lines[0]}: {theirs[place]!r} was {ours[place]!r}"


def lines_of(path: Path) -> int:
    """Return how many whole lines a file has."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def finish(trial: Trial, out: Path, story: Story) -> None:
    """Compare a finished file, and let the next run begin anew."""
    found = out.read_bytes()
    story.same.append(found == trial.made)
    if found != trial.made:
        print(f"{trial.model}, after kills at {story.lines} lines: {difference(trial.made, found)}\n")
    out.unlink()


def kill_command(trial: Trial, out: Path, kills: int, draw: random.Random) -> Story:
    """Kill the command so many times at random moments from its start on, and go on each time until it is done."""
    story = Story()
    longest = trial.starting + 2 * (trial.seconds - trial.starting) / kills
    while len(story.lines) < kills:
        with started(trial, out) as process:
            try:
                ended = process.wait(draw.uniform(0, longest))
            except subprocess.TimeoutExpired:
                members = family(process.pid)
                process.kill()
                process.wait()
                story.left += survivors(members)
                story.lines.append(lines_of(out))
                continue
        assert ended == 0, ended
        finish(trial, out, story)
    with started(trial, out) as process:
        pass
    assert process.returncode == 0, process.returncode
    finish(trial, out, story)
    return story


def survivors(numbers: Iterable[int]) -> int:
    """Return how many processes are still there after a while."""
    known = list(numbers)
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end and any(map(family, known)):
        time.sleep(0.05)
    return sum(map(bool, map(family, known)))


def kill_workers(trial: Trial, out: Path, kills: int, draw: random.Random) -> Story:
    """Kill so many worker processes, drawn at random, at random moments; the command should go on by itself."""
    story = Story()
    longest = 2 * trial.starting
    while True:
        with started(trial, out) as process:
            while process.poll() is None and len(story.lines) < kills:
                time.sleep(draw.uniform(0, longest))
                workers = [number for number, member in family(process.pid).items() if member.generation > 1]
                if workers:
                    os.kill(draw.choice(workers), signal.SIGKILL)
                    story.lines.append(lines_of(out))
        if process.returncode == 0:
            finish(trial, out, story)
            if len(story.lines) >= kills:
                return story
        else:
            story.given_up += 1


WAYS: dict[str, Callable[[Trial, Path, int, random.Random], Story]] = {
    "the command": kill_command,
    "its workers": kill_workers,
}


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=20, help="of each kind (20)")
    options.add_argument("--lexical", type=int, default=20_000, metavar="QUESTIONS", help="for lexical (20000)")
    options.add_argument("--default", type=int, default=400, metavar="QUESTIONS", help="for the default model (400)")
    options.add_argument("--seed", type=int, default=SEED)
    chosen = options.parse_args()
    print_heading()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        questions, out = Path(folder) / "questions.jsonl", Path(folder) / "chains.jsonl"
        for model, number in (("lexical", chosen.lexical), ("default", chosen.default)):
            questions.write_bytes(b"".join(open_lines(chosen.data, number)))
            trial = undisturbed(questions, model, out)
            for what, way in WAYS.items():
                rows.append(way(trial, out, chosen.kills, random.Random(chosen.seed)).row(trial, what))
    header = ("model", "questions", "killed", "kills", "in the middle", "lines after each")
    print(f"Seed {chosen.seed}. In the middle: some lines were written, and not all.\n")
    print_rows((*header, "gave up", "processes left", "finished files with the same bytes"), rows)


if __name__ == "__main__":
    main()
