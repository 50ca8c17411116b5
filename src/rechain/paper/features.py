"""Exact-match features: which words occur in both of two texts, from the words' numbers alone."""

from functools import cached_property

import torch
from torch import Tensor

from rechain.paper.data import Batch
from rechain.paper.settings import MARKS

TOKEN_FEATURES = 4 + MARKS
MATCH_FEATURES = 7
LINK_FEATURES = 4
_SCALE = 0.1
"""of rarities, which reach 9.4: features should be about as large as the other inputs of a GRU"""
_WHOLE = 0.99
"""from this share of a title on, all of it is there, whatever was rounded"""
_MAX_TITLE = 12
"""words of a title that are compared with every passage; longer ones are rare, and memory grows with the number"""


def _rarity(batch: Batch, words: Tensor) -> Tensor:
    return batch.words.rarity[words].float() * _SCALE


def _is_among(words: Tensor, others: Tensor) -> Tensor:
    """Return for every word [..., M] whether it is one of some others [..., N]; padding never is."""
    return (words[..., :, None] == others[..., None, :]).any(-1) & (words > 0)


def _titles(batch: Batch) -> Tensor:
    """Return the words of the titles, [B, K, T]."""
    start = batch.passages[:, :, :_MAX_TITLE]
    return start * (torch.arange(start.shape[-1], device=start.device) < batch.title_lengths[..., None])


def passage_token_features(batch: Batch) -> Tensor:
    """Return features of every word of every passage, [B, K, M, TOKEN_FEATURES].

    Whether it occurs in the question, the same times its rarity, its rarity, whether it is in the title, its marks.
    """
    rarity = _rarity(batch, batch.passages)
    in_question = _is_among(batch.passages, batch.question[:, None]).float()
    place = torch.arange(batch.passages.shape[-1], device=rarity.device)
    in_title = (place < batch.title_lengths[..., None]).float()
    features = torch.stack([in_question, in_question * rarity, rarity, in_title], dim=-1)
    return torch.cat([features, batch.marks.float()], dim=-1)


def question_token_features(batch: Batch) -> Tensor:
    """Return the same for every word of the question, [B, N, TOKEN_FEATURES]."""
    rarity = _rarity(batch, batch.question)
    one, zero = torch.ones_like(rarity), torch.zeros_like(rarity)
    return torch.stack([one, rarity, rarity, *[zero] * (1 + MARKS)], dim=-1)


class Matches:
    """Which words of the question occur in which passages, and words of titles in other passages."""

    def __init__(self, batch: Batch) -> None:
        question, passages = batch.question[:, None], batch.passages
        same = (question[..., :, None] == passages[..., None, :]) & (question > 0)[..., None]  # [B, K, N, M]
        followed = same[:, :, :-1, :-1] & same[:, :, 1:, 1:]
        self._batch = batch
        self._rarity = _rarity(batch, batch.question)  # [B, N]
        self._in_passage = same.any(-1)  # [B, K, N]
        self._in_a_row = torch.zeros_like(self._in_passage)  # [B, K, N] together with the next word
        self._in_a_row[:, :, :-1] = followed.any(-1)
        self._in_title = _is_among(question.expand(-1, passages.shape[1], -1), _titles(batch))  # [B, K, N]

    @cached_property
    def _title_share(self) -> Tensor:
        """[B, K, K] what share of the first passage's title, by rarity, occurs in the second."""
        titles = _titles(self._batch)
        rarity = _rarity(self._batch, titles) * (titles > 0)  # [B, K, T]
        occurs = _is_among(titles[:, :, None], self._batch.passages[:, None])  # [B, K, K, T]
        return (occurs * rarity[:, :, None]).sum(-1) / rarity.sum(-1).clamp(min=1e-6)[:, :, None]

    def question_words(self, selected: Tensor) -> Tensor:
        """Return features of the question's words against each passage, [B, S, K, N, MATCH_FEATURES].

        `selected` are the passages selected before, [B, S, n].
        """
        question = torch.arange(len(selected), device=selected.device)[:, None, None]
        before = self._in_passage[question, selected].any(2)[:, :, None]  # [B, S, 1, N] in one of those selected
        here, rarity = self._in_passage[:, None], self._rarity[:, None, None]  # [B, 1, K, N], [B, 1, 1, N]
        in_a_row, in_title = self._in_a_row[:, None] * rarity, self._in_title[:, None] * rarity
        features = (rarity, here, here * rarity, in_a_row, in_title, before * rarity, (here & ~before) * rarity)
        shape = (*selected.shape[:2], here.shape[2], here.shape[3])
        return torch.stack([feature.float().expand(shape) for feature in features], dim=-1)

    def links(self, selected: Tensor) -> Tensor:
        """Return how titles link each passage to those selected before, [B, S, K, LINK_FEATURES]."""
        question = torch.arange(len(selected), device=selected.device)[:, None, None]
        to = self._title_share[question, selected]  # [B, S, n, K] the selected one's title in each passage
        back = self._title_share.transpose(1, 2)[question, selected]
        features = torch.stack([to, (to > _WHOLE).float(), back, (back > _WHOLE).float()], dim=-1)
        return features.sum(2)
