"""Runs of the cooperative game: questions as arrays, word vectors beside them, and the players that come of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rechain.candidates import CandidateSettings
from rechain.errors import InputError
from rechain.game.settings import GameSettings
from rechain.preparation.lexicon import Lexicon, vector_rows
from rechain.preparation.pseudo import make_pseudo_questions
from rechain.preparation.questions import Preparation
from rechain.preparation.vectors import Vectors
from rechain.schema import Question
from rechain.system.files import write_atomically
from rechain.system.tensors import Array, load_arrays, load_tensors, not_finite, save_arrays
from rechain.text.collection import Statistics
from rechain.training.runs import WEIGHTS, RunFolder, fingerprint, no_chain

if TYPE_CHECKING:
    from rechain.game.model import TrainedModel
    from rechain.game.training import Training

VECTORS, WORDS = "vectors.safetensors", "words.txt"
WIDTH_WITHOUT_VECTORS = 50


@dataclass(frozen=True)
class GameMaterial:
    """What a game is learned from."""

    questions: dict[str, Array]
    pseudo: dict[str, Array] | None
    vectors: Vectors
    left_out: Mapping[str, int]
    kind: ClassVar[str] = "game"
    beside: ClassVar[str] = "vectors or pseudo questions"

    @cached_property
    def fingerprint(self) -> str:
        """What tells this material from any other."""
        return fingerprint(self.questions, self.pseudo or {}, {"vectors": self.vectors.matrix})

    @property
    def facts(self) -> dict[str, int]:
        """The length of the chains, which decides the shape of the networks."""
        return {"hops": int(self.questions["chain_passages"].shape[1])}

    def write(self, path: Path) -> tuple[str, ...]:
        """Write the word vectors, which the weights do not have unless they are trained."""
        write_atomically(path / WORDS, "\n".join(self.vectors.words).encode())
        save_arrays({"vectors": self.vectors.matrix}, path / VECTORS)
        return WORDS, VECTORS

    def training(self, settings: GameSettings, device: str) -> "Training":
        """Return a game that is about to begin."""
        import torch

        from rechain.game.data import Prepared
        from rechain.game.training import Part, Training

        pseudo = []
        if self.pseudo is not None:
            data = Prepared(self.pseudo, device, *settings.reading)
            pseudo.append(Part(data, np.arange(len(data))))
        questions = Prepared(self.questions, device, *settings.reading)
        return Training(torch.from_numpy(self.vectors.table), questions, settings, pseudo=pseudo)

    def save(self, training: "Training", path: Path) -> None:
        """Write the players' weights."""
        training.save_weights(path / WEIGHTS)


def no_vectors() -> Vectors:
    """Return vectors for no word at all: every word is then known by its spelling."""
    return Vectors([], np.zeros((0, WIDTH_WITHOUT_VECTORS), np.float16))


def prepare_game(
    questions: Iterable[Question],
    vectors: Vectors,
    candidates: CandidateSettings,
    pseudo: int = 0,
    seed: int = 0,
    collection: Statistics | None = None,
) -> GameMaterial:
    """Prepare questions for a game, and make pseudo questions from their passages.

    `collection` is where the passages come from, if that is known.
    """
    rows = vector_rows(vectors.words)
    preparation = Preparation(Lexicon(rows), candidates, collection)
    kept = [question for question in questions if preparation.take(question)]
    if not kept:
        raise no_chain(preparation.left_out)
    arrays = None
    if pseudo:
        others = Preparation(Lexicon(rows), candidates, collection)
        for one in make_pseudo_questions(kept, pseudo, seed=seed, candidates=candidates):
            others.take(one.question, one.chain)
        arrays = others.arrays()
    prepared = preparation.arrays() | preparation.tell([range(len(kept))])
    return GameMaterial(prepared, arrays, vectors, preparation.left_out)


def load_game(path: Path, vectors: Vectors | None = None, device: str = "cpu") -> "TrainedModel":
    """Read a model from the folder of a finished run, or from a file of weights whose vectors are passed."""
    import torch

    from rechain.game.model import TrainedModel
    from rechain.game.players import Players
    from rechain.models.shapes import check_shapes, shapes_alone

    folder, path = (path, path / WEIGHTS) if path.is_dir() else (None, path)
    weights, metadata = load_tensors(path)
    vectors = _read_vectors(folder) if folder else vectors or no_vectors()
    settings, hops = GameSettings.recorded(metadata["settings"], str(path)), metadata.get("hops")
    table, shapes = torch.from_numpy(vectors.table), {name: tuple(value.shape) for name, value in weights.items()}
    try:
        # before anything is planned for as many hops
        if not isinstance(hops, int) or shapes.get("mean_reward") != (hops,):
            raise ValueError("it is of chains of another length")
        with shapes_alone():
            check_shapes(Players(table.to("meta"), hops, settings), shapes)
        players = Players(table, hops, settings)
        players.load_state_dict(weights)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{path} is of other networks or word vectors than these.") from error
    if bad := not_finite(weights):
        raise InputError(f"{path} holds no model that can be used: the numbers of {bad} are not all finite.")
    return TrainedModel(players.to(device), settings, vector_rows(vectors.words))


def _read_vectors(folder: Path) -> Vectors:
    """Read the word vectors of a run, which are as they were when it began."""
    if RunFolder(folder).is_begun:
        RunFolder(folder).check_files()
    matrix = load_arrays(folder / VECTORS).get("vectors", np.zeros((0, 0), np.float16))
    try:
        text = (folder / WORDS).read_bytes().decode("utf-8")  # as it was written, whatever a line end is here
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{folder / WORDS} cannot be read: {error}.") from error
    words = text.split("\n") if text else []
    if matrix.ndim != 2 or matrix.dtype != np.float16 or not np.isfinite(matrix).all():
        raise InputError(f"{folder / VECTORS} should hold a matrix of finite numbers of 16 bits.")
    if len(words) != len(matrix):
        raise InputError(f"{folder} has {len(words)} words in {WORDS}, but {len(matrix)} vectors in {VECTORS}.")
    return Vectors(words, matrix)
