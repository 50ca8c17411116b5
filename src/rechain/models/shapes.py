"""Networks that have shapes and no memory, to be compared with weights before anything is allocated."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from rechain.system.tensors import Shapes


class _NothingDrawn(TorchFunctionMode):
    """Within it, weights are not initialised: they have no memory, and torch would load a compiler for it."""

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Within it, networks that are built have shapes, but no memory."""
    with torch.device("meta"), _NothingDrawn():
        yield


def check_shapes(network: nn.Module, shapes: Shapes) -> None:
    """Raise ValueError with the first tensor of a network that weights of these shapes do not have."""
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    for name, shape in expected.items():
        if name not in shapes:
            raise ValueError(f"{name} has no weights")
        if shapes[name] != shape:
            raise ValueError(f"{name} has the shape {list(shapes[name])}, not {list(shape)}")
