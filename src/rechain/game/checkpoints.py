"""A run's state in one safetensors file, replaced as a whole: after any interruption there is a good one."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from rechain.errors import InputError
from rechain.game.players import Players
from rechain.game.settings import GameSettings
from rechain.game.training import Progress, Training, Watcher
from rechain.system.files import write_atomically


def save_checkpoint(training: Training, path: Path) -> None:
    """Write all that a run needs to go on: weights, optimisers, random numbers, and how far it is."""
    tensors = {f"players.{name}": value for name, value in training.players.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in training.best_weights.items()}
    tensors |= {f"totals.{name}": value for name, value in training.totals.items()}
    for player, optimiser in training.optimisers.items():
        for number, state in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{player}.{number}.{name}": value for name, value in state.items()}
    tensors["random.cpu"] = torch.get_rng_state()
    if training.data.device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(training.data.device)
    told = {"settings": asdict(training.settings), "progress": asdict(training.progress), "hops": training.data.hops}
    packed = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, _metadata(told))
    write_atomically(path, packed)


class KeepCheckpoints(Watcher):
    """Writes a checkpoint whenever a run says so."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_checkpoint(self, training: Training) -> None:
        """Keep the state of the run."""
        save_checkpoint(training, self.path)


def save_weights(training: Training, path: Path) -> None:
    """Write the weights alone, for use."""
    weights = {name: value.detach().cpu().contiguous() for name, value in training.players.state_dict().items()}
    write_atomically(
        path, save(weights, _metadata({"settings": asdict(training.settings), "hops": training.data.hops}))
    )


def load_checkpoint(training: Training, path: Path) -> None:
    """Set a run to where a checkpoint left it."""
    tensors, told = read_tensors(path)
    if "progress" not in told or "random.cpu" not in tensors:
        raise InputError(f"{path} holds weights alone, not the state of a run; it cannot be resumed.")
    check_same(GameSettings.of(told["settings"], str(path)), training.settings, path)
    if told["hops"] != training.data.hops:
        raise InputError(
            f"{path} is of chains of {told['hops']} passages, but the questions have {training.data.hops}."
        )
    parts: dict[str, dict[str, Tensor]] = {"players": {}, "best": {}, "totals": {}, "optimiser": {}, "random": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = value
    load_weights(training.players, parts["players"], path)
    training.best_weights = {name: value.to(training.data.device) for name, value in parts["best"].items()}
    training.totals = {name: value.to(training.data.device) for name, value in parts["totals"].items()}
    _load_optimisers(training, parts["optimiser"])
    training.progress = Progress(**told["progress"])
    torch.set_rng_state(parts["random"]["cpu"])
    if "cuda" in parts["random"] and training.data.device.type == "cuda":
        torch.cuda.set_rng_state(parts["random"]["cuda"], training.data.device)


def load_weights(players: Players, weights: Mapping[str, Tensor], path: Path) -> None:
    """Give players the weights of a file, which must be of the same networks."""
    try:
        players.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(f"{path} is of other networks or word vectors than these.") from error


def _load_optimisers(training: Training, tensors: Mapping[str, Tensor]) -> None:
    for player, optimiser in training.optimisers.items():
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            whose, number, what = name.split(".")
            if whose == player:
                state.setdefault(int(number), {})[what] = value
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def check_same(written: GameSettings, asked: GameSettings, path: Path) -> None:
    """Say in which setting a checkpoint differs from what is asked."""
    for name, value in asdict(asked).items():
        if (other := asdict(written)[name]) != value:
            raise InputError(
                f"{path} was written with {name} = {other}, not {value}; resume with the same settings, or start anew "
                "with another --out."
            )


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint or weights, and what is told with them."""
    try:
        with safe_open(path, "pt") as file:
            told = json.loads((file.metadata() or {})["rechain"])
            if not isinstance(told, dict) or not told.keys() >= {"settings", "hops"}:
                raise ValueError("it does not say what it is of")
            return {name: file.get_tensor(name) for name in file.keys()}, told  # noqa: SIM118 - not a dict
    except FileNotFoundError as error:
        raise InputError(f"there is no {path}; name the folder of a run that `rechain train` has written.") from error
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} is not a checkpoint that rechain has written: {error}.") from error


def _metadata(told: Mapping[str, object]) -> dict[str, str]:
    return {"rechain": json.dumps(told)}
