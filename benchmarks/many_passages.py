"""Chains of three passages among 20 and among 200: python benchmarks/many_passages.py DATA [--questions N].

The first questions of MuSiQue open that need three passages in a row, each with its own 20 passages and with those of
nine others beside them. The default model was taught on these questions, so the difference counts, and not the level.
"""

from itertools import islice
from time import process_time

from common import parser, percent, print_heading, print_rows

from rechain.evaluation.gold import read_gold
from rechain.evaluation.judging import is_correct
from rechain.evaluation.statistics import mean_with_interval
from rechain.formats.datasets import read_questions
from rechain.recoverer import Recoverer
from rechain.schema import Question

OTHERS = 9
"""questions whose passages are added"""


def main() -> None:
    """Print how often exactly the right passages are found, and what a question takes."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=131)
    arguments = options.parse_args()
    file = arguments.data / "musique/open_519.jsonl.gz"
    every = [question.model_copy(update={"hops": None}) for question in read_questions(file)]
    gold, recoverer = read_gold(file, every), Recoverer()
    asked = list(islice((one for one in enumerate(every) if one[1].id.startswith("3hop1")), arguments.questions))
    print_heading()
    rows, right = [], []
    for others in (0, OTHERS):
        questions = [merged(every, place, others) for place, _ in asked]
        start = process_time()
        found = [recoverer.recover(question).chains[0] for question in questions]
        taken = (process_time() - start) / len(questions)
        right.append(
            [
                is_correct(chain.passages, [], gold[question.id], chain.shape)
                for chain, question in zip(found, questions, strict=True)
            ]
        )
        passages = sum(len(question.passages) for question in questions) / len(questions)
        rows.append((f"{passages:.0f}", percent(mean_with_interval(right[-1])), f"{1000 * taken:.0f}"))
    print_rows(("passages", "exact passages, %", "CPU, ms a question"), rows)
    lost = [float(one) - float(other) for one, other in zip(*right, strict=True)]
    print(f"Lost among many, paired: {percent(mean_with_interval(lost))} points")


def merged(every: list[Question], place: int, others: int) -> Question:
    """Return a question with its own passages and those of the questions after it."""
    question = every[place]
    passages = list(question.passages)
    for step in range(1, others + 1):
        other = every[(place + step) % len(every)]
        passages += [one.model_copy(update={"id": f"{other.id} {one.id}"}) for one in other.passages]
    return question.model_copy(update={"passages": passages})


if __name__ == "__main__":
    main()
