"""From words to encoded sequences: Q and H_i of Section 3.1, by a 2-layer bi-directional GRU."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from rechain.paper.data import Batch, WordTable
from rechain.paper.features import TOKEN_FEATURES, passage_token_features, question_token_features
from rechain.paper.gru import run_gru
from rechain.paper.settings import NGRAM_BUCKETS

DROPOUT = 0.2
"""of inputs and states; with 0.4 both players were worse"""
_SMALLEST_LOGIT = -1e4  # fits into 16 bits


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Replace scores by one that softmax turns into 0 wherever the mask is false."""
    return scores.masked_fill(~mask, _SMALLEST_LOGIT)


def compare(one: Tensor, two: Tensor) -> Tensor:
    """Return [a, b, a - b, a * b] of two sequences, [..., d] -> [..., 4 d] (Appendix A)."""
    return torch.cat([one, two, one - two, one * two], dim=-1)


class WordVectors(nn.Module):
    """Pretrained vectors, frozen; words without one get the mean of learned vectors of their character n-grams."""

    table: Tensor

    def __init__(self, table: Tensor) -> None:
        """Take the vectors, [V, width]; row 0 is that of words without one."""
        super().__init__()
        self.width = table.shape[1]
        self.register_buffer("table", table, persistent=False)
        self.ngrams = nn.EmbeddingBag(NGRAM_BUCKETS, self.width, mode="mean", padding_idx=0)
        nn.init.normal_(self.ngrams.weight, std=0.3)

    def forward(self, numbers: Tensor, words: WordTable) -> Tensor:
        """Return the vectors of words, [...] -> [..., width]."""
        rows = words.vector_row[numbers]
        vectors = embedding(rows, self.table).float()
        unknown = ((rows == 0) & (numbers > 0)).nonzero(as_tuple=True)
        spelling = self.ngrams(words.ngrams[numbers[unknown]].long())
        return vectors.index_put(unknown, spelling.to(vectors.dtype))


class Encoder(nn.Module):
    """The 2-layer BiGRU that encodes question and passages alike."""

    def __init__(self, table: Tensor, hidden: int, matches_words: bool) -> None:
        super().__init__()
        self.vectors = WordVectors(table)
        self.matches_words = matches_words
        self.dropout = nn.Dropout(DROPOUT)
        width = self.vectors.width + TOKEN_FEATURES * matches_words
        self.gru = nn.GRU(width, hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=DROPOUT)
        self.width = 2 * hidden
        """d, the width of the encoded words"""

    def question(self, batch: Batch) -> Tensor:
        """Return Q = {q_0, …, q_N}, [B, N, d]."""
        features = question_token_features(batch) if self.matches_words else None
        return self._encode(batch.question, features, batch.question_lengths, batch.words)

    def passages(self, batch: Batch) -> Tensor:
        """Return H_i = {h_i0, …, h_iM} of every passage, [B, K, M, d]: all passages of the batch at once."""
        features = passage_token_features(batch).flatten(0, 1) if self.matches_words else None
        states = self._encode(batch.passages.flatten(0, 1), features, batch.passage_lengths.flatten(), batch.words)
        return states.unflatten(0, batch.passages.shape[:2])

    def _encode(self, numbers: Tensor, features: Tensor | None, lengths: Tensor, words: WordTable) -> Tensor:
        inputs = self.dropout(self.vectors(numbers, words))
        if features is not None:
            inputs = torch.cat([inputs, features], dim=-1)
        return self.dropout(run_gru(self.gru, inputs, lengths))
