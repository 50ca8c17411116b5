"""Runs of the game and what comes of them: a trained Ranker and Reasoner as a model that scores candidate chains."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from rechain.errors import InputError, QuestionError
from rechain.paper.data import Batch, Prepared
from rechain.paper.decode import ChainScores, decode
from rechain.paper.game import Players
from rechain.paper.lexicon import Lexicon, vector_rows
from rechain.paper.prepare import Preparation
from rechain.paper.settings import GameSettings
from rechain.paper.train import Training, save_players
from rechain.paper.vectors import Vectors, no_vectors
from rechain.schema import Question
from rechain.scoring.interface import Contributions, PlayerStep
from rechain.system.files import write_atomically
from rechain.system.tensors import Array, load_arrays, load_tensors, not_finite, save_arrays
from rechain.system.training import WEIGHTS, RunFolder, TrainingLog, TrainingState, fingerprint, is_first, no_chain
from rechain.text.candidates import Candidates, CandidateSettings
from rechain.text.collection import Statistics

VECTORS, WORDS = "vectors.safetensors", "words.txt"


@dataclass(frozen=True)
class GameMaterial:
    """What a game is learned from."""

    questions: dict[str, Array]
    vectors: Vectors
    left_out: Mapping[str, int]

    @cached_property
    def fingerprint(self) -> str:
        """A digest of questions and vectors."""
        return fingerprint(self.questions, {"vectors": self.vectors.matrix})


def prepare_game(
    questions: Iterable[Question],
    vectors: Vectors,
    candidates: CandidateSettings,
    collection: Statistics | None = None,
) -> GameMaterial:
    """Prepare questions for a game; `collection` is where the passages come from, if that is known."""
    preparation = Preparation(Lexicon(vector_rows(vectors.words)), candidates, collection)
    count = sum(map(preparation.take, questions))
    if not count:
        raise no_chain(preparation.left_out)
    return GameMaterial(preparation.arrays() | preparation.beliefs([range(count)]), vectors, preparation.left_out)


def train_game(
    material: GameMaterial,
    settings: GameSettings,
    folder: RunFolder,
    *,
    device: str = "cpu",
    resume: bool = False,
    log: TrainingLog | None = None,
) -> TrainingState:
    """Train from the beginning or from the last checkpoint, and leave the model in the folder."""
    data = Prepared(material.questions, settings, device)
    training = Training(torch.from_numpy(material.vectors.table), data, settings)
    record = {
        "kind": "game",
        "settings": asdict(settings),
        "hops": data.hops,
        "fingerprint": material.fingerprint,
    }
    if resume and folder.is_begun:
        folder.check(record, "other questions or other vectors")
        training.state.load_last(folder.checkpoint)
    elif is_first():
        folder.path.mkdir(parents=True, exist_ok=True)
        write_atomically(folder.path / WORDS, "\n".join(material.vectors.words).encode())
        save_arrays({"vectors": material.vectors.matrix}, folder.path / VECTORS)
        folder.begin(record, (WORDS, VECTORS))
    training.state.start(folder.checkpoint, log)
    training.run()
    if is_first():
        save_players(training.players, folder.path / WEIGHTS)
    return training.state


def load_model(path: Path, device: str = "cpu") -> "GameModel":
    """Load the model of the finished run in a folder."""
    folder = RunFolder(path)
    if folder.is_begun and (folder.record()["kind"] != "game" or not (path / WEIGHTS).exists()):
        raise InputError(f"the run in {path} is not finished; finish it with `rechain train … --resume`.")
    return load_game(path, device=device)


def load_game(path: Path, vectors: Vectors | None = None, device: str = "cpu") -> "GameModel":
    """Read a model from the folder of a finished run, or from a file of weights whose vectors are passed."""
    from rechain.reader.encoders import check_shapes, shapes_alone

    folder, path = (path, path / WEIGHTS) if path.is_dir() else (None, path)
    weights, metadata = load_tensors(path)
    vectors = _read_run_vectors(folder) if folder else vectors or no_vectors()
    settings, hops = GameSettings.of(metadata.get("settings", {}), str(path)), metadata.get("hops")
    table, shapes = torch.from_numpy(vectors.table), {name: tuple(value.shape) for name, value in weights.items()}
    try:
        if type(hops) is not int or not 2 <= hops <= len(weights):  # before anything is planned for as many hops
            raise ValueError("its chains have no length")
        with shapes_alone():
            check_shapes(Players(table.to("meta"), hops, settings), shapes)
        players = Players(table, hops, settings)
        players.load_state_dict(weights)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{path} is of other networks or word vectors than these.") from error
    if bad := not_finite(weights):
        raise InputError(f"{path} cannot be used: the numbers of {bad} are not all finite.")
    return GameModel(players.to(device), vector_rows(vectors.words))


def _read_run_vectors(folder: Path) -> Vectors:
    """Read the word vectors of a run, as they were when it began."""
    if RunFolder(folder).is_begun:
        RunFolder(folder).check_files()
    matrix = load_arrays(folder / VECTORS).get("vectors", np.zeros((0, 0), np.float16))
    try:
        text = (folder / WORDS).read_bytes().decode("utf-8")  # bytes, as line ends must stay as they are
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{folder / WORDS} cannot be read: {error}.") from error
    words = text.split("\n") if text else []
    if matrix.ndim != 2 or matrix.dtype != np.float16 or not np.isfinite(matrix).all():
        raise InputError(f"{folder / VECTORS} should be a matrix of finite numbers of 16 bits.")
    if len(words) != len(matrix):
        raise InputError(f"{folder} has {len(words)} words in {WORDS}, but {len(matrix)} vectors in {VECTORS}.")
    return Vectors(words, matrix)


class GameModel:
    """What `rechain train` has written, behind the interface that every model has."""

    def __init__(self, players: Players, rows: Mapping[str, int]) -> None:
        """Take the players and the row of every word in their table of vectors."""
        self.players = players.eval()
        self.settings = players.settings
        self.rows = rows

    def to(self, device: str) -> "GameModel":
        """Return the model on a device."""
        self.players.to(device)
        return self

    def read(self, preparation: Preparation) -> Batch:
        """Return prepared questions as the players read them, all in one batch."""
        data = Prepared(preparation.arrays(), self.settings, self.players.device)
        return data.batch(np.arange(len(data)))

    def score(self, candidates: Candidates) -> Sequence[Contributions]:
        """Return what Ranker, Reasoner and the lexical rule contribute to the score of every chain."""
        batch = self._batch(candidates)
        scores = self._decode(batch)
        parts = {
            "ranker": (1.0, scores.ranker),
            "reasoner": (self._reasoner_weight, scores.reasoner),
            "lexical": (self.settings.lexical_weight, batch.lexical),
        }
        used = {name: (weight * values[0]).tolist() for name, (weight, values) in parts.items() if weight}
        return [dict(zip(used, values, strict=True)) for values in zip(*used.values(), strict=True)]

    def steps(self, candidates: Candidates) -> list[list[PlayerStep]]:
        """Return the probabilities of the players on the way to every chain, in the order in which they play."""
        plan = self.players.plan
        scores = self._decode(self._batch(candidates))
        selections, links = scores.selections[0].exp().tolist(), scores.links[0].exp().tolist()
        return [
            [
                *(PlayerStep("ranker", p, step.role) for step, p in zip(plan.steps, selected, strict=True)),
                *(PlayerStep("reasoner", p, r.role, r.link) for r, p in zip(plan.readings, linked, strict=False)),
            ]
            for selected, linked in zip(selections, links, strict=True)
        ]

    def _batch(self, candidates: Candidates) -> Batch:
        hops = self.players.plan.hops
        if candidates.hops != hops:
            raise QuestionError("other_hops", f"the model recovers chains of {hops} passages, not {candidates.hops}")
        if self.settings.selects == "steps" and not candidates.names_entities:
            raise QuestionError("other_entities", "the model selects steps, but the data does not name the entities")
        preparation = Preparation(Lexicon(self.rows))
        preparation.add(candidates)
        return self.read(preparation)

    def _decode(self, batch: Batch) -> ChainScores:
        return decode(self.players, batch, asks_reasoner=self._reasoner_weight > 0)

    @property
    def _reasoner_weight(self) -> float:
        """How much the Reasoner's vote counts: nothing if it has learned nothing."""
        return self.settings.reasoner_weight if self.settings.teaches_reasoner else 0.0
