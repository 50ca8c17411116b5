"""The Ranker (Section 3.1): selects the passages of a chain, one at a time, each given those selected before."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rechain.models.batch import Batch
from rechain.models.encoders import Encoder, WordVectors
from rechain.models.features import LINK_FEATURES, MATCH_FEATURES, Matches
from rechain.models.matching import MatchLSTM, masked

ROLES = ("head", "middle", "tail")


@dataclass(frozen=True)
class Read:
    """A batch once the Ranker has encoded it; every step of selection starts from here."""

    batch: Batch
    question: Tensor
    """Q^0, [B, N, d]"""
    passages: Tensor
    """H_i, [B, K, M, d]"""
    matches: Matches | None


@dataclass(frozen=True)
class Selected:
    """Passages selected so far, S selections side by side, and the query that knows them."""

    places: Tensor
    """[B, S, n]"""
    query: Tensor
    """Q^n, [B, S, N, d]"""


class Ranker(nn.Module):
    """Encoder, MatchLSTM, a score for each role in a chain, and the update of the query."""

    def __init__(self, vectors: WordVectors, hidden: int = 100, dropout: float = 0.2, exact_match: bool = True) -> None:
        super().__init__()
        self.encoder = Encoder(vectors, hidden, dropout, exact_match)
        d = self.encoder.width
        self.exact_match = exact_match
        self.match = MatchLSTM(d, (MATCH_FEATURES + LINK_FEATURES) * exact_match)
        self.score = nn.Linear(d + LINK_FEATURES * exact_match, len(ROLES))
        self.update = nn.Sequential(nn.Linear(2 * d, d), nn.ReLU(), nn.Linear(d, d))
        self.dropout = nn.Dropout(dropout)

    def read(self, batch: Batch) -> Read:
        """Encode the question and all passages, once."""
        matches = Matches(batch) if self.exact_match else None
        return Read(batch, self.encoder.question(batch), self.encoder.passages(batch), matches)

    def start(self, read: Read) -> Selected:
        """Return the empty selection, S = 1: Q^0."""
        places = torch.zeros(len(read.question), 1, 0, dtype=torch.long, device=read.question.device)
        return Selected(places, read.question[:, None])

    def step(self, read: Read, selected: Selected, role: str) -> tuple[Tensor, Tensor]:
        """Return log P^{t+1}(p_i | Q^t), [B, S, K], and the matching states m_i, [B, S, K, d].

        A passage that is selected already cannot be selected again.
        """
        features, links = self._features(read, selected.places)
        batch = read.batch
        matched = self.match(selected.query, read.passages, batch.question_mask, batch.passage_mask, features)
        state = self.dropout(matched)
        if links is not None:
            state = torch.cat([state, links.to(state.dtype)], dim=-1)
        scores = self.score(state)[..., ROLES.index(role)].float()  # [B, S, K]
        return masked(scores, self._allowed(batch, selected.places)).log_softmax(dim=-1), matched

    def select(self, selected: Selected, places: Tensor, state: Tensor) -> Selected:
        """Return the selections with one more passage each: Q^t = FFN([Q^{t-1}, m_p]).

        `places` [B, S] are those of the passages, `state` [B, S, d] their matching states m_p when they were selected.
        """
        query = selected.query.expand(-1, places.shape[1], -1, -1)  # [B, S, N, d]
        query = self.update(torch.cat([query, state[:, :, None].expand_as(query)], dim=-1))
        before = selected.places.expand(-1, places.shape[1], -1)
        return Selected(torch.cat([before, places[..., None]], dim=-1), query)

    def _features(self, read: Read, places: Tensor) -> tuple[Tensor | None, Tensor | None]:
        if read.matches is None:
            return None, None
        links = read.matches.of_links(places)  # [B, S, K, F]
        words = read.matches.of_question(places)  # [B, S, K, N, F]
        return torch.cat([words, links[:, :, :, None].expand(-1, -1, -1, words.shape[3], -1)], dim=-1), links

    @staticmethod
    def _allowed(batch: Batch, places: Tensor) -> Tensor:
        """Return which passages can be selected next, [B, S, K]."""
        taken = torch.zeros(*places.shape[:2], batch.passages.shape[1], dtype=torch.bool, device=places.device)
        return batch.is_passage[:, None] & ~taken.scatter(2, places, True)
