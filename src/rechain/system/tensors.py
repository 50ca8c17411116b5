"""Arrays and tensors in safetensors files, replaced as a whole: after any interruption there is a good one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rechain.errors import InputError
from rechain.system.files import write_atomically

if TYPE_CHECKING:
    from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]


def save_arrays(arrays: Arrays, path: Path) -> None:
    """Write arrays to a safetensors file."""
    from safetensors.numpy import save

    write_atomically(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def load_arrays(path: Path) -> dict[str, Array]:
    """Read prepared arrays."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged, or was not written by rechain: {error}.") from error


def save_tensors(tensors: "Mapping[str, Tensor]", metadata: Mapping[str, Any], path: Path) -> None:
    """Write the tensors of a run to a safetensors file, with metadata that JSON can hold."""
    from safetensors.torch import save

    there = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    write_atomically(path, save(there, {"rechain": json.dumps(metadata)}))


def load_tensors(path: Path) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """Read what `save_tensors` has written; its metadata must have the settings."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            metadata = json.loads((file.metadata() or {})["rechain"])
            if not isinstance(metadata, dict) or "settings" not in metadata:
                raise ValueError("it does not say what it is of")
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118 - not a dict
    except FileNotFoundError as error:
        raise InputError(f"there is no {path}; name the folder of a run that `rechain train` has written.") from error
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} is not a checkpoint that rechain has written: {error}.") from error
