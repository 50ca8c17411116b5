"""CPU a question: PYTHONPATH=VERSION/src python benchmarks/cpu_time.py DATA LOGS [--models default,lexical].

One thread, after a few questions to warm up. To compare versions of rechain, run it with the `src` of each in turns.
LOGS is what benchmarks/logs/build.py wrote.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from time import process_time

import torch
from common import parser, print_heading, print_rows

from rechain.formats.datasets import read_questions
from rechain.recoverer import Recoverer
from rechain.schema import Question

FILES = {
    "HotpotQA train_300": ("hotpotqa/train_300.json.gz", 150),
    "MuSiQue train_100": ("musique/train_100.json.gz", 100),
    "DrugHop open": ("drughop/open.jsonl.gz", 100),
    "our logs, test": ("questions.test.jsonl", 151),
}
WARM_UP = 8


def main() -> None:
    """Print the milliseconds of CPU that each model takes a question."""
    options = parser(__doc__)
    options.add_argument("logs", type=Path)
    options.add_argument("--models", default="default,lexical")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    print_heading()
    rows = []
    for name, (file, most) in FILES.items():
        folder = arguments.logs if "logs" in name else arguments.data
        passages = folder / "drughop/passages.jsonl.gz" if "DrugHop" in name else None
        questions = list(islice(read_questions(folder / file, passages=passages), most))
        times = [f"{milliseconds(model, questions):.1f}" for model in arguments.models.split(",")]
        rows.append((name, len(questions), *times))
    print_rows(("questions", "number", *arguments.models.split(",")), rows)


def milliseconds(model: str, questions: Sequence[Question]) -> float:
    """Return what a question takes, all of them together."""
    recoverer = Recoverer(model)
    list(recoverer.recover_many(questions[:WARM_UP]))
    start = process_time()
    list(recoverer.recover_many(questions))
    return 1000 * (process_time() - start) / len(questions)


if __name__ == "__main__":
    main()
