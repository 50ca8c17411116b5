"""Train the chain reader on users' own questions, from the bundled weights or from those of an encoder."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from rechain.errors import InputError, QuestionError, RechainError
from rechain.reader.model import ChainReaderModel
from rechain.reader.prepare import JudgePreparation, ReaderPreparation, answer_spans
from rechain.reader.pretrained import CONFIG, find, is_model, load_trainable, save
from rechain.reader.settings import ReaderSettings
from rechain.reader.train import JudgeData, ReaderData, ReaderTraining
from rechain.reader.wrong_answers import WrongAnswers
from rechain.schema import Question
from rechain.scoring.interface import BUNDLED
from rechain.system.tensors import Array
from rechain.system.training import WEIGHTS, RunFolder, TrainingLog, TrainingState, fingerprint, is_shared, no_chain
from rechain.text.candidates import CandidateSettings, find_candidates
from rechain.text.collection import Statistics
from rechain.text.passage_views import PassageView, first_sentences

_FEWEST_JUDGED = 200  # questions with wrong answers: from fewer a judge would learn them by heart


@dataclass(frozen=True)
class ReaderMaterial:
    """What a chain reader is trained from."""

    questions: Mapping[str, Array]
    judged: Mapping[str, Array] | None  # right and wrong answers; None if too few questions have wrong ones
    sentences: Sequence[str]  # of different questions, with different meanings
    left_out: Mapping[str, int]  # the number of questions without a chain by the reason
    tokenizer: Tokenizer
    encoder: Path | None  # the folder of an encoder or a model to start from; None: the bundled model

    @cached_property
    def record(self) -> dict[str, str | None]:
        """What is recorded of it in the folder of a run; the weights at the start are part of the fingerprint."""
        weights = sha256((self.start / WEIGHTS).read_bytes()).digest()
        digest = fingerprint(self.questions, self.judged or {}, {"start": np.frombuffer(weights, np.uint8)})
        encoder = None if self.encoder is None else str(self.encoder.resolve())
        return {"kind": "reader", "encoder": encoder, "fingerprint": digest}

    @property
    def start(self) -> Path:
        """The folder of the weights to start from."""
        return self.encoder or find(BUNDLED)


def prepare_reader(
    questions: Iterable[Question],
    settings: ReaderSettings,
    candidates: CandidateSettings,
    encoder: Path | None = None,
    collection: Statistics | None = None,
) -> ReaderMaterial:
    """Prepare questions to train a chain reader; `collection` is where the passages come from, if it is known."""
    if encoder is not None and not encoder.is_dir():
        raise InputError(f"--encoder {encoder} is not a folder; name one with {CONFIG}, {WEIGHTS} and tokenizer.json.")
    if encoder is not None and (encoder / CONFIG).is_file() and not (encoder / WEIGHTS).is_file():
        raise InputError(f"--encoder {encoder} has no {WEIGHTS}; weights in several files should be saved as one.")
    tokenizer = load_trainable(encoder or BUNDLED, settings).tokenizer
    preparation, kept = ReaderPreparation(tokenizer, settings), []
    left_out: Counter[str] = Counter()
    for question in questions:
        try:
            preparation.add(find_candidates(question, candidates, collection))
            kept.append(question)
        except QuestionError as error:
            left_out[error.code] += 1
    if not kept:
        raise no_chain(left_out)
    arrays = preparation.arrays() | {"shared": preparation.shared(range(len(kept)))}
    judged = _prepare_judge(kept, tokenizer, settings, candidates)
    return ReaderMaterial(arrays, judged, first_sentences(kept), left_out, tokenizer, encoder)


def _prepare_judge(
    questions: Sequence[Question], tokenizer: Tokenizer, settings: ReaderSettings, candidates: CandidateSettings
) -> dict[str, Array] | None:
    """Return right and wrong answers of questions, or None if too few have wrong ones.

    If the data names the answer's entity, other names of its kind are too often right as well.
    """
    wrong, preparation = WrongAnswers(questions, settings.seed), JudgePreparation(tokenizer, settings.judge_tokens)
    for question in questions:
        if question.answer_entity is None:
            views = [PassageView(passage) for passage in question.passages]
            tails = [number for number, view in enumerate(views) if answer_spans(question, view)]
            answers = wrong.choose(question, views, tails, settings.wrong_answers)
            preparation.add(question, answers, candidates)
    return preparation.arrays() if len(preparation.ids) >= _FEWEST_JUDGED else None


def train_reader(
    material: ReaderMaterial,
    settings: ReaderSettings,
    folder: RunFolder,
    *,
    device: str = "cpu",
    resume: bool = False,
    log: TrainingLog | None = None,
) -> TrainingState:
    """Train from the beginning, or from the last checkpoint; write the model into the folder of the run."""
    if is_shared():  # each process would believe its own share of the chains alone
        raise RechainError("the chain reader is trained by one process; start it without torchrun.")
    training = start_training(material, settings, device)
    record = {**material.record, "settings": asdict(settings)}
    if resume and folder.is_begun:
        folder.check(record, "other questions or another encoder")
        training.state.load_last(folder.checkpoint)
    else:
        folder.begin(record)
    training.state.start(folder.checkpoint, log)
    training.train()
    model = ChainReaderModel(training.reader, material.tokenizer, settings)  # of floats, as they were trained
    cosine, layers = model.mean_unrelated_cosine(material.sentences), training.reader.judge_layers
    model.settings = settings.but(unlike=cosine, judge_layers=layers)
    save(model, folder.path)
    return training.state


def start_training(material: ReaderMaterial, settings: ReaderSettings, device: str) -> ReaderTraining:
    """Return a run that is about to begin; some of the questions are held out."""
    judged = None if material.judged is None else JudgeData(material.judged, device)
    network = load_trainable(material.start, settings, settings.seed, judged is not None).network.to(device)
    data = ReaderData(material.questions, device)
    for rows in filter(None, (data, judged)):
        rows.hold_out(settings.held_out, settings.seed)
    return ReaderTraining(network, data, settings, is_model(material.start / CONFIG), judged)
