"""Our own logged questions (benchmarks/logs): python benchmarks/logged.py FOLDER [--half test] [--workers N].

FOLDER is what benchmarks/logs/build.py filled. Prints for how many supported answers evidence is found, how often it is
exactly the right passages, how many unsupported answers are flagged, and how well confidence is calibrated.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from common import print_heading, print_rows

from rechain import Recoverer
from rechain.evaluation.statistics import expected_calibration_error
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_by_id
from rechain.schema import Gold, Question, Recovered

Row = tuple[Question, Gold, Recovered]


def is_exact(row: Row) -> bool:
    """Return whether the best chain has exactly the passages of a gold chain."""
    _, gold, recovered = row
    return bool(recovered) and any(set(recovered[0].passages) == set(chain.passages) for chain in gold.chains)


def share(rows: Sequence[Row], counts: Callable[[Row], bool]) -> str:
    """Return of how many rows something is true."""
    return f"{sum(map(counts, rows))} of {len(rows)} ({100 * sum(map(counts, rows)) / len(rows):.0f} %)" if rows else ""


def figures(rows: Sequence[Row]) -> tuple[str, str, str, str]:
    """Return the figures of some questions."""
    supported = [row for row in rows if row[1].verdict in ("supported", "partly")]
    false = [row for row in rows if row[1].verdict == "unsupported"]
    true = [row for row in rows if row[1].verdict == "supported"]
    return (
        share(supported, lambda row: bool(row[2])),
        share(supported, is_exact),
        share(false, lambda row: row[2].verdict != "supported"),
        share(true, lambda row: row[2].verdict == "supported"),
    )


def main() -> None:
    """Print the figures of all questions, and by type and language."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--half", choices=("fit", "dev", "test"), default="test")
    options.add_argument("--workers", type=int, default=0)
    arguments = options.parse_args()
    print_heading()
    questions = list(read_questions(arguments.folder / f"questions.{arguments.half}.jsonl"))
    gold = read_by_id(arguments.folder / f"gold.{arguments.half}.jsonl", Gold)
    results = Recoverer().recover_many(questions, workers=arguments.workers)
    rows = [(question, gold[question.id], one) for question, one in zip(questions, results, strict=True)]
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        language = row[0].id[:2] if row[0].id.startswith(("de_", "zh_")) else "en"
        for name in ("all", f"language {language}", row[0].type or ""):
            groups[name].append(row)
    header = ("questions", "evidence", "exact passages", "unsupported flagged", "supported kept")
    print_rows(header, [(name, *figures(some)) for name, some in groups.items()])
    answered = [(row[2][0].confidence or 0.0, is_exact(row)) for row in rows if row[2]]
    print(
        f"expected calibration error of confidence, {len(answered)} chains: {expected_calibration_error(answered):.3f}"
    )
    judged = [row for row in rows if row[2].verdict_probability is not None]
    right = [(row[2].verdict_probability or 0.0, row[2].verdict == row[1].verdict) for row in judged]
    share_right = sum(one for _, one in right) / len(right)
    print(
        f"verdicts that are right: {100 * share_right:.0f} %; calibration error {expected_calibration_error(right):.3f}"
    )


if __name__ == "__main__":
    main()
