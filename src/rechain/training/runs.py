"""A training run as a folder: what it was started with, its checkpoint, its log and the model it ends with."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from rechain.errors import InputError, RechainError
from rechain.system.digests import SHA256, file_digest, opened_seal, read_json, sealed
from rechain.system.distributed import is_first
from rechain.system.files import write_atomically
from rechain.system.loop import Progress, TrainingLoop, Watcher
from rechain.system.tensors import Arrays, DamagedFileError, load_tensors, save_tensors

CHECKPOINT, WEIGHTS, STORY = "checkpoint.safetensors", "model.safetensors", "run.json"
PREVIOUS = "checkpoint.previous.safetensors"
"""the checkpoint before the last"""
_KEYS = {"kind", "settings", "hops", "encoder", "fingerprint", SHA256}
"""of the record of a run; another one is damage, and not the mark of an older version that kept no digests"""


class Material(Protocol):
    """What a run learns from, and what is particular to its kind of model."""

    kind: ClassVar[str]
    """game or reader, as `rechain train --model` names it"""

    beside: ClassVar[str]
    """what it is made of beside questions, in words"""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Why questions were left out, and how many."""

    @property
    def fingerprint(self) -> str:
        """What tells this material from any other."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What else is recorded of the run in its folder."""

    def write(self, path: Path) -> Sequence[str]:
        """Write what the model needs beside its weights into the folder of a run that begins; return the files."""

    def training(self, settings: Any, device: str) -> TrainingLoop:
        """Return a run on this material that is about to begin."""

    def save(self, training: Any, path: Path) -> None:
        """Write the model that a run has ended with into its folder."""


def fingerprint(*parts: Arrays) -> str:
    """Return what tells arrays from any others, whatever the order of their names."""
    digest = hashlib.sha256()
    for arrays in parts:
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def no_chain(left_out: Mapping[str, int]) -> RechainError:
    """Return the error of questions among which none can be learned from."""
    reasons = ", ".join(f"{count} {code}" for code, count in sorted(left_out.items(), key=lambda item: -item[1]))
    return RechainError(f"no question has a candidate chain to learn from ({reasons}); see `rechain candidates`.")


@dataclass(frozen=True)
class RunFolder:
    """Where a run is kept."""

    path: Path

    @property
    def is_begun(self) -> bool:
        """Whether a run was started here."""
        return (self.path / STORY).exists()

    def begin(self, material: Material, settings: Any) -> None:
        """Record what the run is started with, so that it can be resumed and its model used."""
        self.path.mkdir(parents=True, exist_ok=True)
        written = {name: file_digest(self.path / name) for name in material.write(self.path)}
        story = {
            "kind": material.kind,
            "settings": asdict(settings),
            **material.facts,
            "fingerprint": material.fingerprint,
        }
        write_atomically(self.path / STORY, json.dumps(sealed(story, STORY, written), indent=1).encode())

    def check_resumes(self, material: Material, settings: Any) -> None:
        """Raise InputError where the run was started with another kind of model, other settings or other questions."""
        story = self.story()
        if self.kind != material.kind:
            raise InputError(
                f"{self.path} was started with --model {self.kind}, not {material.kind}; resume with the same, or "
                "start anew with another --out."
            )
        check_same(story["settings"], settings, self.path / STORY)
        self.check_files()
        if story["fingerprint"] != material.fingerprint:
            raise InputError(
                f"{self.path} was started with other questions, {material.beside}; resume with the same, or start anew "
                "with another --out."
            )

    @property
    def kind(self) -> str:
        """What is trained here; runs of versions that trained the game alone do not say it."""
        return str(self.story().get("kind", "game"))

    def story(self) -> dict[str, Any]:
        """Read what the run was started with."""
        try:
            story: dict[str, Any] = read_json(self.path / STORY)
        except FileNotFoundError as error:
            raise InputError(f"{self.path} is no folder of a run: it has no {STORY}.") from error
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path / STORY} cannot be read: {error}.") from error
        if not isinstance(story, dict) or not story.keys() >= {"settings", "fingerprint"}:
            raise InputError(f"{self.path / STORY} does not say what the run was started with.")
        try:
            if unknown := sorted(story.keys() - _KEYS):
                raise ValueError(f"it has an unknown key '{unknown[0]:.80}'")
            if SHA256 in story:
                opened_seal(story, STORY)
        except ValueError as error:
            raise InputError(
                f"{self.path / STORY} is damaged or was changed by hand: {error}; take it from a copy, or start anew "
                "with another --out."
            ) from error
        return story

    def check_files(self) -> None:
        """Raise InputError with the first file beside the weights that is not as it was when the run began."""
        story = self.story()
        for name, expected in (opened_seal(story, STORY) if SHA256 in story else {}).items():
            try:
                is_same = file_digest(self.path / name) == expected
            except OSError as error:
                raise InputError(f"{self.path / name} cannot be read: {error.strerror or error}.") from error
            if not is_same:
                raise InputError(
                    f"{self.path / name} is damaged: its SHA-256 is not the one in {STORY}; take it from a copy, or "
                    "start anew with another --out."
                )


def train(
    folder: RunFolder,
    material: Material,
    settings: Any,
    *,
    device: str = "cpu",
    resume: bool = False,
    watcher: Watcher | None = None,
) -> TrainingLoop:
    """Train from the beginning, or from the last checkpoint; the model stands in the folder in the end."""
    training = material.training(settings, device)
    if resume and folder.is_begun:
        folder.check_resumes(material, settings)
        load_last_checkpoint(training, folder.path / CHECKPOINT)
    elif is_first():
        folder.begin(material, settings)
    training.run((watcher or KeepCheckpoints(folder.path / CHECKPOINT)) if is_first() else Watcher())
    if is_first():
        material.save(training, folder.path)
    return training


@dataclass
class KeepCheckpoints(Watcher):
    """Writes a checkpoint whenever a run says so."""

    path: Path

    def on_checkpoint(self, training: TrainingLoop) -> None:
        """Write all that the run needs to go on: weights, optimisers, random numbers, and how far it is."""
        save_tensors(*training.state(), self.path, self.path.with_name(PREVIOUS))


def load_last_checkpoint(training: TrainingLoop, path: Path) -> None:
    """Set a run to its last checkpoint, or to the one before where that is gone; to none where there is none.

    A checkpoint that is damaged is not passed over: steps would be lost that nobody knows of.
    """
    previous = path.with_name(PREVIOUS)
    if not path.exists():
        if previous.exists():
            load_checkpoint(training, previous)
        return
    try:
        load_checkpoint(training, path)
    except DamagedFileError as error:
        try:
            progress = Progress.of(load_tensors(previous)[1].get("progress"))
            phase = (*training.phases, "the end")[progress.phase]
            place = f"goes on from the one before ({phase}, epoch {progress.epoch + 1}), which is whole"
        except (RechainError, ValueError, IndexError):
            place = "begins the run anew, as none before it is whole"
        raise InputError(f"{str(error).removesuffix('.')}; delete it, and --resume {place}.") from error


def load_checkpoint(training: TrainingLoop, path: Path) -> None:
    """Set a run to where a checkpoint left it."""
    tensors, metadata = load_tensors(path)
    if "progress" not in metadata or "random.cpu" not in tensors:
        raise DamagedFileError(f"{path} holds weights alone, not the state of a run; it cannot be resumed.")
    check_same(metadata["settings"], training.settings, path)
    training.load_state(tensors, metadata, str(path))


def check_same(recorded: Any, settings: Any, path: Path) -> None:
    """Raise InputError with the first setting in which a file differs from those of now."""
    others = asdict(type(settings).recorded(recorded, str(path)))
    for name, value in asdict(settings).items():
        if others[name] != value:
            raise InputError(
                f"{path} was written with {name} = {others[name]}, not {value}; resume with the same settings, or "
                "start anew with another --out."
            )
