"""What the networks read: some questions as tensors.

Letters in shapes: B questions, K passages of a question, N words of a question, M words of a passage, C candidate
chains, L passages of a chain, X entities of a question, E mentions of entities in a passage, S selections that are
looked at side by side, O options of a selection: the passages of a question or, where the data names entities, its
steps.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class WordTable:
    """What is known of the words of a data set, by their numbers; number 0 is padding."""

    vector_row: Tensor
    """[W] row of the word in the table of vectors, 0 where it has none"""
    ngrams: Tensor
    """[W, G] hashed character n-grams of a word without vector, 0 is none"""
    rarity: Tensor
    """[W] inverse document frequency"""


@dataclass(frozen=True)
class Steps:
    """What can be selected instead of passages: a passage and the two entities by which a chain goes through it."""

    passage: Tensor
    """[B, O] its place"""
    entities: Tensor
    """[B, O, 2] by which a chain enters and leaves; -1 is an end of the chain"""
    roles: Tensor
    """[B, O, L] whether it may be the first, second, … of a chain; nothing of it for padding"""
    features: Tensor
    """[B, O, STEP_FEATURES] of its two entities"""

    def link(self, role: int, link: int) -> Tensor:
        """Return the entity by which steps of a role have link number `link` of a chain, [B, O]; -1 for other steps."""
        entity = self.entities[..., 1 if role == link else 0]
        return torch.where(self.roles[..., role], entity, -1)


@dataclass(frozen=True)
class Batch:
    """Some questions, their passages, the entities in them and the candidate chains."""

    words: WordTable
    question: Tensor
    """[B, N] numbers of words"""
    question_lengths: Tensor
    """[B] on the CPU"""
    passages: Tensor
    """[B, K, M] numbers of words, the title's first"""
    passage_lengths: Tensor
    """[B, K] on the CPU; 0 where a question has fewer passages"""
    title_lengths: Tensor
    """[B, K]"""
    marks: Tensor
    """[B, K, M, MARKS] what is marked of every word"""
    mention_entity: Tensor
    """[B, K, E] the entity of each mention, -1 is padding"""
    mention_token: Tensor
    """[B, K, E] its first word"""
    mention_end: Tensor
    """[B, K, E] the word after its last"""
    mention_weight: Tensor
    """[B, K, E] how strongly the entity links this passage"""
    holders: Tensor
    """[B, X, K] whether a passage holds an entity"""
    may_link: Tensor
    """[B, X, L - 1] whether an entity may be the first, second, … link of a chain"""
    chains: Tensor
    """[B, C, L] places of the options that each chain has, head first, -1 is padding"""
    chain_links: Tensor
    """[B, C, L - 1] the linking entities, -1 where they are not distinguished"""
    link_weight: Tensor
    """[B, C] sum of the links' weights"""
    lexical: Tensor
    """[B, C] score of the lexical rule"""
    made: Tensor
    """[B, C] 1 for the chain that a pseudo question was made from; all 0 elsewhere"""
    rarity: Tensor | None = None
    """[B, C] what the rarity of its entities tells for a chain, where the data names them"""
    told: Tensor | None = None
    """[B, C] what other questions tell for its steps, where they were asked"""
    steps: Steps | None = None
    """what is selected, if it is not passages"""

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

    def passages_of(self, places: Tensor) -> Tensor:
        """Return the places of the passages of options at some places, [B, ...]."""
        if self.steps is None:
            return places
        return self.steps.passage.gather(1, places.flatten(1)).view_as(places)

    def holding(self, role: int, link: int) -> Tensor:
        """Return which options hold which entity as link number `link` of a chain in which they have a role, [B, X, O].

        A passage may do so by any entity that it holds, a step by its own.
        """
        if self.steps is None:
            return self.holders
        entities = torch.arange(self.holders.shape[1], device=self.holders.device)
        return self.steps.link(role, link)[:, None] == entities[:, None]

    def rows(self, part: slice) -> "Batch":
        """Return some of the questions."""
        return replace(self, **_rows_of(self, part))

    def at(self, places: Tensor) -> "Batch":
        """Return the same questions with only the passages at some places, [B, S], as if there were no others."""
        question = torch.arange(len(places), device=places.device)[:, None]
        return replace(
            self,
            passages=self.passages[question, places],
            passage_lengths=self.passage_lengths.gather(1, places.cpu()),
            title_lengths=self.title_lengths[question, places],
            marks=self.marks[question, places],
            mention_entity=self.mention_entity[question, places],
            mention_token=self.mention_token[question, places],
            mention_end=self.mention_end[question, places],
            mention_weight=self.mention_weight[question, places],
        )


def _rows_of(values: Batch | Steps, part: slice) -> dict[str, Any]:
    """Return the rows of all tensors in a batch, by their names."""
    rows: dict[str, Any] = {}
    for field in fields(values):
        value = getattr(values, field.name)
        if isinstance(value, Tensor):
            rows[field.name] = value[part]
        elif isinstance(value, Steps):
            rows[field.name] = replace(value, **_rows_of(value, part))
    return rows
