"""Joint recovery against recovery one by one: python benchmarks/joint.py DATA OFFERS [--models lexical,default].

DrugHop open, whole chain with links, its file of passages as the collection. OFFERS is a folder that keeps the offers
(candidates, scores and steps) of every model, which take long; those that are there are not made again. Rows:

- alone: `rechain recover`
- jointly: `rechain recover --jointly`, on open, and with `--blind` on open and blind as one input
- cross-fitted: a question hears only from questions of other folds, and folds are by start drug

Confidence: its two numbers are fitted to gold of other folds than those judged. `--costs` prints memory and time, and
what MedHop's questions share. Nothing is drawn at random but the bootstrap's samples, with seed 0. What was compared to
choose how beliefs are shared is `research/joint_variants.py`.
"""

import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import process_time

import numpy as np
from common import drughop_pairs, parser, percent, print_heading, print_rows

from rechain.evaluation.judging import is_correct
from rechain.evaluation.statistics import expected_calibration_error, mean_with_interval
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.questions import read_chunks
from rechain.paper.stage import folds_of
from rechain.recoverer import Recoverer, RecovererConfig
from rechain.run.work import Work, recover_chunks
from rechain.schema import Gold
from rechain.scoring.beliefs import Beliefs, Offer, Offers
from rechain.scoring.interface import log_odds
from rechain.system.tensors import Array
from rechain.text.collection import PassageCollection

FOLDS = 5
CHUNK = 32
StepBeliefs = Sequence[Mapping[str, float]]
"""for every question, the beliefs about its steps"""


def offers_of(data: Path, folder: Path, model: str, name: str, workers: int) -> list[Offer]:
    """Return what the questions of a file of DrugHop offer; the folder keeps them, also from a run that was killed."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{name}.{model}.jsonl"
    work = Work(RecovererConfig(model), data / "drughop/passages.jsonl.gz", jointly=True)
    with kept.open("a+b") as file:
        file.seek(0)
        chunks = file.read().count(b"\n") // CHUNK
        rest = islice(read_chunks(data / f"drughop/{name}.jsonl.gz", CHUNK), chunks, None)
        file.seek(0)
        file.truncate(sum(map(len, islice(file, chunks * CHUNK))))
        for result in recover_chunks(work, rest, CHUNK, workers):
            file.write(result.lines)
            file.flush()
        file.seek(0)
        return [Offer.of_json(line) for line in file]


def learn(offers: Sequence[Offer]) -> Beliefs:
    """Return what questions believe together."""
    all_offers = Offers()
    for offer in offers:
        offer.add_to(all_offers)
    return all_offers.learn()


def beliefs_jointly(offers: Sequence[Offer], others: Sequence[Offer] = ()) -> StepBeliefs:
    """Return the beliefs from all other questions of the input, to which others may belong."""
    beliefs = learn([*offers, *others])
    return [dict(zip(offer.names, beliefs.told(n).tolist(), strict=True)) for n, offer in enumerate(offers)]


def beliefs_across(offers: Sequence[Offer], folds: Array) -> StepBeliefs:
    """Return the beliefs from the questions of other folds alone."""
    learnt = [learn([offer for offer, fold in zip(offers, folds, strict=True) if fold != f]) for f in range(FOLDS)]
    return [
        dict(zip(offer.names, learnt[fold].about(offer.names).tolist(), strict=True))
        for offer, fold in zip(offers, folds, strict=True)
    ]


class Judged:
    """The best chain of every question, given the beliefs: whether it is right, and its share."""

    def __init__(self, offers: Sequence[Offer], golds: Sequence[Gold], beliefs_of: StepBeliefs | None) -> None:
        best = [
            offer.recovered[0] if beliefs_of is None else offer.weigh(beliefs_of[n], 1, None)[0]
            for n, offer in enumerate(offers)
        ]
        self.correct = np.array(
            [is_correct(c.passages, [x.entity for x in c.links], g) for c, g in zip(best, golds, strict=True)]
        )
        self.confidence = [chain.confidence for chain in best]
        own_beliefs: StepBeliefs = beliefs_of or [dict.fromkeys(offer.names, 0.0) for offer in offers]
        self.share = np.array([max(offer.shares(one)) for offer, one in zip(offers, own_beliefs, strict=True)])


def fit(share: Array, correct: Array) -> Array:
    """Return slope and offset of the logit of a share that make right chains likeliest, by Newton's method."""
    inputs = np.stack([odds(share), np.ones(len(share))], axis=1)
    weights = np.zeros(2)
    for _ in range(25):
        predicted = 1 / (1 + np.exp(-inputs @ weights))
        curvature = (inputs * (predicted * (1 - predicted))[:, None]).T @ inputs
        weights = weights + np.linalg.solve(curvature, inputs.T @ (correct - predicted))
    return weights


def odds(share: Array) -> Array:
    """Return the log-odds of shares."""
    return np.array([log_odds(one) for one in share.tolist()])


def fitted_across(share: Array, correct: Array, folds: Array) -> tuple[float, float]:
    """Return the calibration error and mean confidence, where each fold's are fitted to gold of the others."""
    confidence = np.zeros(len(folds))
    for fold in range(FOLDS):
        slope, offset = fit(share[folds != fold], correct[folds != fold])
        mine = folds == fold
        confidence[mine] = 1 / (1 + np.exp(-(slope * odds(share[mine]) + offset)))
    error = expected_calibration_error(zip(confidence.tolist(), correct.tolist(), strict=True))
    assert error is not None
    return error, float(confidence.mean())


def joint_rows(
    data: Path, folder: Path, models: Sequence[str], workers: int, with_blind: bool
) -> Iterator[Sequence[object]]:
    """Yield a row for every model and way."""
    pairs = drughop_pairs(data)
    golds, folds = [gold for _, gold in pairs], np.array(folds_of([question for question, _ in pairs], FOLDS))
    for model in models:
        offers = offers_of(data, folder, model, "open", workers)
        assert [offer.recovered.id for offer in offers] == [question.id for question, _ in pairs]
        alone = Judged(offers, golds, None)
        yield model, "alone", *accuracy(alone), *confidence(alone, folds)
        beliefs_of = {"jointly": beliefs_jointly(offers)}
        if with_blind:
            others = offers_of(data, folder, model, "blind", workers)
            beliefs_of["jointly, open and blind"] = beliefs_jointly(offers, others)
        beliefs_of["jointly, cross-fitted by start drug"] = beliefs_across(offers, folds)
        for way, of_way in beliefs_of.items():
            judged = Judged(offers, golds, of_way)
            yield model, way, *accuracy(judged, alone), *confidence(judged, folds)
            if way == "jointly":
                slope, offset = fit(judged.share, judged.correct)
                print(f"{model}, jointly: fitted to all folds, slope {slope:.2f}, offset {offset:.2f}\n")


def accuracy(judged: Judged, alone: Judged | None = None) -> Sequence[object]:
    """Return the accuracy of chains, and how much more it is than alone, question by question."""
    gain = "" if alone is None else percent(mean_with_interval((judged.correct * 1.0 - alone.correct).tolist()))
    return percent(mean_with_interval(judged.correct.tolist())), gain


def confidence(judged: Judged, folds: Array) -> Sequence[object]:
    """Return the calibration error of the written confidence, and of confidence that is fitted in folds."""
    pairs = zip(judged.confidence, judged.correct.tolist(), strict=True)
    error = expected_calibration_error(pairs)
    nested, mean = fitted_across(judged.share, judged.correct, folds)
    return "" if error is None else f"{error:.3f}", f"{nested:.3f} (mean {mean:.3f})"


def cost_rows(offers: Sequence[Offer]) -> Iterator[Sequence[object]]:
    """Yield what joint recovery costs in addition to recovery, for each question."""
    lines = [offer.to_json().encode() for offer in offers]
    yield "offers on disk, kB", f"{sum(map(len, lines)) / len(lines) / 1000:.1f}"
    tracemalloc.start()
    all_offers = Offers()
    for offer in offers:
        offer.add_to(all_offers)
    yield "what is offered, in memory, kB", f"{tracemalloc.get_traced_memory()[0] / len(lines) / 1000:.1f}"
    start = process_time()
    beliefs = all_offers.learn()
    yield f"estimation ({beliefs.rounds} rounds), ms of CPU time", f"{1000 * (process_time() - start) / len(lines):.2f}"
    yield "with beliefs, in memory, kB", f"{tracemalloc.get_traced_memory()[0] / len(lines) / 1000:.1f}"
    tracemalloc.stop()
    start = process_time()
    for position, line in enumerate(lines):
        Offer.of_json(line).settle(beliefs, position, 1, None).to_json()
    yield "read, weighed, written, ms of CPU time", f"{1000 * (process_time() - start) / len(lines):.2f}"


def medhop_rows(data: Path) -> Iterator[Sequence[object]]:
    """Yield what MedHop's questions share, with and without their passages as a collection."""
    questions = [q for name in ("train_11", "dev_5") for q in read_questions(data / f"medhop/{name}.json.gz")]
    texts = {passage.text: passage for question in questions for passage in question.passages}
    collection = PassageCollection({str(number): passage for number, passage in enumerate(texts.values())})
    for name, corpus in (("no", None), ("yes", collection)):
        recoverer = Recoverer("lexical", corpus=corpus, explain=True)
        alone, jointly = list(recoverer.recover_many(questions)), list(recoverer.recover_jointly(questions))
        changed = sum(bool(a) and a[0].identity != b[0].identity for a, b in zip(alone, jointly, strict=True))
        parts = sorted({part for recovered in jointly if recovered for part in recovered[0].why or {}})
        yield name, sum(map(bool, jointly)), changed, ", ".join(parts)


def main() -> None:
    """Print the table of DrugHop, or that of costs."""
    options = parser(__doc__)
    options.add_argument("offers", type=Path)
    options.add_argument("--models", default="lexical,default")
    options.add_argument("--workers", type=int, default=0)
    options.add_argument("--blind", action="store_true")
    options.add_argument("--costs", action="store_true")
    arguments = options.parse_args()
    print_heading()
    of_models = arguments.data, arguments.offers, arguments.models.split(","), arguments.workers
    if arguments.costs:
        print_rows(
            ("a question of DrugHop open, lexical", ""), cost_rows(offers_of(*of_models[:2], "lexical", "open", 0))
        )
        print_rows(
            ("collection of MedHop", "with a chain", "changed jointly", "scores have"), medhop_rows(arguments.data)
        )
    else:
        columns = ["model", "way", "chain accuracy, %", "over alone, points", "calibration error", "refitted in folds"]
        print_rows(columns, list(joint_rows(*of_models, with_blind=arguments.blind)))


if __name__ == "__main__":
    main()
