"""Fit what tells evidence in documents (`scoring.shape_weights`): python research/documents.py LOGS [--write].

LOGS is what benchmarks/logs/build.py filled; its halves fit and dev are read, each question with all its passages and
with as few as SIZES says, as retrievers are set. Prints how often the best candidate has exactly the right passages
where weights were fitted on other sets of documents alone (in FOLDS parts), and how well confidence is calibrated
there, false answers included, whose evidence is never right; `--write` fits on all and writes
src/rechain/data/documents.json.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import torch
from common import print_heading, print_rows

from rechain.errors import QuestionError
from rechain.evaluation.statistics import expected_calibration_error
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_by_id
from rechain.reader.pretrained import load
from rechain.schema import Gold, Question
from rechain.scoring.interface import BUNDLED
from rechain.scoring.shape_weights import NAMES, NOTHING, describe_documents
from rechain.system.tensors import Array
from rechain.text.answers.matcher import Meaning
from rechain.text.candidates import find_of_any_shape

HALVES = ("fit", "dev")
SIZES = (None, 5, 3)
FOLDS = 6
PULL = 0.005
"""holds the weights of standardised numbers to nothing: 0.001 and 0.02 differ by less than a point"""
NOTHINGS = tuple(np.arange(-4.0, 16.0, 0.5).tolist())
"""weights that are tried for "none of these", after the others: fitted with them it makes the best candidates worse"""
WEIGHTS = Path(__file__).parent.parent / "src/rechain/data/documents.json"


class Case(NamedTuple):
    """A question with its candidates: their numbers, which have the right passages, and which passages they have."""

    set: str
    kind: str
    size: int | None
    numbers: Array
    right: Array
    passages: Sequence[frozenset[int]]


def read_cases(folder: Path) -> Iterator[Case]:
    """Yield the questions of both halves whose answer is right, in part at least, or false."""
    meaning = load(BUNDLED, "cpu").meaning
    for half in HALVES:
        gold = read_by_id(folder / f"gold.{half}.jsonl", Gold)
        for question in read_questions(folder / f"questions.{half}.jsonl"):
            of = gold[question.id]
            if of.verdict != "no_answer":
                needed = of.chains[0].passages if of.chains else []
                yield from (read_case(question, needed, size, meaning) for size in SIZES)


def read_case(question: Question, needed: Sequence[str], size: int | None, meaning: Meaning) -> Case:
    """Return a question with so many of its passages, those that are needed among them."""
    others = [passage.id for passage in question.passages if passage.id not in needed]
    kept = {*needed, *others[: None if size is None else max(size - len(needed), 0)]}
    cut = question.model_copy(update={"passages": [passage for passage in question.passages if passage.id in kept]})
    numbers, passages = np.zeros((0, len(NAMES))), list[frozenset[int]]()
    with suppress(QuestionError):
        candidates = find_of_any_shape(cut, meaning=meaning)
        numbers, passages = describe_documents(candidates), [frozenset(chain.passages) for chain in candidates.chains]
    wanted = {place for place, passage in enumerate(cut.passages) if passage.id in needed}
    right = [bool(needed) and one == wanted for one in passages]
    name, kind = question.id.rpartition("-")[0], question.type or ""
    return Case(name, kind, size, numbers, np.array(right, dtype=bool), passages)


def fit(cases: Sequence[Case]) -> Array:
    """Return the weights under which the right candidates are likeliest, where one is."""
    cases = [case for case in cases if case.right.any()]
    numbers = np.concatenate([case.numbers for case in cases])
    spread = numbers.std(0)
    spread[spread == 0] = np.inf  # a number that never varies weighs nothing
    inputs, right = torch.from_numpy(numbers / spread), torch.from_numpy(np.concatenate([case.right for case in cases]))
    of = torch.repeat_interleave(torch.arange(len(cases)), torch.tensor([len(case.right) for case in cases]))
    weights = torch.zeros(len(NAMES), dtype=torch.double, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def log_sum(logits: torch.Tensor) -> torch.Tensor:
        sums = torch.zeros(len(cases), dtype=torch.double).index_add(0, of, logits.exp())
        return sums.clamp_min(1e-300).log()

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logits = inputs @ weights
        greatest = torch.zeros(len(cases), dtype=torch.double).scatter_reduce(
            0, of, logits.detach(), "amax", include_self=False
        )
        logits = logits - greatest[of]
        value = (
            log_sum(logits) - log_sum(logits.masked_fill(~right, -torch.inf))
        ).mean() + PULL * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    found: Array = weights.detach().numpy() / spread
    return found


def judge(case: Case, weights: Array, nothing: float) -> tuple[float, bool]:
    """Return the confidence in the best candidate of a question, and whether it is right."""
    if not len(case.right):
        return 0.0, False
    logits = case.numbers @ weights
    best, most = int(logits.argmax()), logits.max()
    likely = np.exp(logits - most)
    same = [one == case.passages[best] for one in case.passages]
    return float(likely[same].sum() / (likely.sum() + np.exp(nothing - most))), bool(case.right[best])


def log_loss(judged: Sequence[tuple[float, bool]]) -> float:
    """Return how unlikely confidences make what came true."""
    told = np.array([one if is_right else 1 - one for one, is_right in judged])
    return -float(np.log(told.clip(1e-6)).mean())


def main() -> None:
    """Judge every set by weights that were fitted on others; with --write, fit on all."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("logs", type=Path)
    options.add_argument("--write", action="store_true")
    told = options.parse_args()
    print_heading()
    cases = list(read_cases(told.logs))
    fold = {name: number % FOLDS for number, name in enumerate(sorted({case.set for case in cases}))}
    fitted = [fit([case for case in cases if fold[case.set] != number]) for number in range(FOLDS)]
    judge_by = {nothing: [judge(case, fitted[fold[case.set]], nothing) for case in cases] for nothing in NOTHINGS}
    nothing = min(NOTHINGS, key=lambda value: log_loss(judge_by[value]))
    judged = judge_by[nothing]
    true = [(case, one) for case, one in zip(cases, judged, strict=True) if case.kind != "unsupported"]
    print_rows(("type", "questions", "exact, %", "in C, %"), rows(*zip(*true, strict=True)))
    for size in SIZES:
        of_size = [one for case, one in zip(cases, judged, strict=True) if case.size == size]
        print(f"calibration error, {size or 'all'} passages: {expected_calibration_error(of_size):.3f}")
    if told.write:
        table = dict(zip(NAMES, fit(cases).round(3).tolist(), strict=True)) | {NOTHING: nothing}
        WEIGHTS.write_bytes(orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def rows(cases: Sequence[Case], judged: Sequence[tuple[float, bool]]) -> Iterator[Sequence[object]]:
    """Yield how many questions of every type there are, and are right."""
    groups: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for case, (_, is_right) in zip(cases, judged, strict=True):
        for name in (f"all, {case.size} passages",) if case.size else ("all", case.kind):
            groups[name].append((is_right, bool(case.right.any())))
    for name, some in groups.items():
        exact, could = (100 * sum(values) / len(some) for values in zip(*some, strict=True))
        yield name, len(some), f"{exact:.0f}", f"{could:.0f}"


if __name__ == "__main__":
    main()
