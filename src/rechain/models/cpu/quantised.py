"""Weights of one byte: a quarter of the size of floats, and several times their speed where a CPU multiplies bytes.

A weight is int8 with one scale a row. On a CPU with VNNI instructions a linear layer rounds its inputs to bytes too,
each row on its own, between its least and greatest value: sums of products of bytes are exact, so what a row gives
depends neither on the rows beside it nor on their number. Elsewhere the weights are turned back into floats.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

MANY_ROWS = 1000
"""embeddings with more rows than this are quantised"""

_LARGEST = 127
_ZERO = 128  # the kernel takes unsigned bytes
_LEAST_STEP = 1e-30
_CACHED = 2**18


def quantise(module: nn.Module) -> nn.Module:
    """Replace, in place, every linear layer and every large embedding by one of int8; return the module.

    Of a module on the `meta` device the result is one as well, for `load_state_dict(..., assign=True)`.
    """
    if type(module) is nn.Linear:
        return Int8Linear(module.weight, module.bias)
    if type(module) is nn.Embedding and module.num_embeddings > MANY_ROWS:
        return Int8Embedding(module.weight)
    for name, child in module.named_children():
        setattr(module, name, quantise(child))
    return module


def quantise_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return int8 [R, C] and the scale of each row, float32 [R], that multiplied give the weight back, nearly."""
    weight = weight.detach().float()
    scale = weight.abs().amax(dim=1) / _LARGEST
    steps = weight / scale.where(scale > 0, 1.0)[:, None]
    return steps.round_().clamp_(-_LARGEST, _LARGEST).to(torch.int8), scale


class Int8Embedding(nn.Module):
    """An embedding of int8 rows."""

    weight: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor) -> None:
        """Quantise a weight, [R, C]."""
        super().__init__()
        rows, scale = quantise_rows(weight)
        self.register_buffer("weight", rows)
        self.register_buffer("scale", scale)

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the rows of some numbers, [...] -> [..., C]."""
        return self.weight[numbers] * self.scale[numbers][..., None]


class Int8Linear(nn.Module):
    """A linear layer of int8 weights; it does not learn, but lets gradients through to its inputs."""

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """Quantise a weight, [outputs, inputs]."""
        super().__init__()
        rows, scale = quantise_rows(weight)
        self.register_buffer("weight", rows)
        self.register_buffer("scale", scale)
        self.register_buffer("bias", None if bias is None else bias.detach().float())
        self._bytes: _ByteKernel | None = None
        self._floats: Tensor | None = None
        self.register_load_state_dict_post_hook(_forget)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs, [..., inputs] -> [..., outputs], in the type of the inputs."""
        if inputs.device.type != "cpu" or inputs.requires_grad or not has_byte_kernel():
            return self._in_floats(inputs)
        kernel = self._bytes
        if kernel is None:
            kernel = self._bytes = _ByteKernel(self.weight, self.scale.float(), self.bias)
        outputs = kernel(inputs.reshape(-1, inputs.shape[-1]).float())
        return outputs.view(*inputs.shape[:-1], len(self.scale)).to(inputs.dtype)

    def _in_floats(self, inputs: Tensor) -> Tensor:
        kind = inputs.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else inputs.dtype
        weight = self._floats
        if weight is None or weight.dtype != dtype:
            with torch.inference_mode(False):  # or gradients could not go through it later
                weight = self._floats = (self.weight * self.scale.float()[:, None]).to(dtype)
        return linear(inputs, weight, None if self.bias is None else self.bias.to(dtype))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        _forget(self)
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bytes": None, "_floats": None}  # what is packed can neither be copied nor sent


def _forget(layer: Any, _keys: object = None) -> None:
    """Let the layer prepare its weights anew: they have changed."""
    layer._bytes = layer._floats = None


class _ByteKernel:
    """Multiplies rows by a weight, both in bytes: oneDNN's, with the weight laid out once as it wants it."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None) -> None:
        self._packed = torch.ops.onednn.qlinear_prepack(weight, None)
        self._scale = scale
        self._zeros = torch.zeros_like(scale, dtype=torch.int32)
        self._sums = weight.sum(dim=1) * scale
        self._bias = torch.zeros_like(scale) if bias is None else bias.float()

    def __call__(self, rows: Tensor) -> Tensor:
        """Return rows @ weight.T + bias: the weight times each row's middle, plus the weight times what deviates."""
        least, greatest = rows.amin(dim=1, keepdim=True), rows.amax(dim=1, keepdim=True)
        middle = (least + greatest) / 2
        step = ((greatest - least) / (2 * _LARGEST)).clamp_(min=_LEAST_STEP)
        return self.multiply(_in_steps(rows, middle, step)).mul_(step).addcmul_(middle, self._sums).add_(self._bias)

    def multiply(self, rows: Tensor) -> Tensor:
        """Return rows @ weight.T of int8 rows, which are overwritten."""
        unsigned = rows.view(torch.uint8).add_(_ZERO)
        return torch.ops.onednn.qlinear_pointwise(
            unsigned, 1.0, _ZERO, self._packed, self._scale, self._zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )


def _in_steps(rows: Tensor, middle: Tensor, step: Tensor) -> Tensor:
    """Return (rows - middle) / step as int8, by parts that fit a CPU's cache: large temporary tensors are slow."""
    steps = rows.new_empty(rows.shape, dtype=torch.int8)
    parts = [tensor.split(max(1, _CACHED // rows.shape[1])) for tensor in (steps, rows, middle, step.reciprocal())]
    for target, part, zero, factor in zip(*parts, strict=True):
        target.copy_((part - zero).mul_(factor).round_())
    return steps


@cache
def has_byte_kernel() -> bool:
    """Return whether this CPU sums products of bytes exactly: without VNNI the sums of two products saturate."""
    if "x86" not in torch.backends.quantized.supported_engines:
        return False
    ones = torch.ones(64, 64, dtype=torch.int8, device="cpu")
    try:
        products = _ByteKernel(_LARGEST * ones, ones[0].float(), None).multiply(_LARGEST * ones)
    except (AttributeError, RuntimeError):  # no oneDNN, or another one
        return False
    return bool((products == 64 * _LARGEST**2).all())
