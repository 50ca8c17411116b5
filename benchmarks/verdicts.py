"""Verdicts: right answers against answers of other questions of the same kind that occur in the same passages.

    python benchmarks/verdicts.py DATA [--limit N]

DATA is a folder as ../shared/data. Of every question of HotpotQA open, 2Wiki and MuSiQue whose answer occurs in its
passages, the right answer and up to three of other questions of the set are judged by the default model: the AUC says
how often a right one is scored above a wrong one. "Yes" and "no" occur in no passage.

    python benchmarks/verdicts.py DATA --fit LOGS

prints the weights of src/rechain/data/verdicts.json, fitted on HotpotQA train_300, 2Wiki, MuSiQue and those of our own
logs (`dev` and `fit`) that are for development; and how good weights are that were fitted on all sets but one, of our
logs each set by weights of the others: how many of the wrong answers are flagged, and how many of the right kept.
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

from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_by_id
from rechain.reader.prepare import WrongAnswers, answer_spans
from rechain.schema import Gold, Question, Recovered
from rechain.system.tensors import Array
from rechain.text.passage_views import PassageView

SETS = {
    "HotpotQA open": "hotpotqa/open.json.gz",
    "2Wiki train_500": "2wiki/train_500.json.gz",
    "MuSiQue train_100": "musique/train_100.json.gz",
}
FITTED = {"HotpotQA train_300": "hotpotqa/train_300.json.gz", **dict(list(SETS.items())[1:])}
WRONG = 3
"""wrong answers of a question at most"""
LOGS = "our own logs"
COUNTS = {(LOGS, False): 1.5}
"""how much right or wrong answers of a set count, where not 1: that a wrong one passes is worse than a doubt"""
PULL = 0.001
"""the strength of regularisation, as there are few answers"""


def questions_with_wrong_answers(data: Path, name: str) -> Iterator[tuple[Question, list[str]]]:
    """Yield the questions of a set whose answers occur in their passages, each with other questions' answers."""
    questions = list(read_questions(data / {**SETS, **FITTED}[name]))
    wrong = WrongAnswers(questions)
    for question in questions:
        others = wrong.of_others(question)
        if others and any(answer_spans(question, PassageView(passage)) for passage in question.passages):
            yield question, Random(question.id).sample(others, min(WRONG, len(others)))


def support_of(questions: Sequence[Question]) -> list[float]:
    """Return how likely the passages of questions support their answers, by the default model's verdicts."""
    from rechain.recoverer import Recoverer

    return [_probability(recovered) for recovered in Recoverer().recover_many(questions)]


def _probability(recovered: Recovered) -> float:
    """Return how likely an answer is supported: what its verdict leaves."""
    probability = recovered.verdict_probability or 0.0
    return probability if recovered.verdict == "supported" else (1 - probability) * 0.5


class Case(NamedTuple):
    """A right or a wrong answer, and the numbers that describe each of its claims; none if no passage supports it."""

    set: str
    described: Sequence[Mapping[str, float]]
    is_right: bool

    @property
    def group(self) -> str:
        """What counts as one set: all of our own logs together."""
        return self.set if self.set in FITTED else LOGS


def cases_of(name: str, questions: Sequence[tuple[Question, bool]]) -> Iterator[Case]:
    """Yield some answers as the default model's best evidence describes them."""
    from rechain.errors import QuestionError
    from rechain.reader.pretrained import load
    from rechain.scoring.verdict_weights import describe_claims
    from rechain.text.evidence.search import find_evidence

    model = load()
    for question, is_right in questions:
        try:
            candidates = find_evidence(question)
        except QuestionError:  # such an answer has its verdict without
            yield Case(name, (), is_right)
            continue
        (scores,) = model.score_many([candidates])
        best = int(np.argmax([sum(parts.values()) for parts in scores.contributions]))
        described = describe_claims(candidates, candidates.chains[best], scores.confidences[best], scores.support)
        yield Case(name, described, is_right)


def fit(cases: Sequence[Case]) -> dict[str, float]:
    """Return the weights under which right answers are likeliest: an answer is as likely right as its weakest claim.

    Every set counts the same, our own logs as one, and right answers as much as wrong ones but for `COUNTS`.
    """
    import torch

    cases = [case for case in cases if case.described]
    names = sorted({name for case in cases for numbers in case.described for name in numbers})
    groups = [(case.group, case.is_right) for case in cases]
    sizes = Counter(groups)
    inputs = torch.tensor([[claim.get(name, 0.0) for name in names] for case in cases for claim in case.described])
    owners = torch.tensor([number for number, case in enumerate(cases) for _ in case.described])
    signs = torch.tensor([1.0 if case.is_right else -1.0 for case in cases])
    shares = torch.tensor([COUNTS.get(group, 1.0) / sizes[group] for group in groups])
    pulled = torch.tensor([name not in ("claim", "phrase") for name in names])
    weights = torch.zeros(len(names), requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        weakest = torch.full((len(cases),), torch.inf).scatter_reduce(0, owners, inputs @ weights, "amin")
        likely = torch.nn.functional.logsigmoid(signs * weakest)
        value = -(shares * likely).sum() / shares.sum() + PULL * weights[pulled].square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return {name: round(value, 3) for name, value in zip(names, weights.tolist(), strict=True)}


def logits_of(cases: Sequence[Case], weights: Mapping[str, float]) -> Array:
    """Return how likely answers are right, by their weakest claims; of one that no passage holds, the least."""
    return np.array(
        [
            min((sum(weights.get(n, 0.0) * v for n, v in claim.items()) for claim in case.described), default=-np.inf)
            for case in cases
        ]
    )


def logged_cases(logs: Path) -> Iterator[Case]:
    """Yield the supported and unsupported answers of our own logs that are for development, by their sets."""
    for half in ("dev", "fit"):
        verdicts = {gold.id: gold.verdict for gold in read_by_id(logs / f"gold.{half}.jsonl", Gold).values()}
        of_sets: dict[str, list[tuple[Question, bool]]] = {}
        for question in read_questions(logs / f"questions.{half}.jsonl"):
            if verdicts[question.id] in ("supported", "unsupported"):
                is_right = verdicts[question.id] == "supported"
                of_sets.setdefault(question.id.rpartition("-")[0], []).append((question, is_right))
        for name, questions in of_sets.items():
            yield from cases_of(name, questions)


def encyclopaedic_cases(data: Path, limit: int | None) -> Iterator[Case]:
    """Yield right and wrong answers of the sets that are made of Wikipedia."""
    for name in FITTED:
        questions = islice(questions_with_wrong_answers(data, name), limit)
        pairs = [
            (question.model_copy(update={"answer": answer, "answer_aliases": []}), answer == question.answer)
            for question, wrong in questions
            for answer in (question.answer, *wrong)
        ]
        yield from cases_of(name, pairs)


def fitting(data: Path, logs: Path, limit: int | None) -> None:
    """Fit the weights of verdicts on sets that no figure is published of, and judge each by weights of the others."""
    from rechain.evaluation.statistics import auc_with_interval

    cases = [*encyclopaedic_cases(data, limit), *logged_cases(logs)]
    judged: dict[str, list[tuple[float, bool]]] = {}
    for left in sorted({case.set for case in cases}):
        weights = fit([case for case in cases if case.set != left])
        some = [case for case in cases if case.set == left]
        logits = logits_of(some, weights).tolist()
        judged.setdefault(some[0].group, []).extend(zip(logits, (case.is_right for case in some), strict=True))
    for group, pairs in judged.items():
        logits, is_right = (np.array(column) for column in zip(*pairs, strict=True))
        figure = auc_with_interval(np.maximum(logits, -30.0), is_right)
        flagged, kept = np.mean(logits[~is_right] < 0), np.mean(logits[is_right] >= 0)
        print(f"{group}, by weights of the other sets: AUC {figure.value:.3f}; {flagged:.0%} flagged, {kept:.0%} kept")
    sys.stdout.write(orjson.dumps(fit(cases), option=orjson.OPT_INDENT_2).decode() + "\n")


def main() -> None:
    """Print the AUC of every set, or fit."""
    from common import parser, percent, print_heading, print_rows

    from rechain.evaluation.statistics import auc_with_interval

    options = parser(__doc__)
    options.add_argument("--limit", type=int, help="questions of a set, the first ones; default: all")
    options.add_argument("--fit", type=Path, metavar="LOGS", help="fit weights; a folder that logs/build.py filled")
    arguments = options.parse_args()
    print_heading()
    if arguments.fit:
        fitting(arguments.data, arguments.fit, arguments.limit)
        return
    rows = []
    for name in SETS:
        questions = list(islice(questions_with_wrong_answers(arguments.data, name), arguments.limit))
        right = [question for question, _ in questions]
        wrong = [
            question.model_copy(update={"answer": answer, "answer_aliases": []})
            for question, answers in questions
            for answer in answers
        ]
        is_right = np.arange(len(right) + len(wrong)) < len(right)
        figure = auc_with_interval(np.array(support_of(right + wrong)), is_right)
        rows.append((name, len(right), len(wrong), percent(figure)))
    print_rows(("questions", "right answers", "wrong answers", "AUC, %"), rows)


if __name__ == "__main__":
    main()
