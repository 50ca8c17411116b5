"""Prepared questions: arrays of `rechain.preparation.questions` on a device, cut into batches without a loop.

Lists of different lengths lie one after another in flat arrays; `…_start` says where each begins, and ends with where
the last one ends.
"""

from collections.abc import Iterator
from copy import copy
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rechain.errors import InputError
from rechain.models.batch import Batch, Steps, WordTable
from rechain.preparation.arrays import ASKED, BESIDE, MARKS
from rechain.system.tensors import Array, Arrays


class Prepared:
    """The questions of a data set, ready to be read by the networks."""

    def __init__(
        self,
        arrays: Arrays,
        device: torch.device | str = "cpu",
        max_tokens: int = 200,
        mark_answer: bool = False,
        entities: Literal["merged", "all"] = "merged",
        selects: Literal["passages", "steps"] = "passages",
    ) -> None:
        """Put arrays on a device; `entities` says of which of the two inventories in them batches tell.

        Chains are rows of passages or, where `selects` says so, of steps.
        """
        if _REQUIRED - arrays.keys():
            raise InputError("the questions were prepared by an earlier version; prepare them again.")
        self._has_steps = "step_start" in arrays
        if selects == "steps" and not self._has_steps:
            raise InputError("there are no steps to select: the data does not name the entities of every question.")
        self._selects_steps = selects == "steps"
        self._part = 0
        self._names = _MERGED if entities == "merged" else _ALL
        self.device = torch.device(device)
        self.max_tokens = max_tokens
        self.mark_answer = mark_answer
        # an array without any row gets one, to which padding points
        self._arrays = {
            name: array if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)
            for name, array in arrays.items()
        }
        self._on_device = {name: _to(array, self.device) for name, array in self._arrays.items() if name not in _ON_CPU}
        self.words = WordTable(*(self._on_device[name] for name in ("vector_row", "ngrams", "rarity")))
        self.hops = int(arrays["chain_passages"].shape[1])
        self._is_made = bool(self._arrays["chain_made"].any())

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._arrays["question_text"])

    def told_by(self, part: int) -> "Prepared":
        """Return the same questions as one of the parts that were asked about steps tells of their chains."""
        other = copy(self)
        other._part = part
        return other

    def batches(self, questions: Array, size: int) -> Iterator[Batch]:
        """Yield the questions of these numbers, `size` at a time, in this order."""
        for start in range(0, len(questions), size):
            yield self.batch(questions[start : start + size])

    def batch(self, questions: Array) -> Batch:
        """Return the questions of these numbers."""
        host = self._arrays
        slot, is_slot = self._lists("passage_start", questions)  # [B, K]
        texts = np.where(is_slot, host["passage_text"][np.where(is_slot, slot, 0)], -1)
        question, question_lengths = self._tokens(host["question_text"][questions])
        passages, passage_lengths = self._tokens(texts)
        names = self._names
        entity, is_entity = self._lists(names.start, questions)  # [B, X]
        holders = self._take(names.holders, entity, is_entity, 0)  # [B, X, bytes]
        links = self._take(names.links, entity, is_entity, 0)
        chain, is_chain = self._lists("chain_start", questions)  # [B, C]
        return Batch(
            words=self.words,
            question=question,
            question_lengths=question_lengths,
            passages=passages,
            passage_lengths=passage_lengths,
            title_lengths=_to(np.where(is_slot, host["title_length"][texts], 0), self.device),
            marks=self._marks(slot, is_slot, passages.shape[-1]),
            **self._mentions(slot, is_slot, passages.shape[-1]),
            holders=_bits(holders)[..., : texts.shape[1]],
            may_link=_bits(links[..., None])[..., : self.hops - 1],
            chains=self._take("chain_steps" if self._selects_steps else "chain_passages", chain, is_chain, -1),
            chain_links=self._take(names.of_chain, chain, is_chain, -1),
            link_weight=self._take("chain_link_weight", chain, is_chain, 0.0).float(),
            lexical=self._take("chain_lexical", chain, is_chain, 0.0).float(),
            made=self._take("chain_made", chain, is_chain, 0).float(),
            rarity=self._take("chain_rarity", chain, is_chain, 0.0).float() if self._has_steps else None,
            told=self._told(chain, is_chain),
            steps=self._steps(questions) if self._selects_steps else None,
        )

    def _told(self, chain: Array, is_chain: Array) -> Tensor | None:
        if self._is_made:  # nobody is asked about pseudo questions, of which the chain is known
            return torch.zeros(chain.shape, device=self.device)
        if "chain_told" not in self._arrays:
            return None
        return self._take("chain_told", chain, is_chain, 0.0)[..., self._part].float()

    def _steps(self, questions: Array) -> Steps:
        step, is_step = self._lists("step_start", questions)  # [B, O]
        return Steps(
            passage=self._take("step_passage", step, is_step, 0),
            entities=self._take(self._names.of_step, step, is_step, -1),
            roles=_bits(self._take("step_roles", step, is_step, 0)[..., None])[..., : self.hops],
            features=self._take("step_features", step, is_step, 0.0).float(),
        )

    def _tokens(self, texts: Array) -> tuple[Tensor, Tensor]:
        """Return the words of texts [...] (-1 is none) as [..., M], and their lengths on the CPU."""
        index, is_word = self._lists("text_start", texts, texts >= 0, self.max_tokens)
        numbers = self._on_device["tokens"][_to(index, self.device)]
        return numbers * _to(is_word, self.device), torch.from_numpy(is_word.sum(-1))

    def _marks(self, slot: Array, is_slot: Array, width: int) -> Tensor:
        """Return which words mention an entity of question or answer, or stand beside it, [B, K, M, MARKS]."""
        index, is_mark = self._lists("mark_start", slot, is_slot)
        marks = torch.zeros(*slot.shape, width + 1, MARKS, device=self.device)
        token = self._take("mark_token", index, is_mark, width).clamp(max=width)  # the last column is cut off
        for kind in range(MARKS) if self.mark_answer else (ASKED, ASKED + BESIDE):
            is_kind = _to(is_mark & (self._arrays["mark_kind"][index] == kind), self.device)
            marks[..., kind].scatter_(2, torch.where(is_kind, token, width), 1.0)
        return marks[:, :, :width]

    def _mentions(self, slot: Array, is_slot: Array, width: int) -> dict[str, Tensor]:
        index, is_mention = self._lists("mention_start", slot, is_slot)
        token = self._take("mention_token", index, is_mention, 0)
        length = self._take("mention_length", index, is_mention, 1)
        entity = self._take(self._names.of_mention, index, is_mention, -1)
        first = token.clamp(max=width - 1)
        return {
            # where steps are selected, what is cut off stands at the end: it can be selected, and so can be named
            "mention_entity": entity if self._selects_steps else torch.where(token < width, entity, -1),
            "mention_token": first,
            "mention_end": (first + length).clamp(max=width),
            "mention_weight": self._take("mention_weight", index, is_mention, 0.0).float(),
        }

    def _lists(
        self, name: str, numbers: Array, is_list: Array | bool = True, longest: int | None = None
    ) -> tuple[Array, Array]:
        """Return where the lists of these numbers [...] stand in flat arrays, as [..., n], and which of it is real."""
        starts, numbers = self._arrays[name], np.where(is_list, numbers, 0)
        lengths = np.where(is_list, starts[numbers + 1] - starts[numbers], 0).clip(0, longest)
        place = np.arange(max(int(lengths.max(initial=0)), 1))
        is_real = place < lengths[..., None]
        return np.where(is_real, starts[numbers][..., None] + place, 0), is_real

    def _take(self, name: str, index: Array, is_real: Array, padding: float) -> Tensor:
        """Return values of a flat array, with padding where there are none; whole numbers as 64 bits."""
        values = self._on_device[name][_to(np.where(is_real, index, 0), self.device)]
        values = values if values.is_floating_point() else values.long()
        real = _to(is_real, self.device)
        return torch.where(real.view(*real.shape, *[1] * (values.dim() - real.dim())), values, padding)


class _Inventory(NamedTuple):
    """The names of the arrays that tell of entities."""

    start: str
    holders: str
    links: str
    of_mention: str
    of_chain: str
    of_step: str


_ALL = _Inventory("entity_start", "entity_holders", "entity_links", "mention_entity", "chain_links", "step_entities")
_MERGED = _Inventory("merged_start", "merged_holders", "merged_links", "mention_merged", "chain_merged", "step_merged")
_REQUIRED = {"mention_length", *_ALL, *_MERGED} - {_ALL.of_step, _MERGED.of_step}
_STARTS = (
    "text_start",
    "passage_start",
    "mark_start",
    "mention_start",
    "entity_start",
    "merged_start",
    "chain_start",
    "step_start",
)
# what tells the shape of a batch stays here: read from a GPU, each number would wait for it
_ON_CPU = frozenset((*_STARTS, "title_length", "question_text", "passage_text", "mark_kind"))


def _to(array: Array, device: torch.device) -> Tensor:
    return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device, non_blocking=True)


def _bits(numbers: Tensor) -> Tensor:
    """Return the bits of bytes [..., n], lowest first, as [..., 8 n]."""
    places = torch.arange(8, device=numbers.device)
    return ((numbers[..., None] >> places) & 1).bool().flatten(-2)
