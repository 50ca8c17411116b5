"""The default model from scratch: prepare, train over folds and on everything, judge, bundle.

    python benchmarks/default_model.py prepare DATA STAGE --encoder ENCODER
    python benchmarks/default_model.py train STAGE --name fold0 --fold 0
    python benchmarks/default_model.py train STAGE --name all
    python benchmarks/default_model.py judge STAGE DATA
    python benchmarks/default_model.py bundle STAGE DATA src/rechain/data/default

DATA is a folder as ../shared/data, ENCODER one with the weights of all-MiniLM-L6-v2, STAGE a folder to work in.
`train` needs torch, transformers, numpy and safetensors alone, so that STAGE can be carried to a GPU machine; `--set
NAME=VALUE` changes a setting of `ReaderSettings`, `--pseudo` warms up with pseudo questions, `--gru` reads with a GRU
instead. Questions and answers of HotpotQA open and train_300 and of DrugHop open are learnt from; gold evidence of open
is read by `judge` and `bundle`, for figures alone.
"""

import argparse
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rechain.preparation.arrays import TEXT_MARKS
from rechain.reader.settings import ReaderSettings
from rechain.system.tensors import Array, load_arrays, save_arrays

if TYPE_CHECKING:
    from rechain.evaluation.judging import Verdict

FOLDS = 5
QUESTIONS, PSEUDO, INDEX, ENCODER, PLAYS = (
    "questions.safetensors",
    "pseudo.safetensors",
    "index.json",
    "encoder",
    "plays",
)
HOTPOT, TRAIN, DRUG = "HotpotQA open", "HotpotQA train_300", "DrugHop open"
VIEWS = ("ranker", "reasoner", "evidence")
PSEUDO_A_FOLD = 1600


def prepare(data: Path, stage: Path, encoder: Path) -> None:
    """Write the chains of all questions, and pseudo questions made from HotpotQA's passages, as arrays."""
    from rechain.reader.pretrained import read_tokenizer
    from rechain.scoring.evidence import PRIOR
    from rechain.tables.stage import folds_of

    stage.mkdir(parents=True, exist_ok=True)
    (stage / ENCODER).mkdir(exist_ok=True)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(encoder / name, stage / ENCODER / name)
    tokenizer = read_tokenizer(encoder / "tokenizer.json")
    asked = {name: list(questions_of(data, name)) for name in (HOTPOT, TRAIN, DRUG)}
    folds = {
        name: folds_of(questions, FOLDS) if name != TRAIN else [-1] * len(questions)
        for name, questions in asked.items()
    }
    preparation, fold, sets = make_preparation(tokenizer), [], []
    for name, questions in asked.items():
        for question, number in zip(questions, folds[name], strict=True):
            if add(preparation, question):
                fold.append(number)
                sets.append(name)
    save_arrays(preparation.arrays() | {"fold": np.array(fold)}, stage / QUESTIONS)
    index = {"ids": preparation.ids, "kept": preparation.kept, "sets": sets, "prior": PRIOR.tolist()}
    (stage / INDEX).write_text(json.dumps(index), encoding="utf-8")
    save_arrays(pseudo_arrays(tokenizer, asked[HOTPOT], folds[HOTPOT]), stage / PSEUDO)


def make_preparation(tokenizer: Any) -> Any:
    """Return an empty preparation with the sizes of the default settings."""
    from rechain.reader.arrays import ReaderPreparation

    settings = ReaderSettings()
    return ReaderPreparation(tokenizer, settings.max_tokens, settings.most_chains)


def add(preparation: Any, question: Any, made: Sequence[int] | None = None) -> bool:
    """Add a question, if it has candidate chains."""
    from rechain.candidates import find_candidates
    from rechain.errors import QuestionError

    try:
        preparation.add(find_candidates(question), made)
    except QuestionError:
        return False
    return True


def pseudo_arrays(tokenizer: Any, questions: Sequence[Any], folds: Sequence[int]) -> dict[str, Array]:
    """Make pseudo questions of every fold, and tell for which folds they may be used: those that share no passage."""
    from rechain.preparation.pseudo import PseudoMaker

    parts = [[q for q, number in zip(questions, folds, strict=True) if number == fold] for fold in range(FOLDS)]
    texts = [{passage.text for question in part for passage in question.passages} for part in parts]
    preparation, allowed = make_preparation(tokenizer), []
    for fold, part in enumerate(parts):
        for pseudo in PseudoMaker(part).make(PSEUDO_A_FOLD):
            if add(preparation, pseudo.question, pseudo.chain):
                used = {pseudo.question.passages[place].text for place in pseudo.chain}
                allowed.append([other != fold and used.isdisjoint(texts[other]) for other in range(FOLDS)])
    arrays: dict[str, Array] = preparation.arrays()
    return arrays | {"allowed": np.array(allowed, dtype=np.uint8)}


def questions_of(data: Path, name: str) -> Iterator[Any]:
    """Yield the questions of a set."""
    from rechain.datasets import read_questions

    if name == DRUG:
        return read_questions(data / "drughop/open.jsonl.gz", passages=data / "drughop/passages.jsonl.gz")
    file = "hotpotqa/open.json.gz" if name == HOTPOT else "hotpotqa/train_300.json.gz"
    return read_questions(data / file, only=["bridge"])


def train(stage: Path, name: str, fold: int | None, changes: Sequence[str], pseudo: bool, gru: bool) -> None:
    """Train on all folds but one and write what is said of that one; or on everything, and write the weights."""
    import torch
    from safetensors.torch import save_file

    from rechain.reader.data import ReaderData
    from rechain.reader.training import train as teach

    settings = replace(ReaderSettings(), **dict(map(parse, changes)))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    arrays = load_arrays(stage / QUESTIONS)
    data = ReaderData(arrays, device)
    numbers = np.arange(len(data))
    learnt = numbers if fold is None else numbers[arrays["fold"] != fold]
    start = time.perf_counter()
    model = teach(
        lambda seed: untaught(stage / ENCODER, seed, settings, device, gru),
        data,
        settings,
        learnt,
        pseudo_questions(stage, fold, device) if pseudo else None,
    )
    print(f"{name}: {len(learnt)} questions learnt in {time.perf_counter() - start:.1f} s on {device}", flush=True)
    (stage / PLAYS).mkdir(exist_ok=True)
    if fold is None:
        save_file({key: value.half() for key, value in model.state_dict().items()}, stage / PLAYS / f"{name}.weights")
        time_reading(model, data)
    else:
        save_arrays(said_of(model, data, numbers[arrays["fold"] == fold]), stage / PLAYS / f"{name}.safetensors")


def parse(change: str) -> tuple[str, Any]:
    """Return a setting and its value from `NAME=VALUE`."""
    name, _, value = change.partition("=")
    kind = {field.name: field.type for field in fields(ReaderSettings)}[name]
    return name, value == "True" if kind is bool else float(value) if kind is float else int(value)


def untaught(encoder: Path, seed: int, settings: ReaderSettings, device: str, gru: bool = False) -> Any:
    """Return a reader with a pretrained encoder, or a new GRU, and new heads; evidence weighs what the prior says."""
    import torch

    from rechain.models.chain_reader import ChainReader
    from rechain.models.text_encoders import GruEncoder, pretrained

    torch.manual_seed(seed)
    prior = torch.from_numpy(np.array(json.loads((encoder.parent / INDEX).read_text())["prior"], dtype=np.float32))
    vocabulary = json.loads((encoder / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    reads = GruEncoder(vocabulary, TEXT_MARKS) if gru else pretrained(encoder, TEXT_MARKS)
    model = ChainReader(reads, len(prior), settings.dropout)
    model.evidence.weight.data.copy_(prior[None])
    return model.to(device)


def pseudo_questions(stage: Path, fold: int | None, device: str) -> tuple[Any, Array]:
    """Return the pseudo questions, and the numbers of those that have nothing of a fold."""
    from rechain.reader.data import ReaderData

    arrays = load_arrays(stage / PSEUDO)
    data = ReaderData(arrays, device)
    numbers = np.arange(len(data))
    return data, numbers if fold is None else numbers[arrays["allowed"][:, fold] > 0]


def said_of(model: Any, data: Any, questions: Array) -> dict[str, Array]:
    """Return what the three views of a reader say of the chains of questions, and which chains these are."""
    from rechain.reader.training import examine

    parts: dict[str, list[Array]] = {name: [] for name in ("chains", *VIEWS)}
    for step, views in examine(model, data, questions):
        parts["chains"].append(step.chains[step.is_chain.cpu()].numpy())
        for name, values in zip(VIEWS, views, strict=True):
            parts[name].append(values[step.is_chain].float().cpu().numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}


def time_reading(model: Any, data: Any) -> None:
    """Print how many questions a second are read from prepared tensors, every kept chain of them; the second time."""
    from rechain.reader.training import examine

    questions = np.arange(len(data))
    for _ in range(2):
        start = time.perf_counter()
        for _, views in examine(model, data, questions, 512):
            views.ranker.sum().item()
        speed = len(questions) / (time.perf_counter() - start)
    print(f"{speed:.0f} questions/s from prepared tensors on {data.device}", flush=True)


class Judged:
    """What is known of every question of a set after training over folds: three views of its chains, and the gold."""

    def __init__(self, stage: Path, data: Path, name: str) -> None:
        from common import with_gold

        from rechain.candidates import find_candidates
        from rechain.evaluation.candidates import is_gold_chain
        from rechain.evaluation.judging import is_unambiguous

        index = json.loads((stage / INDEX).read_text(encoding="utf-8"))
        self._starts = load_arrays(stage / QUESTIONS)["chain_start"]
        gold = data / ("drughop/open.gold.jsonl.gz" if name == DRUG else "hotpotqa/open.json.gz")
        number = {id: place for place, id in enumerate(index["ids"])}
        self.rows: list[tuple[int, list[bool]]] = []
        """for each question, its number (-1: no candidate chain) and which of its kept chains are right"""
        for question, told in with_gold(questions_of(data, name), gold):
            if name == HOTPOT and not is_unambiguous(question, told):
                continue
            place = number.get(question.id, -1)
            found = find_candidates(question) if place >= 0 else None
            kept = index["kept"][place] if found else []
            self.rows.append(
                (place, [is_gold_chain(found, found.chains[chain], told) for chain in kept] if found else [])
            )

    def verdicts(self, scores: Array, nothing: float = -1e9) -> "list[Verdict]":
        """Judge the best chain of each question that the scores tell of; `nothing` is the score that none is right."""
        return [self._verdict(scores, nothing, *row) for row in self.rows if self._is_told(scores, row[0])]

    def _is_told(self, scores: Array, place: int) -> bool:
        """Return whether the scores are of this question; one without any chain belongs to all folds together."""
        if place >= 0:
            return not np.isnan(scores[self._starts[place]])
        return not any(np.isnan(scores[self._starts[other]]) for other, _ in self.rows if other >= 0)

    def _verdict(self, scores: Array, nothing: float, place: int, is_right: Sequence[bool]) -> "Verdict":
        from rechain.evaluation.judging import Verdict

        if place < 0:
            return Verdict(False, False)
        own = scores[self._starts[place] : self._starts[place + 1]]
        chances = np.exp(np.append(own, nothing) - own.max())
        best = int(own.argmax())
        return Verdict(True, is_right[best], confidence=float(chances[best] / chances.sum()))

    def read_within(self, evidence: Array, margin: float) -> float:
        """Return how many chains a question are read when only those within a margin of the best by evidence are."""
        places = [place for place, _ in self.rows if place >= 0]
        close = [int((own >= own.max() - margin).sum()) for own in map(partial(self._own, evidence), places)]
        return sum(number for number in close if number > 1) / len(places)

    def cascade(self, evidence: Array, rest: Array, margin: float) -> Array:
        """Return scores where only chains within a margin were read; the others have what the worst of these has."""
        scores = evidence.copy()
        for place in (place for place, _ in self.rows if place >= 0):
            own = slice(self._starts[place], self._starts[place + 1])
            close = evidence[own] >= evidence[own].max() - margin
            scores[own] += np.where(close, rest[own], rest[own][close].min()) - rest[own][close].max()
        return scores

    def _own(self, scores: Array, place: int) -> Array:
        return scores[self._starts[place] : self._starts[place + 1]]


def views_of(stage: Path, names: Sequence[str]) -> dict[str, Array]:
    """Return the views of all chains, each said by the reader that did not learn them; NaN where there is none."""
    chains = len(load_arrays(stage / QUESTIONS)["features"])
    views = {name: np.full(chains, np.nan) for name in VIEWS}
    for play in names:
        said = load_arrays(stage / PLAYS / f"{play}.safetensors")
        for name in VIEWS:
            views[name][said["chains"]] = said[name]
    return views


def judge(stage: Path, data: Path) -> None:
    """Print what each view adds, what confidence is worth, and what the cascade spares."""
    from common import print_heading

    print_heading()
    arrays = load_arrays(stage / QUESTIONS)
    prior = np.array(json.loads((stage / INDEX).read_text(encoding="utf-8"))["prior"], dtype=np.float32)
    views = views_of(stage, [f"fold{fold}" for fold in range(FOLDS)])
    for name in (HOTPOT, DRUG):
        judged = Judged(stage, data, name)
        print(f"## {name}, {len(judged.rows)} questions, {FOLDS}-fold cross-fitted\n")
        judge_views(judged, views, arrays["features"] @ prior)
        judge_confidence(judged, views, name)
        judge_cascade(judged, views)
        judge_teaching(judged, stage)


def bundle(stage: Path, data: Path, folder: Path, floats: bool) -> None:
    """Turn the weights that learnt everything into bytes, or not, and write them with a card that tells the figures."""
    from safetensors.torch import load_file

    from rechain.models.cpu import quantise
    from rechain.reader.card import write_card
    from rechain.reader.model import ChainReaderModel
    from rechain.reader.pretrained import read_tokenizer, save

    network = untaught(stage / ENCODER, 0, ReaderSettings(), "cpu")
    network.load_state_dict({name: value.float() for name, value in load_file(stage / PLAYS / "all.weights").items()})
    if not floats:
        quantise(network.encoder.model)
    model = ChainReaderModel(network, read_tokenizer(stage / ENCODER / "tokenizer.json"), ReaderSettings())
    model.card = write_card(facts(stage, data), model)
    save(model, folder)


def facts(stage: Path, data: Path) -> Any:
    """Return what is told of the model: the figures are those of readers that did not learn what they are judged on."""
    from common import percent

    from rechain.evaluation.judging import most_confident
    from rechain.evaluation.statistics import expected_calibration_error, mean_with_interval
    from rechain.reader.card import Facts

    views = views_of(stage, [f"fold{fold}" for fold in range(FOLDS)])
    figures = {}
    for name in (HOTPOT, DRUG):
        verdicts = Judged(stage, data, name).verdicts(joint(views), NOTHING[name])
        told = f"{name}, {len(verdicts)} questions, {FOLDS}-fold cross-fitted"
        figures[f"{told}: chain accuracy, %"] = percent(mean_with_interval([v.correct for v in verdicts]))
        figures[f"{told}: expected calibration error"] = _round(
            expected_calibration_error((v.confidence, v.correct) for v in verdicts)
        )
        figures[f"{told}: accuracy of the most confident three quarters, %"] = _percent(most_confident(verdicts, 0.75))
    return Facts(
        title="rechain's default model",
        name="default",
        licence="apache-2.0",
        data=DATA_LINES,
        figures=figures,
        training=f"Trained by `benchmarks/default_model.py`, whose head tells the commands, on {date.today()}.",
        limits=LIMITS,
    )


DATA_LINES = (
    "questions and answers of 4,697 bridge questions of HotpotQA's dev set (`open`) and 229 of its training set "
    "(CC BY-SA 4.0)",
    "questions and answers of 2,757 DrugHop questions (`open`), made from DrugProt's abstracts (CC BY 4.0)",
    "the encoder starts from all-MiniLM-L6-v2 (Apache-2.0)",
    "of these, the 7,671 that have a candidate chain",
    "no evidence label was trained on; settings, also of confidence, were chosen by looking at the labels of `open`",
)
LIMITS = (
    "English; other scripts are linked by what they share, but the network has not learnt to read them.",
    "Cheap evidence decides most questions; the network adds half a point on HotpotQA and one and a half on DrugHop.",
    "On biomedical chains about three in ten are wrong, no fewer than by the lexical rule, and confidence is off.",
    "Where several chains lead to the answer, it may find another than the annotators'.",
    "Chains of four passages are searched for, but it has hardly been tested on them.",
)


def joint(views: dict[str, Array], reasoner: bool = True) -> Array:
    """Return what the views say together, as in recovery."""
    settings = ReaderSettings()
    heard = settings.reasoner_weight * views["reasoner"] if reasoner else 0.0
    return views["evidence"] + settings.ranker_weight * views["ranker"] + heard


def judge_views(judged: Judged, views: dict[str, Array], prior: Array) -> None:
    """Print accuracy view by view."""
    from common import percent, print_rows

    from rechain.evaluation.statistics import mean_with_interval

    rows = {
        "evidence, as the prior weighs it": prior,
        "evidence, as learnt": views["evidence"],
        "Ranker alone": views["ranker"],
        "Ranker and evidence (without the Reasoner)": joint(views, reasoner=False),
        "all three": joint(views),
    }
    print_rows(
        ("view", "chain accuracy, %"),
        (
            (name, percent(mean_with_interval([verdict.correct for verdict in judged.verdicts(scores)])))
            for name, scores in rows.items()
        ),
    )
    whole, alone = (
        np.array([verdict.correct for verdict in judged.verdicts(scores)], dtype=float)
        for scores in (joint(views), prior)
    )
    print(f"All three less the prior, paired: {percent(mean_with_interval((whole - alone).tolist()))} points\n")


NOTHING = {HOTPOT: 8.9, DRUG: -7.0}
"""the score of `rechain.scoring.evidence.nothing` with the prior's weights"""


def judge_confidence(judged: Judged, views: dict[str, Array], name: str) -> None:
    """Print calibration, and accuracy among the most confident."""
    from common import print_rows

    from rechain.evaluation.judging import most_confident
    from rechain.evaluation.statistics import expected_calibration_error

    verdicts = judged.verdicts(joint(views), NOTHING[name])
    error = expected_calibration_error((v.confidence, v.correct) for v in verdicts)
    shares = {"half": 0.5, "three quarters": 0.75}
    rows = [(f"accuracy, best {share}, %", _percent(most_confident(verdicts, shares[share]))) for share in shares]
    print_rows(
        ("confidence", "measured"),
        [("expected calibration error", _round(error)), *rows],
    )


def _round(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _percent(verdicts: "Sequence[Verdict]") -> str:
    return f"{100 * sum(verdict.correct for verdict in verdicts) / len(verdicts):.2f}"


def judge_cascade(judged: Judged, views: dict[str, Array]) -> None:
    """Print what is read, and what is right, when only chains within a margin of the best by evidence are read."""
    from common import print_rows

    rows = []
    for margin in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 1e9):
        scores = judged.cascade(views["evidence"], joint(views) - views["evidence"], margin)
        accuracy = np.mean([verdict.correct for verdict in judged.verdicts(scores)])
        told = "none" if margin > 1e8 else f"{margin:g}"
        rows.append((told, f"{judged.read_within(views['evidence'], margin):.2f}", f"{100 * accuracy:.1f}"))
    print_rows(("margin", "chains read a question", "chain accuracy, %"), rows)


TAUGHT = {
    "by the prior alone, no re-estimation": "prior0",
    "EM (the default)": "fold0",
    "EM, two readers together, their mean": "together0",
    "EM, one taught by those two": "student0",
    "EM after a warm-up with pseudo questions": "pseudo0",
    "EM, a GRU instead of the pretrained encoder": "gru0",
}


def judge_teaching(judged: Judged, stage: Path) -> None:
    """Print the ways of teaching that were played on fold 0."""
    from common import percent, print_rows

    from rechain.evaluation.statistics import mean_with_interval

    rows = []
    for way, play in TAUGHT.items():
        if (stage / PLAYS / f"{play}.safetensors").exists():
            views = views_of(stage, [play])
            figures = [
                mean_with_interval([v.correct for v in judged.verdicts(s)]) for s in (views["ranker"], joint(views))
            ]
            rows.append((way, *map(percent, figures)))
    print_rows(("taught, fold 0", "Ranker alone, %", "all three, %"), rows)


STEPS = {
    "prepare": ("data", "stage"),
    "train": ("stage",),
    "judge": ("stage", "data"),
    "bundle": ("stage", "data", "folder"),
}


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for name, paths in STEPS.items():
        step = steps.add_parser(name)
        for path in paths:
            step.add_argument(path, type=Path)
    steps.choices["prepare"].add_argument("--encoder", type=Path, required=True)
    steps.choices["train"].add_argument("--name", required=True)
    steps.choices["train"].add_argument("--fold", type=int)
    steps.choices["train"].add_argument("--set", dest="changes", action="append", default=[])
    steps.choices["train"].add_argument("--pseudo", action="store_true")
    steps.choices["train"].add_argument("--gru", action="store_true")
    steps.choices["bundle"].add_argument("--floats", action="store_true")
    options = vars(parser.parse_args())
    run: dict[str, Any] = {"prepare": prepare, "train": train, "judge": judge, "bundle": bundle}
    run[options.pop("step")](**options)


if __name__ == "__main__":
    main()
