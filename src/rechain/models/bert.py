"""The layers of a BERT, under the names that the transformers library gives them, but without that library.

A packed encoder calls nothing else on a CPU, and to import the library takes longer than all else at the start.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from torch import nn

_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "pad_token_id",
)
_PLAIN: dict[str, Any] = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}


def is_plain_bert(config: Mapping[str, Any]) -> bool:
    """Return whether this describes, in full, a BERT that reads both ways, with absolute positions and exact GELU."""
    is_plain = all(config.get(name, value) == value for name, value in _PLAIN.items())
    return is_plain and config.get("model_type") == "bert" and config.keys() >= set(_SIZES)


class BertLayers(nn.Module):
    """Embeddings and layers of a plain BERT, with weights yet to come, for others to call."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Make layers of the shape that `is_plain_bert` accepts."""
        super().__init__()
        self.config = shape = _Config(**config)
        if shape.hidden_size % shape.num_attention_heads:
            raise ValueError(f"{shape.num_attention_heads} heads cannot share {shape.hidden_size} units.")
        self.embeddings = _embeddings(shape)
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(_layer(shape) for _ in range(shape.num_hidden_layers))})

    def get_input_embeddings(self) -> Any:
        """Return the vectors of tokens."""
        return self.embeddings.word_embeddings


class _Config(SimpleNamespace):
    """What describes a shape, as it was given."""

    def to_diff_dict(self) -> dict[str, Any]:
        """Return all of it."""
        return dict(vars(self))


def _embeddings(shape: _Config) -> nn.ModuleDict:
    width = shape.hidden_size
    return nn.ModuleDict(
        {
            "word_embeddings": nn.Embedding(shape.vocab_size, width, shape.pad_token_id),
            "position_embeddings": nn.Embedding(shape.max_position_embeddings, width),
            "token_type_embeddings": nn.Embedding(shape.type_vocab_size, width),
            "LayerNorm": nn.LayerNorm(width, shape.layer_norm_eps),
        }
    )


def _layer(shape: _Config) -> nn.ModuleDict:
    width, inner = shape.hidden_size, shape.intermediate_size
    projections = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")})
    attention = nn.ModuleDict({"self": projections, "output": _output(width, shape)})
    intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
    return nn.ModuleDict({"attention": attention, "intermediate": intermediate, "output": _output(inner, shape)})


def _output(inputs: int, shape: _Config) -> nn.ModuleDict:
    norm = nn.LayerNorm(shape.hidden_size, shape.layer_norm_eps)
    return nn.ModuleDict({"dense": nn.Linear(inputs, shape.hidden_size), "LayerNorm": norm})
