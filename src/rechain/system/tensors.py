"""Arrays in safetensors files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rechain.errors import InputError
from rechain.system.files import write_atomically

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
