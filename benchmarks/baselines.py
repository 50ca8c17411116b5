"""How often the baselines pick the right chain.

    python benchmarks/baselines.py ../shared/data

The random baseline draws with seed 0; its expectation is in benchmarks/candidates.py. Bootstrap: seed 0.
"""

from collections.abc import Iterator
from pathlib import Path

from common import Pair, data_folder, percent, print_heading, print_rows, verdicts, with_gold

from rechain.datasets import read_questions
from rechain.evaluation.judging import is_unambiguous, summarise
from rechain.scoring import BASELINES, Lexical

HEADER = (
    "questions",
    "number",
    "model",
    "chain accuracy, %",
    "ordered, %",
    "head, %",
    "tail, %",
    "linking entities, %",
)
FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0)
COLUMNS = (
    "chain accuracy",
    "ordered accuracy",
    "head recall",
    "tail recall",
    "links, where passages are right",
)


def sets(data: Path) -> Iterator[tuple[str, list[Pair], int | None]]:
    """Yield every set of questions with its gold and, where the questions do not say it, the number of hops."""
    file = data / "hotpotqa/open.json.gz"
    bridge = with_gold(read_questions(file, only=["bridge"]), file)
    yield "HotpotQA open, unambiguous bridge", [pair for pair in bridge if is_unambiguous(*pair)], None
    yield "HotpotQA open, all bridge", bridge, None
    file = data / "drughop/open.jsonl.gz"
    questions = read_questions(file, passages=data / "drughop/passages.jsonl.gz")
    yield "DrugHop open", with_gold(questions, data / "drughop/open.gold.jsonl.gz"), None
    file = data / "2wiki/train_500.json.gz"
    yield "2Wiki train_500, chains", with_gold(read_questions(file, only=["compositional", "inference"]), file), None
    file = data / "musique/train_100.json.gz"
    for kind, hops in (("2hop", 2), ("3hop1", 3), ("4hop1", 4)):
        yield f"MuSiQue train_100, {kind}", with_gold(read_questions(file, only=[kind]), file), hops


def main() -> None:
    """Print the table."""
    data = data_folder()
    print_heading()
    rows = []
    for name, pairs, hops in sets(data):
        for model in BASELINES:
            figures = summarise(verdicts(pairs, model, hops))
            rows.append((name, len(pairs), model, *(percent(figures.get(column)) for column in COLUMNS)))
    print_rows(HEADER, rows)
    name, pairs, _ = next(sets(data))
    print(f"What the links weigh beside the question's words in `lexical` ({name}):\n")
    accuracies = [summarise(verdicts(pairs, Lexical(factor)))["chain accuracy"] for factor in FACTORS]
    print_rows(("factor of the links", "chain accuracy, %"), zip(FACTORS, map(percent, accuracies), strict=True))


if __name__ == "__main__":
    main()
