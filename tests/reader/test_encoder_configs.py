"""What of a config is believed, and passed on to the transformers library."""

import math
from typing import Any

import pytest

from rechain.reader.encoders import MODEL_TYPES, check_size, shape_of

BERT = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 2, "layer_norm_eps": 1e-6, "hidden_act": "gelu"}


def test_only_the_shape_is_passed_on() -> None:
    others = {
        "num_labels": 2**20,
        "chunk_size_feed_forward": 7,
        "rope_scaling": {"rope_type": "yarn"},
        "use_return_dict": True,
        "initializer_range": "x",
        "dim": -1,
        "pad_token_id": None,
    }
    assert shape_of(BERT | others) == BERT


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("num_attention_heads", 12.0, "a whole number"),
        ("num_attention_heads", -12, "at least 1"),
        ("num_attention_heads", True, "a whole number"),
        ("num_attention_heads", "12", "a whole number"),
        ("num_hidden_layers", 0, "at least 1"),
        ("pad_token_id", -1, "at least 0"),
        ("layer_norm_eps", "x", "a number"),
        ("layer_norm_eps", math.nan, "finite"),
        ("layer_norm_eps", math.inf, "finite"),
        ("layer_norm_eps", -5, "more than 0"),
        ("layer_norm_eps", 0, "more than 0"),
        ("hidden_act", ["gelu"], "a text"),
        ("hidden_dropout_prob", 2, "at most 1"),
        ("is_decoder", True, "one of False"),
        ("position_embedding_type", "relative_key", "one of absolute"),
    ],
)
def test_a_value_of_another_type_or_range_is_refused(name: str, value: Any, what: str) -> None:
    with pytest.raises(ValueError, match=f"^its {name} should be {what}, not "):
        shape_of(BERT | {name: value})


ROTATION = {"rope_type": "default", "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layer_types", "full_attention"),
        ("layer_types", ["full_attention", "linear"]),
        ("layer_types", [[]]),
        ("rope_parameters", ROTATION),
        ("rope_parameters", {"full_attention": ROTATION, "sliding_attention": None}),
        ("rope_parameters", {"full_attention": ROTATION, "sliding_attention": ROTATION | {"rope_theta": -1}}),
        ("rope_parameters", {"full_attention": ROTATION, "sliding_attention": ROTATION | {"rope_type": "yarn"}}),
    ],
)
def test_what_is_inside_of_a_value_is_checked(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^its {name} should be "):
        shape_of({"model_type": "modernbert", name: value})


@pytest.mark.parametrize("kind", MODEL_TYPES)
def test_the_names_are_those_of_the_library(kind: str) -> None:
    """All of the shape that the library has by default is passed on."""
    transformers = pytest.importorskip("transformers")
    defaults = transformers.AutoConfig.for_model(kind).to_dict()
    shape = shape_of(defaults)
    assert shape == {name: defaults[name] for name in shape}
    sizes = {name for name, value in defaults.items() if type(value) is int and not name.endswith("token_id")}
    assert sizes - shape.keys() <= {"chunk_size_feed_forward", "sparse_pred_ignore_index"}


def test_numbers_must_have_to_do_with_the_weights() -> None:
    shapes = {"one": (8, 8), "two": (8,)}
    check_size(shape_of(BERT), shapes)
    with pytest.raises(ValueError, match="more layers than its weights, which are 2 tensors"):
        check_size(shape_of(BERT | {"num_hidden_layers": 3}), shapes)
    with pytest.raises(ValueError, match="its vocab_size is greater than anything in its weights"):
        check_size(shape_of(BERT | {"vocab_size": 2**20 + 1}), shapes)
