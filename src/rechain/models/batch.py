"""What the networks read: some questions as tensors.

Letters in shapes: B questions, K passages of a question, N words of a question, M words of a passage, C candidate
chains, L passages of a chain, X entities of a question, E mentions of entities in a passage, S selections that are
looked at side by side.
"""

from dataclasses import dataclass, fields, replace

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
    """[B, C, L] places of the passages of each chain, head first, -1 is padding"""
    chain_links: Tensor
    """[B, C, L - 1] the linking entities, -1 where they are not distinguished"""
    link_weight: Tensor
    """[B, C] sum of the links' weights"""
    lexical: Tensor
    """[B, C] score of the lexical rule"""
    made: Tensor
    """[B, C] 1 for the chain that a pseudo question was made from; all 0 elsewhere"""

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

    def rows(self, part: slice) -> "Batch":
        """Return some of the questions."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "words"}
        return replace(self, **{name: tensor[part] for name, tensor in tensors.items()})

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
