"""From candidates to the arrays that the chain reader learns from (`rechain.reader.data` reads them). No torch here."""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from rechain.candidates import Candidate, Candidates
from rechain.linking import Edge
from rechain.reader.texts import ChainTexts, TokenText
from rechain.scoring.evidence import PRIOR, weigh
from rechain.system.tensors import Array


class ReaderPreparation:
    """Takes questions one at a time: the evidence for their best chains, and these chains as tokens."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, most_chains: int) -> None:
        self.ids: list[str] = []
        """the questions that were taken"""
        self.kept: list[list[int]] = []
        """which of its candidate chains were kept of each, best first by the prior"""
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._most_chains = most_chains
        self._texts: list[TokenText] = []
        self._features: list[Array] = []
        self._chains: list[tuple[int, int, int, bool]] = []
        self._starts = [0]

    def add(self, candidates: Candidates, made: Sequence[int] | None = None) -> None:
        """Add a question; `made` are the passages that a pseudo question was made from."""
        features = weigh(candidates)
        kept = best_by(features @ PRIOR, self._most_chains)
        texts = ChainTexts(candidates, self._tokenizer, self._max_tokens)
        chains = [candidates.chains[number] for number in kept]
        tails = Tails(chains)
        first = len(self._texts)
        self._texts += [texts.chain(chain) for chain in chains]
        self._texts += [texts.tail(tail, edges) for tail, edges in tails.edges.items()]
        for number, chain in enumerate(chains):
            reading, slot = tails.place(chain)
            is_made = made is not None and chain.passages == tuple(made)
            self._chains.append((first + number, first + len(chains) + reading, slot, is_made))
        self._features.append(features[kept])
        self._starts.append(len(self._chains))
        self.ids.append(candidates.question.id)
        self.kept.append(kept)

    def arrays(self) -> dict[str, Array]:
        """Return everything that was added."""
        chains = np.array(self._chains, dtype=np.int64).reshape(-1, 4)
        return {
            **flat_texts(self._texts),
            "features": np.concatenate(self._features).astype(np.float32),
            "chain_start": np.array(self._starts, dtype=np.int64),
            "chain_text": chains[:, 0],
            "tail_text": chains[:, 1],
            "tail_slot": chains[:, 2],
            "made": chains[:, 3].astype(np.uint8),
        }


class Tails:
    """The last passages of chains, and the entities that link each of them to passages before it."""

    def __init__(self, chains: Sequence[Candidate]) -> None:
        self.edges: dict[int, list[Edge]] = {}
        """by tail, one edge for each entity"""
        self._slots: dict[tuple[int, str], int] = {}
        for chain in chains:
            tail, edge = chain.passages[-1], chain.edges[-1]
            known = self.edges.setdefault(tail, [])
            if (tail, edge.key) not in self._slots:
                known.append(edge)
                self._slots[tail, edge.key] = len(known)
        self._numbers = {tail: number for number, tail in enumerate(self.edges)}

    @property
    def most_entities(self) -> int:
        """The greatest number of entities that can link one of them."""
        return max(map(len, self.edges.values()), default=0)

    def place(self, chain: Candidate) -> tuple[int, int]:
        """Return the number of a chain's tail among the tails, and that of its last link among the tail's, from 1."""
        tail = chain.passages[-1]
        return self._numbers[tail], self._slots[tail, chain.edges[-1].key]


def best_by(scores: Array, most: int) -> list[int]:
    """Return the chains of the greatest scores, at most so many, best first."""
    return [int(number) for number in np.argsort(-scores, kind="stable")[:most]]


def flat_texts(texts: Sequence[TokenText]) -> dict[str, Array]:
    """Return texts one after another, and where each begins."""
    lengths = [len(text.ids) for text in texts]
    ids, marks, slots = (np.concatenate(column) for column in zip(*texts, strict=True))
    return {
        "ids": ids.astype(np.uint16 if ids.max(initial=0) < 2**16 else np.int32),
        "marks": marks,
        "slots": slots,
        "text_start": np.cumsum([0, *lengths], dtype=np.int64),
    }
