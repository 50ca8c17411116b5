"""A training run as a folder: what it was asked, its vectors, its checkpoint, its log and the weights it ends with."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rechain.candidates import CandidateSettings
from rechain.errors import InputError, RechainError
from rechain.game.settings import GameSettings
from rechain.preparation.lexicon import Lexicon, vector_rows
from rechain.preparation.pseudo import make_pseudo_questions
from rechain.preparation.questions import Preparation
from rechain.preparation.vectors import Vectors
from rechain.schema import Question
from rechain.system.files import write_atomically
from rechain.system.tensors import Array

if TYPE_CHECKING:
    from rechain.game.training import Training, Watcher

CHECKPOINT, WEIGHTS, VECTORS, WORDS, STORY = (
    "checkpoint.safetensors",
    "model.safetensors",
    "vectors.safetensors",
    "words.txt",
    "run.json",
)
WIDTH_WITHOUT_VECTORS = 50


@dataclass(frozen=True)
class Material:
    """What a run learns from."""

    questions: dict[str, Array]
    pseudo: dict[str, Array] | None
    vectors: Vectors
    left_out: Mapping[str, int]

    @property
    def fingerprint(self) -> str:
        """What tells this material from any other."""
        digest = hashlib.sha256()
        for arrays in (self.questions, self.pseudo or {}, {"vectors": self.vectors.matrix}):
            for name in sorted(arrays):
                digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()


def no_vectors() -> Vectors:
    """Return vectors for no word at all: every word is then known by its spelling."""
    return Vectors([], np.zeros((0, WIDTH_WITHOUT_VECTORS), np.float16))


def gather(
    questions: Iterable[Question],
    vectors: Vectors,
    candidates: CandidateSettings,
    pseudo: int = 0,
    seed: int = 0,
) -> Material:
    """Prepare questions for training, and make pseudo questions from their passages."""
    rows = vector_rows(vectors.words)
    preparation, kept = Preparation(Lexicon(rows), candidates), []
    for question in questions:
        if preparation.take(question):
            kept.append(question)
    if not preparation.ids:
        reasons = ", ".join(f"{count} {code}" for code, count in preparation.left_out.most_common())
        raise RechainError(f"no question has a candidate chain to learn from ({reasons}); see `rechain candidates`.")
    made = None
    if pseudo:
        others = Preparation(Lexicon(rows), candidates)
        for one in make_pseudo_questions(kept, pseudo, seed=seed, candidates=candidates):
            others.take(one.question, one.chain)
        made = others.arrays()
    return Material(preparation.arrays(), made, vectors, preparation.left_out)


class RunFolder:
    """Where a run is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_begun(self) -> bool:
        """Whether a run was started here."""
        return (self.path / STORY).exists()

    def begin(self, material: Material, settings: GameSettings) -> None:
        """Write down what is asked, so that the run can be resumed and its model used."""
        from rechain.system.tensors import save_arrays

        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / WORDS, "\n".join(material.vectors.words).encode())
        save_arrays({"vectors": material.vectors.matrix}, self.path / VECTORS)
        story = {
            "settings": asdict(settings),
            "hops": int(material.questions["chain_passages"].shape[1]),
            "fingerprint": material.fingerprint,
        }
        write_atomically(self.path / STORY, json.dumps(story, indent=1).encode())

    def check_resumes(self, material: Material, settings: GameSettings) -> None:
        """Say what is wrong where the run was started with other settings, questions or vectors."""
        from rechain.game.checkpoints import check_same

        story = self.story()
        check_same(GameSettings.of(story["settings"], str(self.path / STORY)), settings, self.path / STORY)
        if story["fingerprint"] != material.fingerprint:
            raise InputError(
                f"{self.path} was started with other questions, vectors or pseudo questions; resume with the same, or "
                "start anew with another --out."
            )

    def story(self) -> dict[str, Any]:
        """Read what the run was asked."""
        try:
            story: dict[str, Any] = json.loads((self.path / STORY).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(f"{self.path} is no folder of a run: it has no {STORY}.") from error
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path / STORY} cannot be read: {error}.") from error
        if not isinstance(story, dict) or not story.keys() >= {"settings", "fingerprint"}:
            raise InputError(f"{self.path / STORY} does not say what the run was started with.")
        return story

    def vectors(self) -> Vectors:
        """Read the word vectors of the run."""
        from rechain.system.tensors import load_arrays

        matrix = load_arrays(self.path / VECTORS).get("vectors", np.zeros((0, 0)))
        try:
            text = (self.path / WORDS).read_bytes().decode("utf-8")  # as it was written, whatever a line end is here
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path / WORDS} cannot be read: {error}.") from error
        words = text.split("\n") if text else []
        if matrix.ndim != 2 or len(words) != len(matrix):
            raise InputError(f"{self.path} has {len(words)} words in {WORDS}, but {len(matrix)} vectors in {VECTORS}.")
        return Vectors(words, matrix)


def train(
    folder: RunFolder,
    material: Material,
    settings: GameSettings,
    *,
    device: str = "cpu",
    resume: bool = False,
    watcher: "Watcher | None" = None,
) -> "Training":
    """Train from the beginning, or from the last checkpoint; the weights stand in the folder in the end."""
    import torch

    from rechain.game.checkpoints import KeepCheckpoints, load_checkpoint, save_weights
    from rechain.game.data import Prepared
    from rechain.game.training import Training, Watcher
    from rechain.system.distributed import is_first

    table = torch.from_numpy(material.vectors.table)
    training = Training(table, Prepared.for_settings(material.questions, device, settings), settings)
    if resume and folder.is_begun:
        folder.check_resumes(material, settings)
        if (folder.path / CHECKPOINT).exists():
            load_checkpoint(training, folder.path / CHECKPOINT)
    elif is_first():
        folder.begin(material, settings)
    keeper = (watcher or KeepCheckpoints(folder.path / CHECKPOINT)) if is_first() else Watcher()
    training.run(keeper, _pseudo_parts(material, settings, device))
    if is_first():
        save_weights(training, folder.path / WEIGHTS)
    return training


def _pseudo_parts(material: Material, settings: GameSettings, device: str) -> Sequence[Any]:
    from rechain.game.data import Prepared
    from rechain.game.training import Part

    if material.pseudo is None:
        return ()
    data = Prepared.for_settings(material.pseudo, device, settings)
    return (Part(data, np.arange(len(data))),)
