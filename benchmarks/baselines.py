"""How often the baselines pick the right chain.

    python benchmarks/baselines.py ../shared/data

The random baseline draws with seed 0; its expectation is in benchmarks/candidates.py. Bootstrap: seed 0.
"""

from collections.abc import Iterator
from pathlib import Path

from common import (
    MUSIQUE_HOPS,
    Pair,
    bridge_pairs,
    data_folder,
    drughop_pairs,
    musique_pairs,
    percent,
    print_heading,
    print_rows,
    two_wiki_pairs,
    verdicts,
)

from rechain.evaluation.judging import summarise
from rechain.scoring import BASELINES, Lexical

FIGURES = {
    "chain accuracy": "chain accuracy, %",
    "ordered accuracy": "ordered, %",
    "head recall": "head, %",
    "tail recall": "tail, %",
    "links, where passages are right": "linking entities, %",
}
FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0)


def sets(data: Path) -> Iterator[tuple[str, list[Pair], int | None]]:
    """Yield every set of questions with its gold and, where the questions do not say it, the number of hops."""
    yield "HotpotQA open, unambiguous bridge", bridge_pairs(data), None
    yield "HotpotQA open, all bridge", bridge_pairs(data, unambiguous=False), None
    yield "DrugHop open", drughop_pairs(data), None
    yield "2Wiki train_500, chains", two_wiki_pairs(data), None
    for kind, hops in MUSIQUE_HOPS.items():
        yield f"MuSiQue train_100, {kind}", musique_pairs(data, kind), hops


def main() -> None:
    """Print the table."""
    data = data_folder()
    print_heading()
    rows = []
    for name, pairs, hops in sets(data):
        for model in BASELINES:
            figures = summarise(verdicts(pairs, model, hops))
            rows.append((name, len(pairs), model, *(percent(figures.get(column)) for column in FIGURES)))
    print_rows(("questions", "number", "model", *FIGURES.values()), rows)
    name, pairs, _ = next(sets(data))
    print(f"The weight of the links next to the question's words in `lexical` ({name}):\n")
    accuracies = [summarise(verdicts(pairs, Lexical(factor)))["chain accuracy"] for factor in FACTORS]
    print_rows(("factor of the links", "chain accuracy, %"), zip(FACTORS, map(percent, accuracies), strict=True))


if __name__ == "__main__":
    main()
