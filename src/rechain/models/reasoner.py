"""The Reasoner (Section 3.2, Appendix A): reads a selected passage and names the entity that links to the next."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rechain.models import gru
from rechain.models.batch import Batch, Steps
from rechain.models.encoders import Encoder, WordVectors
from rechain.models.matching import compare, masked
from rechain.models.steps import PACE


class Attention(nn.Module):
    """The attention sub-module: what each b_k finds in A, projected back to the original space."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU())

    def forward(self, a: Tensor, b: Tensor, a_mask: Tensor) -> Tensor:
        """Return M = Attention(A, B) of A [R, N, d] and B [R, M, d], [R, M, d]."""
        logits = b @ a.transpose(-1, -2)  # e_jk = a_j^T b_k, [R, M, N]
        weights = masked(logits.float(), a_mask[:, None]).softmax(dim=-1).to(a.dtype)
        found = weights @ a  # b~_k, [R, M, d]
        projected: Tensor = self.project(compare(b, found))
        return projected


@dataclass(frozen=True)
class Named:
    """What the Reasoner says of the entities of passages that it read."""

    log_probability: Tensor
    """log P(e | p, q), [B, S, X]; an entity that is not in the passage has a very small one"""
    has_entity: Tensor
    """[B, S] whether the passage holds any entity that may link"""

    @property
    def best(self) -> Tensor:
        """The top-1 entity of each passage, [B, S]."""
        return self.log_probability.argmax(dim=-1)

    def at(self, places: Tensor) -> "Named":
        """Return what it says of some of these passages, [B, S]."""
        question = torch.arange(len(places), device=places.device)[:, None]
        return Named(self.log_probability[question, places], self.has_entity[question, places])


class Reasoner(nn.Module):
    """Encoder, two attention layers, two BiGRUs with a skip connection, and the classification layer g."""

    def __init__(
        self,
        vectors: WordVectors,
        hidden: int = 100,
        dropout: float = 0.2,
        exact_match: bool = True,
        scores_spans: bool = True,
        step_features: int | None = None,
    ) -> None:
        """Score mentions over all of their words, or by the first alone; by so many numbers of steps, if any."""
        super().__init__()
        self.scores_spans = scores_spans
        self.encoder = Encoder(vectors, hidden, dropout, exact_match)
        d = self.encoder.width
        self.question_attention = Attention(d)
        self.first_gru = nn.GRU(d, hidden, bidirectional=True, batch_first=True)
        self.self_attention = Attention(d)
        self.second_gru = nn.GRU(d, hidden, bidirectional=True, batch_first=True)
        self.classify = nn.Linear(d, 1)
        self.dropout = nn.Dropout(dropout)
        if step_features is not None:
            self.of_steps = nn.Parameter(torch.zeros(step_features))

    def forward(self, batch: Batch, places: Tensor, link: int, role: int = 0) -> Named:
        """Read the passages at `places` [B, S] and name the entity that could be link number `link` of a chain.

        `role` is the place in the chain that they have; where there are steps, these say which two entities it relates.
        """
        return self.name(batch, places, self.read(batch, places), link, role)

    def read(self, batch: Batch, places: Tensor) -> Tensor:
        """Return the scores of all words of the passages at `places` [B, S], [B, S, M]."""
        return self._token_scores(batch.at(places))

    def name(self, batch: Batch, places: Tensor, scores: Tensor, link: int, role: int = 0) -> Named:
        """Name the entities of passages whose words have these scores, as `forward` does."""
        chosen = batch.at(places)
        of_mentions = span_means(scores, chosen) if self.scores_spans else scores.gather(2, chosen.mention_token)
        if batch.steps is not None:
            question = torch.arange(len(places), device=places.device)[:, None]
            told = self._tell(batch, batch.steps, role, link)[question, places]  # [B, S, X + 1]
            of_mentions = of_mentions + told.gather(2, chosen.mention_entity % told.shape[-1])
        return _name(chosen, of_mentions, link)

    def _tell(self, batch: Batch, steps: Steps, role: int, link: int) -> Tensor:
        """Return what the numbers of steps say of each entity as a link from each passage, [B, K, X + 1], last of none.

        In head and tail, whose other entity is an end of the chain, there is one step for an entity.
        """
        entities = batch.holders.shape[1] + 1
        values = (steps.features[..., : len(self.of_steps)] * (PACE * self.of_steps)).sum(-1)  # [B, O]
        place = steps.passage * entities + steps.link(role, link) % entities
        table = values.new_zeros(len(values), batch.passages.shape[1] * entities).scatter(1, place, values)
        return table.view(len(values), -1, entities)

    def _token_scores(self, batch: Batch) -> Tensor:
        """Return g(h_k) of every word of every passage, [B, S, M]."""
        sides = batch.passages.shape[1]
        question = self.encoder.question(batch).repeat_interleave(sides, dim=0)  # Q^r, [B S, N, d]
        question_mask = batch.question_mask.repeat_interleave(sides, dim=0)
        passages = self.encoder.passages(batch).flatten(0, 1)  # H^r, [B S, M, d]
        passage_mask, lengths = batch.passage_mask.flatten(0, 1), batch.passage_lengths.flatten()
        m_1 = self.question_attention(question, passages, question_mask)
        h_1 = self.dropout(gru.run(self.first_gru, m_1, lengths))
        m_2 = self.self_attention(h_1, h_1, passage_mask)
        h_p = self.dropout(gru.run(self.second_gru, m_1 + m_2, lengths))
        scores: Tensor = self.classify(h_p).squeeze(-1).float()
        return scores.unflatten(0, batch.passages.shape[:2])


def span_means(scores: Tensor, batch: Batch) -> Tensor:
    """Return the mean score of the words of every mention, [B, S, E], of the scores of all words, [B, S, M]."""
    # sums up to every word: the words of a mention are the difference of two, however many there are
    sums = torch.cat([torch.zeros_like(scores[..., :1]), scores.double().cumsum(-1)], dim=-1)
    first, end = batch.mention_token, batch.mention_end
    return ((sums.gather(2, end) - sums.gather(2, first)) / (end - first).clamp(min=1)).to(scores.dtype)


def _name(batch: Batch, scores: Tensor, link: int) -> Named:
    """Apply softmax over the scores of the mentions, [B, S, E], and add up the mentions of each entity."""
    entity = batch.mention_entity.clamp(min=0)  # [B, S, E]
    question = torch.arange(len(entity), device=entity.device)[:, None, None]
    allowed = (batch.mention_entity >= 0) & batch.may_link[question, entity, link]
    probabilities = masked(scores, allowed).softmax(dim=-1) * allowed
    entities = batch.holders.shape[1]
    summed = probabilities.new_zeros(*scores.shape[:2], entities).scatter_add(2, entity, probabilities)
    return Named(summed.clamp(min=_SMALLEST).log(), allowed.any(-1))


_SMALLEST = 1e-9
"""a probability of 0 has no logarithm"""
