"""From words to vectors that know their neighbours: Q and H_i of Section 3.1."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from rechain.models import gru
from rechain.models.batch import Batch, WordTable
from rechain.models.features import TOKEN_FEATURES, passage_token_features, question_token_features
from rechain.preparation.arrays import NGRAM_BUCKETS


class WordVectors(nn.Module):
    """Pretrained vectors; words without one get the mean of learned vectors of their character n-grams."""

    def __init__(self, table: Tensor, trained: bool = False) -> None:
        """Take the vectors, [V, width]; row 0 is that of words without one."""
        super().__init__()
        self.width = table.shape[1]
        if trained:
            self.table = nn.Parameter(table.float().clone())
        else:
            self.register_buffer("table", table, persistent=False)
        self.ngrams = nn.EmbeddingBag(NGRAM_BUCKETS, self.width, mode="mean", padding_idx=0)
        nn.init.normal_(self.ngrams.weight, std=0.3)

    def forward(self, numbers: Tensor, words: WordTable) -> Tensor:
        """Return the vectors of words, [...] -> [..., width]."""
        rows = words.vector_row[numbers]
        vectors = embedding(rows, self.table).float()
        unknown = ((rows == 0) & (numbers > 0)).nonzero(as_tuple=True)
        spelt = self.ngrams(words.ngrams[numbers[unknown]].long())
        return vectors.index_put(unknown, spelt.to(vectors.dtype))


class Encoder(nn.Module):
    """The 2-layer bi-directional GRU that encodes question and passages alike."""

    def __init__(self, vectors: WordVectors, hidden: int, dropout: float, exact_match: bool) -> None:
        super().__init__()
        self.vectors = vectors
        self.exact_match = exact_match
        self.dropout = nn.Dropout(dropout)
        width = vectors.width + TOKEN_FEATURES * exact_match
        self.gru = nn.GRU(width, hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=dropout)
        self.width = 2 * hidden
        """d, the width of the encoded words"""

    def question(self, batch: Batch) -> Tensor:
        """Return Q = {q_0, …, q_N}, [B, N, d]."""
        features = question_token_features(batch) if self.exact_match else None
        return self._encode(batch.question, features, batch.question_lengths, batch.words)

    def passages(self, batch: Batch) -> Tensor:
        """Return H_i = {h_i0, …, h_iM} of every passage, [B, K, M, d]: all passages of the batch at once."""
        features = passage_token_features(batch).flatten(0, 1) if self.exact_match else None
        states = self._encode(batch.passages.flatten(0, 1), features, batch.passage_lengths.flatten(), batch.words)
        return states.unflatten(0, batch.passages.shape[:2])

    def _encode(self, numbers: Tensor, features: Tensor | None, lengths: Tensor, words: WordTable) -> Tensor:
        inputs = self.dropout(self.vectors(numbers, words))
        if features is not None:
            inputs = torch.cat([inputs, features], dim=-1)
        return self.dropout(gru.run(self.gru, inputs, lengths))
