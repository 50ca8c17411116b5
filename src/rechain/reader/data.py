"""Prepared chains on a device, cut into batches without a loop."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rechain.models.chain_reader import TextBatch
from rechain.system.tensors import Array, Arrays


class Texts:
    """Texts as tokens, one after another."""

    def __init__(self, arrays: Arrays, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self._starts = torch.from_numpy(arrays["text_start"][:-1])
        self.lengths = torch.from_numpy(np.diff(arrays["text_start"]))
        self._tokens = [_whole(arrays[name]).to(self.device) for name in ("ids", "marks", "slots")]

    def batch(self, numbers: Tensor) -> TextBatch:
        """Return the texts of these numbers, as long as the longest of them."""
        lengths = self.lengths[numbers]
        place = torch.arange(int(lengths.max()))
        index = (self._starts[numbers, None] + place).where(place < lengths[:, None], 0).to(self.device)
        is_token = (place < lengths[:, None]).to(self.device)
        ids, marks, slots = (column[index].long() * is_token for column in self._tokens)
        return TextBatch(ids, marks, slots, lengths.to(self.device))

    def read(self, numbers: Tensor, head: Callable[[TextBatch], Tensor], most_tokens: int = 2**16) -> Tensor:
        """Return what a network says of texts, in their order; those of like length are read together.

        Padded, at most so many tokens are read at once.
        """
        lengths = self.lengths[numbers]
        order = lengths.argsort(descending=True, stable=True)
        groups = list(_packed(order, lengths, most_tokens))
        said = torch.cat([head(self.batch(numbers[group])) for group in groups])
        return said[order.argsort().to(self.device)]


def _packed(order: Tensor, lengths: Tensor, most_tokens: int) -> Iterator[Tensor]:
    while len(order):
        size = max(most_tokens // int(lengths[order[0]]), 1)
        yield order[:size]
        order = order[size:]


class Step(NamedTuple):
    """The chains of some questions, [B, K] each, padded with what `is_chain` excludes."""

    is_chain: Tensor
    chains: Tensor
    """numbers of the chains, on the CPU"""
    features: Tensor
    made: Tensor


class ReaderData:
    """The kept chains of questions."""

    def __init__(self, arrays: Arrays, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.texts = Texts(arrays, device)
        self.chain_text = torch.from_numpy(arrays["chain_text"])
        self.tail_text = torch.from_numpy(arrays["tail_text"])
        self.tail_slot = torch.from_numpy(arrays["tail_slot"])
        self._starts = torch.from_numpy(arrays["chain_start"])
        self._features = torch.from_numpy(arrays["features"]).to(self.device)
        self._made = torch.from_numpy(arrays["made"]).to(self.device)

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._starts) - 1

    @property
    def chains(self) -> int:
        """The number of chains."""
        return len(self.chain_text)

    def step(self, questions: Array | Tensor) -> Step:
        """Return the chains of questions of these numbers."""
        questions = torch.as_tensor(questions)
        first, after = self._starts[questions], self._starts[questions + 1]
        place = torch.arange(int((after - first).max()))
        is_chain = place < (after - first)[:, None]
        chains = (first[:, None] + place).where(is_chain, first[:, None])
        there = chains.to(self.device)
        return Step(is_chain.to(self.device), chains, self._features[there], self._made[there].bool())


def _whole(array: Array) -> Tensor:
    """Return whole numbers as torch can index them; it knows no 16 bits without a sign everywhere."""
    return torch.from_numpy(array.astype(np.int32) if array.dtype == np.uint16 else array)
