"""The default model from scratch: prepare, train over folds and on everything, judge, bundle.

    python benchmarks/default_model.py prepare DATA STAGE --encoder ENCODER --logs LOGS
    python benchmarks/default_model.py train STAGE --name fold0 --fold 0
    python benchmarks/default_model.py train STAGE --name all
    python benchmarks/default_model.py judge STAGE DATA
    python benchmarks/default_model.py bundle STAGE DATA src/rechain/data/default

`benchmarks/default_model.sh` is the whole sequence, with a GPU machine for the second and third. DATA is a folder as
../shared/data, ENCODER one that the transformers library loads, LOGS what
benchmarks/logs/build.py wrote, STAGE a folder to work in. `train` needs torch,
transformers, numpy and safetensors alone; `--set NAME=VALUE` changes a setting of `ReaderSettings`. Questions and
answers of the sets in `SOURCES` are learnt from, and how many passages they may need; gold evidence is for figures
alone, and does not travel to where readers are trained. The judge of answers learns from HotpotQA's questions.
"""

import argparse
import json
import shutil
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from default_model_figures import (
    FOLDS,
    HOTPOT,
    INDEX,
    JUDGED,
    LOGS,
    ONE,
    PLAYS,
    QUESTIONS,
    RIGHT,
    SOURCES,
    TRAIN,
    VERDICTS,
    VIEWS,
    collection_of,
    gold_of,
    judge,
    kind_of,
    questions_of,
    sections,
)

from rechain.reader.settings import TEXT_MARKS, ReaderSettings
from rechain.system.tensors import Array, load_arrays, save_arrays

if TYPE_CHECKING:
    from rechain.reader.network import ChainReader
    from rechain.reader.train import ReaderData
    from rechain.schema import Question

ENCODER = "encoder"
BERT_TOKENS = 30_522


def prepare(data: Path, stage: Path, encoder: Path, logs: Path) -> None:
    """Write the chains of all questions, right and wrong answers, and the encoder in bytes."""
    pack_encoder(encoder, stage / ENCODER)
    tokenizer = str(encoder / "tokenizer.json")
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        parts = [
            pool.submit(prepare_chains, data, stage, tokenizer, logs),
            pool.submit(prepare_answers, judged_arrays, data, stage / JUDGED, tokenizer),
            pool.submit(prepare_answers, verdict_arrays, data, stage / VERDICTS, tokenizer),
        ]
        for part in parts:
            part.result()


def prepare_chains(data: Path, stage: Path, tokenizer: str, logs: Path) -> None:
    """Write the best candidates of all questions, and apart from them which are right by gold."""
    from rechain.errors import QuestionError
    from rechain.evaluation.judging import is_gold_chain
    from rechain.reader.prepare import ReaderPreparation
    from rechain.reader.pretrained import read_tokenizer
    from rechain.text.evidence.features import prior
    from rechain.text.evidence.search import find_evidence

    preparation, fold, sets = ReaderPreparation(read_tokenizer(Path(tokenizer)), ReaderSettings()), [], []
    right: list[list[bool]] = []
    kinds: list[str] = []
    without: Counter[str] = Counter()
    for name, source in SOURCES.items():
        questions, gold = questions_of(data, name, logs), gold_of(data, name, logs)
        collection = collection_of(data, name)
        for question, number in zip(questions, folds_of_set(name, questions), strict=True):
            try:
                candidates = find_evidence(question, collection=collection)
                told = gold.get(question.id)
                is_right = [told is not None and is_gold_chain(candidates, one, told) for one in candidates.chains]
                sized = [len(chain.passages) in source.sizes for chain in candidates.chains]
                preparation.add(candidates, is_right if name == LOGS else sized)
            except QuestionError:
                without[name] += 1
                continue
            fold.append(number)
            sets.append(name)
            right.append([is_right[place] for place in preparation.kept[-1]])
            kinds.append(kind_of(question, told))
        print(f"{name}: {len(questions)} questions, {without[name]} without a candidate", flush=True)
    # beliefs that questions share, without each fold in turn, and of all
    learned = [[n for n, own in enumerate(fold) if own != left_out] for left_out in (*range(FOLDS), None)]
    shared = {"shared": np.stack([preparation.shared(numbers) for numbers in learned])}
    save_arrays(preparation.arrays() | shared | {"fold": np.array(fold)}, stage / QUESTIONS)
    index = {"ids": preparation.ids, "kept": preparation.kept, "sets": sets, "prior": prior().tolist()}
    (stage / INDEX).write_text(json.dumps(index), encoding="utf-8")
    (stage / RIGHT).write_text(json.dumps({"of": right, "kinds": kinds, "without": without}), encoding="utf-8")


def prepare_answers(
    arrays: "Callable[[Any, Path], Mapping[str, Array]]", data: Path, file: Path, tokenizer: str
) -> None:
    """Write right and wrong answers."""
    from rechain.reader.pretrained import read_tokenizer

    save_arrays(arrays(read_tokenizer(Path(tokenizer)), data), file)


def folds_of_set(name: str, questions: "Sequence[Question]") -> Sequence[int]:
    """Return the part of each question, -1 where it is only learnt from; those of one set of logs stay together."""
    from rechain.paper.stage import folds_of

    if name == LOGS:
        folders = [question.id.rpartition("-")[0] for question in questions]
        numbers = {folder: number % FOLDS for number, folder in enumerate(dict.fromkeys(folders))}
        return [numbers[folder] for folder in folders]
    return folds_of(questions, FOLDS) if SOURCES[name].is_judged else [-1] * len(questions)


def pack_encoder(encoder: Path, folder: Path) -> None:
    """Copy an encoder with its matrices in bytes, a scale a row: a quarter of the size, to be carried to a GPU."""
    from safetensors.torch import load_file, save_file

    from rechain.reader.cpu import quantise_rows

    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(encoder / name, folder / name)
    packed = {}
    for name, value in load_file(encoder / "model.safetensors").items():
        if value.ndim == 2 and value.is_floating_point():
            packed[name], packed[f"{name}.scale"] = quantise_rows(value)
        elif value.is_floating_point():
            packed[name] = value
    save_file(packed, folder / "bytes.safetensors")


def unpack_encoder(folder: Path) -> dict[str, Any]:
    """Return the weights of an encoder that was packed, in floats."""
    from safetensors.torch import load_file

    packed = load_file(folder / "bytes.safetensors")
    return {
        name: value.float() * packed[f"{name}.scale"][:, None] if f"{name}.scale" in packed else value
        for name, value in packed.items()
        if not name.endswith(".scale")
    }


def judged_arrays(tokenizer: Any, data: Path) -> dict[str, Array]:
    """Write right and wrong answers of HotpotQA's questions, of every type, as the judge learns from them."""
    from rechain.reader.prepare import prepare_judge

    questions = {name: list(questions_of(data, name)) for name in (HOTPOT, TRAIN)}
    folds = hotpot_folds(questions[HOTPOT])
    preparation = prepare_judge(questions[HOTPOT] + questions[TRAIN], tokenizer, ReaderSettings())
    return preparation.arrays() | {"fold": np.array([folds.get(id, -1) for id in preparation.ids])}


def verdict_arrays(tokenizer: Any, data: Path) -> dict[str, Array]:
    """Write the answers that verdicts are measured on, each as it is, with its best chain by the prior."""
    from verdicts import SETS, questions_with_wrong_answers

    from rechain.reader.prepare import JudgePreparation

    preparation, fold = JudgePreparation(tokenizer, ReaderSettings().judge_tokens, varied=False), []
    folds = hotpot_folds(list(questions_of(data, HOTPOT)))
    for place, name in enumerate(SETS):
        for question, wrong in questions_with_wrong_answers(data, name):
            if preparation.add(question, wrong):
                fold.append(folds[question.id] if name == HOTPOT else -place)
    return preparation.arrays() | {"fold": np.array(fold)}


def hotpot_folds(questions: "Sequence[Question]") -> dict[str, int]:
    """Return the fold of each question by its id, the one that the Ranker's have."""
    from rechain.paper.stage import folds_of

    return {q.id: fold for q, fold in zip(questions, folds_of(questions, FOLDS), strict=True)}


def train(stage: Path, name: str, fold: int | None, encoder: Path | None, changes: Sequence[str]) -> None:
    """Train on all folds but one and write what is said of that one; or on everything, and write the weights.

    `encoder` is another one than that of `prepare`, in bytes as `pack_encoder` writes it: a stronger teacher, say.
    """
    import torch
    from safetensors.torch import save_file

    from rechain.reader.cpu import quantise
    from rechain.reader.train import JudgeData, ReaderData, ReaderTraining
    from rechain.system.training import TrainingLog

    class Lines(TrainingLog):
        """Prints progress now and then: a borrowed machine may be taken back."""

        def step(self, phase: str, epoch: int, step: int, steps: int) -> None:
            if step % 60 == 0:
                print(f"{name}: epoch {epoch}, step {step} of {steps}, {time.perf_counter() - start:.0f} s", flush=True)

        def epoch(self, figures: Mapping[str, Any]) -> None:
            print(f"{name}: {dict(figures)}", flush=True)

    settings = ReaderSettings.of(dict(map(parse, changes)), "--set")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    start = time.perf_counter()
    reader = untaught(encoder or stage / ENCODER, stage / INDEX, settings).to(device)
    arrays, answers = load_texts(stage / QUESTIONS, reader), load_texts(stage / JUDGED, reader)
    arrays["shared"] = arrays["shared"][FOLDS if fold is None else fold]
    numbers = np.arange(len(arrays["fold"]))
    data, judged = ReaderData(arrays, device), JudgeData(answers, device)
    data.learned = learned = numbers if fold is None else numbers[arrays["fold"] != fold]
    judged.learned = np.flatnonzero(answers["fold"] != (-9 if fold is None else fold))
    training = ReaderTraining(reader, data, settings, judged=judged)
    training.state.start(log=Lines())
    training.train()
    print(f"{name}: {len(learned)} questions learnt in {time.perf_counter() - start:.1f} s on {device}", flush=True)
    (stage / PLAYS).mkdir(exist_ok=True)
    judgements = judgements_on(training.reader, stage, fold)
    if fold is None:
        save_arrays(judgements, stage / PLAYS / f"{name}.safetensors")
        time_reading(training.reader, data)
        quantise(training.reader.encoder.model)
        weights = {key: value.contiguous().cpu() for key, value in training.reader.state_dict().items()}
        save_file(weights, stage / PLAYS / f"{name}.weights")
    else:
        views = views_on(training.reader, data, numbers[arrays["fold"] == fold])
        save_arrays(views | judgements, stage / PLAYS / f"{name}.safetensors")


def judgements_on(model: "ChainReader", stage: Path, fold: int | None) -> dict[str, Array]:
    """Return the judge's logits for the answers that it was not trained on, and the numbers of their questions."""
    from rechain.evaluation.statistics import auc
    from rechain.reader.train import JudgeData, examine, judge_cases

    outputs: dict[str, Array] = {}
    for name, file in (("judged", JUDGED), ("verdicts", VERDICTS)):
        arrays = load_texts(stage / file, model)
        folds = arrays["fold"]
        unseen = np.flatnonzero(folds < 0 if fold is None else folds == fold)
        if name == "verdicts" and fold is not None:
            unseen = np.flatnonzero((folds == fold) | (folds < 0))
        data = JudgeData(arrays, next(model.parameters()).device)
        judged = list(examine(judge_cases, model, data, unseen))
        logits = np.concatenate([values[batch.is_case].float().cpu().numpy() for batch, values in judged])
        is_right = np.concatenate([(batch.is_case.cumsum(1) == 1)[batch.is_case].cpu().numpy() for batch, _ in judged])
        print(f"fold {fold}: AUC of the judge {auc(logits, is_right):.3f} on {name}", flush=True)
        outputs |= {name: logits, f"{name}.right": is_right.astype(np.uint8), f"{name}.questions": unseen}
    return outputs


def parse(change: str) -> tuple[str, Any]:
    """Return a setting and its value from `NAME=VALUE`."""
    name, _, value = change.partition("=")
    return name, tomllib.loads(f"value = {value.lower()}")["value"]


def load_texts(file: Path, reader: "ChainReader") -> dict[str, Array]:
    """Return arrays with the tokens of a reader's vocabulary: MPNet's is BERT's after four tokens of its own."""
    arrays = load_arrays(file)
    if reader.encoder.shape["model_type"] == "mpnet":
        own = np.arange(BERT_TOKENS, dtype=np.uint16) + np.uint16(4)
        own[[0, 101, 102]] = 1, 0, 2  # padding, beginning and end
        arrays["ids"] = own[arrays["ids"]]
    return arrays


def untaught(encoder: Path, index: Path, settings: ReaderSettings) -> "ChainReader":
    """Return a reader with a pretrained encoder and new heads; evidence weighs what the prior says.

    `rechain.reader.pretrained.load_trainable` does the same, but needs the whole package.
    """
    import torch

    from rechain.reader.encoders import pretrained
    from rechain.reader.network import ChainReader

    torch.manual_seed(settings.seed)
    config, weights = json.loads((encoder / "config.json").read_text(encoding="utf-8")), unpack_encoder(encoder)
    prior = torch.tensor(json.loads(index.read_text(encoding="utf-8"))["prior"])
    shapes = {name: tuple(value.shape) for name, value in weights.items()}
    read = pretrained(config, shapes, lambda: weights, TEXT_MARKS)
    reader = ChainReader(read, len(prior), settings.dropout, judges=True, judge_layers=settings.judge_layers)
    reader.evidence.weight.data.copy_(prior[None])
    return reader


def views_on(model: "ChainReader", data: "ReaderData", questions: Array) -> dict[str, Array]:
    """Return the scores of the three views of a reader for the chains of questions, and the numbers of these chains."""
    from rechain.reader.train import examine, look

    parts: dict[str, list[Array]] = {name: [] for name in ("chains", *VIEWS)}
    for batch, views in examine(look, model, data, questions):
        parts["chains"].append(batch.chains[batch.is_chain.cpu()].numpy())
        for name, values in zip(VIEWS, views, strict=True):
            parts[name].append(values[batch.is_chain].float().cpu().numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}


def time_reading(model: "ChainReader", data: "ReaderData") -> None:
    """Print how many questions a second are read from prepared tensors, every kept chain of them; the second time."""
    from rechain.reader.train import examine, look

    questions = np.arange(len(data))
    for _ in range(2):
        start = time.perf_counter()
        for _, views in examine(look, model, data, questions, 512):
            views.ranker.sum().item()
        speed = len(questions) / (time.perf_counter() - start)
    print(f"{speed:.0f} questions/s from prepared tensors on {data.device}", flush=True)


def bundle(stage: Path, data: Path, folder: Path) -> None:
    """Write the weights that learnt everything, which are bytes, with a card that has the figures."""
    from safetensors.torch import load_file

    from rechain.reader.cpu import quantise
    from rechain.reader.encoders import PretrainedEncoder
    from rechain.reader.model import ChainReaderModel
    from rechain.reader.network import ChainReader
    from rechain.reader.pretrained import read_tokenizer, save, write_card
    from rechain.text.evidence.features import FEATURES
    from rechain.text.passage_views import first_sentences

    settings = ReaderSettings()
    encoder = PretrainedEncoder(json.loads((stage / ENCODER / "config.json").read_text(encoding="utf-8")), TEXT_MARKS)
    network = ChainReader(encoder, len(FEATURES), judges=True, judge_layers=settings.judge_layers)
    quantise(encoder.model)
    weights = load_file(stage / PLAYS / "all.weights")
    weights["evidence.weight"][0, FEATURES.index("one")] += ONE
    network.load_state_dict(weights)
    tokenizer = read_tokenizer(stage / ENCODER / "tokenizer.json")
    model = ChainReaderModel(network, tokenizer, settings)
    model.settings = settings.but(unlike=model.mean_unrelated_cosine(first_sentences(questions_of(data, HOTPOT))))
    # what is not in bytes is a twentieth of the weights, and 16 bits of it are as good as 32
    small = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
    network.load_state_dict(small, assign=True)
    model.card = write_card(model, "rechain's default model", "default", "apache-2.0", sections(stage, data))
    save(model, folder)


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
    steps.choices["prepare"].add_argument("--logs", type=Path, required=True)
    steps.choices["train"].add_argument("--name", required=True)
    steps.choices["train"].add_argument("--fold", type=int)
    steps.choices["train"].add_argument("--encoder", type=Path)
    steps.choices["train"].add_argument("--set", dest="changes", action="append", default=[])
    options = vars(parser.parse_args())
    run: dict[str, Any] = {"prepare": prepare, "train": train, "judge": judge, "bundle": bundle}
    run[options.pop("step")](**options)


if __name__ == "__main__":
    main()
