"""Configs of encoders, as the transformers library writes them: what of them is believed, and passed on to it.

Of each model the library has names for its shape, and for much else: labels, decoding, warnings. Only the shape is
passed on, and only where its values are of the right type and range.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any, Literal

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from rechain.system.settings import AboveZero, Count, Positive, Share, fault_of
from rechain.system.tensors import Shapes

_COMMON = {"vocab_size": Positive, "max_position_embeddings": Positive, "pad_token_id": Count}
_BERT: dict[str, Any] = _COMMON | {
    "hidden_size": Positive,
    "num_hidden_layers": Positive,
    "num_attention_heads": Positive,
    "intermediate_size": Positive,
    "type_vocab_size": Positive,
    "layer_norm_eps": AboveZero,
    "hidden_act": str,
    "hidden_dropout_prob": Share,
    "attention_probs_dropout_prob": Share,
    "position_embedding_type": Literal["absolute"],
    "is_decoder": Literal[False],
    "add_cross_attention": Literal[False],
}
_DISTILBERT: dict[str, Any] = _COMMON | {
    "dim": Positive,
    "n_layers": Positive,
    "n_heads": Positive,
    "hidden_dim": Positive,
    "activation": str,
    "dropout": Share,
    "attention_dropout": Share,
    "sinusoidal_pos_embds": bool,
}
_ROTATION = {"rope_type": Literal["default"], "rope_theta": AboveZero}
_ATTENTION = Literal["full_attention", "sliding_attention"]
_MODERNBERT: dict[str, Any] = _COMMON | {
    "hidden_size": Positive,
    "num_hidden_layers": Positive,
    "num_attention_heads": Positive,
    "intermediate_size": Positive,
    "hidden_activation": str,
    "norm_eps": AboveZero,
    "norm_bias": bool,
    "attention_bias": bool,
    "mlp_bias": bool,
    "attention_dropout": Share,
    "embedding_dropout": Share,
    "mlp_dropout": Share,
    "local_attention": Positive,
    "layer_types": [_ATTENTION],
    "rope_parameters": {"full_attention": _ROTATION, "sliding_attention": _ROTATION},
    "global_attn_every_n_layers": Positive,
    "global_rope_theta": AboveZero,
    "local_rope_theta": AboveZero,
}
_ALBERT = {"embedding_size": Positive, "num_hidden_groups": Positive, "inner_group_num": Positive}
_SHAPES: dict[str, dict[str, Any]] = {
    "albert": _BERT | _ALBERT,
    "bert": _BERT,
    "camembert": _BERT,
    "distilbert": _DISTILBERT,
    "electra": _BERT | {"embedding_size": Positive},
    "modernbert": _MODERNBERT,
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
    """Raise ValueError where weights of these shapes cannot be those of an encoder.

    It is looked at before anything is built: a number that has nothing to do with the weights could take all memory.
    """
    if prod(shape.get(name, 1) for name in _COUNTS) > len(shapes):
        raise ValueError(f"it has more layers than its weights, which are {len(shapes)} tensors")
    most = max((dimension for shape in shapes.values() for dimension in shape), default=0)
    for name, value in shape.items():
        if isinstance(value, int) and value > max(most, _LARGEST_NUMBER):
            raise ValueError(f"its {name} is greater than anything in its weights, which have at most {most} rows")


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


def check_shapes(network: nn.Module, shapes: Shapes) -> None:
    """Raise ValueError with the first tensor of a network that weights of these shapes do not have."""
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    for name, shape in expected.items():
        if name not in shapes:
            raise ValueError(f"{name} has no weights")
        if shapes[name] != shape:
            raise ValueError(f"{name} has the shape {list(shapes[name])}, not {list(shape)}")
