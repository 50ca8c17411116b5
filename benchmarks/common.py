"""What the benchmarks share: where the data is, and a heading that says how the figures came about."""

import datetime
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rechain.baselines import Model
from rechain.candidates import CandidateSettings
from rechain.evaluation import Figure, Verdict, judge
from rechain.gold import read_gold
from rechain.recovery import Recoverer
from rechain.schema import Gold, Question

Pair = tuple[Question, Gold]


def data_folder() -> Path:
    """Return the data folder named on the command line."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        raise SystemExit(f"usage: python {sys.argv[0]} DATA_FOLDER")
    return Path(sys.argv[1])


def print_heading() -> None:
    """Print the command, date and machine that the figures below come from."""
    print(f"Command: `python {' '.join(sys.argv)}`  ")
    print(f"Date: {datetime.date.today()}  ")
    python = f"Python {platform.python_version()}"
    print(f"Machine: {platform.machine()}, {os.cpu_count()} cores, no GPU, {platform.system()}, {python}\n")


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
