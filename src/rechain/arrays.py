"""What `rechain.preparation` writes and `rechain.game` and `rechain.models` read: the two must agree on these."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

NGRAM_BUCKETS = 4096
"""how many hashed n-grams are told apart; 0 is none"""

ASKED, ANSWER, BESIDE = 0, 1, 2
"""what is marked of a word: it mentions an entity of the question, of the answer; BESIDE is added to either where the
word stands in a sentence with one"""
MARKS = 4
"""so many kinds of marks there are"""
