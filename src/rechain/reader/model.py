"""The chain reader as a model: cheap evidence for all chains, the network for those whose place it can still change."""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from rechain.candidates import Candidate, Candidates
from rechain.linking import Edge
from rechain.models.chain_reader import ChainReader, TextBatch, Texts
from rechain.reader.settings import ReaderSettings
from rechain.reader.texts import ChainTexts, Tails, TokenText, best_by, flat_texts
from rechain.scoring.evidence import PRIOR, nothing, weigh
from rechain.scoring.model import Contributions, PlayerStep, Scores
from rechain.system.devices import precision
from rechain.system.tensors import Array

_UNLIKELY = 0.02
"""chains of a length that is less likely than this are not read"""


class ChainReaderModel:
    """A trained chain reader, behind the interface that every model has."""

    chooses_hops = True

    def __init__(self, network: ChainReader, tokenizer: Tokenizer, settings: ReaderSettings, card: str = "") -> None:
        """Take a network, what cuts texts into its tokens, how it is used, and what is told of it to others."""
        self.card = card
        self.network = network.eval()
        self.tokenizer = tokenizer
        self.settings = settings
        self._evidence = network.evidence.weight.detach().float().cpu().numpy()[0]

    def to(self, device: str) -> Self:
        """Move it to a device."""
        self.network.to(device)
        return self

    def score_many(self, batch: Sequence[Candidates]) -> list[Scores]:
        """Return the scores of every question; what is worth reading of them is read together."""
        questions = [WeighedQuestion(candidates, self._evidence, self.settings) for candidates in batch]
        written = [question.write(self.tokenizer) for question in questions]
        ranks = self._read([chains for chains, _ in written], self.network.rank)
        entities = max((question.tails.most_entities for question in questions), default=0)
        links = self._read([tails for _, tails in written], lambda texts: self.network.name_links(texts, entities))
        return [question.scores(*said) for question, *said in zip(questions, ranks, links, strict=True)]

    def _read(self, texts: Sequence[list[TokenText]], head: Callable[[TextBatch], Tensor]) -> list[Array]:
        """Return what a head of the network says of the texts of each question."""
        flat = [text for of_question in texts for text in of_question]
        if not flat:
            return [np.zeros(0)] * len(texts)
        device = self.network.evidence.weight.device
        with torch.inference_mode(), precision(device):
            said = Texts(flat_texts(flat), device).read(torch.arange(len(flat)), head, self.settings.tokens_at_once)
        return np.split(said.float().cpu().numpy(), np.cumsum([len(of_question) for of_question in texts])[:-1])


class WeighedQuestion:
    """The candidate chains of a question, what cheap evidence says of them, and which are worth reading."""

    def __init__(self, candidates: Candidates, weights: Array, settings: ReaderSettings) -> None:
        self._candidates = candidates
        self._settings = settings
        features = weigh(candidates)
        self._evidence = features @ weights
        self._nothing = float(nothing(features) @ weights)
        self._lengths = np.array([len(chain.passages) for chain in candidates.chains])
        self._length_odds = _length_odds(features @ PRIOR, self._lengths)
        self.chosen = self._worth_reading()
        self.tails = Tails([candidates.chains[number] for number in self.chosen])

    def _worth_reading(self) -> list[int]:
        """Return the chains to read: of each likely length the best, if the network can still change which that is."""
        chosen = []
        for length, odds in self._length_odds.items():
            numbers = np.flatnonzero(self._lengths == length)
            evidence = self._evidence[numbers]
            close = numbers[evidence >= evidence.max() - self._settings.margin]
            if odds >= np.log(_UNLIKELY) and len(close) > 1:
                chosen += [int(close[place]) for place in best_by(self._evidence[close], self._settings.most_chains)]
        return chosen

    def write(self, tokenizer: Tokenizer) -> tuple[list[TokenText], list[TokenText]]:
        """Return the chains to be read and, where more than one entity could link them, their tails, as tokens."""
        texts = ChainTexts(self._candidates, tokenizer, self._settings.max_tokens)
        chains = [texts.chain(self._candidates.chains[number]) for number in self.chosen]
        return chains, [texts.tail(tail, edges) for tail, edges in self._open_tails.items()]

    @property
    def _open_tails(self) -> dict[int, list[Edge]]:
        """The tails that more than one entity could link, and these."""
        return {tail: edges for tail, edges in self.tails.edges.items() if len(edges) > 1}

    def scores(self, ranks: Array, links: Array) -> Scores:
        """Return the scores of all chains, where the network has said something of those that were read."""
        ranker, reasoner = np.zeros(len(self._lengths)), np.zeros(len(self._lengths))
        rows = {tail: row for row, tail in enumerate(self._open_tails)}
        named = np.array([self._named(self._candidates.chains[number], rows, links) for number in self.chosen])
        if self.chosen:
            self._fill(ranker, ranks)
            self._fill(reasoner, named)
        parts = {
            "evidence": self._evidence,
            "ranker": self._settings.ranker_weight * ranker,
            "reasoner": self._settings.reasoner_weight * reasoner,
        }
        if len(self._length_odds) > 1:
            parts["length"] = self._for_length(np.sum(list(parts.values()), axis=0))
        contributions: list[Contributions] = [
            dict(zip(parts, map(float, values), strict=True)) for values in zip(*parts.values(), strict=True)
        ]
        confidences = self._confidences(np.sum(list(parts.values()), axis=0))
        return Scores(contributions, confidences, self._steps(ranks, named))

    def _steps(self, ranks: Array, named: Array) -> list[list[PlayerStep]]:
        """Return what the two players say of each chain that was read, among the chains of its length that were."""
        steps: list[list[PlayerStep]] = [[] for _ in self._lengths]
        for place, number in enumerate(self.chosen):
            rivals = ranks[self._lengths[self.chosen] == self._lengths[number]]
            last = int(self._lengths[number]) - 1
            steps[number] = [
                PlayerStep("ranker", float(np.exp(ranks[place] - _log_sum(rivals)))),
                PlayerStep("reasoner", float(np.exp(named[place])), last, last - 1),
            ]
        return steps

    def _named(self, chain: Candidate, rows: Mapping[int, int], links: Array) -> float:
        """Return the log-probability of a chain's last link; 0 where it is the only one."""
        row = rows.get(chain.passages[-1])
        return 0.0 if row is None else float(links[row, self.tails.place(chain)[1] - 1])

    def _fill(self, target: Array, said: Array) -> None:
        """Set what was said of the chains that were read, the best at 0; of the others, what was said of the worst."""
        for length in self._length_odds:
            of_length = self._lengths == length
            read = [place for place, number in enumerate(self.chosen) if of_length[number]]
            if read:
                target[of_length] = said[read].min() - said[read].max()
                target[[self.chosen[place] for place in read]] = said[read] - said[read].max()

    def _for_length(self, joint: Array) -> Array:
        """Return what is to be added so that the chains of each length have together the probability of that length."""
        added = np.zeros(len(joint))
        for length, odds in self._length_odds.items():
            of_length = self._lengths == length
            added[of_length] = odds - _log_sum(joint[of_length])
        return added + max(_log_sum(joint[self._lengths == length]) for length in self._length_odds)

    def _confidences(self, scores: Array) -> list[float]:
        """Return how likely each chain is the right one, where it may also be that none is."""
        logits = np.append(scores, self._nothing) / self._settings.temperature
        return [float(value) for value in np.exp(logits[:-1] - _log_sum(logits)).clip(0, 1)]


def _length_odds(prior: Array, lengths: Array) -> dict[int, float]:
    """Return the log-probability of each length: the prior compares the best chains of each."""
    best = {int(length): float(prior[lengths == length].max()) for length in np.unique(lengths)}
    total = _log_sum(np.array(list(best.values())))
    return {length: value - total for length, value in best.items()}


def _log_sum(logits: Array) -> float:
    most = float(logits.max())
    return most + float(np.log(np.exp(logits - most).sum()))
