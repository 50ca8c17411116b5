"""Which shape the evidence of a question about entries has: one passage, a chain, or passages side by side.

The network compares chains alone: a single has no link, a parallel may have none. So the best candidate of each shape
is described by a few numbers, and a softmax over the shapes weighs them. Evidence in documents, which the network does
not read, is weighed in `documents`, all shapes together.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import fsum
from typing import NamedTuple, Self

import numpy as np
import orjson

from rechain.schema import Shape
from rechain.scoring.evidence import FEATURES, PRIOR
from rechain.system.tensors import Array
from rechain.text.answers import wrapping
from rechain.text.candidates import Candidate, Candidates
from rechain.text.rarity import idf, naming_words, phrase_idf, rarities
from rechain.text.words import Text, phrase

_ANSWER = 12.0
"""what holding all of an answer weighs beside other evidence: more than a link, as a passage that holds half of what
was said is seldom the right end"""
_AFFINITY = 0.3
"""what the things that a question compares weigh in the choice among passages side by side"""


@cache
def weights() -> Mapping[str, float]:
    """Return what each number weighs, as `research/shapes.py` fitted them, never on HotpotQA open."""
    table: dict[str, float] = orjson.loads(files("rechain").joinpath("data/shapes.json").read_bytes())
    return table


def weigh_answer(candidates: Candidates) -> Array:
    """Return what tells against candidates that others hold more of the answer, or of all that was said or compared."""
    coverage = np.array([candidates.holdings.coverage(chain.passages) for chain in candidates.chains])
    affinity = np.array([chain.weight if chain.shape == "parallel" else 0.0 for chain in candidates.chains])
    against: Array = _ANSWER * (coverage - coverage.max()) + _AFFINITY * affinity
    return against


def weigh_prior(features: Array, others: Array) -> Array:
    """Return how much tells for every candidate among those of its shape before anything is learnt, [candidates].

    `others` is what `weigh_answer` returns and, where the data names entities, what `weigh_beside` does.
    """
    prior: Array = features @ PRIOR + others
    return prior


def best_of_shapes(candidates: Candidates, prior: Array) -> dict[Shape, int]:
    """Return the number of the best candidate of each shape."""
    best: dict[Shape, int] = {}
    for number in np.argsort(-prior, kind="stable").tolist():
        best.setdefault(candidates.chains[number].shape, number)
    return best


def shape_odds(candidates: Candidates, features: Array, prior: Array) -> dict[Shape, float]:
    """Return the log-probability of every shape, by the best candidate of each."""
    best = best_of_shapes(candidates, prior)
    if len(best) == 1:
        return dict.fromkeys(best, 0.0)
    described = describe(candidates, features, best)
    logits = {shape: fsum(weights()[name] * value for name, value in described[shape].items()) for shape in best}
    total = float(np.logaddexp.reduce(list(logits.values())))
    return {shape: logit - total for shape, logit in logits.items()}


def describe(candidates: Candidates, features: Array, best: Mapping[Shape, int]) -> dict[Shape, dict[str, float]]:
    """Return the numbers that tell for or against each shape, by their names."""
    asked = _Asked(candidates)
    single = best.get("single")
    described: dict[Shape, dict[str, float]] = {}
    for shape, number in best.items():
        chain, row = candidates.chains[number], dict(zip(FEATURES, features[number].tolist(), strict=True))
        # where the number of passages is given there is no single, but the last passage might still have sufficed
        alone = chain.passages[-1:] if single is None else candidates.chains[single].passages
        held = asked.held(chain.passages)
        described[shape] = {
            f"{shape}: question": asked.share(held),
            f"{shape}: names": asked.share_of_names(held),
            "answer": candidates.holdings.coverage(chain.passages),
            **_OF_SHAPE[shape](asked, chain, row, alone),
        }
    return described


class Comparison(NamedTuple):
    """What tells whether a question compares things: each is 0 or 1."""

    judgement: float
    """whether the answer judges, "yes" or "the same" say"""
    compares: float
    chooses: float
    answer_in_question: float

    @classmethod
    def of(cls, candidates: Candidates) -> Self:
        """Return what tells of a question."""
        query, answer = Text(candidates.question.question), phrase(candidates.question.answer)
        return cls(
            float(candidates.holdings.is_judgement),
            float(not wrapping.words("comparisons").isdisjoint(query.terms)),
            float(not wrapping.words("choices").isdisjoint(query.words) or "还 是" in query.joined),
            float(bool(answer) and answer in query.joined),
        )


class _Asked:
    """The words of a question, and what passages hold of them."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        query = Text(candidates.question.question)
        self.rarities = rarities(query)
        self.names = naming_words(query)
        self.total = fsum(self.rarities.values()) or 1.0
        self.total_of_names = fsum(map(self.rarities.__getitem__, self.names)) or 1.0

    def held(self, passages: Sequence[int]) -> frozenset[str]:
        views = self.candidates.views
        return frozenset().union(*(self.rarities.keys() & views[number].terms for number in passages))

    def share(self, words: frozenset[str]) -> float:
        return fsum(map(self.rarities.__getitem__, words)) / self.total

    def share_of_names(self, words: frozenset[str]) -> float:
        return fsum(map(self.rarities.__getitem__, words & self.names)) / self.total_of_names

    def named_title(self, passage: int) -> tuple[float, float]:
        """Return how much of a passage's title the question names: its rarity, and the share of it."""
        words = self.candidates.views[passage].title.words
        title = {word: idf(word) for word in words}
        share = fsum(map(title.__getitem__, title.keys() & self.rarities.keys())) / (fsum(title.values()) or 1.0)
        return phrase_idf(words) * share, share


def _of_chain(asked: _Asked, chain: Candidate, row: Mapping[str, float], alone: Sequence[int]) -> dict[str, float]:
    """Describe a chain: also by what it adds to the passage that may suffice alone."""
    added = [passage for passage in chain.passages if passage not in alone]
    titles = [asked.named_title(passage) for passage in added] or [(0.0, 0.0)]
    words = asked.held(chain.passages) - asked.held(alone)
    return {
        "chain: weakest link": row["weakest link"],
        "chain: names passage": row["names passage"],
        "chain: passages": row["passages"],
        "chain: title link": float(any(edge.kind == "title" for edge in chain.edges)),
        "chain: adds title": max(rarity for rarity, _ in titles) / 10,
        "chain: adds whole title": max(share for _, share in titles),
        "chain: adds words": asked.share(words),
        "chain: adds names": asked.share_of_names(words),
    }


def _of_single(asked: _Asked, chain: Candidate, row: Mapping[str, float], alone: Sequence[int]) -> dict[str, float]:
    return {
        "single": 1.0,
        "single: answering sentence": 10 * row["answering sentence"] / asked.total,
        "single: names passage": row["names tail"],
        "single: title words": row["tail title words"],
    }


def _of_parallel(asked: _Asked, chain: Candidate, row: Mapping[str, float], alone: Sequence[int]) -> dict[str, float]:
    holdings = asked.candidates.holdings
    tails, compared = set(holdings.tails), Comparison.of(asked.candidates)
    return {
        "parallel": 1.0,
        "parallel: judgement": compared.judgement,
        "parallel: compares": compared.compares,
        "parallel: chooses": compared.chooses,
        "parallel: answer in question": compared.answer_in_question,
        "parallel: affinity": chain.weight / 20,
        "parallel: all hold answer": float(tails.issuperset(chain.passages)),
        "parallel: names passages": row["names passage"] + row["names tail"],
    }


_OF_SHAPE = {"chain": _of_chain, "single": _of_single, "parallel": _of_parallel}
