"""Several processes that play one game together, started by torchrun: each reads its share of every batch."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Parameter

from rechain.errors import RechainError
from rechain.system.tensors import Array


class Share(NamedTuple):
    """What one process reads of a batch."""

    questions: Array
    weight: int
    """how much of it counts: all questions, or none where others read the whole batch and one is read for company"""


@contextmanager
def join(device: str) -> Iterator[str]:
    """Join the processes that torchrun has started, if any, and return the device of this one.

    The first process alone shows how the run goes.
    """
    if not dist.is_available() or not dist.is_torchelastic_launched():
        yield device
        return
    device = _own_device(device)
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        dist.barrier()
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(sys.stderr if is_first() else nowhere):
            yield device
    finally:
        dist.destroy_process_group()


def _own_device(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    number = int(os.environ["LOCAL_RANK"])
    if number >= torch.cuda.device_count():
        raise RechainError(f"torchrun started more processes than the {torch.cuda.device_count()} GPUs that are here.")
    torch.cuda.set_device(number)
    return f"cuda:{number}"


def is_shared() -> bool:
    """Return whether there is more than one process."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def is_first() -> bool:
    """Return whether this is the process that writes files and shows what happens."""
    return not is_shared() or dist.get_rank() == 0


def own_share(questions: Array) -> Share:
    """Return the questions of a batch that this process reads; at least one."""
    if not is_shared():
        return Share(questions, len(questions))
    share = questions[dist.get_rank() :: dist.get_world_size()]
    return Share(share if len(share) else questions[:1], len(share))


def average_gradients(parameters: Sequence[Parameter], weight: float | Tensor) -> None:
    """Give every process the mean of all processes' gradients, each by its weight."""
    if not is_shared():
        return
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    flat = torch.cat([parameter.grad.flatten() for parameter in parameters if parameter.grad is not None])
    parts = torch.split(average(flat, weight), [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)


def average(value: Tensor, weight: float | Tensor = 1.0) -> Tensor:
    """Return the mean of a value of all processes, each by its weight; 0 where none has any."""
    if not is_shared():
        return value
    own = torch.as_tensor(weight, dtype=torch.float32, device=value.device)
    total = own.clone()
    dist.all_reduce(total)
    mean = value * (own / total.clamp(min=1e-9))
    dist.all_reduce(mean)
    return mean


def total(value: Tensor) -> Tensor:
    """Return the sum of a value over all processes."""
    if is_shared():
        value = value.clone()
        dist.all_reduce(value)
    return value
