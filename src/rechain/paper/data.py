"""Prepared questions as tensors: the arrays of `rechain.paper.prepare` on a device, cut into batches without a loop.

Letters in shapes: B questions, K passages of a question, N words of a question, M words of a passage, C candidate
chains, L passages of a chain, X entities of a question, E mentions of entities in a passage, S selections side by
side, O options of a selection: the passages of a question or, if the data names entities, its steps.

In the arrays, lists of different lengths lie one after another; `…_start` has where each begins, then where the last
one ends.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rechain.errors import InputError
from rechain.paper.settings import ASKED, BESIDE, MARKS, GameSettings
from rechain.system.tensors import Array, Arrays


@dataclass(frozen=True)
class WordTable:
    """What is known of the words of a data set, by their numbers; number 0 is padding."""

    vector_row: Tensor  # [W] row of the word in the table of vectors, 0 if it has none
    ngrams: Tensor  # [W, G] hashed character n-grams of a word without vector, 0 is none
    rarity: Tensor  # [W] inverse document frequency


@dataclass(frozen=True)
class Steps:
    """Options that are not whole passages: a passage and the two entities by which a chain goes through it."""

    passage: Tensor  # [B, O]
    entities: Tensor  # [B, O, 2] by which a chain enters and leaves; -1 is an end of the chain
    roles: Tensor  # [B, O, L] whether it may be the first, second, … of a chain; all false for padding
    features: Tensor  # [B, O, STEP_FEATURES] of its two entities

    def link(self, role: int, link: int) -> Tensor:
        """Return the entity that steps of a role have as link number `link` of a chain, [B, O]; -1 for other steps."""
        entity = self.entities[..., 1 if role == link else 0]
        return torch.where(self.roles[..., role], entity, -1)


@dataclass(frozen=True)
class Batch:
    """Some questions, their passages, the entities in them and the candidate chains."""

    words: WordTable
    question: Tensor  # [B, N] numbers of words
    question_lengths: Tensor  # [B] on the CPU
    passages: Tensor  # [B, K, M] numbers of words, the title's first
    passage_lengths: Tensor  # [B, K] on the CPU; 0 if a question has fewer passages
    title_lengths: Tensor  # [B, K]
    marks: Tensor  # [B, K, M, MARKS] what is marked of every word
    mention_entity: Tensor  # [B, K, E] the entity of each mention, -1 is padding
    mention_token: Tensor  # [B, K, E] its first word
    mention_end: Tensor  # [B, K, E] the word after its last
    mention_weight: Tensor  # [B, K, E] how strongly the entity links this passage
    contains: Tensor  # [B, X, K] whether a passage contains an entity
    may_link: Tensor  # [B, X, L - 1] whether an entity may be the first, second, … link of a chain
    chains: Tensor  # [B, C, L] the options of each chain, head first, -1 is padding
    chain_links: Tensor  # [B, C, L - 1] the linking entities, -1 if the data does not name them
    lexical: Tensor  # [B, C] score of the lexical rule
    evidence: Tensor  # [B, C] all evidence for a chain: that score, rarity of its entities, beliefs about its steps
    steps: Steps | None = None  # the options, if they are not passages

    @property
    def question_mask(self) -> Tensor:
        """[B, N] whether there is a word."""
        return self.question > 0

    @property
    def passage_mask(self) -> Tensor:
        """[B, K, M] whether there is a word."""
        return self.passages > 0

    @property
    def is_passage(self) -> Tensor:
        """[B, K] whether there is a passage."""
        return self.passages[:, :, 0] > 0

    @property
    def is_chain(self) -> Tensor:
        """[B, C] whether there is a chain."""
        return self.chains[:, :, 0] >= 0

    @property
    def options(self) -> int:
        """O, how many passages or steps can be selected."""
        return self.passages.shape[1] if self.steps is None else self.steps.passage.shape[1]

    @property
    def is_option(self) -> Tensor:
        """[B, O] whether there is one."""
        return self.is_passage if self.steps is None else self.steps.roles.any(-1)

    def passages_of(self, options: Tensor) -> Tensor:
        """Return the passages of options, [B, ...]."""
        if self.steps is None:
            return options
        return self.steps.passage.gather(1, options.flatten(1)).view_as(options)

    def options_with(self, role: int, link: int) -> Tensor:
        """Return which options have which entity as link number `link` of a chain in which they have a role, [B, X, O].

        A passage has every entity that it contains, a step only its own two.
        """
        if self.steps is None:
            return self.contains
        entities = torch.arange(self.contains.shape[1], device=self.contains.device)
        return self.steps.link(role, link)[:, None] == entities[:, None]

    def at(self, passages: Tensor) -> "Batch":
        """Return the same questions with only the passages of these numbers, [B, S]."""
        question = torch.arange(len(passages), device=passages.device)[:, None]
        names = ["passages", "title_lengths", "marks"]
        names += ["mention_entity", "mention_token", "mention_end", "mention_weight"]
        lengths = self.passage_lengths.gather(1, passages.cpu())
        return replace(
            self, passage_lengths=lengths, **{name: getattr(self, name)[question, passages] for name in names}
        )


class Prepared:
    """The questions of a data set, ready to be read by the networks."""

    def __init__(self, arrays: Arrays, settings: GameSettings, device: torch.device | str = "cpu") -> None:
        """Put arrays on a device; the settings decide what of them is read."""
        self.device = torch.device(device)
        # an array without rows gets one, to which padding points
        self._arrays = {
            name: array if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)
            for name, array in arrays.items()
        }
        # what decides the shape of a batch stays on the CPU: reading it from a GPU would wait for the GPU
        on_cpu = {name for name in arrays if name.endswith("_start")}
        on_cpu |= {"title_length", "question_text", "passage_text", "mark_kind"}
        self._on_device = {name: _to(a, self.device) for name, a in self._arrays.items() if name not in on_cpu}
        self.words = WordTable(*(self._on_device[name] for name in ("vector_row", "ngrams", "rarity")))
        self.hops = int(arrays["chain_passages"].shape[1])
        self._part = 0
        self._read_by(settings)

    def _read_by(self, settings: GameSettings) -> None:
        self._selects_steps = settings.selects == "steps"
        if self._selects_steps and "step_start" not in self._arrays:
            raise InputError("there are no steps to select: the data does not name the entities of every question.")
        self._max_tokens = settings.max_tokens
        self._inventory = "entity" if settings.is_as_written else "merged"

    def view(self, settings: GameSettings, part: int = 0) -> "Prepared":
        """Return the same questions as other settings read them, with the beliefs of one part of the questions."""
        other = copy(self)
        other._part = part
        other._read_by(settings)
        return other

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._arrays["question_text"])

    def batches(self, questions: Array, size: int) -> Iterator[Batch]:
        """Yield the questions of these numbers, `size` at a time, in this order."""
        for start in range(0, len(questions), size):
            yield self.batch(questions[start : start + size])

    def batch(self, questions: Array) -> Batch:
        """Return the questions of these numbers."""
        host, names = self._arrays, self._inventory
        slot, is_slot = self._lists("passage_start", questions)  # [B, K]
        texts = np.where(is_slot, host["passage_text"][np.where(is_slot, slot, 0)], -1)
        question, question_lengths = self._tokens(host["question_text"][questions])
        passages, passage_lengths = self._tokens(texts)
        entity, is_entity = self._lists(f"{names}_start", questions)  # [B, X]
        chain, is_chain = self._lists("chain_start", questions)  # [B, C]
        lexical = self._take("chain_lexical", chain, is_chain, 0.0).float()
        return Batch(
            words=self.words,
            question=question,
            question_lengths=question_lengths,
            passages=passages,
            passage_lengths=passage_lengths,
            title_lengths=_to(np.where(is_slot, host["title_length"][texts], 0), self.device),
            marks=self._marks(slot, is_slot, passages.shape[-1]),
            **self._mentions(slot, is_slot, passages.shape[-1]),
            contains=_bits(self._take(f"{names}_passages", entity, is_entity, 0))[..., : texts.shape[1]],
            may_link=_bits(self._take(f"{names}_links", entity, is_entity, 0)[..., None])[..., : self.hops - 1],
            chains=self._take("chain_steps" if self._selects_steps else "chain_passages", chain, is_chain, -1),
            chain_links=self._take(f"chain_{names}", chain, is_chain, -1),
            lexical=lexical,
            evidence=self._evidence(lexical, chain, is_chain),
            steps=self._steps(questions) if self._selects_steps else None,
        )

    def _evidence(self, evidence: Tensor, chain: Array, is_chain: Array) -> Tensor:
        if "chain_rarity" in self._arrays:
            evidence = evidence + self._take("chain_rarity", chain, is_chain, 0.0).float()
        if "chain_beliefs" in self._arrays:
            evidence = evidence + self._take("chain_beliefs", chain, is_chain, 0.0)[..., self._part].float()
        return evidence

    def _steps(self, questions: Array) -> Steps:
        step, is_step = self._lists("step_start", questions)  # [B, O]
        return Steps(
            passage=self._take("step_passage", step, is_step, 0),
            entities=self._take(f"step_{self._inventory}", step, is_step, -1),
            roles=_bits(self._take("step_roles", step, is_step, 0)[..., None])[..., : self.hops],
            features=self._take("step_features", step, is_step, 0.0).float(),
        )

    def _tokens(self, texts: Array) -> tuple[Tensor, Tensor]:
        """Return the words of texts [...] (-1 is none) as [..., M], and their lengths on the CPU."""
        index, is_word = self._lists("text_start", texts, texts >= 0, self._max_tokens)
        numbers = self._on_device["tokens"][_to(index, self.device)]
        return numbers * _to(is_word, self.device), torch.from_numpy(is_word.sum(-1))

    def _marks(self, slot: Array, is_slot: Array, width: int) -> Tensor:
        """Return which words mention an entity of question or answer, or are next to one, [B, K, M, MARKS].

        The answer's are marked for steps alone, since a tail is left by it; the paper uses the answer only for C.
        """
        index, is_mark = self._lists("mark_start", slot, is_slot)
        marks = torch.zeros(*slot.shape, width + 1, MARKS, device=self.device)
        token = self._take("mark_token", index, is_mark, width).clamp(max=width)  # the last column is cut off
        for kind in range(MARKS) if self._selects_steps else (ASKED, ASKED + BESIDE):
            is_kind = _to(is_mark & (self._arrays["mark_kind"][index] == kind), self.device)
            marks[..., kind].scatter_(2, torch.where(is_kind, token, width), 1.0)
        return marks[:, :, :width]

    def _mentions(self, slot: Array, is_slot: Array, width: int) -> dict[str, Tensor]:
        index, is_mention = self._lists("mention_start", slot, is_slot)
        token = self._take("mention_token", index, is_mention, 0)
        length = self._take("mention_length", index, is_mention, 1)
        entity = self._take(f"mention_{self._inventory}", index, is_mention, -1)
        first = token.clamp(max=width - 1)
        return {
            # a step that is cut off can still be selected, so its entities count as mentioned at the end
            "mention_entity": entity if self._selects_steps else torch.where(token < width, entity, -1),
            "mention_token": first,
            "mention_end": (first + length).clamp(max=width),
            "mention_weight": self._take("mention_weight", index, is_mention, 0.0).float(),
        }

    def _lists(
        self, name: str, numbers: Array, is_list: Array | bool = True, longest: int | None = None
    ) -> tuple[Array, Array]:
        """Return the positions of the lists of these numbers [...] in flat arrays, [..., n], and which are real."""
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


def _to(array: Array, device: torch.device) -> Tensor:
    return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device, non_blocking=True)


def _bits(numbers: Tensor) -> Tensor:
    """Return the bits of bytes [..., n], lowest first, as [..., 8 n]."""
    places = torch.arange(8, device=numbers.device)
    return ((numbers[..., None] >> places) & 1).bool().flatten(-2)
