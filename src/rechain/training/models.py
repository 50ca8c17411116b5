"""What a training run has left in its folder, as a model."""

from pathlib import Path
from typing import TYPE_CHECKING

from rechain.errors import InputError
from rechain.training.runs import WEIGHTS, RunFolder

if TYPE_CHECKING:
    from rechain.scoring.model import Model


def load_model(path: Path, device: str = "cpu") -> "Model":
    """Load the model that the run in a folder has ended with."""
    folder = RunFolder(path)
    if folder.is_begun and (folder.kind != "game" or not (path / WEIGHTS).exists()):
        raise InputError(f"the run in {path} is not finished; finish it with `rechain train … --resume`.")
    from rechain.training.game_runs import load_game

    return load_game(path, device=device)
