"""The chain reader as a model: cheap evidence for all chains, the network for those whose place it can still change."""

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from rechain.candidates import Candidates
from rechain.models.chain_reader import ChainReader, TextBatch, Texts
from rechain.models.cpu import in_threads, tokens_a_thread
from rechain.reader.settings import ReaderSettings
from rechain.reader.texts import ChainTexts, Tails, TokenText, flat_texts
from rechain.scoring.evidence import PRIOR, nothing, weigh
from rechain.scoring.model import Contributions, PlayerStep, Scores
from rechain.system.devices import precision
from rechain.system.tensors import Array

_UNLIKELY = 0.02
"""chains of a length that is less likely than this are not read: the network compares chains of one length alone, and
cannot make up for that"""


class ChainReaderModel:
    """A trained chain reader, behind the interface that every model has."""

    chooses_hops = True

    def __init__(self, network: ChainReader, tokenizer: Tokenizer, settings: ReaderSettings, card: str = "") -> None:
        """Take a network, the tokeniser of its texts, the settings, and the model card."""
        self.card = card
        self.network = network.eval()
        self.tokenizer = tokenizer
        self.settings = settings
        self._evidence = network.evidence.weight.detach().float().cpu().numpy()[0]  # [features]

    def to(self, device: str) -> Self:
        """Move it to a device."""
        self.network.to(device)
        return self

    def score_many(self, batch: Sequence[Candidates]) -> list[Scores]:
        """Return the scores of every question; the chains that are worth reading are read together."""
        questions = [WeighedQuestion(candidates, self._evidence, self.settings) for candidates in batch]
        written = [question.write(self.tokenizer) for question in questions]
        ranks = self._read([chains for chains, _ in written], self.network.rank)
        entities = max((len(edges) for question in questions for edges in question.open_tails.values()), default=0)
        links = self._read([tails for _, tails in written], lambda texts: self.network.name_links(texts, entities))
        return [question.scores(*outputs) for question, *outputs in zip(questions, ranks, links, strict=True)]

    def _read(self, texts: Sequence[list[TokenText]], head: Callable[[TextBatch], Tensor]) -> list[Array]:
        """Return the outputs of a head of the network for the texts of each question."""
        flat = [text for of_question in texts for text in of_question]
        if not flat:
            return [np.zeros(0)] * len(texts)
        device = self.network.evidence.weight.device
        with torch.inference_mode(), precision(device):
            batch, most = Texts(flat_texts(flat), device), self.settings.tokens_at_once
            if device.type == "cpu":
                most = min(most, tokens_a_thread(int(batch.lengths.sum())))
            run = in_threads if device.type == "cpu" else map
            outputs = batch.read(torch.arange(len(flat)), head, most, run)
        return np.split(outputs.float().cpu().numpy(), np.cumsum([len(of_question) for of_question in texts])[:-1])


class WeighedQuestion:
    """The candidate chains of a question, the cheap evidence for them, and which are worth reading."""

    def __init__(self, candidates: Candidates, weights: Array, settings: ReaderSettings) -> None:
        self._candidates = candidates
        self._settings = settings
        features = weigh(candidates)  # [chains, features]
        self._evidence = features @ weights  # [chains]
        self._nothing = float(nothing(features) @ weights)
        self._lengths = np.array([len(chain.passages) for chain in candidates.chains])
        # The prior, not what was learnt: training compares chains of one length, so it teaches nothing about lengths.
        prior = features @ PRIOR
        best = {int(length): float(prior[self._lengths == length].max()) for length in np.unique(self._lengths)}
        total = _log_sum(np.array(list(best.values())))
        self._length_odds = {length: value - total for length, value in best.items()}
        """the log-probability of each length, by the best chain of each"""
        self._chosen = self._worth_reading()
        self._tails = Tails([candidates.chains[number] for number in self._chosen])
        self.open_tails = {tail: edges for tail, edges in self._tails.edges.items() if len(edges) > 1}
        """the tails that more than one entity could link, and one edge for each entity; of others there is no doubt"""

    def _worth_reading(self) -> list[int]:
        """Return the chains to read: of each likely length the best, if the network can still change which that is."""
        chosen = []
        for length, odds in self._length_odds.items():
            numbers = np.flatnonzero(self._lengths == length)
            ranked = numbers[np.argsort(-self._evidence[numbers], kind="stable")]
            close = ranked[self._evidence[ranked] >= self._evidence[ranked[0]] - self._settings.margin]
            if odds >= np.log(_UNLIKELY) and len(close) > 1:
                chosen += close[: self._settings.most_chains].tolist()
        return chosen

    def write(self, tokenizer: Tokenizer) -> tuple[list[TokenText], list[TokenText]]:
        """Return the chains to read and their open tails as tokens."""
        if not self._chosen:
            return [], []
        texts = ChainTexts(self._candidates, tokenizer, self._settings.max_tokens)
        chains = [texts.chain(self._candidates.chains[number]) for number in self._chosen]
        return chains, [texts.tail(tail, edges) for tail, edges in self.open_tails.items()]

    def scores(self, ranks: Array, links: Array) -> Scores:
        """Return the scores of all chains: `ranks` [chosen] and `links` [open tails, entities] are the network's."""
        named = self._named(links)
        parts = {
            "evidence": self._evidence,
            "ranker": self._settings.ranker_weight * self._spread(ranks),
            "reasoner": self._settings.reasoner_weight * self._spread(named),
        }
        if len(self._length_odds) > 1:
            parts["length"] = self._for_length(np.sum(list(parts.values()), axis=0))
        contributions: list[Contributions] = [
            dict(zip(parts, map(float, values), strict=True)) for values in zip(*parts.values(), strict=True)
        ]
        # one candidate more stands for "none of these"
        logits = np.append(np.sum(list(parts.values()), axis=0), self._nothing) / self._settings.temperature
        confidences = np.exp(logits[:-1] - _log_sum(logits)).clip(0, 1)
        return Scores(contributions, [float(value) for value in confidences], self._steps(ranks, named))

    def _named(self, links: Array) -> Array:
        """Return the log-probability of the last link of each chain that was read; 0 where it is the only one."""
        rows = {tail: row for row, tail in enumerate(self.open_tails)}
        named = []
        for chain in (self._candidates.chains[number] for number in self._chosen):
            row = rows.get(chain.passages[-1])
            named.append(0.0 if row is None else float(links[row, self._tails.place(chain)[1] - 1]))
        return np.array(named)

    def _spread(self, outputs: Array) -> Array:
        """Return outputs of the network for all chains, less the greatest of each length.

        A chain that was not read has the least output of those that were: evidence speaks against it, and the network
        should not speak for it. Where none of a length was read, all have 0.
        """
        spread = np.zeros(len(self._lengths))
        for length in self._length_odds:
            of_length = self._lengths == length
            read = [place for place, number in enumerate(self._chosen) if of_length[number]]
            if read:
                spread[of_length] = outputs[read].min() - outputs[read].max()
                spread[[self._chosen[place] for place in read]] = outputs[read] - outputs[read].max()
        return spread

    def _for_length(self, joint: Array) -> Array:
        """Return what to add so that the chains of each length have together the probability of that length."""
        sums = {length: _log_sum(joint[self._lengths == length]) for length in self._length_odds}
        added = np.zeros(len(joint))
        for length, odds in self._length_odds.items():
            added[self._lengths == length] = odds - sums[length]
        return added + max(sums.values())  # so that scores stay about as large as evidence

    def _steps(self, ranks: Array, named: Array) -> list[list[PlayerStep]]:
        """Return what the two players say of each chain that was read, among those of its length that were."""
        steps: list[list[PlayerStep]] = [[] for _ in self._lengths]
        for place, number in enumerate(self._chosen):
            rivals = ranks[self._lengths[self._chosen] == self._lengths[number]]
            last = int(self._lengths[number]) - 1
            steps[number] = [
                PlayerStep("ranker", float(np.exp(ranks[place] - _log_sum(rivals)))),
                PlayerStep("reasoner", float(np.exp(named[place])), last, last - 1),
            ]
        return steps


def _log_sum(logits: Array) -> float:
    """Return log(sum(exp(logits))).

    Not numpy's logaddexp.reduce, which rounds after every term: its last bits differ in half of all cases or more, and
    with them the bytes of published scores.
    """
    most = float(logits.max())
    return most + float(np.log(np.exp(logits - most).sum()))
