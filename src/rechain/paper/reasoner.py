"""The Reasoner (Section 3.2, Appendix A): reads a selected passage and predicts the entity that links to the next."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rechain.paper.data import Batch, Steps
from rechain.paper.encoder import DROPOUT, Encoder, compare, masked
from rechain.paper.gru import run_gru
from rechain.paper.settings import GameSettings
from rechain.paper.steps import PACE

_SMALLEST = 1e-9
"""of probabilities, as 0 has no logarithm"""


class Attention(nn.Module):
    """The attention sub-module: what each b_k finds in A, projected back to the original space."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU())

    def forward(self, a: Tensor, b: Tensor, a_mask: Tensor) -> Tensor:
        """Return M = Attention(A, B) of A [R, N, d] and B [R, M, d], [R, M, d]."""
        logits = b @ a.transpose(-1, -2)  # e_jk = a_j^T b_k, [R, M, N]
        weights = masked(logits.float(), a_mask[:, None]).softmax(dim=-1).to(a.dtype)
        projected: Tensor = self.project(compare(b, weights @ a))  # m_k = FFN([b_k, b~_k, b_k - b~_k, b_k * b~_k])
        return projected


@dataclass(frozen=True)
class Prediction:
    """The Reasoner's prediction of the linking entity of passages."""

    log_probability: Tensor  # log P(e | p, q), [B, S, X]; very small for an entity that is not in the passage
    has_entity: Tensor  # [B, S] whether the passage contains any entity that may link

    @property
    def best(self) -> Tensor:
        """The top-1 entity of each passage, [B, S]."""
        return self.log_probability.argmax(dim=-1)

    def at(self, passages: Tensor) -> "Prediction":
        """Return that of some of these passages, [B, S]."""
        question = torch.arange(len(passages), device=passages.device)[:, None]
        return Prediction(self.log_probability[question, passages], self.has_entity[question, passages])


class Reasoner(nn.Module):
    """Encoder, two attention layers, two BiGRUs with a skip connection, and the classification layer g."""

    def __init__(self, table: Tensor, settings: GameSettings) -> None:
        """Take the table of word vectors, [V, width]."""
        super().__init__()
        self.scores_first_words = settings.is_as_written
        hidden = settings.hidden
        self.encoder = Encoder(table, hidden, settings.matches_words)
        d = self.encoder.width
        self.question_attention = Attention(d)
        self.first_gru = nn.GRU(d, hidden, bidirectional=True, batch_first=True)
        self.self_attention = Attention(d)
        self.second_gru = nn.GRU(d, hidden, bidirectional=True, batch_first=True)
        self.classify = nn.Linear(d, 1)
        self.dropout = nn.Dropout(DROPOUT)
        if settings.step_features is not None:
            self.of_steps = nn.Parameter(torch.zeros(settings.step_features))

    def forward(self, batch: Batch, passages: Tensor, link: int, role: int) -> Prediction:
        """Read passages [B, S], which have a role in a chain, and predict link number `link` of the chain."""
        return self.predict(batch, passages, self.token_scores(batch, passages), link, role)

    def token_scores(self, batch: Batch, passages: Tensor) -> Tensor:
        """Return g(h_k) of every word of passages [B, S], [B, S, M]."""
        read, sides = batch.at(passages), passages.shape[1]
        question = self.encoder.question(read).repeat_interleave(sides, dim=0)  # Q^r, [B S, N, d]
        question_mask = read.question_mask.repeat_interleave(sides, dim=0)
        words = self.encoder.passages(read).flatten(0, 1)  # H^r, [B S, M, d]
        word_mask, lengths = read.passage_mask.flatten(0, 1), read.passage_lengths.flatten()
        m_1 = self.question_attention(question, words, question_mask)
        h_1 = self.dropout(run_gru(self.first_gru, m_1, lengths))
        m_2 = self.self_attention(h_1, h_1, word_mask)
        h_p = self.dropout(run_gru(self.second_gru, m_1 + m_2, lengths))
        scores: Tensor = self.classify(h_p).squeeze(-1).float()
        return scores.unflatten(0, read.passages.shape[:2])

    def predict(self, batch: Batch, passages: Tensor, scores: Tensor, link: int, role: int) -> Prediction:
        """Return P(e | p, q) of passages [B, S] whose words have these scores: P^r(e_k | p), summed over mentions."""
        read = batch.at(passages)
        of_mentions = scores.gather(2, read.mention_token) if self.scores_first_words else span_means(scores, read)
        if batch.steps is not None:
            question = torch.arange(len(passages), device=passages.device)[:, None]
            bias = self._bias(batch, batch.steps, role, link)[question, passages]  # [B, S, X + 1]
            of_mentions = of_mentions + bias.gather(2, read.mention_entity % bias.shape[-1])
        return _sum_mentions(read, of_mentions, link)

    def _bias(self, batch: Batch, steps: Steps, role: int, link: int) -> Tensor:
        """Return what numbers of steps add for an entity as a link from a passage, [B, K, X + 1], the last for none.

        In head and tail, whose other entity is an end of the chain, there is one step for an entity.
        """
        entities = batch.contains.shape[1] + 1
        values = (steps.features[..., : len(self.of_steps)] * (PACE * self.of_steps)).sum(-1)  # [B, O]
        place = steps.passage * entities + steps.link(role, link) % entities
        table = values.new_zeros(len(values), batch.passages.shape[1] * entities).scatter(1, place, values)
        return table.view(len(values), -1, entities)


def span_means(scores: Tensor, batch: Batch) -> Tensor:
    """Return the mean score of the words of every mention, [B, S, E], from those of all words, [B, S, M]."""
    # cumulative sums: the words of a mention are the difference of two, however many there are
    sums = torch.cat([torch.zeros_like(scores[..., :1]), scores.double().cumsum(-1)], dim=-1)
    first, end = batch.mention_token, batch.mention_end
    return ((sums.gather(2, end) - sums.gather(2, first)) / (end - first).clamp(min=1)).to(scores.dtype)


def _sum_mentions(batch: Batch, scores: Tensor, link: int) -> Prediction:
    """Apply softmax over the scores of the mentions, [B, S, E], and add up the mentions of each entity."""
    entity = batch.mention_entity.clamp(min=0)  # [B, S, E]
    question = torch.arange(len(entity), device=entity.device)[:, None, None]
    allowed = (batch.mention_entity >= 0) & batch.may_link[question, entity, link]
    probabilities = masked(scores, allowed).softmax(dim=-1) * allowed
    summed = probabilities.new_zeros(*scores.shape[:2], batch.contains.shape[1]).scatter_add(2, entity, probabilities)
    return Prediction(summed.clamp(min=_SMALLEST).log(), allowed.any(-1))
