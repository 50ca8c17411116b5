"""How few chains the default model may read: the margin of its cascade, chosen without any gold.

    python research/margin.py DATA [--limit N]

DATA is a folder as ../shared/data. All chains within 5 of the best by evidence are read once, 6 at most. For every
smaller margin the same outputs of the network say which chain would be the best had fewer been read. The margin is the
smallest with which the best chain stays the same for 99.5 % of the questions of every set; no gold is looked at for it.
What it costs in accuracy and calibration is then said where gold is there, of `open` not at all.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import parser, print_heading, print_rows, with_gold

from rechain.errors import QuestionError
from rechain.evaluation.judging import is_gold_chain
from rechain.evaluation.statistics import expected_calibration_error
from rechain.formats.datasets import read_questions
from rechain.reader.model import ChainReaderModel, WeighedQuestion
from rechain.reader.pretrained import load
from rechain.reader.texts import Arrival
from rechain.schema import Gold, Question
from rechain.scoring.interface import Scores
from rechain.system.tensors import Array
from rechain.text.candidates import Candidates
from rechain.text.evidence.search import find_evidence

WIDEST, MARGINS = 5.0, (5.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.25, 0.0)
SAME = 0.995
SETS = {
    "HotpotQA open": "hotpotqa/open.json.gz",
    "HotpotQA train_300": "hotpotqa/train_300.json.gz",
    "2Wiki train_500": "2wiki/train_500.json.gz",
    "MuSiQue train_100": "musique/train_100.json.gz",
    "DrugHop open": "drughop/open.jsonl.gz",
}
UNSEEN = ("HotpotQA open", "DrugHop open")
"""sets whose gold this script does not read"""

BESIDE = ("comparison", "bridge_comparison")
"""types of questions whose gold passages are in no order"""


class Row(NamedTuple):
    """What a margin makes of a question."""

    best: int
    confidence: float
    read: int
    """the number of chains that are read"""
    is_right: bool | None = None


def questions_of(data: Path, name: str, limit: int) -> list[Question]:
    """Return questions of a set, `limit` at most, evenly spread over the file."""
    passages = data / "drughop/passages.jsonl.gz" if name.startswith("DrugHop") else None
    questions = list(read_questions(data / SETS[name], passages=passages))
    return questions[:: max(len(questions) // limit, 1)][:limit]


def found(questions: Iterable[Question]) -> Iterator[Candidates]:
    """Yield the candidates of questions that have some."""
    for question in questions:
        with suppress(QuestionError):
            yield find_evidence(question)


def rows_of(model: ChainReaderModel, candidates: Candidates, gold: Gold | None) -> list[Row]:
    """Return what every margin makes of a question, by outputs of the network that are read once."""
    wide = WeighedQuestion(candidates, model.evidence, replace(model.settings, margin=WIDEST))
    chains, arrivals = wide.write(model.tokenizer)
    ranks = dict(zip(wide.chosen, model.read("rank", [chains])[0].tolist(), strict=True))
    named = model.read("name_links", [arrivals], wide.entities)[0]
    links = {arrival.key: (arrival, row) for arrival, row in zip(wide.open.values(), named, strict=True)}
    rows = []
    for margin in MARGINS:
        one = WeighedQuestion(candidates, model.evidence, replace(model.settings, margin=margin))
        scores = one.scores(np.array([ranks[number] for number in one.chosen]), _links(one, links))
        best = _best(scores)
        is_right = None if gold is None else is_gold_chain(candidates, candidates.chains[best], gold)
        rows.append(Row(best, scores.confidences[best], len(one.chosen), is_right))
    return rows


def _links(one: WeighedQuestion, links: Mapping[tuple[int, str | None], tuple[Arrival, Array]]) -> Array:
    """Return what the Reasoner says of the entities of fewer chains: the same, divided among these entities."""
    rows = []
    for arrival in one.open.values():
        among, row = links[arrival.key]
        keys = [edge.key for edge in among.ways]
        said = row[[keys.index(edge.key) for edge in arrival.ways]]
        rows.append(np.pad(said - np.log(np.exp(said).sum()), (0, one.entities - len(said))))
    return np.array(rows)


def _best(scores: Scores) -> int:
    return int(np.argmax([sum(parts.values()) for parts in scores.contributions]))


def main() -> None:
    """Print the tables, and the margin that follows."""
    options = parser(__doc__)
    options.add_argument("--limit", type=int, default=150, help="questions of a set")
    told = options.parse_args()
    print_heading()
    model, same = load(), dict.fromkeys(MARGINS, 1.0)
    for name in SETS:
        questions = questions_of(told.data, name, told.limit)
        golds = {}
        if name not in UNSEEN:
            pairs = with_gold(questions, told.data / SETS[name])
            golds = {question.id: gold for question, gold in pairs if question.type not in BESIDE}
        rows = [rows_of(model, one, golds.get(one.question.id)) for one in islice(found(questions), told.limit)]
        print(f"{name}, {len(rows)} questions\n")
        table = []
        for place, margin in enumerate(MARGINS):
            some = [of_question[place] for of_question in rows]
            share = float(np.mean([of_question[place].best == of_question[0].best for of_question in rows]))
            same[margin] = min(same[margin], share)
            judged = [(one.confidence, bool(one.is_right)) for one in some if one.is_right is not None]
            right = f"{100 * np.mean([right for _, right in judged]):.1f}" if judged else ""
            error = f"{expected_calibration_error(judged):.3f}" if judged else ""
            read, confidence = np.mean([one.read for one in some]), np.mean([one.confidence for one in some])
            table.append((f"{margin:g}", f"{read:.2f}", f"{100 * share:.1f}", f"{confidence:.3f}", right, error))
        header = ("margin", "chains read a question", f"same best chain as with {WIDEST:g}, %")
        print_rows((*header, "mean confidence", "ordered chains, %", "calibration error"), table)
    chosen = min(margin for margin in MARGINS if same[margin] >= SAME)
    print(f"The smallest margin with which {100 * SAME:g} % of every set stay the same: {chosen:g}")


if __name__ == "__main__":
    main()
