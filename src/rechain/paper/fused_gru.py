"""A GRU in two Triton kernels, one forward and one backward, each of which runs through all steps of a sequence.

    r = sigmoid(x_r + a_r)   z = sigmoid(x_z + a_z)   n = tanh(x_n + r a_n)   h' = (1 - z) n + z h

with x = W_ih input + b_ih, which is computed for all steps at once, and a = W_hh h + b_hh.

A program runs through all steps of `_ROWS` sequences: W_hh stays on the chip, and no kernel is started between two
steps. The state is carried on in float32, whatever the type of the tensors, as errors would add up over the steps.
"""

import os
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

_ROWS = 16
"""sequences a program: the fewest that tl.dot multiplies, so that many programs share the GPU and each ends early"""
_LEAST_UNITS = 16
"""the least width that tl.dot multiplies; tensors of Triton have powers of 2"""


def is_usable(gru: nn.GRU, sequences: Tensor) -> bool:
    """Return whether the kernels can run here: on a GPU, with weights that fit beside its processors."""
    is_there = sequences.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"
    is_short = sequences.element_size() == 2 or torch.is_autocast_enabled(sequences.device.type)
    widest = 128 if is_short else 64  # three square weights have to fit: 96 KiB of 16 bits, or 48 KiB of 32
    return is_there and gru.batch_first and gru.bias and gru.hidden_size <= widest


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    x, weight, bias, lengths, states, gates, count, longest, size,
    REVERSE: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Write the states, and r, z, n, a_n of every step for the way back."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    units = tl.arange(0, UNITS)
    unit_ok = units < size
    length = tl.load(lengths + rows, mask=rows < count, other=0)
    turned = units[None, :] * size + units[:, None]  # W^T
    square_ok = unit_ok[None, :] & unit_ok[:, None]
    w_r = tl.load(weight + turned, mask=square_ok, other=0.0)
    w_z = tl.load(weight + size * size + turned, mask=square_ok, other=0.0)
    w_n = tl.load(weight + 2 * size * size + turned, mask=square_ok, other=0.0)
    b_r = tl.load(bias + units, mask=unit_ok, other=0.0)[None, :]
    b_z = tl.load(bias + size + units, mask=unit_ok, other=0.0)[None, :]
    b_n = tl.load(bias + 2 * size + units, mask=unit_ok, other=0.0)[None, :]
    h = tl.zeros((ROWS, UNITS), tl.float32)
    for step in range(tl.max(length, axis=0)):  # rows are sorted by length, so few of a program wait for the longest
        now = tl.zeros_like(length) + step
        place = length - 1 - now if REVERSE else now
        ok = (now < length)[:, None] & unit_ok[None, :]
        base = (rows * longest + place)[:, None]
        inputs = x + base * 3 * size + units[None, :]
        low = h.to(w_r.dtype)
        a_r = tl.dot(low, w_r, input_precision="ieee") + b_r
        a_z = tl.dot(low, w_z, input_precision="ieee") + b_z
        a_n = tl.dot(low, w_n, input_precision="ieee") + b_n
        r = tl.sigmoid(tl.load(inputs, mask=ok, other=0.0).to(tl.float32) + a_r)
        z = tl.sigmoid(tl.load(inputs + size, mask=ok, other=0.0).to(tl.float32) + a_z)
        # tanh(v) = 2 sigmoid(2 v) - 1, as tl has no tanh
        n = 2 * tl.sigmoid(2 * (tl.load(inputs + 2 * size, mask=ok, other=0.0).to(tl.float32) + r * a_n)) - 1
        h = tl.where(ok, (1 - z) * n + z * h, h)
        tl.store(states + base * size + units[None, :], h, mask=ok)
        kept = gates + base * 4 * size + units[None, :]
        tl.store(kept, r, mask=ok)
        tl.store(kept + size, z, mask=ok)
        tl.store(kept + 2 * size, n, mask=ok)
        tl.store(kept + 3 * size, a_n, mask=ok)


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    weight, lengths, states, gates, d_states, d_x, d_a_n, count, longest, size,
    REVERSE: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Write the gradients of x, and of a_n, which differs from that of x_n by r."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    units = tl.arange(0, UNITS)
    unit_ok = units < size
    length = tl.load(lengths + rows, mask=rows < count, other=0)
    steps = tl.max(length, axis=0)
    straight = units[:, None] * size + units[None, :]  # W
    square_ok = unit_ok[None, :] & unit_ok[:, None]
    w_r = tl.load(weight + straight, mask=square_ok, other=0.0)
    w_z = tl.load(weight + size * size + straight, mask=square_ok, other=0.0)
    w_n = tl.load(weight + 2 * size * size + straight, mask=square_ok, other=0.0)
    d_h = tl.zeros((ROWS, UNITS), tl.float32)
    for back in range(steps):
        now = tl.zeros_like(length) + (steps - 1 - back)
        place = length - 1 - now if REVERSE else now
        before = place + 1 if REVERSE else place - 1
        ok = (now < length)[:, None] & unit_ok[None, :]
        base = (rows * longest + place)[:, None]
        earlier = states + (rows * longest + before)[:, None] * size + units[None, :]
        h = tl.load(earlier, mask=ok & (now > 0)[:, None], other=0.0).to(tl.float32)
        kept = gates + base * 4 * size + units[None, :]
        r = tl.load(kept, mask=ok, other=0.0).to(tl.float32)
        z = tl.load(kept + size, mask=ok, other=0.0).to(tl.float32)
        n = tl.load(kept + 2 * size, mask=ok, other=0.0).to(tl.float32)
        a_n = tl.load(kept + 3 * size, mask=ok, other=0.0).to(tl.float32)
        d_h += tl.load(d_states + base * size + units[None, :], mask=ok, other=0.0).to(tl.float32)
        d_n = d_h * (1 - z) * (1 - n * n)
        d_z = d_h * (h - n) * z * (1 - z)
        d_r = d_n * a_n * r * (1 - r)
        here = base * 3 * size + units[None, :]
        tl.store(d_x + here, d_r, mask=ok)
        tl.store(d_x + here + size, d_z, mask=ok)
        tl.store(d_x + here + 2 * size, d_n, mask=ok)
        tl.store(d_a_n + base * size + units[None, :], d_n * r, mask=ok)
        earlier_d_h = d_h * z
        earlier_d_h += tl.dot(d_r.to(w_r.dtype), w_r, input_precision="ieee")
        earlier_d_h += tl.dot(d_z.to(w_r.dtype), w_z, input_precision="ieee")
        earlier_d_h += tl.dot((d_n * r).to(w_r.dtype), w_n, input_precision="ieee")
        d_h = tl.where(ok, earlier_d_h, d_h)


class FusedGRU(torch.autograd.Function):
    """All steps of one direction of one layer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, lengths: Tensor, reverse: bool) -> Tensor:
        """Return the states [R, T, h] from x [R, T, 3 h], W_hh, b_hh and the lengths [R], longest first."""
        x, weight, bias = x.contiguous(), weight.to(x.dtype).contiguous(), bias.float()
        count, longest, width = x.shape
        size = width // 3
        states, gates = x.new_zeros(count, longest, size), x.new_empty(count, longest, 4 * size)
        shape = {"REVERSE": reverse, "ROWS": _ROWS, "UNITS": max(triton.next_power_of_2(size), _LEAST_UNITS)}
        _forward[(triton.cdiv(count, _ROWS),)](
            x, weight, bias, lengths, states, gates, count, longest, size, **shape, num_warps=4
        )
        ctx.save_for_backward(weight, lengths, states, gates)
        ctx.shape = shape
        return states

    @staticmethod
    def backward(ctx: Any, d_states: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, W_hh and b_hh."""
        weight, lengths, states, gates = ctx.saved_tensors
        count, longest, size = states.shape
        d_x, d_a_n = states.new_zeros(count, longest, 3 * size), torch.zeros_like(states)
        _backward[(triton.cdiv(count, _ROWS),)](
            weight, lengths, states, gates, d_states.contiguous(), d_x, d_a_n, count, longest, size,
            **ctx.shape, num_warps=4,
        )  # fmt: skip
        d_a = torch.cat([d_x[..., : 2 * size], d_a_n], dim=-1).flatten(0, 1)  # [R T, 3 h]
        d_weight = d_a.T @ _shifted(states, ctx.shape["REVERSE"]).flatten(0, 1)
        return d_x, d_weight.float(), d_a.float().sum(0), None, None


def _shifted(states: Tensor, reverse: bool) -> Tensor:
    """Return the state before each step, 0 before the first."""
    before = torch.zeros_like(states)
    if reverse:
        before[:, :-1] = states[:, 1:]
    else:
        before[:, 1:] = states[:, :-1]
    return before
