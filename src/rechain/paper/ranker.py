"""The Ranker (Section 3.1): selects the passages of a chain one at a time, each given those selected before.

If the data names entities, it may select steps instead: a passage with the two entities by which a chain goes through.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rechain.paper.data import Batch
from rechain.paper.encoder import DROPOUT, Encoder, compare, masked
from rechain.paper.features import LINK_FEATURES, MATCH_FEATURES, Matches
from rechain.paper.gru import run_gru
from rechain.paper.settings import GameSettings
from rechain.paper.steps import StepScores

ROLES = ("head", "middle", "tail")


class MatchLSTM(nn.Module):
    """Matches a query against each passage (Appendix A): the vector m_i is in what state the two match."""

    def __init__(self, width: int, features: int = 0) -> None:
        super().__init__()
        self.gru = nn.GRU(4 * width + features, width, batch_first=True)

    def forward(
        self, query: Tensor, passages: Tensor, query_mask: Tensor, passage_mask: Tensor, features: Tensor | None = None
    ) -> Tensor:
        """Return the matching states m_i = MaxPool(GRU[m_i0, …, m_iN]), [B, S, K, d].

        `query` is Q, [B, S, N, d]: S queries a question, each matched against all its passages H_i, [B, K, M, d].
        `features` [B, S, K, N, F] are added to the GRU's input.
        """
        attended = self.attend(query, passages, passage_mask)  # [B, S, K, N, d]
        matched = compare(query[:, :, None].expand_as(attended), attended)  # m_ij, [B, S, K, N, 4 d]
        if features is not None:
            matched = torch.cat([matched, features.to(matched.dtype)], dim=-1)
        lengths = query_mask.sum(-1)[:, None, None].expand(matched.shape[:3]).flatten()
        states = run_gru(self.gru, matched.flatten(0, 2), lengths).unflatten(0, matched.shape[:3])
        return masked(states, query_mask[:, None, None, :, None]).amax(dim=3)

    @staticmethod
    def attend(query: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
        """Return q~_j: for each word of the query the mean of the words it attends to, [B, S, K, N, d]."""
        sides, words = query.shape[1:3]
        logits = query.flatten(1, 2)[:, None] @ passages.transpose(-1, -2)  # e_jk = q_j^T h_ik, [B, K, S N, M]
        weights = masked(logits.float(), passage_mask[:, :, None]).softmax(dim=-1).to(passages.dtype)
        attended = weights @ passages  # [B, K, S N, d]
        return attended.unflatten(2, (sides, words)).transpose(1, 2)


@dataclass(frozen=True)
class Encoded:
    """A batch as the Ranker has encoded it; every selection starts from here."""

    batch: Batch
    question: Tensor  # Q^0, [B, N, d]
    passages: Tensor  # H_i, [B, K, M, d]
    matches: Matches | None
    steps: Tensor | None = None  # [B, O, d] what is known of steps before anything is selected


@dataclass(frozen=True)
class Selected:
    """The options selected so far, S selections side by side, and the query updated by them."""

    options: Tensor  # [B, S, n]
    query: Tensor  # Q^n, [B, S, N, d]


class Ranker(nn.Module):
    """Encoder, MatchLSTM, a score for each role in a chain, and the update of the query."""

    def __init__(self, table: Tensor, settings: GameSettings) -> None:
        """Take the table of word vectors, [V, width]."""
        super().__init__()
        self.encoder = Encoder(table, settings.hidden, settings.matches_words)
        d = self.encoder.width
        self.matches_words = settings.matches_words
        selects_steps = settings.step_features is not None
        links = LINK_FEATURES if settings.matches_words and not selects_steps else 0
        self.match = MatchLSTM(d, MATCH_FEATURES * settings.matches_words + links)
        self.score = nn.Linear(d + links, len(ROLES))
        last = nn.Linear(d, d)
        self.update = nn.Sequential(nn.Linear(2 * d, d), nn.ReLU(), last)
        self.is_residual = settings.update == "residual"
        if self.is_residual:
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
        self.dropout = nn.Dropout(DROPOUT)
        if settings.step_features is not None:
            self.steps = StepScores(d, settings.step_features, settings.matches_words, len(ROLES))

    def encode(self, batch: Batch) -> Encoded:
        """Encode the question and all passages, once."""
        matches = Matches(batch) if self.matches_words else None
        question, passages = self.encoder.question(batch), self.encoder.passages(batch)
        steps = None if batch.steps is None else self.steps.encode(batch, batch.steps, passages)
        return Encoded(batch, question, passages, matches, steps)

    def start(self, encoded: Encoded) -> Selected:
        """Return the empty selection, S = 1: Q^0."""
        nothing = torch.zeros(len(encoded.question), 1, 0, dtype=torch.long, device=encoded.question.device)
        return Selected(nothing, encoded.question[:, None])

    def step(self, encoded: Encoded, selected: Selected, role: str, place: int | None = None) -> tuple[Tensor, Tensor]:
        """Return log P^{t+1}(p_i | Q^t), [B, S, O], and the matching states m_i, [B, S, O, d] (equation 1).

        A passage is never selected twice. A step must fit a place of a chain; None is any.
        """
        batch = encoded.batch
        features, links = self._features(encoded, selected.options)
        matched = self.match(selected.query, encoded.passages, batch.question_mask, batch.passage_mask, features)
        if batch.steps is not None and encoded.steps is not None:
            matched = self.steps(batch.steps, encoded.steps, matched)
        state = self.dropout(matched)
        if links is not None:
            state = torch.cat([state, links.to(state.dtype)], dim=-1)
        scores = self.score(state)[..., ROLES.index(role)].float()  # [B, S, O]
        if batch.steps is not None:
            scores = scores + self.steps.bias(batch.steps, selected.options, ROLES.index(role))
        return masked(scores, _allowed(batch, selected.options, place)).log_softmax(dim=-1), matched

    def select(self, selected: Selected, options: Tensor, state: Tensor) -> Selected:
        """Return the selections with one more option each (equation 1).

        Q^t = FFN([Q^{t-1}, m_p]); residual: Q^t = Q^{t-1} + FFN([Q^{t-1}, m_p]). `options` [B, S] are selected, `state`
        [B, S, d] are their matching states m_p.
        """
        query = selected.query.expand(-1, options.shape[1], -1, -1)  # [B, S, N, d]
        update = self.update(torch.cat([query, state[:, :, None].expand_as(query)], dim=-1))
        before = selected.options.expand(-1, options.shape[1], -1)
        query = query + update if self.is_residual else update
        return Selected(torch.cat([before, options[..., None]], dim=-1), query)

    def _features(self, encoded: Encoded, options: Tensor) -> tuple[Tensor | None, Tensor | None]:
        if encoded.matches is None:
            return None, None
        words = encoded.matches.question_words(encoded.batch.passages_of(options))  # [B, S, K, N, F]
        if encoded.batch.steps is not None:  # steps are joined by their entities, not by titles
            return words, None
        links = encoded.matches.links(options)  # [B, S, K, F]
        return torch.cat([words, links[:, :, :, None].expand(-1, -1, -1, words.shape[3], -1)], dim=-1), links


def _allowed(batch: Batch, options: Tensor, place: int | None) -> Tensor:
    """Return which options can be selected after those [B, S, n], [B, S, O]."""
    passages = batch.passages_of(options)
    is_used = torch.zeros(*options.shape[:2], batch.passages.shape[1], dtype=torch.bool, device=options.device)
    is_used = is_used.scatter(2, passages, True)
    if batch.steps is None:
        return batch.is_passage[:, None] & ~is_used
    fits = batch.is_option if place is None else batch.steps.roles[..., place]
    return fits[:, None] & ~is_used.gather(2, batch.steps.passage[:, None].expand(-1, options.shape[1], -1))
