"""The words of some texts as numbers, and what the networks are given for each word.

A word with a pretrained vector is represented by its row in the table of vectors; another (a number, an identifier, a
rare name) by its spelling, as hashed character n-grams.
"""

from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

import numpy as np

from rechain.paper.settings import NGRAM_BUCKETS
from rechain.system.tensors import Array
from rechain.text.languages import idf
from rechain.text.words import fold

MAX_NGRAMS = 8
"""n-grams of a word at most: six at its ends, where names and identifiers differ in kind, and two from within"""
_SIZES = (2, 3, 4)
"""letters of an n-gram, including the marks of start and end"""


class Lexicon:
    """The words of some texts: each gets a number when it first occurs; 0 is padding."""

    def __init__(self, vector_rows: Mapping[str, int]) -> None:
        """Take the row of each folded word in the table of vectors; row 0 is for words that have none."""
        self._vector_rows = vector_rows
        self._numbers = _Numbers()

    def numbers(self, words: Iterable[str]) -> list[int]:
        """Return the number of each word, whatever its case and accents; new words get new numbers."""
        return list(map(self._numbers.__getitem__, words))

    def arrays(self) -> dict[str, Array]:
        """Return what is known of each word, by its number; all zero for the padding.

        vector_row  int32 [W]               row in the table of vectors, 0 for a word that has none
        ngrams      int16 [W, MAX_NGRAMS]   hashed n-grams of a word that has no vector, then 0
        rarity      float16 [W]             inverse document frequency
        """
        words = self._numbers.folded[1:]
        vector_row = np.array([0, *(self._vector_rows.get(word, 0) for word in words)], dtype=np.int32)
        ngrams = np.zeros((len(words) + 1, MAX_NGRAMS), dtype=np.int16)
        for number, word in enumerate(words, start=1):
            if vector_row[number] == 0:
                hashed = _hashed_ngrams(word)
                ngrams[number, : len(hashed)] = hashed
        rarity = np.array([0.0, *map(idf, words)], dtype=np.float16)
        return {"vector_row": vector_row, "ngrams": ngrams, "rarity": rarity}


class _Numbers(dict[str, int]):
    """The number of the folded word of each spelling."""

    def __init__(self) -> None:
        super().__init__()
        self.folded = [""]
        """the folded words by number, after the padding"""

    def __missing__(self, word: str) -> int:
        folded = fold(word)
        if folded != word:
            number = self[folded]
        else:
            number = len(self.folded)
            self.folded.append(word)
        self[word] = number
        return number


def vector_rows(words: Sequence[str]) -> dict[str, int]:
    """Return the row of each folded word in a table of vectors, counted from 1; of words that fold alike the first."""
    rows: dict[str, int] = {}
    for row, word in enumerate(words, start=1):
        rows.setdefault(fold(word), row)
    return rows


def _hashed_ngrams(word: str) -> list[int]:
    """Return the buckets of a word's n-grams: those at its start and end, then longest ones from left to right."""
    marked = f"<{word}>"
    ends = [ngram for size in _SIZES for ngram in (marked[:size], marked[-size:])]
    inner = [marked[at : at + _SIZES[-1]] for at in range(1, min(len(marked) - _SIZES[-1], MAX_NGRAMS))]
    ngrams = list(dict.fromkeys(ends + inner))[:MAX_NGRAMS]
    # crc32, as Python's own hash differs from process to process
    return [1 + crc32(ngram.encode("utf-8", "surrogatepass")) % (NGRAM_BUCKETS - 1) for ngram in ngrams]
