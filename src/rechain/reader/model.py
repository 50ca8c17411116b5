"""The chain reader as a model: cheap evidence for all chains, the network for those whose place it can still change."""

from collections.abc import Sequence
from math import exp
from typing import Self

import numpy as np
from tokenizers import Encoding, Tokenizer

from rechain.reader.network import ChainReader, Head, NetworkReader, Read, Reading
from rechain.reader.settings import ReaderSettings
from rechain.reader.texts import Arrivals, Case, ChainTexts, TokenText, flat_texts, unmarked
from rechain.scoring.interface import ALONE, Contributions, PlayerStep, Scores
from rechain.scoring.verdict_weights import best_passage
from rechain.system.caches import BoundedCache
from rechain.system.tensors import Array
from rechain.text.candidates import Candidates
from rechain.text.evidence.features import nothing, weigh
from rechain.text.linking.content import are_parts

# of a sentence or claim whose meaning is compared; what is beyond so many characters is not cut into tokens
_SENTENCE_TOKENS, _SENTENCE_CHARACTERS = 96, 2_000
_SENTENCE_BYTES = 2**23  # of vectors of sentences that are kept: 5,000 of them, with their tokens 10 MB


class ChainReaderModel:
    """A trained chain reader, behind the interface that every model has."""

    chooses_hops = True

    def __init__(self, network: ChainReader, tokenizer: Tokenizer, settings: ReaderSettings, card: str = "") -> None:
        """Take a network, the tokeniser of its texts, the settings, and the model card."""
        self.card = card
        self.network = network.eval()
        self.tokenizer = tokenizer
        self.settings = settings
        self.evidence: Array = network.evidence.weight.detach().float().cpu().numpy()[0]  # its weights, [features]
        self.reader = NetworkReader(self.network)
        self.ask: Read = self.reader  # or another process with the same network
        self._sentences: BoundedCache[bytes] = BoundedCache(_SENTENCE_BYTES, len)

    def to(self, device: str) -> Self:
        """Move it to a device."""
        self.network.to(device)
        self._sentences = BoundedCache(_SENTENCE_BYTES, len)  # elsewhere the vectors are rounded in another way
        return self

    def score_many(self, batch: Sequence[Candidates]) -> list[Scores]:
        """Return the scores of every question."""
        questions = [WeighedQuestion(candidates, self.evidence, self.settings) for candidates in batch]
        written = [question.write(self.tokenizer) for question in questions]
        ranks = self.read("rank", [chains for chains, _ in written])
        entities = max((question.entities for question in questions), default=0)
        links = self.read("name_links", [arrivals for _, arrivals in written], entities)
        scores = [question.scores(*outputs) for question, *outputs in zip(questions, ranks, links, strict=True)]
        if not self.network.judges:
            return scores
        # Verdicts on documents come without the judge, which has read entries alone. If the data names the entity of
        # the answer, there is no verdict.
        most, texts = self.settings.judge_tokens, []
        for candidates, one in zip(batch, scores, strict=True):
            is_judged = not are_parts(candidates.views) and not candidates.question.answer_entity
            cases = best_cases(candidates, one) if is_judged else []
            texts.append([ChainTexts(candidates, self.tokenizer).case(case, most) for case in cases])
        support = self.read("judge", texts)
        return [one._replace(support=logits.tolist()) for one, logits in zip(scores, support, strict=True)]

    def meaning(self, claims: Sequence[str], sentences: Sequence[str]) -> list[list[float]]:
        """Return the similarity of each claim to each sentence by the mean states of the encoder, from 0 to 1."""
        unit, unlike = self._recall([*claims, *sentences]), self.settings.unlike
        cosines = unit[: len(claims)] @ unit[len(claims) :].T
        likeness: list[list[float]] = ((cosines - unlike) / (1 - unlike)).clip(0, 1).tolist()
        return likeness

    def mean_unrelated_cosine(self, sentences: Sequence[str]) -> float:
        """Return the mean cosine of sentences with different meanings: the value for the setting `unlike`."""
        if len(sentences) < 2:
            return 0.0
        unit = self.embed(sentences, _SENTENCE_TOKENS)
        cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
        return round(float(cosines.mean().clip(0, 0.99)), 2)

    def embed(self, texts: Sequence[str], most: int) -> Array:
        """Return the mean states of the encoder for texts, cut to `most` tokens, each of unit length, [texts, d]."""
        return self._embed_tokens([encoding.ids[:most] for encoding in self._encode(texts)])

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self.tokenizer.encode_batch([text[:_SENTENCE_CHARACTERS] for text in texts])

    def _embed_tokens(self, texts: Sequence[Sequence[int] | Array]) -> Array:
        (states,) = self.read("embed", [[unmarked(ids) for ids in texts]])
        unit: Array = states / np.linalg.norm(states, axis=1, keepdims=True).clip(1e-9)
        return unit

    def _recall(self, texts: Sequence[str]) -> Array:
        """Return what `embed` does for sentences; a third of those in a log came before, and are not read again."""
        encodings = self._encode(texts)
        keys = [np.array(encoding.ids[:_SENTENCE_TOKENS], np.uint32).tobytes() for encoding in encodings]
        vectors = {key: self._sentences.find(key) or b"" for key in keys}
        if new := [np.frombuffer(key, np.uint32) for key, vector in vectors.items() if not vector]:
            for ids, unit in zip(new, self._embed_tokens(new), strict=True):
                vectors[ids.tobytes()] = unit.tobytes()
                self._sentences.add(ids.tobytes(), unit.tobytes())
        return np.frombuffer(b"".join(vectors[key] for key in keys), np.float32).reshape(len(keys), -1)

    def read(self, head: Head, texts: Sequence[list[TokenText]], entities: int = 0) -> list[Array]:
        """Return the outputs of a head of the network for the texts of each question."""
        flat = [text for of_question in texts for text in of_question]
        if not flat:
            return [np.zeros(0)] * len(texts)
        outputs = self.ask(Reading(head, flat_texts(flat), entities))
        return np.split(outputs, np.cumsum([len(of_question) for of_question in texts])[:-1])


def best_cases(candidates: Candidates, scores: Scores) -> list[Case]:
    """Return the claims of the answer as they are to be judged by the chain of the greatest score."""
    totals = [sum(contributions.values()) for contributions in scores.contributions]
    chain, holdings = candidates.chains[int(np.argmax(totals))], candidates.holdings
    cases = []
    for holding in holdings.claims:
        text = holding.claim.text if len(holdings.claims) > 1 else candidates.question.answer
        passage = best_passage(holding, chain)
        passages, edges, between = chain.passages, chain.edges, chain.between
        if passage is not None and passage not in passages:
            passages, edges, between = (passage,), (), ()
        spans = {number: holdings.spans(number, candidates.views[number]) for number in passages}
        cases.append(Case(passages, text, spans, edges, between))
    return cases


class WeighedQuestion:
    """The candidates of a question, the cheap evidence for them, and which are worth reading."""

    def __init__(self, candidates: Candidates, weights: Array, settings: ReaderSettings) -> None:
        self._candidates = candidates
        self._settings = settings
        evidence = weigh(candidates) if candidates.evidence is None else candidates.evidence  # [candidates, features]
        self._evidence = evidence @ weights  # [candidates]
        self._nothing = nothing(candidates)
        self.chosen = self._worth_reading()
        self._arrivals = Arrivals(candidates.chains[number] for number in self.chosen)
        # by their numbers, the arrivals to which more than one entity could lead; of others there is no doubt
        self.open = {number: arrival for number, arrival in enumerate(self._arrivals.all) if len(arrival.ways) > 1}

    @property
    def entities(self) -> int:
        """The greatest number of entities that could lead to one of the open arrivals."""
        return max((len(arrival.ways) for arrival in self.open.values()), default=0)

    def _worth_reading(self) -> list[int]:
        """Return the numbers of the candidates to read: the best, if reading can still change their order."""
        ranked = np.argsort(-self._evidence, kind="stable")
        close = ranked[self._evidence[ranked] >= self._evidence[ranked[0]] - self._settings.margin]
        return close[: self._settings.most_chains].tolist() if len(close) > 1 else []

    def write(self, tokenizer: Tokenizer) -> tuple[list[TokenText], list[TokenText]]:
        """Return the chains to read and the passages at which they arrive, those that are open, as tokens."""
        if not self.chosen:
            return [], []
        texts, settings = ChainTexts(self._candidates, tokenizer), self._settings
        chains = [texts.chain(self._candidates.chains[number], settings.max_tokens) for number in self.chosen]
        return chains, [texts.arrival(arrival, settings.passage_tokens) for arrival in self.open.values()]

    def scores(self, ranks: Array, links: Array) -> Scores:
        """Return the scores of all candidates: `ranks` [chosen] and `links` [open, entities] are the network's."""
        named = self._named(links)
        together = np.array([sum(of_chain) for of_chain in named])
        parts = {
            "evidence": self._evidence,
            "ranker": self._settings.ranker_weight * self._spread(ranks),
            "reasoner": self._settings.reasoner_weight * self._spread(together),
        }
        contributions: list[Contributions] = [
            dict(zip(parts, map(float, values), strict=True)) for values in zip(*parts.values(), strict=True)
        ]
        shares = self._shares(np.sum(list(parts.values()), axis=0)).tolist()
        steps = self._steps(ranks, named)
        if self._candidates.names_entities:
            return Scores(contributions, ALONE.confidences(shares), steps, shares=shares)
        return Scores(contributions, shares, steps)

    def _shares(self, totals: Array) -> Array:
        """Return the probability of each candidate, [candidates]; what is left is that of "none of these".

        Only the best count: at this temperature, hundreds that nobody would take are together as likely as a good one.
        """
        best = np.argsort(-totals, kind="stable")[: self._settings.most_chains]
        logits = np.append(totals[best], self._nothing) / self._settings.temperature
        shares = np.zeros(len(totals))
        shares[best] = np.exp(logits[:-1] - _log_sum(logits)).clip(0, 1)
        return shares

    def _named(self, links: Array) -> list[list[float]]:
        """Return the log-probability of every link of each chain that was read; 0 if it is the only one."""
        rows = {number: row for row, number in enumerate(self.open)}
        places = [self._arrivals.places(self._candidates.chains[number]) for number in self.chosen]
        return [
            [float(links[rows[number], slot - 1]) if number in rows else 0.0 for number, slot in of_chain]
            for of_chain in places
        ]

    def _spread(self, outputs: Array) -> Array:
        """Return outputs of the network for all candidates, less the greatest.

        One that was not read has the least output of those that were: evidence is against it, and the network should
        not be for it. If none was read, all have 0.
        """
        if not self.chosen:
            return np.zeros(len(self._evidence))
        spread = np.full(len(self._evidence), outputs.min() - outputs.max())
        spread[self.chosen] = outputs - outputs.max()
        return spread

    def _steps(self, ranks: Array, named: Sequence[Sequence[float]]) -> list[list[PlayerStep]]:
        """Return the probabilities by the two players of each candidate that was read, among all that were."""
        steps: list[list[PlayerStep]] = [[] for _ in self._candidates.chains]
        for place, number in enumerate(self.chosen):
            of_links = [PlayerStep("reasoner", exp(value), at + 1, at) for at, value in enumerate(named[place])]
            steps[number] = [PlayerStep("ranker", float(np.exp(ranks[place] - _log_sum(ranks)))), *of_links]
        return steps


def _log_sum(logits: Array) -> float:
    """Return log(sum(exp(logits))).

    Not numpy's logaddexp.reduce, which rounds after every term: its last bits differ in half of all cases or more, and
    with them the bytes of published scores.
    """
    most = float(logits.max())
    return most + float(np.log(np.exp(logits - most).sum()))
