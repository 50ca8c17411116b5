"""Arrays and tensors in safetensors files that contain their own SHA-256, and the devices that compute with them.

A file is replaced as a whole: after any interruption there is a good one. Its digest is in its metadata, so damage
anywhere in it is noticed when it is read. Files of other programs have no digest; `open_tensors` reads them too.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rechain.errors import InputError, RechainError
from rechain.system.files import regular, replacing

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
Shapes = Mapping[str, tuple[int, ...]]

_LONGEST_HEADER = 2**24
"""bytes; the library takes 100 MB, which would be gigabytes once parsed, and a network's header has less than 1 MB"""
_SEALED = "sealed"
"""the only key of the metadata, as the library writes several in any order"""
# the digest first, so that its place is always the same
_START = b'{"__metadata__":{"sealed":"{\\"sha256\\": \\"'
_NO_DIGEST = "0" * 64
"""in place of the digest while the digest is computed"""


class DamagedFileError(InputError):
    """A file that is damaged, or that rechain has not written."""


def save_arrays(arrays: Arrays, path: Path) -> None:
    """Write arrays to a safetensors file."""
    from safetensors.numpy import save

    there = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    _write_sealed(save(there, {_SEALED: json.dumps({"sha256": _NO_DIGEST})}), path)


def load_arrays(path: Path) -> dict[str, Array]:
    """Read what `save_arrays` has written, or a safetensors file without metadata."""
    from safetensors import SafetensorError

    try:
        with open_tensors(path, "numpy") as file:
            if (file.metadata() or {}).keys() - {_SEALED}:
                raise ValueError("its metadata are of something else")
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged, or was not written by rechain: {error!s:.300}.") from error


def save_tensors(
    tensors: "Mapping[str, Tensor]", metadata: Mapping[str, Any], path: Path, previous: Path | None = None
) -> None:
    """Write the tensors of a run to a safetensors file, with metadata; keep the file before it as `previous`."""
    from safetensors.torch import save

    there = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    content = save(there, {_SEALED: json.dumps({"sha256": _NO_DIGEST, **metadata})})
    _write_sealed(content, path, previous)


def load_tensors(path: Path) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """Read what `save_tensors` has written; its metadata must have the settings."""
    from safetensors import SafetensorError

    try:
        with open_tensors(path, "pt") as file:
            metadata = json.loads((file.metadata() or {}).get(_SEALED, "null"))
            if not isinstance(metadata, dict) or not {"settings", "sha256"} <= metadata.keys():
                raise ValueError("it does not say what it is of")
            del metadata["sha256"]
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118 - not a dict
    except FileNotFoundError as error:
        raise InputError(f"there is no {path}; name the folder of a run that `rechain train` has written.") from error
    except (SafetensorError, OSError, KeyError, ValueError, RecursionError) as error:
        raise DamagedFileError(
            f"{path} is damaged, or not a checkpoint that rechain has written: {error!s:.300}."
        ) from error


def read_shapes(path: Path) -> Shapes:
    """Read the shapes of the tensors in a safetensors file by its header alone."""
    with open_tensors(path, "numpy") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a dict


def not_finite(tensors: "Mapping[str, Tensor]") -> str | None:
    """Return the name of the first tensor that contains infinity or NaN, if any does."""
    return next((name for name, value in tensors.items() if not bool(value.isfinite().all())), None)


@contextmanager
def open_tensors(path: Path, framework: str) -> Iterator[Any]:
    """Open a safetensors file; raise ValueError if it has a digest that is not that of its content."""
    from safetensors import safe_open

    with regular(path).open("rb") as stream:
        start = stream.read(8 + len(_START) + len(_NO_DIGEST))
        if int.from_bytes(start[:8], "little") > _LONGEST_HEADER:
            raise ValueError(f"its header should have at most {_LONGEST_HEADER:,} bytes")
        is_sealed = start[8:].startswith(_START)
        if is_sealed:
            digest = sha256(start[: -len(_NO_DIGEST)] + _NO_DIGEST.encode())
            while block := stream.read(2**20):
                digest.update(block)
            if digest.hexdigest() != start[-len(_NO_DIGEST) :].decode("ascii", "replace"):
                raise ValueError("its SHA-256 is another")
    with safe_open(path, framework) as file:
        if _SEALED in (file.metadata() or {}) and not is_sealed:
            raise ValueError("it has no SHA-256 of itself")
        yield file


def _write_sealed(content: bytes, path: Path, previous: Path | None = None) -> None:
    """Write a file with its digest in the place that was left for it."""
    at = 8 + len(_START)
    rest = memoryview(content)[at + len(_NO_DIGEST) :]
    with replacing(path, previous) as file:
        file.write(content[:at] + sha256(content).hexdigest().encode())
        file.write(rest)


def device_named(name: str | None) -> str:
    """Return a device that exists: the one named or, without a name, a GPU if there is one."""
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()  # a computation, as some devices (meta) exist but have no values
    except (RuntimeError, AssertionError) as error:
        raise RechainError(f"there is no device '{name}' here; --device cpu always works.") from error
    return name


def precision(device: "torch.device") -> AbstractContextManager[object]:
    """Return the context in which networks compute: in bfloat16 on a GPU, else in float32."""
    import torch

    # bfloat16 has the range of float32, so gradients need no scaling; most CPUs only emulate it
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")
