"""MatchLSTM for passage scoring (Appendix A)."""

import torch
from torch import Tensor, nn

from rechain.models import gru

_NEVER = -1e4  # fits into 16 bits


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Put a score that softmax turns into 0 wherever the mask is false."""
    return scores.masked_fill(~mask, _NEVER)


def compare(one: Tensor, two: Tensor) -> Tensor:
    """Return [a, b, a - b, a * b] of two sequences, [..., d] -> [..., 4 d]."""
    return torch.cat([one, two, one - two, one * two], dim=-1)


class MatchLSTM(nn.Module):
    """Matches a query against each passage: the vector m_i says in what state the two match."""

    def __init__(self, width: int, features: int = 0) -> None:
        super().__init__()
        self.gru = nn.GRU(4 * width + features, width, batch_first=True)

    def forward(
        self, query: Tensor, passages: Tensor, query_mask: Tensor, passage_mask: Tensor, features: Tensor | None = None
    ) -> Tensor:
        """Return the matching states m_i, [B, S, K, d].

        `query` is Q, [B, S, N, d]: S queries a question, each matched against all its passages. `passages` are the H_i,
        [B, K, M, d]. `features` [B, S, K, N, F] are added to the GRU's input.
        """
        attended = self.attend(query, passages, passage_mask)  # [B, S, K, N, d]
        matched = compare(query[:, :, None].expand_as(attended), attended)  # m_ij, [B, S, K, N, 4 d]
        if features is not None:
            matched = torch.cat([matched, features.to(matched.dtype)], dim=-1)
        lengths = query_mask.sum(-1)[:, None, None].expand(matched.shape[:3]).flatten()
        states = gru.run(self.gru, matched.flatten(0, 2), lengths)  # [B S K, N, d]
        states = states.unflatten(0, matched.shape[:3])
        return masked(states, query_mask[:, None, None, :, None]).amax(dim=3)

    @staticmethod
    def attend(query: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
        """Return for each word of the query the mean of the passage's words that it attends to, [B, S, K, N, d]."""
        sides, words = query.shape[1:3]
        logits = query.flatten(1, 2)[:, None] @ passages.transpose(-1, -2)  # e_jk = q_j^T h_ik, [B, K, S N, M]
        weights = masked(logits.float(), passage_mask[:, :, None]).softmax(dim=-1).to(passages.dtype)
        attended = weights @ passages  # [B, K, S N, d]
        return attended.unflatten(2, (sides, words)).transpose(1, 2)
