"""From candidates to the arrays that the chain reader learns from (`rechain.reader.data` reads them). No torch here."""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from rechain.candidates import Candidates
from rechain.reader.texts import ChainTexts, Tails, TokenText, flat_texts
from rechain.scoring.evidence import PRIOR, weigh
from rechain.system.tensors import Array


class ReaderPreparation:
    """Takes questions one at a time: the evidence for their best chains, and these chains as tokens."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, most_chains: int) -> None:
        self.ids: list[str] = []
        """of the questions"""
        self.kept: list[list[int]] = []
        """the numbers of the candidate chains of each question that are kept, best first by the prior"""
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._most_chains = most_chains
        self._texts: list[TokenText] = []
        self._features: list[Array] = []
        self._chains: list[tuple[int, int, int, bool]] = []
        """the numbers of its text and of its tail's, the slot of its last link, and whether it is that of `made`"""
        self._starts = [0]

    def add(self, candidates: Candidates, made: Sequence[int] | None = None) -> None:
        """Add a question; `made` are the passages that a pseudo question was made from."""
        features = weigh(candidates)
        kept = np.argsort(-(features @ PRIOR), kind="stable")[: self._most_chains].tolist()
        texts = ChainTexts(candidates, self._tokenizer, self._max_tokens)
        chains = [candidates.chains[number] for number in kept]
        tails = Tails(chains)
        first = len(self._texts)
        self._texts += [texts.chain(chain) for chain in chains]
        self._texts += [texts.tail(tail, edges) for tail, edges in tails.edges.items()]
        for number, chain in enumerate(chains):
            tail, slot = tails.place(chain)
            is_made = made is not None and chain.passages == tuple(made)
            self._chains.append((first + number, first + len(chains) + tail, slot, is_made))
        self._features.append(features[kept])
        self._starts.append(len(self._chains))
        self.ids.append(candidates.question.id)
        self.kept.append(kept)

    def arrays(self) -> dict[str, Array]:
        """Return all questions that were added."""
        chains = np.array(self._chains, dtype=np.int64).reshape(-1, 4)  # also where there are none
        return {
            **flat_texts(self._texts),
            "features": np.concatenate(self._features).astype(np.float32),
            "chain_start": np.array(self._starts, dtype=np.int64),
            "chain_text": chains[:, 0],
            "tail_text": chains[:, 1],
            "tail_slot": chains[:, 2],
            "made": chains[:, 3].astype(np.uint8),
        }
