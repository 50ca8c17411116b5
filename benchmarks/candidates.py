"""C: how large it is, and how often the gold chain is in it.

    python benchmarks/candidates.py ../shared/data

Nothing is random here but the bootstrap (seed 0).
"""

from collections import Counter
from collections.abc import Sequence

from common import Pair, bridge_pairs, data_folder, drughop_pairs, percent, print_heading, print_rows

from rechain.evaluation.judging import count_candidates, summarise_candidates
from rechain.text.candidates import CandidateSettings
from rechain.text.linking import DEFAULT_MIN_WEIGHT

HEADER = ("questions", "number", "setting", "chains", "tails", "gold in C, %", "random pick, %", "without a chain")
NO_LIMIT = 1_000_000


def row(name: str, pairs: Sequence[Pair], setting: str, settings: CandidateSettings) -> tuple[object, ...]:
    """Return a row of the table."""
    counts = [count_candidates(question, gold, settings) for question, gold in pairs]
    errors = Counter(count.error.code for count in counts if count.error)
    if any(each.is_cut for each in counts):
        raise SystemExit(f"{name}: the limit was reached, so the figures would not be those of C")
    figures = summarise_candidates(counts)
    return (
        name,
        len(pairs),
        setting,
        f"{figures['chains a question'].value:.2f}",
        f"{figures['tails a question'].value:.2f}",
        percent(figures.get("gold chain in C")),
        percent(figures.get("accuracy of a random pick")),
        ", ".join(f"{n} {code}" for code, n in errors.items()) or "none",
    )


def main() -> None:
    """Print the tables."""
    data = data_folder()
    print_heading()
    bridge, unambiguous, drughop = bridge_pairs(data, unambiguous=False), bridge_pairs(data), drughop_pairs(data)
    default = CandidateSettings(limit=NO_LIMIT)
    rows = [row("HotpotQA open, unambiguous bridge", unambiguous, "default", default)]
    rows.append(row("HotpotQA open, all bridge", bridge, "default", default))
    rows.append(row("HotpotQA train_300, unambiguous bridge", bridge_pairs(data, "train_300"), "default", default))
    rows.append(row("DrugHop open", drughop, "default", default))
    any_type = CandidateSettings(link_types=(), linkers=("anchors",), limit=NO_LIMIT)
    rows.append(row("DrugHop open", drughop, "no link types, anchors alone", any_type))
    print_rows(HEADER, rows)

    print("What each linker finds, and what the threshold does (HotpotQA open, unambiguous bridge):\n")
    rows = [
        row("titles alone", unambiguous, "", CandidateSettings(linkers=("titles",), limit=NO_LIMIT)),
        row("names alone", unambiguous, "", CandidateSettings(linkers=("names",), limit=NO_LIMIT)),
    ]
    for weight in (6.0, 6.5, DEFAULT_MIN_WEIGHT, 7.5, 8.0, 9.0):
        settings = CandidateSettings(min_weight=weight, limit=NO_LIMIT)
        rows.append(row("both", unambiguous, f"weight at least {weight}", settings))
    print_rows(HEADER, rows)


if __name__ == "__main__":
    main()
