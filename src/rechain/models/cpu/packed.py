"""BERT without padding: linear layers see the tokens of all texts in a row, attention one text at a time.

Nothing is computed for padding. With int8 weights (see `quantised`), on a CPU that multiplies bytes, the states of a
text are the same to the last bit whatever stands beside it: no row of a linear layer depends on another.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from rechain.models.bert import is_plain_bert
from rechain.models.cpu.quantised import Int8Linear
from rechain.models.text_encoders import PretrainedEncoder, TextEncoder, in_transformers

TOKENS = 2500
"""how many tokens are computed at once, unless one text has more: what lies between two layers should fit the cache"""
_ROWS = 64
"""tensors have a multiple of so many rows: for every other number oneDNN would make and keep a kernel of its own"""


def packed(encoder: TextEncoder) -> TextEncoder:
    """Return an encoder with the same weights that computes nothing for padding, where there is one; else this one."""
    return PackedEncoder(encoder) if can_pack(encoder) else encoder


def can_pack(encoder: object) -> TypeGuard[PretrainedEncoder]:
    """Return whether this encoder is a BERT that reads both ways, with absolute positions and exact GELU."""
    if isinstance(encoder, PackedEncoder) or not isinstance(encoder, PretrainedEncoder):
        return False
    config: Any = encoder.model.config
    return is_plain_bert(config.to_diff_dict())


class PackedEncoder(PretrainedEncoder):
    """A BERT for inference on a CPU. While it learns, and on other devices, it pads.

    It shares its parameters, and their names, with the encoder that it is made of.
    """

    def __init__(self, encoder: PretrainedEncoder) -> None:
        """Share the parameters of an encoder that `can_pack` accepts."""
        nn.Module.__init__(self)
        self.model, self.marks, self.width = encoder.model, encoder.marks, encoder.width
        self.training = encoder.training
        self._fused: dict[int, _Fused] = {}

    def forward(self, ids: Tensor, marks: Tensor, lengths: Tensor) -> Tensor:
        """Return the states of tokens, [B, L, width]; unless it pads, those of padding are zeros."""
        learns = self.model.training and torch.is_grad_enabled()
        if learns or ids.device.type != "cpu":
            self.model = in_transformers(self.model)
            return super().forward(ids, marks, lengths)
        with torch.no_grad():
            return self._pack(ids, marks, lengths)

    def _pack(self, ids: Tensor, marks: Tensor, lengths: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1])
        is_token = positions < lengths[:, None]  # [B, L]
        groups = list(_groups([length for length in lengths.tolist() if length > 0]))
        sizes = [sum(group) for group in groups]
        tokens = [each[is_token].split(sizes) for each in (ids, marks, positions.expand_as(ids))]
        states = [self._read(self._embed(*part), group) for *part, group in zip(*tokens, groups, strict=True)]
        padded = torch.zeros(*ids.shape, self.width, dtype=states[0].dtype if states else None)
        if states:
            padded[is_token] = torch.cat(states)
        return padded

    def _embed(self, ids: Tensor, marks: Tensor, positions: Tensor) -> Tensor:
        """Return the inputs of the first layer, [N] -> [N, width]."""
        parts: Any = self.model.embeddings
        words = parts.word_embeddings(ids) + self.marks(marks)
        words += parts.token_type_embeddings(torch.zeros_like(ids[:1]))
        words += parts.position_embeddings(positions)
        return parts.LayerNorm(words)

    def _read(self, inputs: Tensor, lengths: Sequence[int]) -> Tensor:
        """Return the states of a group's texts, [N, width] -> [N, width]; a text of zeros fills up the rows."""
        rest = -len(inputs) % _ROWS
        return self._encode(pad(inputs, (0, 0, 0, rest)), [*lengths, rest] if rest else lengths)[: len(inputs)]

    def _encode(self, states: Tensor, lengths: Sequence[int]) -> Tensor:
        """Return what the last layer makes of the texts of a group, [N, width] -> [N, width]; overwrite its inputs."""
        encoder: Any = self.model.encoder
        for number, layer in enumerate(encoder.layer):
            attention = layer.attention
            projected = self._project(number, attention.self, states)
            attended = _attend(projected, lengths, self.model.config.num_attention_heads)
            states = attention.output.LayerNorm(states.add_(attention.output.dense(attended)))
            inner = torch.ops.aten.gelu_(layer.intermediate.dense(states))
            states = layer.output.LayerNorm(states.add_(layer.output.dense(inner)))
        return states

    def _project(self, number: int, attention: Any, states: Tensor) -> Sequence[Tensor]:
        """Return queries, keys and values, each [N, width]: with int8 at once, so that states are rounded only once."""
        layers = (attention.query, attention.key, attention.value)
        if not all(isinstance(layer, Int8Linear) for layer in layers):
            return [layer(states) for layer in layers]
        fused = self._fused.get(number)
        if fused is None or not fused.is_of(layers):
            fused = self._fused[number] = _Fused(layers)
        return fused.layer(states).chunk(3, dim=-1)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_fused": {}}


class _Fused:
    """Several linear layers of int8 in one: what they give, side by side."""

    def __init__(self, layers: Sequence[Int8Linear]) -> None:
        self._made_of = _versions(layers)
        parts = {name: torch.cat([getattr(layer, name) for layer in layers]) for name in _PARTS}
        self.layer = Int8Linear(*(torch.zeros(parts[name].shape) for name in ("weight", "bias")))
        self.layer.load_state_dict(parts, assign=True)

    def is_of(self, layers: Sequence[Int8Linear]) -> bool:
        """Return whether the layers are still those that this is made of: they may have moved, or loaded weights."""
        pairs = zip(self._made_of, _versions(layers), strict=True)
        return all(old is new and before == now for (old, before), (new, now) in pairs)


_PARTS = ("weight", "scale", "bias")


def _versions(layers: Sequence[Int8Linear]) -> list[tuple[Tensor, int]]:
    """Return the tensors of layers, each with a number that grows when it is written to."""
    tensors = [getattr(layer, name) for layer in layers for name in _PARTS]
    return [(tensor, 0 if tensor.is_inference() else tensor._version) for tensor in tensors]


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


def _attend(projected: Sequence[Tensor], lengths: Sequence[int], heads: int) -> Tensor:
    """Let the tokens of each text attend to one another: queries, keys and values, [N, width] -> [N, width]."""
    texts = zip(*(each.unflatten(-1, (heads, -1)).split(lengths) for each in projected), strict=True)
    attended = [scaled_dot_product_attention(*(each.transpose(0, 1)[None] for each in text)) for text in texts]
    return torch.cat([text[0].transpose(0, 1).flatten(1) for text in attended])  # each [1, heads, n, d]
