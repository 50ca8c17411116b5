"""Encoders of whole texts: from tokens, some of them marked, to a vector for each that depends on its neighbours."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from rechain.errors import RechainError
from rechain.reader.encoder_configs import check_shapes, check_size, shape_of, shapes_alone
from rechain.system.tensors import Shapes

# ---- a BERT without the transformers library, whose import alone takes longer than everything else at the start


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
_PLAIN_BERT: dict[str, Any] = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}
"""what `reader.cpu.PackedEncoder` computes; these are also the values of a config that does not name them"""


def is_plain_bert(config: Mapping[str, Any]) -> bool:
    """Return whether this describes, in full, a BERT that reads both ways, with absolute positions and exact GELU."""
    is_plain = all(config.get(name, value) == value for name, value in _PLAIN_BERT.items())
    return is_plain and config.get("model_type") == "bert" and config.keys() >= set(_SIZES)


class BertConfig(SimpleNamespace):
    """The description of a BERT, with the method of the library's configs that is used here."""

    def to_diff_dict(self) -> dict[str, Any]:
        """Return all of it."""
        return dict(vars(self))


def _check_heads(width: int, heads: int) -> None:
    if width % heads:
        raise ValueError(f"{heads} heads cannot share {width} units.")


def _bert_layer(config: BertConfig) -> nn.ModuleDict:
    width, inner, epsilon = config.hidden_size, config.intermediate_size, config.layer_norm_eps
    projections = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")})
    mixed = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, epsilon)})
    output = nn.ModuleDict({"dense": nn.Linear(inner, width), "LayerNorm": nn.LayerNorm(width, epsilon)})
    return nn.ModuleDict(
        {
            "attention": nn.ModuleDict({"self": projections, "output": mixed}),
            "intermediate": nn.ModuleDict({"dense": nn.Linear(width, inner)}),
            "output": output,
        }
    )


class BertLayers(nn.Module):
    """Embeddings and layers of a plain BERT under the library's names, for `reader.cpu.PackedEncoder` to call."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Make layers of a shape that `is_plain_bert` accepts; their weights are to be loaded."""
        super().__init__()
        self.config = shape = BertConfig(**config)
        width = shape.hidden_size
        _check_heads(width, shape.num_attention_heads)
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(shape.vocab_size, width, shape.pad_token_id),
                "position_embeddings": nn.Embedding(shape.max_position_embeddings, width),
                "token_type_embeddings": nn.Embedding(shape.type_vocab_size, width),
                "LayerNorm": nn.LayerNorm(width, shape.layer_norm_eps),
            }
        )
        layers = nn.ModuleList(_bert_layer(shape) for _ in range(shape.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})

    def get_input_embeddings(self) -> Any:
        """Return the vectors of tokens."""
        return self.embeddings.word_embeddings


# ---- encoders


class PretrainedEncoder(nn.Module):
    """A BERT-like model of the transformers library; marks are vectors added to those of the tokens."""

    width: int

    def __init__(self, model: Any, marks: int) -> None:
        """Take a model of the transformers library and the number of marks."""
        super().__init__()
        self.model = model
        self.width = model.config.hidden_size
        self.marks = nn.Embedding(marks, model.get_input_embeddings().embedding_dim)
        # as BERT draws its own embeddings, so that a new mark is no louder than a token
        nn.init.normal_(self.marks.weight, std=0.02)

    def forward(self, ids: Tensor, marks: Tensor, lengths: Tensor, layers: int = 0) -> Tensor:
        """Return the states of tokens, [B, L, width], after some layers; 0, or more than there are: after all.

        Tokens and marks are [B, L], lengths are [B].
        """
        model: Any = self.model
        inputs = model.get_input_embeddings()(ids) + self.marks(marks)
        is_token = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]  # [B, L]
        try:
            with _first_layers(model, layers):
                return model(inputs_embeds=inputs, attention_mask=is_token.long(), return_dict=True).last_hidden_state
        except torch.OutOfMemoryError:
            raise
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            # a shape that the library builds, but cannot read with: that is known only here
            reason = str(error).strip().split("\n")[0].removesuffix(".")
            raise RechainError(
                f"the encoder of the model cannot read texts of {ids.shape[1]} tokens: {reason:.300}."
            ) from error


@contextmanager
def _first_layers(model: Any, count: int) -> Iterator[None]:
    """Compute only some layers of a model of the library; a model that does not list its layers computes all."""
    stack: Any = getattr(model, "encoder", None)
    every = getattr(stack, "layer", None)
    if not count or not isinstance(every, nn.ModuleList):
        yield
        return
    stack.layer = every[:count]
    try:
        yield
    finally:
        stack.layer = every


_OPTIONS: dict[str, Any] = {"attn_implementation": "sdpa", "dtype": torch.float32, "trust_remote_code": False}
"""of the library's models: torch's own attention; whatever the precision of the file, training starts in float32; and
no code that a config names is ever run, nor are users asked whether to run it"""


def pretrained(
    config: Mapping[str, Any], shapes: Shapes, read: Callable[[], Mapping[str, Tensor]], marks: int
) -> PretrainedEncoder:
    """Return an encoder of a config; its weights, under the library's names, are read once their shapes fit."""
    shape = shape_of(config)
    check_size(shape, shapes)
    with shapes_alone():
        model = _from_config(shape)
    own = {_own_name(name, model.base_model_prefix): name for name in shapes}
    check_shapes(model, {name: shapes[stored] for name, stored in own.items()})
    weights = read()
    model = _from_config(shape)
    model.load_state_dict({name: weights[own[name]] for name in model.state_dict()})
    return PretrainedEncoder(model, marks)


def _own_name(name: str, prefix: str) -> str:
    """Return the name that weights of a whole model, heads and all, have in the encoder; old files say gamma, beta."""
    name = name.removeprefix(f"{prefix}.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def untrained(config: Mapping[str, Any], marks: int) -> PretrainedEncoder:
    """Return an encoder of this shape with random weights."""
    return PretrainedEncoder(_from_config(config), marks)


def unfilled(config: Mapping[str, Any], marks: int) -> PretrainedEncoder:
    """Return an encoder of this shape for weights to be loaded; of a plain BERT the layers alone, to be packed."""
    return PretrainedEncoder(BertLayers(config), marks) if is_plain_bert(config) else untrained(config, marks)


def in_transformers(model: Any) -> Any:
    """Return the library's model that consists of the very layers of a `BertLayers`; any other model as it is."""
    if not isinstance(model, BertLayers):
        return model
    whole = _from_config(model.config.to_diff_dict()).train(model.training)
    for name, layer in model.named_modules():
        if not any(layer.children()):
            parent, _, own = name.rpartition(".")
            setattr(whole.get_submodule(parent), own, layer)
    return whole.to(next(model.parameters()).device)


def _from_config(config: Mapping[str, Any]) -> Any:
    """Return a model of the library without the layer that pools: `ChainReader` pools on its own."""
    from transformers import AutoConfig, AutoModel

    model = AutoModel.from_config(AutoConfig.for_model(**config), **_OPTIONS)
    _check_heads(model.config.hidden_size, model.config.num_attention_heads)  # which the library checks of some alone
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model
