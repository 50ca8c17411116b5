"""Inference: weights of one byte, and a BERT that computes nothing for padding on a CPU.

Sums of products of bytes are exact, no token is rounded by the size of another, and attention sees one text at a time:
the states of a text are the same to the last bit in every batch, so `rechain recover` writes the same bytes for any
number of workers and any batch size. CPUs without instructions for bytes (VNNI) multiply floats.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import islice
from math import ceil
from threading import Barrier
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad, scaled_dot_product_attention

from rechain.errors import ResumableError
from rechain.reader.encoders import PretrainedEncoder, check_heads

# ---- bytes

_LARGEST = 127  # of an int8 that has its negative too: -128 would make the range lopsided
_ZERO = 128  # the unsigned byte for 0: oneDNN multiplies unsigned inputs by signed weights
_LEAST_STEP = 1e-30  # of inputs that are all equal: a step of 0 could not be divided by
_MANY_ROWS = 1000  # larger embeddings become int8: the words, not the positions, marks and types, which weigh little
_CACHED = 2**18  # numbers rounded at a time: 1 MiB of floats, which stays in a core's cache


def quantise_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return int8 [R, C] and the scale of each row, float32 [R], that multiplied give the weight back, nearly."""
    weight = weight.detach().float()
    if weight.is_meta:  # nothing to compute, and torch would load a compiler for it
        return weight.new_empty(weight.shape, dtype=torch.int8), weight.new_empty(len(weight))
    scale = weight.abs().amax(dim=1) / _LARGEST
    steps = weight / scale.where(scale > 0, 1.0)[:, None]  # a row of zeros has the scale 0
    return steps.round_().clamp_(-_LARGEST, _LARGEST).to(torch.int8), scale


class _ByteKernel:
    """Multiplies rows by a weight, both in bytes: oneDNN's kernel, with the weight laid out once as it needs it."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None) -> None:
        self._packed = torch.ops.onednn.qlinear_prepack(weight, None)
        self._scale = scale
        self._zeros = torch.zeros_like(scale, dtype=torch.int32)
        self._sums = weight.sum(dim=1) * scale
        self._bias = torch.zeros_like(scale) if bias is None else bias

    def __call__(self, rows: Tensor) -> Tensor:
        """Return rows @ weight.T + bias, [N, inputs] -> [N, outputs].

        The kernel itself knows one step and one zero for all rows, which would make a row depend on its neighbours. So
        each row is written as middle + step x bytes with its own middle and step; the bytes are multiplied, and the
        rest, which is a sum of the weight's rows, is added in floats.
        """
        least, greatest = rows.amin(dim=1, keepdim=True), rows.amax(dim=1, keepdim=True)  # [N, 1]
        middle = (least + greatest) / 2
        step = ((greatest - least) / (2 * _LARGEST)).clamp_(min=_LEAST_STEP)
        steps = rows.new_empty(rows.shape, dtype=torch.int8)
        parts = (each.split(max(1, _CACHED // rows.shape[1])) for each in (steps, rows, middle, step.reciprocal()))
        for target, part, zero, factor in zip(*parts, strict=True):  # large temporary tensors are slow
            target.copy_((part - zero).mul_(factor).round_())
        return self.multiply(steps).mul_(step).addcmul_(middle, self._sums).add_(self._bias)

    def multiply(self, rows: Tensor) -> Tensor:
        """Return rows @ weight.T of int8 rows, which are overwritten."""
        unsigned = rows.view(torch.uint8).add_(_ZERO)
        return torch.ops.onednn.qlinear_pointwise(
            unsigned, 1.0, _ZERO, self._packed, self._scale, self._zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )


@cache
def has_byte_kernel() -> bool:
    """Return whether this CPU sums products of bytes exactly: without VNNI, sums of two products saturate at 16 bits.

    It is tested with the largest products, as no flag of torch shows the instructions that oneDNN chose.
    """
    if "x86" not in torch.backends.quantized.supported_engines:
        return False
    ones = torch.ones(64, 64, dtype=torch.int8, device="cpu")
    try:
        products = _ByteKernel(_LARGEST * ones, ones[0].float(), None).multiply(_LARGEST * ones)
    except (AttributeError, RuntimeError):  # no oneDNN, or one with other functions
        return False
    return bool((products == 64 * _LARGEST**2).all())


class _Int8Rows(nn.Module):
    """A weight of int8 with a scale a row."""

    weight: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
        """Take rows and scales, as `quantise_rows` returns them."""
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)


class Int8Embedding(_Int8Rows):
    """An embedding of int8 rows."""

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the rows of some numbers, [...] -> [..., C]."""
        return self.weight[numbers] * self.scale[numbers][..., None]


class Int8Linear(_Int8Rows):
    """A linear layer of int8 weights, to infer with; once it is used, its weights stay as they are."""

    bias: Tensor | None
    _kernel: _ByteKernel | None = None
    _floats: Tensor | None = None

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> None:
        """Take rows and scales, as `quantise_rows` returns them, and a bias of floats."""
        super().__init__(weight, scale)
        self.register_buffer("bias", bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs, [..., inputs] -> [..., outputs]."""
        if inputs.device.type != "cpu" or not has_byte_kernel():
            return self._in_floats(inputs)
        kernel = self._kernel = self._kernel or _ByteKernel(self.weight, self.scale, self.bias)
        outputs = kernel(inputs.reshape(-1, inputs.shape[-1]))  # [N, outputs]
        return outputs.view(*inputs.shape[:-1], len(self.scale))

    def _in_floats(self, inputs: Tensor) -> Tensor:
        kind = inputs.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else inputs.dtype
        weight = self._floats
        if weight is None or (weight.dtype, weight.device) != (dtype, inputs.device):
            weight = self._floats = (self.weight * self.scale[:, None]).to(dtype)
        return linear(inputs, weight, None if self.bias is None else self.bias.to(dtype))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kernel": None, "_floats": None}  # a kernel can neither be copied nor sent


def quantise(module: nn.Module) -> nn.Module:
    """Replace, in place, every linear layer and every large embedding by one of int8; return the module.

    Of a module on the `meta` device the result is one as well, for `load_state_dict(..., assign=True)`.
    """
    if type(module) is nn.Linear:
        return Int8Linear(*quantise_rows(module.weight), None if module.bias is None else module.bias.detach().float())
    if type(module) is nn.Embedding and module.num_embeddings > _MANY_ROWS:
        return Int8Embedding(*quantise_rows(module.weight))
    for name, child in module.named_children():
        setattr(module, name, quantise(child))
    return module


def dequantise(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of the network that was quantised, in floats, by the names that they have in it."""
    scales = {name.removesuffix(".scale") + ".weight": weights[name] for name in weights if name.endswith(".scale")}
    return {
        name: value.float() * scales[name][:, None] if name in scales else value
        for name, value in weights.items()
        if not name.endswith(".scale")
    }


# ---- no padding

TOKENS = 2500  # computed at once, unless one text has more: what lies between two layers should fit the cache
# The number of rows of a tensor is a multiple of this. For every other number oneDNN would make another kernel and keep
# it, and memory would grow.
_ROWS = 64


_SIZES = {"vocab_size", "max_position_embeddings", "pad_token_id", "type_vocab_size", "layer_norm_eps"}
_SIZES |= {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"}


def is_plain_bert(shape: Mapping[str, Any]) -> bool:
    """Return whether a shape, as `shape_of` returns it, describes in full a BERT with exact GELU."""
    return shape["model_type"] == "bert" and shape.get("hidden_act", "gelu") == "gelu" and shape.keys() >= _SIZES


class PackedEncoder(PretrainedEncoder):
    """A plain BERT for inference, on a CPU without padding; its weights have the names of the transformers library.

    It needs no such library, whose import alone takes longer than everything else at the start.
    """

    def __init__(self, shape: Mapping[str, Any], marks: int) -> None:
        """Build layers of a shape that `is_plain_bert` accepts; their weights are to be loaded."""
        nn.Module.__init__(self)
        self.shape, self.width = shape, shape["hidden_size"]
        self.model = _bert_layers(shape)
        self.marks = nn.Embedding(marks, self.width)
        # query, key and value in one by the number of the layer and the device
        self._fused: dict[tuple[int, torch.device], Int8Linear] = {}

    def forward(self, ids: Tensor, marks: Tensor, lengths: Tensor, layers: int = 0) -> Tensor:
        """Return the states of tokens, [B, L, width], after some layers, or all; on a CPU, padding has zeros."""
        positions = torch.arange(ids.shape[1], device=ids.device)
        is_token = positions < lengths[:, None]  # [B, L]
        with torch.no_grad():
            if ids.device.type != "cpu":  # a GPU waits less for few large steps
                return self._encode((ids, marks, positions), layers, partial(_attend_padded, is_token=is_token))
            padded, states = torch.zeros(*ids.shape, self.width), []
            groups = list(_groups([length for length in lengths.tolist() if length > 0]))
            sizes = [sum(group) for group in groups]
            columns = (each[is_token].split(sizes) for each in (ids, marks, positions.expand_as(ids)))  # [N] a group
            for group, size, *tokens in zip(groups, sizes, *columns, strict=True):
                filling = -size % _ROWS  # a text that is not used
                attend = partial(_attend, lengths=[*group, filling] if filling else group)
                tokens = [pad(each, (0, filling)) for each in tokens]
                states.append(self._encode(tokens, layers, attend)[:size])
            if states:
                padded[is_token] = torch.cat(states)
        return padded

    def _encode(self, tokens: Sequence[Tensor], layers: int, attend: Callable[[Iterable[Tensor]], Tensor]) -> Tensor:
        """Return the states of tokens after the first layers, or all (0), [..., L] -> [..., L, width].

        Tokens are ids, marks and positions, and `attend` takes queries, keys and values. Old values that are not needed
        are added to in place: memory for large tensors is slow to get.
        """
        (ids, marks, positions), embeddings, heads = tokens, self.model.embeddings, self.shape["num_attention_heads"]
        states = embeddings.word_embeddings(ids) + self.marks(marks)
        states += embeddings.token_type_embeddings(ids.new_zeros(1))
        states += embeddings.position_embeddings(positions)
        states = embeddings.LayerNorm(states)
        for number, layer in enumerate(islice(self.model.encoder.layer, layers or None)):
            projected = self._project(number, layer.attention.self, states)
            attended = attend(each.unflatten(-1, (heads, -1)) for each in projected)
            output = layer.attention.output
            states = output.LayerNorm(states.add_(output.dense(attended)))
            inner = torch.ops.aten.gelu_(layer.intermediate.dense(states))
            states = layer.output.LayerNorm(states.add_(layer.output.dense(inner)))
        return states

    def _project(self, number: int, attention: Any, states: Tensor) -> Sequence[Tensor]:
        """Return queries, keys and values, each [N, width]: with int8 at once, so that states are rounded only once."""
        layers = (attention.query, attention.key, attention.value)
        if not all(isinstance(layer, Int8Linear) for layer in layers):
            return [layer(states) for layer in layers]
        if (number, states.device) not in self._fused:
            parts = (torch.cat([getattr(layer, name) for layer in layers]) for name in ("weight", "scale", "bias"))
            self._fused[number, states.device] = Int8Linear(*parts)
        return self._fused[number, states.device](states).chunk(3, dim=-1)


def _bert_layers(shape: Mapping[str, Any]) -> nn.ModuleDict:
    """Return the embeddings and layers of a plain BERT under the names of the transformers library."""
    width, inner, epsilon = shape["hidden_size"], shape["intermediate_size"], shape["layer_norm_eps"]
    check_heads(width, shape["num_attention_heads"])

    def output(inputs: int) -> nn.ModuleDict:
        return nn.ModuleDict({"dense": nn.Linear(inputs, width), "LayerNorm": nn.LayerNorm(width, epsilon)})

    def layer() -> nn.ModuleDict:
        projections = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")})
        attention = nn.ModuleDict({"self": projections, "output": output(width)})
        intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        return nn.ModuleDict({"attention": attention, "intermediate": intermediate, "output": output(inner)})

    embeddings = {
        "word_embeddings": nn.Embedding(shape["vocab_size"], width, shape["pad_token_id"]),
        "position_embeddings": nn.Embedding(shape["max_position_embeddings"], width),
        "token_type_embeddings": nn.Embedding(shape["type_vocab_size"], width),
        "LayerNorm": nn.LayerNorm(width, epsilon),
    }
    layers = nn.ModuleList(layer() for _ in range(shape["num_hidden_layers"]))
    return nn.ModuleDict({"embeddings": nn.ModuleDict(embeddings), "encoder": nn.ModuleDict({"layer": layers})})


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Part lengths, in their order, into groups that have at most `TOKENS` together, or one text."""
    group: list[int] = []
    for length in lengths:
        if group and sum(group) + length > TOKENS:
            yield group
            group = []
        group.append(length)
    if group:
        yield group


def _attend(projected: Iterable[Tensor], lengths: list[int]) -> Tensor:
    """Return the attention of each text to itself: queries, keys and values, [N, heads, d] -> [N, width]."""
    attended = [
        scaled_dot_product_attention(*(each.transpose(0, 1)[None] for each in text))  # [1, heads, n, d]
        for text in zip(*(each.split(lengths) for each in projected), strict=True)
    ]
    return torch.cat([text[0].transpose(0, 1).flatten(1) for text in attended])


def _attend_padded(projected: Iterable[Tensor], is_token: Tensor) -> Tensor:
    """Return the attention of each text to its tokens: queries, keys and values, [B, L, heads, d] -> [B, L, width]."""
    query, key, value = (each.transpose(1, 2) for each in projected)  # [B, heads, L, d]
    attended = scaled_dot_product_attention(query, key, value, is_token[:, None, None])
    return attended.transpose(1, 2).flatten(2)


# ---- threads

_FEWEST_TOKENS = 1024  # that a thread computes at once: with fewer, the time of Python for each operation counts
_Item = TypeVar("_Item")
_Outcome = TypeVar("_Outcome")


def tokens_a_thread(tokens: int) -> int:
    """Return how many tokens should be computed at once, so that all threads have something to do."""
    return max(ceil(tokens / torch.get_num_threads()), _FEWEST_TOKENS)


def in_threads(work: Callable[[_Item], _Outcome], items: Iterable[_Item]) -> list[_Outcome]:
    """Return the outcomes of work that only infers, done at the same time on as many threads as torch may use here.

    Each item is computed by one thread. torch itself would part every single operation among its threads, which wait
    for each other, spinning, some hundred times a text. If other programs take a core away from one of them, that is
    several times slower (docs/measured/bulk.md). Settings of torch stay as they are.
    """
    threads, infers = torch.get_num_threads(), torch.is_inference_mode_enabled()
    if threads == 1:
        return list(map(work, items))

    def compute(item: _Item) -> _Outcome:
        with torch.inference_mode(infers), torch.no_grad():  # what a thread inherits from none
            return work(item)

    return list(_single_threads(threads).map(compute, items))


@cache
def _single_threads(count: int) -> ThreadPoolExecutor:
    """Return threads of which each computes alone.

    The number of threads that an operation uses belongs to the thread that calls it. `set_num_threads` changes it for
    the calling thread, and for those that compute for the first time later; hence it is set back at once.
    """
    pool, before = ThreadPoolExecutor(count, "rechain"), torch.get_num_threads()
    all_there = Barrier(count)

    def be_single(_: int) -> None:
        torch.get_num_threads()  # a thread's first question sets the number that all have: that must not come later
        torch.set_num_threads(1)
        all_there.wait()  # or one thread would do this several times, and another never

    try:
        list(pool.map(be_single, range(count)))
    except RuntimeError as error:  # the system starts no more threads
        all_there.abort()  # or those that have started would wait for the others for ever
        pool.shutdown()
        raise ResumableError(
            f"{count} threads cannot be started ({error}); set OMP_NUM_THREADS=1, or raise the limit of processes."
        ) from error
    finally:
        torch.set_num_threads(before)
    return pool


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_single_threads.cache_clear)  # threads do not live on in a fork
