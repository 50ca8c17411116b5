"""Verdicts: right answers against answers of other questions of the same kind that stand in the same passages.

    python benchmarks/verdicts.py DATA [--limit N]

DATA is a folder as ../shared/data. Of every question of HotpotQA open, 2Wiki and MuSiQue whose answer stands in its
passages, the right answer and up to three of other questions of the set are judged by the default model: the AUC says
how often a right one is held to be better supported than a wrong one. "Yes" and "no" stand in no passage.

    python benchmarks/verdicts.py DATA --fit LOGS

prints the weights of src/rechain/data/verdicts.json, fitted on HotpotQA train_300, 2Wiki, MuSiQue and the development
half of our own logs; and how good weights are that were fitted on all of these but one.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import orjson

from rechain.datasets import read_questions
from rechain.datasets.records import read_by_id
from rechain.preparation.wrong_answers import WrongAnswers
from rechain.reader.arrays import answer_spans
from rechain.schema import Gold, Question, Recovered
from rechain.text.passages import PassageView

SETS = {
    "HotpotQA open": "hotpotqa/open.json.gz",
    "2Wiki train_500": "2wiki/train_500.json.gz",
    "MuSiQue train_100": "musique/train_100.json.gz",
}
FITTED = {"HotpotQA train_300": "hotpotqa/train_300.json.gz", **dict(list(SETS.items())[1:])}
WRONG = 3
"""wrong answers of a question at most"""
SHARE = {"logs": 3.0}
"""how much a set counts beside the others, which count 1: answers as they are written are in our own logs alone"""
PULL = 0.001
"""holds the weights to nothing, as there are few answers"""


def questions_with_wrong_answers(data: Path, name: str) -> Iterator[tuple[Question, list[str]]]:
    """Yield the questions of a set whose answers stand in their passages, each with other questions' answers."""
    questions = list(read_questions(data / {**SETS, **FITTED}[name]))
    wrong = WrongAnswers(questions)
    for question in questions:
        views = [PassageView(passage) for passage in question.passages]
        others = wrong.of_others(question, views)
        if others and any(answer_spans(question, view) for view in views):
            yield question, Random(question.id).sample(others, min(WRONG, len(others)))


def support_of(questions: Sequence[Question]) -> list[float]:
    """Return how likely the passages of questions support their answers, by the default model's verdicts."""
    from rechain.recovery import Recoverer

    return [_probability(recovered) for recovered in Recoverer().recover_many(questions)]


def _probability(recovered: Recovered) -> float:
    """Return how likely an answer is supported: what its verdict leaves."""
    probability = recovered.verdict_probability or 0.0
    return probability if recovered.verdict == "supported" else (1 - probability) * 0.5


class ClaimCase(NamedTuple):
    """A claim of a right or a wrong answer, and the numbers that describe it."""

    set: str
    described: Mapping[str, float]
    is_right: bool


def claim_cases(name: str, questions: Sequence[tuple[Question, bool]]) -> Iterator[ClaimCase]:
    """Yield every claim of some answers, by the default model's best evidence."""
    from rechain.candidates import find_of_any_shape
    from rechain.errors import QuestionError
    from rechain.reader.pretrained import load
    from rechain.scoring.verdicts import describe_claims

    model = load()
    for question, is_right in questions:
        try:
            candidates = find_of_any_shape(question)
        except QuestionError:  # such an answer has its verdict without
            continue
        (scores,) = model.score_many([candidates])
        best = int(np.argmax([sum(parts.values()) for parts in scores.contributions]))
        described = describe_claims(candidates, candidates.chains[best], scores.confidences[best], scores.support)
        yield from (ClaimCase(name, numbers, is_right) for numbers in described)


def fit(cases: Sequence[ClaimCase]) -> dict[str, float]:
    """Return the weights under which right answers are likeliest; every set counts the same, right as much as wrong."""
    import torch

    names = sorted({name for case in cases for name in case.described})
    sizes = Counter((case.set, case.is_right) for case in cases)
    inputs = torch.tensor([[case.described.get(name, 0.0) for name in names] for case in cases])
    signs = torch.tensor([1.0 if case.is_right else -1.0 for case in cases])
    shares = torch.tensor([SHARE.get(case.set, 1.0) / sizes[case.set, case.is_right] for case in cases])
    weights = torch.zeros(len(names), requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        likely = torch.nn.functional.logsigmoid(signs * (inputs @ weights))
        value = -(shares * likely).sum() / shares.sum() + PULL * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return {name: round(value, 3) for name, value in zip(names, weights.tolist(), strict=True)}


def fitting(data: Path, logs: Path, limit: int | None) -> None:
    """Fit the weights of verdicts on sets that no figure is published of, or judge each by weights of the others."""
    from rechain.evaluation.statistics import auc_with_interval

    cases: list[ClaimCase] = []
    for name in FITTED:
        asked = islice(questions_with_wrong_answers(data, name), limit)
        pairs = [
            (question.model_copy(update={"answer": answer, "answer_aliases": []}), answer == question.answer)
            for question, wrong in asked
            for answer in (question.answer, *wrong)
        ]
        cases += claim_cases(name, pairs)
    verdicts = {gold.id: gold.verdict for gold in read_by_id(logs / "gold.dev.jsonl", Gold).values()}
    logged = [
        (question, verdicts[question.id] == "supported")
        for question in read_questions(logs / "questions.dev.jsonl")
        if verdicts[question.id] in ("supported", "unsupported")
    ]
    cases += claim_cases("logs", logged)
    for left in sorted({case.set for case in cases}):
        weights = fit([case for case in cases if case.set != left])
        some = [case for case in cases if case.set == left]
        logits = np.array([sum(weights.get(n, 0.0) * v for n, v in case.described.items()) for case in some])
        figure = auc_with_interval(logits, np.array([case.is_right for case in some]))
        print(f"{left}, claims, fitted on the others: AUC {figure}")
    sys.stdout.write(orjson.dumps(fit(cases), option=orjson.OPT_INDENT_2).decode() + "\n")


def main() -> None:
    """Print the AUC of every set, or fit."""
    from common import parser, percent, print_heading, print_rows

    from rechain.evaluation.statistics import auc_with_interval

    options = parser(__doc__)
    options.add_argument("--limit", type=int, help="questions of a set, the first ones; all unless told")
    options.add_argument("--fit", type=Path, metavar="LOGS", help="fit weights; a folder that logs/build.py filled")
    told = options.parse_args()
    print_heading()
    if told.fit:
        fitting(told.data, told.fit, told.limit)
        return
    rows = []
    for name in SETS:
        asked = list(islice(questions_with_wrong_answers(told.data, name), told.limit))
        right = [question for question, _ in asked]
        wrong = [
            question.model_copy(update={"answer": answer, "answer_aliases": []})
            for question, answers in asked
            for answer in answers
        ]
        is_right = np.arange(len(right) + len(wrong)) < len(right)
        figure = auc_with_interval(np.array(support_of(right + wrong)), is_right)
        rows.append((name, len(right), len(wrong), percent(figure)))
    print_rows(("questions", "right answers", "wrong answers", "AUC, %"), rows)


if __name__ == "__main__":
    main()
