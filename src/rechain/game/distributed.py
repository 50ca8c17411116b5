"""Several processes that play one game together, started by torchrun: each reads its share of every batch."""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Parameter

from rechain.game.data import Array


def is_shared() -> bool:
    """Tell whether there is more than one process."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def own_share(questions: Array) -> Array:
    """Return the questions of a batch that this process reads; at least one."""
    if not is_shared():
        return questions
    share = questions[dist.get_rank() :: dist.get_world_size()]
    return share if len(share) else questions[:1]


def average_gradients(parameters: Iterable[Parameter]) -> None:
    """Give every process the mean of all processes' gradients."""
    if not is_shared():
        return
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def sum_over_processes(loss: Tensor) -> Tensor:
    """Return the mean of all processes' losses."""
    if not is_shared():
        return loss
    dist.all_reduce(loss)
    return loss / dist.get_world_size()
