"""Where networks compute, and how precisely."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rechain.errors import RechainError

if TYPE_CHECKING:
    import torch


def device_named(name: str | None) -> str:
    """Return a device that exists: the one named, or a GPU if there is one."""
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()  # a computation, as some devices (meta) exist but hold no values
    except (RuntimeError, AssertionError) as error:
        raise RechainError(f"there is no device '{name}' here; --device cpu always works.") from error
    return name


def precision(device: "torch.device") -> AbstractContextManager[object]:
    """Return the context in which networks compute: in bfloat16 on a GPU, else in float32."""
    import torch

    # bfloat16 has the range of float32, so gradients need no scaling; most CPUs only emulate it
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")
