"""Runs of the chain reader on a user's own questions: from the bundled weights, or from an encoder's."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rechain.candidates import CandidateSettings, find_candidates
from rechain.errors import QuestionError, RechainError
from rechain.preparation.pseudo import make_pseudo_questions
from rechain.reader.arrays import ReaderPreparation
from rechain.reader.settings import ReaderSettings
from rechain.reader.training import Questions, ReaderTraining, ReaderTrainingSettings
from rechain.schema import Question
from rechain.system.distributed import is_shared
from rechain.system.tensors import Array
from rechain.training.runs import WEIGHTS, fingerprint, no_chain

if TYPE_CHECKING:
    from rechain.models.chain_reader import ChainReader


@dataclass(frozen=True)
class ReaderMaterial:
    """What a chain reader is trained from."""

    questions: dict[str, Array]
    pseudo: dict[str, Array] | None
    left_out: Mapping[str, int]
    encoder: Path | None
    """the folder of the encoder that it starts from; None: the bundled model"""
    kind: ClassVar[str] = "reader"
    beside: ClassVar[str] = "another encoder or other pseudo questions"

    @cached_property
    def fingerprint(self) -> str:
        """What tells this material from any other, the weights at the start included."""
        weights = sha256((start_folder(self.encoder) / WEIGHTS).read_bytes()).digest()
        return fingerprint(self.questions, self.pseudo or {}, {"start": np.frombuffer(weights, np.uint8)})

    @property
    def facts(self) -> dict[str, str | None]:
        """Where the weights at the start come from."""
        return {"encoder": None if self.encoder is None else str(self.encoder.resolve())}

    def write(self, path: Path) -> None:
        """Write nothing: tokeniser and shape are written with the model, which is one only once it is finished."""

    def training(self, settings: ReaderTrainingSettings, device: str) -> ReaderTraining:
        """Return a run that is about to begin; some of the questions are held out."""
        import torch

        from rechain.reader.data import ReaderData

        if is_shared():
            raise RechainError("the chain reader is trained by one process; start it without torchrun.")

        def make(seed: int) -> "ChainReader":
            torch.manual_seed(seed)
            return start(self.encoder, settings)[0].to(device)

        data = ReaderData(self.questions, device)
        order = np.random.default_rng([settings.seed, 0]).permutation(len(data))
        held = int(len(data) * settings.held_out)
        learned = Questions(data, np.sort(order[held:]), np.sort(order[:held]))
        pseudo = None
        if self.pseudo is not None:
            made = ReaderData(self.pseudo, device)
            pseudo = Questions(made, np.arange(len(made)))
        return ReaderTraining(make, learned, settings, pseudo, is_trained=self.encoder is None)

    def save(self, training: ReaderTraining, path: Path) -> None:
        """Write the reader that is kept as a model's folder: weights as trained, tokeniser, settings and card."""
        from rechain.reader.model import ChainReaderModel
        from rechain.reader.pretrained import save

        settings = ReaderSettings(**{f.name: getattr(training.settings, f.name) for f in fields(ReaderSettings)})
        _, tokenizer = start(self.encoder, settings)
        save(ChainReaderModel(training.reader, tokenizer, settings), path)


def prepare_reader(
    questions: Iterable[Question],
    settings: ReaderTrainingSettings,
    candidates: CandidateSettings,
    encoder: Path | None = None,
    pseudo: int = 0,
) -> ReaderMaterial:
    """Prepare questions for a chain reader, and make pseudo questions from their passages."""
    _, tokenizer = start(encoder, settings)
    left_out: Counter[str] = Counter()
    preparation, kept = ReaderPreparation(tokenizer, settings.max_tokens, settings.most_chains), []
    for question in questions:
        try:
            preparation.add(find_candidates(question, candidates))
            kept.append(question)
        except QuestionError as error:
            left_out[error.code] += 1
    if not kept:
        raise no_chain(left_out)
    arrays = None
    if pseudo:
        others = ReaderPreparation(tokenizer, settings.max_tokens, settings.most_chains)
        for one in make_pseudo_questions(kept, pseudo, seed=settings.seed, candidates=candidates):
            others.add(find_candidates(one.question, candidates), one.chain)
        arrays = others.arrays()
    return ReaderMaterial(preparation.arrays(), arrays, left_out, encoder)


def start_folder(encoder: Path | None) -> Path:
    from rechain.reader.pretrained import BUNDLED, find

    return find(BUNDLED) if encoder is None else encoder


def start(encoder: Path | None, settings: ReaderSettings):  # TEMPORARY
    import json
    import torch
    from safetensors.torch import load_file
    from rechain.models.chain_reader import ChainReader
    from rechain.models.text_encoders import pretrained, untrained
    from rechain.preparation.arrays import TEXT_MARKS
    from rechain.reader.pretrained import read_tokenizer
    from rechain.scoring.evidence import FEATURES, PRIOR

    folder = start_folder(encoder)
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    if encoder is not None:
        reader = ChainReader(pretrained(folder, TEXT_MARKS), len(FEATURES), settings.dropout)
        reader.evidence.weight.data.copy_(torch.from_numpy(PRIOR)[None])
        return reader, tokenizer
    config = json.loads((folder / "config.json").read_text())
    reader = ChainReader(untrained(config["encoder"], TEXT_MARKS), len(FEATURES), settings.dropout)
    weights = load_file(folder / "model.safetensors")
    floats = {
        n: v.float() * weights[n[:-6] + "scale"].float()[:, None] if v.dtype == torch.int8 else v.float()
        for n, v in weights.items()
        if not n.endswith(".scale")
    }
    reader.load_state_dict(floats)
    return reader, tokenizer
