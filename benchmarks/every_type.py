"""HotpotQA open, questions of every type: python benchmarks/every_type.py ../shared/data [--workers N].

The default model is given neither the type nor the number of passages; evidence is right if its passages are those of
the gold, in any order.
"""

from collections import defaultdict
from itertools import islice

from common import parser, percent, print_heading, print_rows

from rechain import Recoverer
from rechain.evaluation.gold import read_gold
from rechain.evaluation.judging import is_unambiguous
from rechain.evaluation.statistics import expected_calibration_error, mean_with_interval
from rechain.formats.datasets import read_questions


def main() -> None:
    """Print the share of right evidence by type."""
    options = parser(__doc__)
    options.add_argument("--workers", type=int, default=0)
    options.add_argument("--limit", type=int, help="questions, the first ones; default: all")
    arguments = options.parse_args()
    print_heading()
    file = arguments.data / "hotpotqa/open.json.gz"
    questions = list(islice(read_questions(file), arguments.limit))
    gold = read_gold(file, questions)
    right: dict[str, list[bool]] = defaultdict(list)
    shapes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    confident = []
    for question, one in zip(questions, Recoverer().recover_many(questions, workers=arguments.workers), strict=True):
        gold_passages = [set(chain.passages) for chain in gold[question.id].chains]
        is_right = bool(one) and set(one[0].passages) in gold_passages
        names = ["all", question.type or ""]
        names += (
            ["bridge, unambiguous"] if question.type == "bridge" and is_unambiguous(question, gold[question.id]) else []
        )
        for name in names:
            right[name].append(is_right)
            shapes[name][one[0].shape if one else "none"] += 1
        if one:
            confident.append((one[0].confidence or 0.0, is_right))
    rows = [(n, len(v), percent(mean_with_interval(v)), dict(shapes[n])) for n, v in right.items()]
    print_rows(("questions", "number", "exact passages, %", "shapes"), rows)
    print(f"expected calibration error: {expected_calibration_error(confident):.4f}")


if __name__ == "__main__":
    main()
