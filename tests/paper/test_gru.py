"""GRUs over sequences of different lengths: torch's own, and the fused kernels against it."""

import subprocess
import sys
from importlib.util import find_spec
from os import environ

import pytest
import torch
from torch import Tensor, nn

from rechain.paper import gru

LENGTHS = [3, 0, 5, 1, 0, 4]


def make(layers: int, is_bidirectional: bool, size: int = 3) -> nn.GRU:
    torch.manual_seed(0)
    return nn.GRU(4, size, layers, batch_first=True, bidirectional=is_bidirectional)


def one_by_one(network: nn.GRU, sequences: Tensor, lengths: list[int]) -> list[Tensor]:
    """Run every sequence alone, without any padding."""
    return [
        network(row[None, :length])[0][0] for row, length in zip(sequences, lengths, strict=True) if length
    ]  # fmt: skip


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_padding_and_neighbours_do_not_matter(layers: int, is_bidirectional: bool) -> None:
    network, lengths = make(layers, is_bidirectional), torch.tensor(LENGTHS)
    sequences = torch.randn(6, 7, 4)
    states = gru.run_gru(network, sequences, lengths)
    assert states.shape == (6, 7, 6 if is_bidirectional else 3)
    real = [row[:length] for row, length in zip(states, LENGTHS, strict=True) if length]
    for one, alone in zip(real, one_by_one(network, sequences, LENGTHS), strict=True):
        torch.testing.assert_close(one, alone)
    is_padding = torch.arange(7) >= lengths[:, None]
    other = gru.run_gru(network, sequences.masked_fill(is_padding[..., None], 99.0), lengths)
    torch.testing.assert_close(other[~is_padding], states[~is_padding])


@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_gradients_are_those_of_every_sequence_alone(is_bidirectional: bool) -> None:
    network, sequences = make(2, is_bidirectional), torch.randn(6, 7, 4, requires_grad=True)
    states = gru.run_gru(network, sequences, torch.tensor(LENGTHS))
    real = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
    parameters = [sequences, *network.parameters()]
    together = torch.autograd.grad(states[real].pow(2).sum(), parameters)
    alone = torch.autograd.grad(torch.cat(one_by_one(network, sequences, LENGTHS)).pow(2).sum(), parameters)
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other)
    assert not together[0][1].any()  # a sequence of length 0
    assert not together[0][0, 3:].any()  # padding


@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_sequences_may_all_be_empty(is_bidirectional: bool) -> None:
    states = gru.run_gru(make(1, is_bidirectional), torch.randn(2, 3, 4), torch.tensor([0, 0]))
    assert states.shape[:2] == (2, 3)


FUSED = """
import torch
from rechain.paper import fused_gru, gru
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
for layers, bidirectional, size, lengths in (
    (1, False, 3, [3, 0, 5]),
    (2, True, 3, [3, 0, 5, 1, 0, 4]),
    (1, True, 17, [2, 4] * 9),  # more units and rows than one block has
):
    network = nn.GRU(4, size, layers, batch_first=True, bidirectional=bidirectional)
    sequences, lengths = torch.randn(len(lengths), max(lengths) + 1, 4, requires_grad=True), torch.tensor(lengths)
    assert fused_gru.is_usable(network, sequences)
    real = torch.arange(sequences.shape[1]) < lengths[:, None]
    fused = gru.run_gru(network, sequences, lengths)
    plain = gru._run_packed(network, sequences, lengths)
    torch.testing.assert_close(fused[real], plain[real], rtol=1e-5, atol=1e-6)
    factor = torch.randn_like(plain[real])
    parameters = [sequences, *network.parameters()]
    gradients = [torch.autograd.grad((states[real] * factor).sum(), parameters) for states in (fused, plain)]
    for name, one, other in zip(["sequences", *dict(network.named_parameters())], *gradients):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, msg=lambda told: f"{name}: {told}")
    print("same")
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="the fused kernels need Triton, which is not installed")
def test_the_fused_kernels_compute_what_torch_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FUSED],
        env=environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["same"] * 3, done.stderr


@pytest.mark.skipif(gru.fused_gru is None, reason="the fused kernels need Triton, which is not installed")
def test_the_fused_kernels_are_for_gpus_and_for_grus_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    sequences = torch.zeros(1, 1, 4)
    assert not gru.fused_gru.is_usable(make(1, False), sequences)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert gru.fused_gru.is_usable(make(1, False), sequences)
    assert gru.fused_gru.is_usable(make(1, False, 64), sequences)
    assert not gru.fused_gru.is_usable(make(1, False, 65), sequences)
    assert gru.fused_gru.is_usable(make(1, False, 128), sequences.bfloat16())
    assert not gru.fused_gru.is_usable(nn.GRU(4, 3), sequences)
