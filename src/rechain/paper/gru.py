"""Gated recurrent units over sequences of different lengths.

On a GPU one kernel runs through all steps of a direction (`fused_gru`): at the width of the tables, training with
cuDNN would take four to thirteen times as long. Elsewhere, and for GRUs too wide for the kernel, it is torch's own.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

try:
    from rechain.paper import fused_gru
except ImportError:  # no Triton on this machine
    fused_gru = None  # type: ignore[assignment]


def run_gru(gru: nn.GRU, sequences: Tensor, lengths: Tensor) -> Tensor:
    """Run a GRU over sequences [R, T, width] of lengths [R], 0 allowed: [R, T, d]; states of padding are undefined.

    Lengths should be on the CPU, where they are sorted: reading them from a GPU would wait for it.
    """
    if fused_gru is not None and fused_gru.is_usable(gru, sequences):
        return _run_fused(gru, sequences, lengths)
    if not gru.bidirectional:
        return gru(sequences)[0]  # padding follows the words and cannot reach back
    return _run_packed(gru, sequences, lengths.cpu())


def _run_packed(gru: nn.GRU, sequences: Tensor, lengths: Tensor) -> Tensor:
    kept = lengths.nonzero(as_tuple=True)[0]
    if not len(kept):
        return gru(sequences)[0]  # padding alone, which torch refuses to pack
    rows = kept.to(sequences.device, non_blocking=True)
    packed = pack_padded_sequence(sequences[rows], lengths[kept], batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=sequences.shape[1])
    return states.new_zeros(len(sequences), *states.shape[1:]).index_copy(0, rows, states)


def _run_fused(gru: nn.GRU, sequences: Tensor, lengths: Tensor) -> Tensor:
    order = lengths.argsort(descending=True)  # so that no block of rows runs longer than its longest
    rows = order.to(sequences.device, non_blocking=True)
    lengths = lengths[order].to(sequences.device, torch.int32, non_blocking=True)
    states = sequences[rows]
    for layer in range(gru.num_layers):
        if layer and gru.training:
            states = dropout(states, gru.dropout)
        ways = [_direction(gru, layer, way, states, lengths) for way in range(2 if gru.bidirectional else 1)]
        states = torch.cat(ways, dim=-1)
    return torch.empty_like(states).index_copy(0, rows, states)


def _direction(gru: nn.GRU, layer: int, way: int, inputs: Tensor, lengths: Tensor) -> Tensor:
    def parameter(name: str) -> Any:
        return getattr(gru, f"{name}_l{layer}{'_reverse' if way else ''}")

    gates = linear(inputs, parameter("weight_ih"), parameter("bias_ih"))  # [R, T, 3 h]
    states: Tensor = fused_gru.FusedGRU.apply(gates, parameter("weight_hh"), parameter("bias_hh"), lengths, bool(way))
    return states
