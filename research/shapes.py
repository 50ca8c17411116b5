"""Fit what tells the shapes of evidence apart (`scoring.shape_weights`): python research/shapes.py ../shared/data.

The questions are those of HotpotQA train_300, 2WikiMultihopQA and MuSiQue, and MuSiQue's partial questions, each
answered by one passage. HotpotQA open is never looked at. Each set is also judged by weights that were fitted on the
others alone. Evidence in documents is weighed by other numbers: research/documents.py.
"""

import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import torch
from common import parser, print_heading, print_rows

from rechain.errors import QuestionError
from rechain.evaluation.gold import read_gold
from rechain.formats.datasets import read_questions
from rechain.schema import SHAPES, Question, Shape
from rechain.text.evidence.features import weigh
from rechain.scoring.shape_weights import best_of_shapes, describe, weigh_answer, weigh_prior
from rechain.text.candidates import find_of_any_shape

WEIGHT = {"HotpotQA train_300": 25.0, "MuSiQue, partial": 0.3}
"""how much a set counts beside the others, which count 1: bridge questions that one passage nearly answers are many in
HotpotQA, and their figures should not fall"""
PULL = 0.00005
"""holds the weights to nothing, as there are few questions"""

Golds = set[frozenset[str]]


class Case(NamedTuple):
    """A question: what describes the best candidate of each shape, and whether that is right."""

    set: str
    kind: str
    described: Mapping[Shape, Mapping[str, float]]
    right: Mapping[Shape, bool]


def published(data: Path) -> Iterator[tuple[str, Question, Golds]]:
    """Yield the questions of published sets, without the number of their hops."""
    for name, file in (
        ("HotpotQA train_300", "hotpotqa/train_300.json.gz"),
        ("2Wiki", "2wiki/train_500.json.gz"),
        ("MuSiQue", "musique/train_100.json.gz"),
    ):
        questions = list(read_questions(data / file))
        gold = read_gold(data / file, questions)
        for question in questions:
            if question.id in gold and question.type != "bridge_comparison":  # four passages in two chains
                chains = {frozenset(chain.passages) for chain in gold[question.id].chains}
                yield name, question.model_copy(update={"hops": None}), chains


def partial_questions(data: Path) -> Iterator[tuple[str, Question, Golds]]:
    """Yield the partial questions of MuSiQue that are written as questions, each with its one passage."""
    file = data / "musique/train_100.json.gz"
    questions = {question.id: question for question in read_questions(file)}
    records = orjson.loads(gzip.decompress(file.read_bytes()))
    for record in records:
        answers: list[str] = []
        for number, part in enumerate(record["question_decomposition"]):
            text = part["question"]
            for place, answer in enumerate(answers, 1):
                text = text.replace(f"#{place}", answer)
            answers.append(part["answer"])
            if ">>" not in text and "#" not in text:
                whole = questions[record["id"]]
                fields = {"id": f"{whole.id}.{number}", "question": text, "answer": part["answer"]}
                yield (
                    "MuSiQue, partial",
                    whole.model_copy(update={**fields, "answer_aliases": [], "hops": None}),
                    {frozenset([str(part["paragraph_support_idx"])])},
                )


def cases(questions: Iterable[tuple[str, Question, Golds]]) -> Iterator[Case]:
    """Yield what is fitted: questions of which the best candidate of some shape is right."""
    for name, question, gold in questions:
        try:
            candidates = find_of_any_shape(question)
        except QuestionError:
            continue
        features = weigh(candidates)
        best = best_of_shapes(candidates, weigh_prior(features, weigh_answer(candidates)))
        right = {
            shape: frozenset(candidates.views[place].passage.id for place in candidates.chains[number].passages) in gold
            for shape, number in best.items()
        }
        yield Case(name, question.type or "", describe(candidates, features, best), right)


def fit(sample: Sequence[Case], names: Sequence[str]) -> dict[str, float]:
    """Return the weights under which the right shapes are likeliest."""
    sample = [case for case in sample if any(case.right.values())]
    sizes = Counter(case.set for case in sample)
    values = np.zeros((len(sample), len(SHAPES), len(names)), dtype=np.float32)
    absent, right = np.ones(values.shape[:2], dtype=bool), np.zeros(values.shape[:2], dtype=bool)
    for row, case in enumerate(sample):
        for shape, described in case.described.items():
            place = list(SHAPES).index(shape)
            values[row, place] = [described.get(name, 0.0) for name in names]
            absent[row, place], right[row, place] = False, case.right[shape]
    inputs, shares = torch.from_numpy(values), torch.tensor([WEIGHT.get(c.set, 1.0) / sizes[c.set] for c in sample])
    weights = torch.zeros(len(names), requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logs = (inputs @ weights).masked_fill(torch.from_numpy(absent), -1e9).log_softmax(1)
        of_right = logs.masked_fill(~torch.from_numpy(right), -1e9).logsumexp(1)
        value = -(shares * of_right).sum() / shares.sum() + PULL * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return {name: round(float(value.detach()), 3) for name, value in zip(names, weights, strict=True)}


def choose(case: Case, weights: Mapping[str, float]) -> Shape:
    """Return the likeliest shape."""
    sums = {s: sum(weights[name] * value for name, value in d.items()) for s, d in case.described.items()}
    return max(sums, key=sums.__getitem__)


def rows(sample: Sequence[Case], weights: Mapping[str, float]) -> Iterator[Sequence[object]]:
    """Yield for every set and type how often the chosen shape is right, and could be."""
    for name in sorted({(case.set, case.kind) for case in sample}):
        some = [case for case in sample if (case.set, case.kind) == name]
        chosen = [choose(case, weights) for case in some]
        right = sum(case.right[shape] for case, shape in zip(some, chosen, strict=True))
        could = sum(any(case.right.values()) for case in some)
        counts = Counter(chosen)
        yield (
            *name,
            len(some),
            f"{100 * right / len(some):.1f}",
            f"{100 * could / len(some):.1f}",
            *(counts[shape] for shape in SHAPES),
        )


def main() -> None:
    """Fit on everything and print the weights; then on all sets but one, and judge that one."""
    options = parser(__doc__)
    arguments = options.parse_args()
    print_heading()
    sample = list(cases((*published(arguments.data), *partial_questions(arguments.data))))
    names = sorted({name for case in sample for described in case.described.values() for name in described})
    weights = fit(sample, names)
    sys.stdout.write(orjson.dumps(weights, option=orjson.OPT_INDENT_2).decode() + "\n\n")
    header = ("questions", "type", "number", "right, %", "at best, %", *SHAPES)
    print_rows(header, rows(sample, weights))
    for left in sorted({case.set for case in sample}):
        others = fit([case for case in sample if case.set != left], names)
        print(f"{left}, fitted on the others:\n")
        print_rows(header, rows([case for case in sample if case.set == left], others))


if __name__ == "__main__":
    main()
