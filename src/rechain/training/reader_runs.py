"""Runs of the chain reader on a user's own questions: from the bundled weights, or from those of an encoder."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rechain.candidates import CandidateSettings, find_candidates
from rechain.errors import InputError, QuestionError, RechainError
from rechain.models.chain_reader import ChainReader
from rechain.preparation.pseudo import make_pseudo_questions
from rechain.preparation.wrong_answers import WrongAnswers
from rechain.reader.arrays import JudgePreparation, ReaderPreparation, answer_spans
from rechain.reader.data import JudgeData, ReaderData
from rechain.reader.model import ChainReaderModel
from rechain.reader.pretrained import CONFIG, find, is_model, load_trainable, save
from rechain.reader.settings import ReaderSettings
from rechain.reader.training import Judged, Questions, ReaderTraining, ReaderTrainingSettings
from rechain.schema import Question
from rechain.scoring.model import BUNDLED
from rechain.system.distributed import is_shared
from rechain.system.tensors import Array
from rechain.text.collection import Statistics
from rechain.text.passages import PassageView, first_sentences
from rechain.training.runs import WEIGHTS, fingerprint, no_chain

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_FEWEST_JUDGED = 200
"""questions with wrong answers: from fewer a judge would learn them by heart"""


@dataclass(frozen=True)
class ReaderMaterial:
    """What a chain reader is trained from."""

    questions: dict[str, Array]
    pseudo: dict[str, Array] | None
    judged: dict[str, Array] | None
    """right and wrong answers; None where too few questions have wrong ones"""
    sentences: Sequence[str]
    """of different questions, which say different things"""
    left_out: Mapping[str, int]
    tokenizer: "Tokenizer"
    encoder: Path | None
    """the folder that it starts from, of an encoder or a model; None: the bundled model"""
    kind: ClassVar[str] = "reader"
    beside: ClassVar[str] = "another encoder or other pseudo questions"

    @property
    def _start(self) -> Path:
        return self.encoder or find(BUNDLED)

    @cached_property
    def fingerprint(self) -> str:
        """What tells this material from any other; the weights at the start are part of it."""
        weights = sha256((self._start / WEIGHTS).read_bytes()).digest()
        start = {"start": np.frombuffer(weights, np.uint8)}
        return fingerprint(self.questions, self.pseudo or {}, self.judged or {}, start)

    @property
    def facts(self) -> dict[str, str | None]:
        """From where the run was started, so that it can be resumed from there."""
        return {"encoder": None if self.encoder is None else str(self.encoder.resolve())}

    def write(self, path: Path) -> tuple[str, ...]:
        """Write nothing: a folder with a config is a model, which the run is only once it has ended."""
        return ()

    def training(self, settings: ReaderTrainingSettings, device: str) -> ReaderTraining:
        """Return a run that is about to begin; some of the questions are held out."""
        if is_shared():  # each process would believe its own share of the chains alone
            raise RechainError("the chain reader is trained by one process; start it without torchrun.")

        def make(seed: int) -> ChainReader:
            return load_trainable(self._start, settings, seed, judges=self.judged is not None).network.to(device)

        data = ReaderData(self.questions, device)
        questions = Questions(data, *_split(len(data), settings))
        pseudo = judged = None
        if self.pseudo is not None:
            made = ReaderData(self.pseudo, device)
            pseudo = Questions(made, np.arange(len(made)))
        if self.judged is not None:
            answers = JudgeData(self.judged, device)
            judged = Judged(answers, *_split(len(answers), settings))
        return ReaderTraining(make, questions, settings, pseudo, is_model(self._start / CONFIG), judged)

    def save(self, training: ReaderTraining, path: Path) -> None:
        """Write the reader that is kept as the folder of a model; its weights are floats, as they were trained."""
        settings = ReaderSettings(**{f.name: getattr(training.settings, f.name) for f in fields(ReaderSettings)})
        model = ChainReaderModel(training.reader, self.tokenizer, settings)
        unlike, layers = model.unlikeness(self.sentences), training.reader.judge_layers
        model.settings = settings.but(unlike=unlike, judge_layers=layers)
        save(model, path)


def _split(count: int, settings: ReaderTrainingSettings) -> tuple[Array, Array]:
    """Return the numbers that are learnt from and those that are held out."""
    shuffled = np.random.default_rng([settings.seed, 0]).permutation(count)
    held = int(count * settings.held_out)
    return np.sort(shuffled[held:]), np.sort(shuffled[:held])


def prepare_reader(
    questions: Iterable[Question],
    settings: ReaderTrainingSettings,
    candidates: CandidateSettings,
    encoder: Path | None = None,
    pseudo: int = 0,
    collection: Statistics | None = None,
) -> ReaderMaterial:
    """Prepare questions for a chain reader, and make pseudo questions from their passages.

    `collection` is what is known of the collection that the passages come from, if there is one.
    """
    if encoder is not None and not encoder.is_dir():
        raise InputError(f"--encoder {encoder} is no folder; name one with {CONFIG}, {WEIGHTS} and tokenizer.json.")
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
    arrays = None
    if pseudo:
        others = ReaderPreparation(tokenizer, settings)
        for one in make_pseudo_questions(kept, pseudo, seed=settings.seed, candidates=candidates):
            others.add(find_candidates(one.question, candidates), one.chain)
        arrays = others.arrays()
    judged = _prepare_judge(kept, tokenizer, settings, candidates)
    told = {"told": preparation.told(range(len(kept)))}
    sentences = first_sentences(kept)
    return ReaderMaterial(preparation.arrays() | told, arrays, judged, sentences, left_out, tokenizer, encoder)


def _prepare_judge(
    questions: Sequence[Question],
    tokenizer: "Tokenizer",
    settings: ReaderTrainingSettings,
    candidates: CandidateSettings,
) -> dict[str, Array] | None:
    """Return right and wrong answers of questions; None where so few have wrong ones that a judge would learn nothing.

    Where the data names the answer's entity, other names of its kind are too often right as well.
    """
    wrong, preparation = WrongAnswers(questions, settings.seed), JudgePreparation(tokenizer, settings.judge_tokens)
    for question in questions:
        if question.answer_entity is None:
            views = [PassageView(passage) for passage in question.passages]
            tails = [number for number, view in enumerate(views) if answer_spans(question, view)]
            answers = wrong.choose(question, views, tails, settings.wrong_answers)
            preparation.add(question, answers, candidates)
    return preparation.arrays() if len(preparation.ids) >= _FEWEST_JUDGED else None
