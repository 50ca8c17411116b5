"""Fit what cheap evidence weighs (`rechain.text.evidence.features`): python benchmarks/evidence.py DATA LOGS [--write].

DATA is ../shared/data, LOGS what benchmarks/logs/build.py filled. Learned without evidence labels from questions and
answers of HotpotQA, 2WikiMultihopQA and MuSiQue, and from MuSiQue's partial questions. Two things are known of them:
their answers, and how many passages the questions of each set need (`SIZES`, from the papers that describe the sets).
The weights make candidates of a right answer likelier than those of wrong ones, and candidates of a known size likelier
than others; which of these is right is latent, and a candidate that is likely already becomes likelier still.

Only the weights for documents, whose names begin with "no title named", are fitted with labels: the evidence of our own
logs. Gold of the public sets measures and chooses nothing. Prints how often the best candidate has exactly the right
passages, cross-fitted in FOLDS parts (logs: by the sets that they are of); `--write` fits on all and writes
src/rechain/data/evidence.json.
"""

import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import torch
from common import parser, percent, print_heading, print_rows
from torch import Tensor

from rechain.errors import QuestionError
from rechain.evaluation.gold import read_gold
from rechain.evaluation.statistics import mean_with_interval
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_by_id
from rechain.reader.prepare import WrongAnswers
from rechain.schema import Gold, Question
from rechain.system.tensors import Array
from rechain.text.candidates import Candidates
from rechain.text.evidence.features import FEATURES
from rechain.text.evidence.search import find_evidence

FILES = {
    "HotpotQA": ("hotpotqa/open.json.gz", "hotpotqa/train_300.json.gz"),
    "2Wiki": ("2wiki/open_582.jsonl.gz", "2wiki/train_500.json.gz"),
    "MuSiQue": ("musique/open_519.jsonl.gz", "musique/train_100.json.gz"),
}
MOST_QUESTIONS = 1500
"""of a file"""
SIZES: Mapping[str, Sequence[float]] = {
    "HotpotQA": (0.0, 1.0, 0.0, 0.0),
    "2Wiki": (0.0, 0.75, 0.0, 0.25),
    "MuSiQue": (0.0, 0.5, 0.3, 0.2),
    "MuSiQue, partial": (1.0, 0.0, 0.0, 0.0),
}
"""the share of the questions of a set that need 1, 2, 3 and 4 passages"""
LOGS = "logs"
WRONG = 3
"""wrong answers of a question"""
FOLDS = 5
START = {
    "question words": 3.5,
    "names": 0.5,
    "added": 0.7,
    "answer": 10.0,
    "answering sentence": 1.0,
    "tail sentence": -0.7,
    "tail named": 1.0,
    "tail title words": 1.0,
    "best sentences": -0.7,
    "named": 1.5,
    "title words": 1.0,
    "other sense": -0.3,
    "links": 4.5,
    "question names link": -2.5,
    "weakest link": 1.0,
    "apart": -1.0,
    "one": 5.0,
    "three": -9.0,
    "four": -18.0,
}
"""where learning begins: words and links tell for a passage, and each passage more has to bring as much as by chance"""
GIVEN = {"pairs together": 1.0, "mentions": 0.3, "pairs near": 1.0, "pairs rare": 1.0}
"""of data that names the entities; none of these sets does"""
PULL, SURER, KNOWN = 0.01, 1.0, 5.0
"""how strongly weights are held to the start, likely candidates made likelier, and sizes kept to their shares"""
OUT = Path(__file__).parent.parent / "src/rechain/data/evidence.json"


class Case(NamedTuple):
    """A question: its candidates' evidence, which of them may be right, and which are right by gold."""

    set: str
    fold: int
    kind: str
    evidence: Array
    may_be: Array
    right: Array
    wrong: Array
    """the evidence of candidates of wrong answers"""


def main() -> None:
    """Fit and judge."""
    options = parser(__doc__)
    options.add_argument("logs", type=Path)
    options.add_argument("--write", action="store_true")
    arguments = options.parse_args()
    print_heading()
    cases = [*public_cases(arguments.data), *log_cases(arguments.logs)]
    right: dict[str, list[bool]] = defaultdict(list)
    for fold in range(FOLDS):
        weights = fit([case for case in cases if case.fold != fold])
        for case in (case for case in cases if case.fold == fold):
            is_right = bool(len(case.evidence)) and bool(case.right[np.argmax(case.evidence @ weights)])
            right[case.set].append(is_right)
            right[f"{case.set}, {case.kind}"].append(is_right)
    rows = [(name, len(values), percent(mean_with_interval(values))) for name, values in sorted(right.items())]
    print_rows(("questions", "number", "exact passages, %"), rows)
    if arguments.write:
        numbers = {name: round(float(value), 3) for name, value in zip(FEATURES, fit(cases), strict=True)}
        OUT.write_bytes(orjson.dumps(numbers | GIVEN | {"none of these": 5.0}, option=orjson.OPT_INDENT_2) + b"\n")


def public_cases(data: Path) -> Iterator[Case]:
    """Yield the questions of the public sets, without the number of their passages."""
    for name, files in FILES.items():
        for file in files:
            questions = list(islice(read_questions(data / file), MOST_QUESTIONS))
            gold = read_gold(data / file, questions)
            answers = WrongAnswers(questions)
            for number, question in enumerate(questions):
                chains = (
                    {frozenset(chain.passages) for chain in gold[question.id].chains} if question.id in gold else set()
                )
                kind = question.type or question.id.partition("__")[0]
                wrong = answers.choose(question, WRONG)
                yield read_case(name, number % FOLDS, kind, question, chains, wrong)
    for number, (question, passage) in enumerate(partial_questions(data / "musique/train_100.json.gz")):
        yield read_case("MuSiQue, partial", number % FOLDS, "partial", question, {frozenset([passage])}, ())


def partial_questions(file: Path) -> Iterator[tuple[Question, str]]:
    """Yield MuSiQue's partial questions that are written as questions, each with its one passage."""
    whole = {question.id: question for question in read_questions(file)}
    for record in orjson.loads(gzip.decompress(file.read_bytes())):
        answers: list[str] = []
        for number, part in enumerate(record["question_decomposition"]):
            text = part["question"]
            for place, answer in enumerate(answers, 1):
                text = text.replace(f"#{place}", answer)
            answers.append(part["answer"])
            if ">>" not in text and "#" not in text:
                fields = {"id": f"{record['id']}.{number}", "question": text, "answer": part["answer"]}
                question = whole[record["id"]].model_copy(update=fields | {"answer_aliases": []})
                yield question, str(part["paragraph_support_idx"])


def log_cases(folder: Path) -> Iterator[Case]:
    """Yield the questions of our logs whose answers are right, in part at least."""
    sets: dict[str, int] = {}
    for half in ("fit", "dev", "test"):
        gold = read_by_id(folder / f"gold.{half}.jsonl", Gold)
        for question in read_questions(folder / f"questions.{half}.jsonl"):
            if gold[question.id].verdict in ("supported", "partly") and gold[question.id].chains:
                fold = sets.setdefault(question.id.rpartition("-")[0], len(sets)) % FOLDS
                chains = {frozenset(chain.passages) for chain in gold[question.id].chains}
                yield read_case(LOGS, fold, question.type or "", question, chains, ())


def read_case(
    name: str, fold: int, kind: str, question: Question, gold: Iterable[frozenset[str]], wrong: Sequence[str]
) -> Case:
    """Return a question with its candidates, and those of wrong answers."""
    found = search(question, question.answer)
    if found is None or found.evidence is None:
        return Case(name, fold, kind, *(np.zeros((0, len(FEATURES))) for _ in range(4)))
    ids = [passage.id for passage in question.passages]
    right = np.array([frozenset(ids[place] for place in chain.passages) in gold for chain in found.chains])
    sizes = np.array([len(chain.passages) for chain in found.chains])
    may_be = right if name == LOGS else np.array(SIZES[name])[sizes - 1] > 0
    others = [other.evidence for answer in wrong if (other := search(question, answer)) is not None]
    return Case(
        name, fold, kind, found.evidence, may_be, right, np.concatenate([np.zeros((0, len(FEATURES))), *others])
    )


def search(question: Question, answer: str) -> Candidates | None:
    """Return the candidates of a question with an answer, if there are any."""
    aliases = question.answer_aliases if answer == question.answer else []
    changed = {"answer": answer, "answer_aliases": aliases, "hops": None}
    with suppress(QuestionError):
        return find_evidence(question.model_copy(update=changed))
    return None


class _Rows:
    """Candidates of many questions, one after another, and sums over those of each question."""

    def __init__(self, tables: Sequence[Array], spread: Array) -> None:
        self.evidence = torch.from_numpy(np.concatenate(tables) / spread)
        self.count = len(tables)
        self.of = torch.repeat_interleave(torch.arange(len(tables)), torch.tensor([len(table) for table in tables]))

    def log_sum(self, scores: Tensor, which: Tensor) -> Tensor:
        """Return the logarithm of the sum over those candidates of each question that count."""
        scores = scores.masked_fill(~which, -1e9)
        most = torch.full((self.count,), -1e9, dtype=scores.dtype).scatter_reduce(0, self.of, scores.detach(), "amax")
        return most + torch.zeros_like(most).index_add(0, self.of, (scores - most[self.of]).exp()).log()


def fit(cases: Sequence[Case]) -> Array:
    """Return the weights."""
    cases = [case for case in cases if case.may_be.any()]
    spread = np.concatenate([case.evidence for case in cases]).std(0)
    spread[spread < 1e-6] = np.inf  # a number that never varies weighs nothing
    rows = _Rows([case.evidence for case in cases], spread)
    may_be = torch.from_numpy(np.concatenate([case.may_be for case in cases]))
    every = torch.ones_like(may_be)
    sizes = torch.from_numpy(np.concatenate([_sizes(case.evidence) for case in cases]))
    sets = sorted({case.set for case in cases} - {LOGS})
    share = _even([case.set for case in cases])
    compared = [case for case in cases if len(case.wrong) and case.set != LOGS]
    rivals = _Rows([np.concatenate([case.evidence, case.wrong]) for case in compared], spread)
    known = [np.array(SIZES[case.set]) > 0 for case in compared]
    counts = torch.from_numpy(
        np.concatenate(
            [_sizes(np.concatenate([c.evidence, c.wrong])) @ k > 0 for c, k in zip(compared, known, strict=True)]
        )
    )
    is_right = torch.from_numpy(
        np.concatenate([np.arange(len(case.evidence) + len(case.wrong)) < len(case.evidence) for case in compared])
    )
    rival_share = _even([case.set for case in compared])
    start = torch.tensor([START.get(name, 0.0) for name in FEATURES], dtype=torch.double) * torch.from_numpy(
        np.where(np.isfinite(spread), spread, 0.0)
    )
    change = torch.zeros(len(FEATURES), dtype=torch.double, requires_grad=True)
    optimiser = torch.optim.LBFGS([change], max_iter=80, line_search_fn="strong_wolfe")
    places = {name: torch.tensor([case.set == name for case in cases]) for name in sets}

    def loss() -> Tensor:
        optimiser.zero_grad()
        scores = rows.evidence @ (start + change)
        possible = rows.log_sum(scores, may_be)
        value = ((rows.log_sum(scores, every) - possible) * share).sum()
        log_beliefs = scores.masked_fill(~may_be, -1e9) - possible[rows.of]
        beliefs = log_beliefs.exp()
        entropy = -torch.zeros(rows.count, dtype=torch.double).index_add(
            0, rows.of, beliefs * log_beliefs.clamp(min=-50)
        )
        value = value + SURER * (entropy * share).sum()
        by_size = torch.zeros(rows.count, 4, dtype=torch.double).index_add(0, rows.of, beliefs[:, None] * sizes)
        for name, which in places.items():
            wanted, found = torch.tensor(SIZES[name], dtype=torch.double), by_size[which].mean(0)
            divergence = (wanted * (wanted.clamp(min=1e-6) / found.clamp(min=1e-6)).log()).sum()
            value = value + KNOWN * divergence / len(places)
        others = rivals.evidence @ (start + change)
        preferred = rivals.log_sum(others, counts) - rivals.log_sum(others, counts & is_right)
        value = value + (preferred * rival_share).sum() + PULL * change.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    weights: Array = ((start + change).detach().numpy()) / spread
    return weights


def _sizes(evidence: Array) -> Array:
    """Return whether each candidate has 1, 2, 3 and 4 passages."""
    one, three, four = (evidence[:, FEATURES.index(name)] for name in ("one", "three", "four"))
    sizes: Array = np.column_stack([one, 1 - one - three - four, three, four])
    return sizes


def _even(names: Sequence[str]) -> Tensor:
    """Return what each question counts so that all sets count alike."""
    counts = {name: names.count(name) for name in set(names)}
    return torch.tensor([1 / counts[name] / len(counts) for name in names], dtype=torch.double)


if __name__ == "__main__":
    main()
