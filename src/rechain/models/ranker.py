"""The Ranker (Section 3.1): selects the passages of a chain, one at a time, each given those selected before.

Where the data names entities, it may select steps instead: a passage with the two entities by which a chain goes
through it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rechain.models.batch import Batch
from rechain.models.encoders import Encoder, WordVectors
from rechain.models.features import LINK_FEATURES, MATCH_FEATURES, Matches
from rechain.models.matching import MatchLSTM, masked
from rechain.models.steps import StepScores

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
    steps: Tensor | None = None
    """what is known of steps whatever was selected before, [B, O, d]; None where passages are selected"""


@dataclass(frozen=True)
class Selected:
    """Passages or steps selected so far, S selections side by side, and the query that knows them."""

    places: Tensor
    """[B, S, n]"""
    query: Tensor
    """Q^n, [B, S, N, d]"""


class Ranker(nn.Module):
    """Encoder, MatchLSTM, a score for each role in a chain, and the update of the query."""

    def __init__(
        self,
        vectors: WordVectors,
        hidden: int = 100,
        dropout: float = 0.2,
        exact_match: bool = True,
        step_features: int | None = None,
    ) -> None:
        """Select passages or, where `step_features` says how many of their numbers are seen, steps."""
        super().__init__()
        self.encoder = Encoder(vectors, hidden, dropout, exact_match)
        d = self.encoder.width
        self.exact_match = exact_match
        links = LINK_FEATURES * exact_match if step_features is None else 0
        self.match = MatchLSTM(d, MATCH_FEATURES * exact_match + links)
        self.score = nn.Linear(d + links, len(ROLES))
        self.update = nn.Sequential(nn.Linear(2 * d, d), nn.ReLU(), nn.Linear(d, d))
        self.dropout = nn.Dropout(dropout)
        if step_features is not None:
            self.steps = StepScores(d, step_features, exact_match, len(ROLES))

    def read(self, batch: Batch) -> Read:
        """Encode the question and all passages, once."""
        matches = Matches(batch) if self.exact_match else None
        question, passages = self.encoder.question(batch), self.encoder.passages(batch)
        steps = None if batch.steps is None else self.steps.read(batch, batch.steps, passages)
        return Read(batch, question, passages, matches, steps)

    def start(self, read: Read) -> Selected:
        """Return the empty selection, S = 1: Q^0."""
        places = torch.zeros(len(read.question), 1, 0, dtype=torch.long, device=read.question.device)
        return Selected(places, read.question[:, None])

    def step(self, read: Read, selected: Selected, role: str, place: int | None = None) -> tuple[Tensor, Tensor]:
        """Return log P^{t+1}(p_i | Q^t), [B, S, O], and the matching states m_i, [B, S, O, d].

        A passage that is selected already cannot be selected again. A step must be able to stand at a place of a chain;
        None is any.
        """
        batch = read.batch
        features, links = self._features(read, selected.places)
        matched = self.match(selected.query, read.passages, batch.question_mask, batch.passage_mask, features)
        if batch.steps is not None and read.steps is not None:
            matched = self.steps(batch.steps, read.steps, matched)
        state = self.dropout(matched)
        if links is not None:
            state = torch.cat([state, links.to(state.dtype)], dim=-1)
        scores = self.score(state)[..., ROLES.index(role)].float()  # [B, S, O]
        if batch.steps is not None:
            scores = scores + self.steps.tell(batch.steps, selected.places, ROLES.index(role))
        return masked(scores, self._allowed(batch, selected.places, place)).log_softmax(dim=-1), matched

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
        words = read.matches.of_question(read.batch.passages_of(places))  # [B, S, K, N, F]
        if read.batch.steps is not None:  # steps are joined by their entities, not by titles
            return words, None
        links = read.matches.of_links(places)  # [B, S, K, F]
        return torch.cat([words, links[:, :, :, None].expand(-1, -1, -1, words.shape[3], -1)], dim=-1), links

    @staticmethod
    def _allowed(batch: Batch, places: Tensor, place: int | None) -> Tensor:
        """Return which passages or steps can be selected next, [B, S, O]."""
        passages = batch.passages_of(places)
        taken = torch.zeros(*places.shape[:2], batch.passages.shape[1], dtype=torch.bool, device=places.device)
        taken = taken.scatter(2, passages, True)
        if batch.steps is None:
            return batch.is_passage[:, None] & ~taken
        fits = batch.is_option if place is None else batch.steps.roles[..., place]
        return fits[:, None] & ~taken.gather(2, batch.steps.passage[:, None].expand(-1, places.shape[1], -1))
