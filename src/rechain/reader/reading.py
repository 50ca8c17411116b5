"""Who reads texts for a chain reader: its network, here or in a process that reads for many."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from rechain.models.chain_reader import ChainReader, Run, TextBatch, Texts
from rechain.models.cpu import in_threads, tokens_a_thread
from rechain.reader.settings import ReaderSettings
from rechain.system.devices import precision
from rechain.system.tensors import Array, Arrays

_GPU_TOKENS = 2**15
"""read at a time on a GPU at least: with fewer, it waits for the program between two layers"""

Head = Literal["rank", "name_links", "judge", "embed"]


class Reading(NamedTuple):
    """Texts that a head of the network is to read; it can be sent to another process."""

    head: Head
    texts: Arrays
    """as `flat_texts` returns them"""
    entities: int = 0
    """of `name_links`: how many entities a text may have"""


Read = Callable[[Reading], Array]
"""returns what the head says of each text"""


class NetworkReader:
    """Reads with a network of this process."""

    def __init__(self, network: ChainReader, settings: ReaderSettings) -> None:
        self._network = network
        self._most_tokens = settings.tokens_at_once

    def __call__(self, reading: Reading) -> Array:
        """Return what a head says of each text: a number, or a row of them."""
        device = self._network.evidence.weight.device
        with torch.inference_mode(), precision(device):
            texts = Texts(reading.texts, device)
            most, run = max(self._most_tokens, _GPU_TOKENS), cast(Run, map)
            if device.type == "cpu":
                most, run = min(self._most_tokens, tokens_a_thread(int(texts.lengths.sum()))), in_threads
            outputs = texts.read(torch.arange(len(texts.lengths)), self._head(reading), most, run)
        return outputs.float().cpu().numpy()

    def read_all(self, readings: Sequence[Reading]) -> list[Array]:
        """Return what heads say of the texts of several readings; what one head is to read is read together."""
        outputs: dict[int, Array] = {}
        for head in dict.fromkeys(reading.head for reading in readings):
            numbers = [number for number, reading in enumerate(readings) if reading.head == head]
            some = [readings[number] for number in numbers]
            whole = Reading(head, joined_texts([one.texts for one in some]), max(one.entities for one in some))
            parts = np.split(self(whole), np.cumsum([len(one.texts["text_start"]) - 1 for one in some])[:-1])
            for number, one, part in zip(numbers, some, parts, strict=True):
                outputs[number] = part[:, : one.entities] if head == "name_links" else part
        return [outputs[number] for number in range(len(readings))]

    def _head(self, reading: Reading) -> Callable[[TextBatch], Tensor]:
        if reading.head == "name_links":
            return partial(self._network.name_links, entities=reading.entities)
        head: Callable[[TextBatch], Tensor] = getattr(self._network, reading.head)
        return head


def joined_texts(parts: Sequence[Arrays]) -> dict[str, Array]:
    """Return several sets of texts as one, as `flat_texts` returns it."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in ("ids", "marks", "slots")}
    lengths = [np.diff(part["text_start"]) for part in parts]
    return {**joined, "text_start": np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)}
