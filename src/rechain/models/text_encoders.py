"""Encoders of whole texts: from tokens, some of them marked, to a vector for each that knows its neighbours.

A pretrained transformer and the paper's GRU stand behind one interface: `width`, and a call that takes tokens [B, L],
marks [B, L] and lengths [B] and returns states [B, L, width].
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from rechain.models.bert import BertLayers, is_plain_bert


class TextEncoder(Protocol):
    """Encodes texts."""

    width: int

    def __call__(self, ids: Tensor, marks: Tensor, lengths: Tensor) -> Tensor:
        """Return the states of tokens, [B, L, width]."""
        ...


class PretrainedEncoder(nn.Module):
    """A BERT-like model of the transformers library; marks are vectors added to those of the tokens."""

    width: int

    def __init__(self, model: Any, marks: int) -> None:
        """Take a model of the transformers library and the number of marks."""
        super().__init__()
        self.model = model
        self.width = model.config.hidden_size
        self.marks = nn.Embedding(marks, model.get_input_embeddings().embedding_dim)
        nn.init.normal_(self.marks.weight, std=0.02)

    def forward(self, ids: Tensor, marks: Tensor, lengths: Tensor) -> Tensor:
        """Return the states of tokens, [B, L, width]."""
        model: Any = self.model
        inputs = model.get_input_embeddings()(ids) + self.marks(marks)
        is_token = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        return model(inputs_embeds=inputs, attention_mask=is_token.long()).last_hidden_state


class GruEncoder(nn.Module):
    """Vectors of tokens and marks, and the paper's 2-layer bi-directional GRU."""

    def __init__(self, vocabulary: int, marks: int, hidden: int = 128) -> None:
        super().__init__()
        self.width = 2 * hidden
        self.tokens = nn.Embedding(vocabulary, self.width)
        self.marks = nn.Embedding(marks, self.width)
        self.gru = nn.GRU(self.width, hidden, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, ids: Tensor, marks: Tensor, lengths: Tensor) -> Tensor:
        """Return the states of tokens, [B, L, width]."""
        from rechain.models import gru

        return gru.run(self.gru, self.tokens(ids) + self.marks(marks), lengths.cpu())


def pretrained(source: str | Path, marks: int) -> PretrainedEncoder:
    """Return an encoder with the weights of a local folder or of the Hub."""
    from transformers import AutoModel

    return PretrainedEncoder(_without_pooler(AutoModel.from_pretrained(str(source), **_PLAIN)), marks)


def untrained(config: Mapping[str, Any], marks: int) -> PretrainedEncoder:
    """Return an encoder of this shape, for weights of its own."""
    return PretrainedEncoder(_from_config(config), marks)


def unfilled(config: Mapping[str, Any], marks: int) -> PretrainedEncoder:
    """Return an encoder of this shape for weights to be loaded; of a plain BERT the layers alone, to be packed."""
    return PretrainedEncoder(BertLayers(config), marks) if is_plain_bert(config) else untrained(config, marks)


def in_transformers(model: Any) -> Any:
    """Return the model of the transformers library that has these layers of a BERT, the very same; others as is."""
    if not isinstance(model, BertLayers):
        return model
    whole = _from_config(model.config.to_diff_dict()).train(model.training)
    for name, layer in model.named_modules():
        if not any(layer.children()):
            parent, _, own = name.rpartition(".")
            setattr(whole.get_submodule(parent), own, layer)
    return whole.to(next(model.parameters()).device)


def _from_config(config: Mapping[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModel

    return _without_pooler(AutoModel.from_config(AutoConfig.for_model(**config), **_PLAIN))


def _without_pooler(model: Any) -> Any:
    """Drop the layer on top that turns the first state into a vector, which nothing here asks for."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


_PLAIN: dict[str, Any] = {"attn_implementation": "sdpa", "dtype": torch.float32}
