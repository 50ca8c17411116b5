"""The chain reader: a Ranker that reads whole chains, a Reasoner that names a passage's link from it alone, and a
judge of whether passages support an answer. Readers of texts for them, in this or another process."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from rechain.reader.cpu import in_threads, tokens_a_thread
from rechain.reader.encoders import PretrainedEncoder
from rechain.reader.settings import LAST_END
from rechain.system.tensors import Array, Arrays, precision

NEVER = -1e4  # the logit of what cannot be; it fits into 16 bits


class TextBatch(NamedTuple):
    """Texts as tokens."""

    ids: Tensor  # [B, L]
    marks: Tensor  # what each is marked as, [B, L]
    slots: Tensor  # to which entity it belongs, from 1, [B, L]; 0: none
    lengths: Tensor  # [B]


Run = Callable[[Callable[[Tensor], Tensor], list[Tensor]], Iterable[Tensor]]  # as `map` does


class Texts:
    """Texts as tokens, one after another, of which any can be gathered into a batch."""

    def __init__(self, arrays: Arrays, device: torch.device | str) -> None:
        """Take the columns of a `TextBatch`, each [all tokens], and where every text starts, [texts + 1]."""
        self.device = torch.device(device)
        self._starts = torch.from_numpy(arrays["text_start"][:-1])
        self.lengths = torch.from_numpy(np.diff(arrays["text_start"]))
        columns = [arrays[name] for name in ("ids", "marks", "slots")]
        # ids are stored as uint16, which torch cannot index on every device
        signed = [column.astype(np.int32) if column.dtype == np.uint16 else column for column in columns]
        self._columns = [torch.from_numpy(column).to(self.device) for column in signed]

    def batch(self, numbers: Tensor) -> TextBatch:
        """Return the texts of these numbers, [B], as long as the longest of them."""
        lengths = self.lengths[numbers]
        place = torch.arange(int(lengths.max()))  # [L]
        is_token = place < lengths[:, None]  # [B, L]
        index = (self._starts[numbers, None] + place).where(is_token, 0).to(self.device)
        is_token = is_token.to(self.device)
        ids, marks, slots = (column[index].long() * is_token for column in self._columns)
        return TextBatch(ids, marks, slots, lengths.to(self.device))

    def read(
        self, numbers: Tensor, head: Callable[[TextBatch], Tensor], most_tokens: int = 2**16, run: Run = map
    ) -> Tensor:
        """Return what a head of a network returns for texts, in their order.

        Texts of similar length are read together, at most `most_tokens` at a time, padding included. `run` does that
        for all such batches, one after another by default.
        """
        lengths = self.lengths[numbers]
        order = rest = lengths.argsort(descending=True, stable=True)
        parts = []
        while len(rest):
            size = max(most_tokens // int(lengths[rest[0]]), 1)  # the first is the longest, so others are padded to it
            parts.append(numbers[rest[:size]])
            rest = rest[size:]
        outputs = list(run(lambda part: head(self.batch(part)), parts))
        return torch.cat(outputs)[order.argsort().to(self.device)]


class ChainReader(nn.Module):
    """One encoder with its heads, Ranker, Reasoner and maybe a judge, and the weights of cheap evidence."""

    judges: bool = False

    def __init__(
        self,
        encoder: PretrainedEncoder,
        features: int,
        dropout: float = 0.1,
        judges: bool = False,
        judge_layers: int = 0,
    ) -> None:
        """Put new heads on an encoder; the judge reads the states after `judge_layers` layers, or after all (0)."""
        super().__init__()
        self.encoder = encoder
        width = encoder.width
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(2 * width, width)  # of all tokens and of the marked ones
        self.chain = nn.Linear(width, 1, bias=False)
        self.link = nn.Linear(width, 1, bias=False)
        self.evidence = nn.Linear(features, 1, bias=False)
        self.judges, self.judge_layers = judges, judge_layers
        if judges:
            # means of all tokens, of those of the answer, and of those of the answer in passages
            self.judge_hidden = nn.Linear(3 * width, width)
            self.support = nn.Linear(width, 1)

    def rank(self, batch: TextBatch) -> Tensor:
        """Return the logit of each text to be a chain that leads to the answer, [B]: the Ranker."""
        # means, not the first token's state: with that the Ranker was worse (docs/measured/default_model.md)
        means = _means(self._states(batch), batch, batch.marks > 0)  # [B, 2d]
        hidden = self.dropout(gelu(_apply(self.hidden, means)))  # [B, d]
        return _apply(self.chain, hidden).squeeze(-1).float()

    def judge(self, batch: TextBatch) -> Tensor:
        """Return the logit of passages to support the answer before them, [B]: the judge."""
        states = self._states(batch, self.judge_layers)
        means = _means(states, batch, batch.slots == 1, batch.marks == LAST_END)  # [B, 3d]
        hidden = self.dropout(gelu(_apply(self.judge_hidden, means)))  # [B, d]
        return _apply(self.support, hidden).squeeze(-1).float()

    def embed(self, batch: TextBatch) -> Tensor:
        """Return the mean state of each text, [B, d]: texts of similar meaning have similar states."""
        return _means(self._states(batch), batch).float()

    def name_links(self, batch: TextBatch, entities: int) -> Tensor:
        """Return the log-probability that each entity links a text to the one before, [B, entities]: the Reasoner.

        It scores tokens; an entity has the sum of its tokens' probabilities. One without any token, as its mention was
        cut away, is as likely as the mean of the others.
        """
        tokens = _apply(self.link, self._states(batch)).squeeze(-1)  # [B, L]
        tokens = tokens.masked_fill(batch.slots == 0, NEVER).log_softmax(-1)
        belongs = batch.slots[..., None] == torch.arange(1, entities + 1, device=tokens.device)  # [B, L, X]
        named = torch.where(belongs, tokens[..., None], NEVER).logsumexp(1)  # [B, X]
        unknown = -belongs.any(1).sum(-1, keepdim=True).clamp(min=1).to(named.dtype).log()
        return torch.where(belongs.any(1), named, unknown).float()

    def weigh(self, features: Tensor) -> Tensor:
        """Return the score of chains by cheap evidence, [..., features] -> [...]."""
        return _apply(self.evidence, features).squeeze(-1)

    def _states(self, batch: TextBatch, layers: int = 0) -> Tensor:
        """Return the states of tokens after some layers of the encoder or, with 0, after all of them, [B, L, d].

        On a CPU the heads compute with 64 bits when nothing is learnt: the length of the padding changes how sums are
        rounded, but with 32 bits to spare it does not change the outputs, which are rounded to 32.
        """
        states = self.dropout(self.encoder(batch.ids, batch.marks, batch.lengths, layers))
        return states.double() if states.device.type == "cpu" and not self.training else states.float()


def _means(states: Tensor, batch: TextBatch, *masks: Tensor) -> Tensor:
    """Return the means of states [B, L, d] over all tokens and over each of some masks [B, L], [B, (1 + masks) d]."""
    is_token = torch.arange(states.shape[1], device=states.device) < batch.lengths[:, None]  # [B, L]: not padding
    counted = [mask.to(states.dtype)[..., None] for mask in (is_token, *masks)]  # [B, L, 1] each
    means = [(states * mask).sum(1) / mask.sum(1).clamp(min=1) for mask in counted]  # zeros where nothing counts
    return torch.cat(means, dim=-1)


def _apply(layer: nn.Linear, inputs: Tensor) -> Tensor:
    """Apply a layer with the precision of its inputs: heads are small, and 16 bits too few to compare chains."""
    with torch.autocast(inputs.device.type, enabled=False):
        bias = None if layer.bias is None else layer.bias.to(inputs.dtype)
        return linear(inputs, layer.weight.to(inputs.dtype), bias)


# ---- reading in recovery

TOKENS_AT_ONCE = 8192  # read at a time on a CPU at most
_GPU_TOKENS = 2**15  # read at a time on a GPU: with fewer, it waits for the program between two layers
Head = Literal["rank", "name_links", "judge", "embed"]


class Reading(NamedTuple):
    """Texts that a head of the network is to read; it can be sent to another process."""

    head: Head
    texts: Arrays  # as `flat_texts` returns them
    entities: int = 0  # of `name_links`: how many entities a text may have


Read = Callable[[Reading], Array]  # returns the output of the head for each text


class NetworkReader:
    """Reads with a network of this process."""

    def __init__(self, network: ChainReader) -> None:
        self._network = network

    def __call__(self, reading: Reading) -> Array:
        """Return the output of a head for each text: a number, or a row of them."""
        device = self._network.evidence.weight.device
        head = getattr(self._network, reading.head)
        if reading.head == "name_links":
            head = partial(head, entities=reading.entities)
        with torch.inference_mode(), precision(device):
            texts = Texts(reading.texts, device)
            most, run = _GPU_TOKENS, cast(Run, map)
            if device.type == "cpu":
                most, run = min(TOKENS_AT_ONCE, tokens_a_thread(int(texts.lengths.sum()))), in_threads
            outputs = texts.read(torch.arange(len(texts.lengths)), head, most, run)
        return outputs.float().cpu().numpy()

    def read_all(self, readings: Sequence[Reading]) -> list[Array]:
        """Return the outputs for several readings; the texts of one head are read together."""
        outputs: dict[int, Array] = {}
        for head in dict.fromkeys(reading.head for reading in readings):
            numbers = [number for number, reading in enumerate(readings) if reading.head == head]
            some = [readings[number] for number in numbers]
            whole = Reading(head, joined_texts([one.texts for one in some]), max(one.entities for one in some))
            parts = np.split(self(whole), np.cumsum([len(one.texts["text_start"]) - 1 for one in some])[:-1])
            for number, one, part in zip(numbers, some, parts, strict=True):
                outputs[number] = part[:, : one.entities] if head == "name_links" else part
        return [outputs[number] for number in range(len(readings))]


def joined_texts(parts: Sequence[Arrays]) -> dict[str, Array]:
    """Return several sets of texts as one, as `flat_texts` returns it."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in ("ids", "marks", "slots")}
    lengths = [np.diff(part["text_start"]) for part in parts]
    return {**joined, "text_start": np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)}
