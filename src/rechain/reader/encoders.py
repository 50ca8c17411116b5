"""Encoders of whole texts: from tokens, some of them marked, to a vector for each that depends on its neighbours.

The config of an encoder is one of the transformers library, which has names for a model's shape and for much else:
labels, decoding, warnings. Only the shape is passed on, and only if its values are of the right type and range.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rechain.errors import RechainError
from rechain.system.settings import AboveZero, Count, Positive, Share, fault_of
from rechain.system.tensors import Shapes

# ---- what is accepted of a config

_VOCABULARY = {"vocab_size": Positive, "max_position_embeddings": Positive, "pad_token_id": Count}
_LAYERS = dict.fromkeys(("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"), Positive)
_BERT: dict[str, Any] = {
    **_VOCABULARY,
    **_LAYERS,
    "type_vocab_size": Positive,
    "layer_norm_eps": AboveZero,
    "hidden_act": str,
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), Share),
    "position_embedding_type": Literal["absolute"],
    **dict.fromkeys(("is_decoder", "add_cross_attention"), Literal[False]),
}
_DISTILBERT: dict[str, Any] = {
    **_VOCABULARY,
    **dict.fromkeys(("dim", "n_layers", "n_heads", "hidden_dim"), Positive),
    "activation": str,
    **dict.fromkeys(("dropout", "attention_dropout"), Share),
    "sinusoidal_pos_embds": bool,
}
_ROTATION = {"rope_type": Literal["default"], "rope_theta": AboveZero}
_MODERNBERT: dict[str, Any] = {
    **_VOCABULARY,
    **_LAYERS,
    "hidden_activation": str,
    "norm_eps": AboveZero,
    **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias"), bool),
    **dict.fromkeys(("attention_dropout", "embedding_dropout", "mlp_dropout"), Share),
    **dict.fromkeys(("local_attention", "global_attn_every_n_layers"), Positive),
    "layer_types": [Literal["full_attention", "sliding_attention"]],
    "rope_parameters": {"full_attention": _ROTATION, "sliding_attention": _ROTATION},
    **dict.fromkeys(("global_rope_theta", "local_rope_theta"), AboveZero),
}
_MPNET: dict[str, Any] = {
    **_VOCABULARY,
    **_LAYERS,
    "layer_norm_eps": AboveZero,
    "hidden_act": str,
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), Share),
    "relative_attention_num_buckets": Positive,
}
_SHAPES: dict[str, dict[str, Any]] = {
    "albert": _BERT | dict.fromkeys(("embedding_size", "num_hidden_groups", "inner_group_num"), Positive),
    "bert": _BERT,
    "camembert": _BERT,
    "distilbert": _DISTILBERT,
    "electra": _BERT | {"embedding_size": Positive},
    "modernbert": _MODERNBERT,
    "mpnet": _MPNET,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
}
"""what describes the shape of a model, with the type of each value: of a list that of its items, of names those of
their values. What draws weights at random is not among it, as all of them are read"""
MODEL_TYPES = tuple(_SHAPES)
"""the library's models that can be an encoder: each is built and read with in a test"""
_CODE = ("auto_map", "custom_pipelines", "quantization_config", "trust_remote_code")
"""keys of a config by which the library would run code that comes with a model, or load another library for it"""
_COUNTS = ("num_hidden_layers", "n_layers", "num_hidden_groups", "inner_group_num")
"""numbers of repeated parts, which take time to build even without any memory"""
_LARGEST_NUMBER = 2**20
"""in a config of weights without any greater dimension: positions and ids of tokens stay far below"""


def shape_of(config: Any) -> dict[str, Any]:
    """Return the part of a config that describes the shape of an encoder; raise ValueError if it is not supported.

    Null values are left to the default of the library.
    """
    if not isinstance(config, Mapping):
        raise ValueError("the encoder should be described by names with values")
    if code := next((name for name in config if name in _CODE), None):
        raise ValueError(f"it names code of its own ({code}), which rechain never runs")
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise ValueError(f"its model_type is {kind!r:.40}, but rechain reads {', '.join(MODEL_TYPES)}")
    known = _SHAPES[kind]
    shape = {name: value for name, value in config.items() if name in known and value is not None}
    for name, value in shape.items():
        if what := _fault(value, known[name]):
            raise ValueError(f"its {name} should be {what}, not {value!r:.80}")
    return {"model_type": kind, **shape}


def _fault(value: Any, kind: Any) -> str | None:
    """Return what a value should be to be of a type; None if it is."""
    if isinstance(kind, list):
        if not isinstance(value, list):
            return "a list"
        return next((what for item in value if (what := _fault(item, kind[0]))), None)
    if isinstance(kind, dict):
        if not isinstance(value, Mapping) or value.keys() != kind.keys():
            return f"values for {', '.join(kind)}"
        return next((what for name in kind if (what := _fault(value[name], kind[name]))), None)
    return fault_of(value, kind)


def check_size(shape: Mapping[str, Any], shapes: Shapes) -> None:
    """Raise ValueError if weights of these shapes cannot be those of an encoder.

    It is checked before anything is built: a number that has nothing to do with the weights could take all memory.
    """
    if prod(shape.get(name, 1) for name in _COUNTS) > len(shapes):
        raise ValueError(f"it has more layers than its weights, which are {len(shapes)} tensors")
    most = max((dimension for shape in shapes.values() for dimension in shape), default=0)
    for name, value in shape.items():
        if isinstance(value, int) and value > max(most, _LARGEST_NUMBER):
            raise ValueError(f"its {name} is greater than anything in its weights, which have at most {most} rows")


def check_shapes(network: nn.Module, shapes: Shapes) -> None:
    """Raise ValueError with the first tensor of a network that weights of these shapes do not have."""
    for name, value in network.state_dict().items():
        if name not in shapes:
            raise ValueError(f"{name} has no weights")
        if shapes[name] != tuple(value.shape):
            raise ValueError(f"{name} has the shape {list(shapes[name])}, not {list(value.shape)}")


def check_heads(width: int, heads: int) -> None:
    """Raise ValueError if heads cannot have equal shares of the units of a layer."""
    if width % heads:
        raise ValueError(f"{heads} heads cannot share {width} units.")


class _SkipInit(TorchFunctionMode):
    """Within it, weights are not initialised: they have no memory, and torch would load a compiler for it."""

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Within it, networks that are built have shapes, but no memory."""
    with torch.device("meta"), _SkipInit():
        yield


# ---- encoders


class PretrainedEncoder(nn.Module):
    """A BERT-like model of the transformers library; marks are vectors added to those of the tokens."""

    model: Any
    width: int
    shape: Mapping[str, Any]
    """the part of its config that describes it"""

    def __init__(self, config: Mapping[str, Any], marks: int) -> None:
        """Build a model of this config, with random weights and without the layer that pools: `ChainReader` does.

        Attention is torch's own, and training starts in float32, whatever the precision of the file. No code that a
        config names is ever run, nor are users asked whether to run it.
        """
        from transformers import AutoConfig, AutoModel

        super().__init__()
        attention = "eager" if config["model_type"] == "mpnet" else "sdpa"  # it adds a bias to attention
        options: dict[str, Any] = {"attn_implementation": attention, "dtype": torch.float32, "trust_remote_code": False}
        self.model = AutoModel.from_config(AutoConfig.for_model(**config), **options)
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None
        own = self.model.config
        check_heads(own.hidden_size, own.num_attention_heads)  # the library checks those of some models alone
        self.width, self.shape = own.hidden_size, shape_of(own.to_diff_dict())
        self.marks = nn.Embedding(marks, self.model.get_input_embeddings().embedding_dim)
        # as BERT draws its own embeddings, so that a new mark is no louder than a token
        nn.init.normal_(self.marks.weight, std=0.02)

    def forward(self, ids: Tensor, marks: Tensor, lengths: Tensor, layers: int = 0) -> Tensor:
        """Return the states of tokens, [B, L, width], after some layers; 0, or more than there are: after all.

        Tokens and marks are [B, L], lengths are [B].
        """
        inputs = self.model.get_input_embeddings()(ids) + self.marks(marks)
        is_token = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]  # [B, L]
        model = _first_layers(self.model, layers) if layers else self.model
        try:
            return model(inputs_embeds=inputs, attention_mask=is_token.long(), return_dict=True).last_hidden_state
        except torch.OutOfMemoryError:
            raise
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            # a shape that the library builds, but cannot read with: that is known only here
            reason = str(error).strip().split("\n")[0].removesuffix(".")
            raise RechainError(
                f"the encoder of the model cannot read texts of {ids.shape[1]} tokens: {reason:.300}."
            ) from error


def _first_layers(model: Any, count: int) -> Any:
    """Return a model that has only the first layers of another one, which stays as it is: other threads read with it.

    A model that does not list its layers is returned itself.
    """
    stack: Any = getattr(model, "encoder", None)
    if not isinstance(getattr(stack, "layer", None), nn.ModuleList):
        return model
    cut, shorter = copy(model), copy(stack)
    shorter._modules = stack._modules | {"layer": stack.layer[:count]}
    cut._modules = model._modules | {"encoder": shorter}
    return cut


def pretrained(
    config: Mapping[str, Any], shapes: Shapes, read: Callable[[], Mapping[str, Tensor]], marks: int
) -> PretrainedEncoder:
    """Return an encoder of a config; its weights, under the library's names, are read once their shapes fit."""
    shape = shape_of(config)
    check_size(shape, shapes)
    with shapes_alone():
        model = PretrainedEncoder(shape, marks).model
    own = {}  # by the names that the weights of a whole model, heads and all, have in the encoder
    for stored in shapes:
        name = stored.removeprefix(f"{model.base_model_prefix}.")
        own[name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")] = stored
    check_shapes(model, {name: shapes[stored] for name, stored in own.items()})
    weights = read()
    encoder = PretrainedEncoder(shape, marks)
    encoder.model.load_state_dict({name: weights[own[name]] for name in model.state_dict()})
    return encoder
