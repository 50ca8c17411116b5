"""The networks again in NumPy and float64, one word at a time; `conftest.py` gives them to the tests as `reference`."""

from typing import Any

import numpy as np
from torch import Tensor, nn

Array = np.ndarray[Any, np.dtype[Any]]


def array(tensor: Tensor) -> Array:
    """Return a tensor as float64."""
    return tensor.detach().double().numpy()


def softmax(scores: Array, axis: int = -1) -> Array:
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def linear(x: Array, layer: Any) -> Array:
    return x @ array(layer.weight).T + array(layer.bias)


def gru(words: Array, module: nn.GRU, layer: int = 0, backward: bool = False) -> Array:
    """Run one direction of one layer over words [M, width]: [M, d]."""
    end = f"_l{layer}" + "_reverse" * backward
    of_input, of_state = (array(getattr(module, f"weight_{kind}{end}")) for kind in ("ih", "hh"))
    input_bias, state_bias = (array(getattr(module, f"bias_{kind}{end}")) for kind in ("ih", "hh"))
    state = np.zeros(module.hidden_size)
    states = []
    for word in words[::-1] if backward else words:
        r_in, z_in, n_in = np.split(of_input @ word + input_bias, 3)
        r_state, z_state, n_state = np.split(of_state @ state + state_bias, 3)
        reset, keep = sigmoid(r_in + r_state), sigmoid(z_in + z_state)
        state = (1 - keep) * np.tanh(n_in + reset * n_state) + keep * state
        states.append(state)
    return np.array(states[::-1] if backward else states)


def bigru(words: Array, module: nn.GRU) -> Array:
    """Run all layers in both directions: [M, 2 d]."""
    for layer in range(module.num_layers):
        words = np.concatenate([gru(words, module, layer), gru(words, module, layer, backward=True)], axis=-1)
    return words


def compare(one: Array, two: Array) -> Array:
    return np.concatenate([one, two, one - two, one * two], axis=-1)


def match(query: Array, passage: Array, module: nn.GRU, features: Array | None = None) -> Array:
    """MatchLSTM (Appendix A): m_i of Q [N, d] and H_i [M, d]."""
    matched = []
    for q in query:
        weights = softmax(np.array([q @ h for h in passage]))
        attended = sum(weight * h for weight, h in zip(weights, passage, strict=True))
        matched.append(compare(q, attended))
    inputs = np.array(matched) if features is None else np.concatenate([matched, features], axis=-1)
    return gru(inputs, module).max(axis=0)


def attention(a: Array, b: Array, project: Any) -> Array:
    """Attention(A, B) (Appendix A) of A [N, d] and B [M, d]: [M, d]."""
    rows = []
    for b_k in b:
        weights = softmax(np.array([a_j @ b_k for a_j in a]))
        found = sum(weight * a_j for weight, a_j in zip(weights, a, strict=True))
        rows.append(np.maximum(linear(compare(b_k, found), project[0]), 0))
    return np.array(rows)


def update(query: Array, state: Array, feed_forward: Any) -> Array:
    """Q^t = FFN([Q^{t-1}, m])."""
    inside = np.array([np.concatenate([q, state]) for q in query])
    return linear(np.maximum(linear(inside, feed_forward[0]), 0), feed_forward[2])
