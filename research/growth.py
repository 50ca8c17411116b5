"""How the cost of a whole recovery grows with the passages of a question, for chains of 2, 3 and 4.

    python research/growth.py ../shared/data --plots docs/plots

From a Question to its chains, in one process with one thread. Two shapes: questions of HotpotQA open with the passages
of other questions added; and the worst case, a question whose passages all share one rare name, every tenth of which
holds the answer. All numbers of passages take their turn in every round. Linear is 100 times the cost for 100 times
the passages. Where nobody says how many hops there are, the default model seeks chains of 2, 3 and 4 among at most 60
passages, and of 2 among more.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import log
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from common import parser, print_heading, print_rows, seconds, spread
from speed import crowded

from rechain.formats.datasets import read_questions
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question
from rechain.system.processes import relax_collector

PASSAGES = (10, 30, 100, 300, 1000)
HOPS = (2, 3, 4, None)
MODELS = ("lexical", "default")
REALISTIC, CROWDED = "questions of open, passages of others added", "all passages share one rare name"
FILES = {REALISTIC: "growth_open.svg", CROWDED: "growth_crowded.svg"}
SEED = 0


class Line(NamedTuple):
    """The cost of one model, shape and number of hops."""

    shape: str
    model: str
    hops: int | None
    costs: Sequence[Mapping[int, float]]
    """of every question, seconds by the number of passages"""

    def cost(self, passages: int) -> float:
        """Return the median over the questions."""
        return median(cost[passages] for cost in self.costs)

    def growth(self) -> list[float]:
        """Return for every question how many times as much the most passages cost as the fewest."""
        return [cost[max(cost)] / cost[min(cost)] for cost in self.costs]

    def steepest(self) -> tuple[float, str]:
        """Return the greatest exponent between two neighbouring numbers of passages, and which they are."""
        pairs = pairwise(sorted(self.costs[0]))
        return max((log(self.cost(b) / self.cost(a)) / log(b / a), f"{a} to {b}") for a, b in pairs)


def with_distractors(question: Question, others: Sequence[Passage], number: int, hops: int | None) -> Question:
    """Return a question with `number` passages: its own, then others."""
    own = {passage.id for passage in question.passages}
    added = [passage for passage in others if passage.id not in own]
    passages = [*question.passages, *added][:number]
    assert len(passages) == number
    return question.model_copy(update={"passages": passages, "hops": hops})


def choose(questions: Sequence[Question], number: int, draw: random.Random) -> list[Question]:
    """Draw questions of ten passages that have a chain of every length."""
    recoverer = Recoverer("lexical")
    found: list[Question] = []
    for question in draw.sample(questions, len(questions)):
        asked = (question.model_copy(update={"hops": hops}) for hops in (2, 3, 4))
        if len(question.passages) == PASSAGES[0] and all(map(recoverer.recover, asked)):
            found.append(question)
        if len(found) == number:
            break
    return found


def different(questions: Sequence[Question], draw: random.Random) -> list[Passage]:
    """Return enough different passages, in random order, to fill up any question."""
    passages = {passage.id: passage for question in questions for passage in question.passages}
    return draw.sample(list(passages.values()), PASSAGES[-1] + PASSAGES[0])


def measured(recoverer: Recoverer, asked: Mapping[int, Question], repeats: int) -> dict[int, float]:
    """Return the median seconds by the number of passages; the numbers take turns."""
    taken: dict[int, list[float]] = {number: [] for number in asked}
    recoverer.recover(asked[min(asked)])
    for _ in range(repeats):
        for number, question in asked.items():
            taken[number].append(seconds(lambda q=question: recoverer.recover(q)))  # type: ignore[misc]
    return {number: median(values) for number, values in taken.items()}


def lines_of(
    shape: str, make: Callable[[int, int | None], Sequence[Question]], hops: Sequence[int | None], repeats: int
) -> list[Line]:
    """Measure a shape; `make` returns its questions for a number of passages and of hops."""
    lines = []
    for model in MODELS:
        recoverer = Recoverer(model)
        for known in hops if model == "default" else [number for number in hops if number]:
            made = {number: make(number, known) for number in PASSAGES}
            each = ({number: made[number][place] for number in PASSAGES} for place in range(len(made[PASSAGES[0]])))
            lines.append(Line(shape, model, known, [measured(recoverer, asked, repeats) for asked in each]))
    return lines


def print_lines(lines: Sequence[Line]) -> None:
    """Print the cost of a shape, a row for every model and number of hops."""
    print(f"{lines[0].shape[0].upper()}{lines[0].shape[1:]}, {len(lines[0].costs)} question(s):\n")
    times = f"{PASSAGES[-1]} against {PASSAGES[0]} passages, times"
    header = ("model", "hops", *(f"{number} passages, ms" for number in PASSAGES), times, "steepest exponent")
    rows = []
    for line in lines:
        costs = (f"{1000 * line.cost(number):.1f}" for number in PASSAGES)
        exponent, where = line.steepest()
        rows.append(
            (line.model, line.hops or "not told", *costs, spread(line.growth(), "{:.1f}"), f"{exponent:.2f} ({where})")
        )
    print_rows(header, rows)


def draw_lines(path: Path, lines: Sequence[Line]) -> None:
    """Draw the cost against the number of passages, a panel for each model."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure((9, 4), layout="constrained")
    panels: Any = figure.subplots(1, len(MODELS), sharey=True)
    for axes, model in zip(panels, MODELS, strict=True):
        for line in (line for line in lines if line.model == model):
            label = f"{line.hops} hops" if line.hops else "hops not told"
            axes.plot(PASSAGES, [1000 * line.cost(number) for number in PASSAGES], label=label, marker="o")
        start = 1000 * min(line.cost(PASSAGES[0]) for line in lines if line.model == model)
        linear = [start * number / PASSAGES[0] for number in PASSAGES]
        axes.plot(PASSAGES, linear, label="linear", linestyle="--", color="grey")
        axes.set(xscale="log", yscale="log", title=model, xlabel="passages a question")
        axes.set_xticks(PASSAGES, [f"{number:,}" for number in PASSAGES])
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    panels[0].set_ylabel("ms a question")
    figure.suptitle(lines[0].shape)
    with matplotlib.rc_context({"svg.hashsalt": "rechain"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the tables and draw the plots."""
    options = parser(__doc__)
    options.add_argument("--plots", type=Path, help="a folder for the plots, which is made if need be")
    options.add_argument("--questions", type=int, default=8, help="of open (8)")
    options.add_argument("--repeats", type=int, default=5)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    print_heading()
    draw = random.Random(SEED)
    questions = list(read_questions(arguments.data / "hotpotqa/open.json.gz"))
    some, others = choose(questions, arguments.questions, draw), different(questions, draw)
    del questions
    relax_collector()  # as workers do
    print(f"Seed {SEED}. Of {arguments.repeats} rounds the median; growth: median (range) over the questions.\n")
    shapes = [
        lines_of(
            REALISTIC,
            lambda number, hops: [with_distractors(question, others, number, hops) for question in some],
            HOPS,
            arguments.repeats,
        ),
        lines_of(CROWDED, lambda number, hops: [crowded(number, hops or 2)], HOPS[:-1], arguments.repeats),
    ]
    for lines in shapes:
        print_lines(lines)
        if arguments.plots:
            arguments.plots.mkdir(parents=True, exist_ok=True)
            draw_lines(arguments.plots / FILES[lines[0].shape], lines)


if __name__ == "__main__":
    main()
