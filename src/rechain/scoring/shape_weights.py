"""Which shape the evidence of a question has: one passage, a chain, or passages side by side.

The network compares chains alone: a single has no link, a parallel may have none. So the best candidate of each shape
is described by a few numbers, and a softmax over the shapes weighs them.

Parts of documents (handbooks, manuals, web pages) are no entries about one thing, of which the network has learnt: no
title names what they are about, and no link is a name. They are told apart by other things: which words of question and
answer each alone holds, and in how few sentences. So their candidates of all shapes are described by the same numbers,
and one softmax over all weighs these.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple, Self

import numpy as np

from rechain.schema import Shape
from rechain.scoring.evidence import FEATURES, PRIOR, weigh
from rechain.scoring.interface import Contributions, Scores, weights
from rechain.system.tensors import Array
from rechain.text.answers import wrapping
from rechain.text.candidates import Candidate, Candidates
from rechain.text.languages import idf, naming_words, phrase_idf, rarities, stem
from rechain.text.linking.content import are_parts
from rechain.text.passage_views import PassageView
from rechain.text.words import Text, phrase

_ANSWER = 12.0
"""what holding all of an answer weighs beside other evidence: more than a link, as a passage that holds half of what
was said is seldom the right end"""
_AFFINITY = 0.3
"""what the things that a question compares weigh in the choice among passages side by side"""


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
    table = weights("shapes")
    logits = {shape: fsum(table[name] * value for name, value in described[shape].items()) for shape in best}
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


# --- Documents --------------------------------------------------------------------------------------------------------

NAMES = (
    *FEATURES,
    "question and answer",
    "said by one alone",
    "said by the best alone",
    "said in one sentence each",
    "least said by a sentence alone",
    "question in head",
    "answer in head",
    "question in tail",
    "answer in tail",
    "coverage",
    "coverage of head",
    "coverage of tail",
    "best coverage",
    "chain: all hold answer",
    "single",
    "parallel",
    "parallel: all hold answer",
    "parallel: affinity",
    "parallel: judgement",
    "parallel: compares",
    "parallel: chooses",
    "parallel: answer in question",
)
"""the numbers that describe a candidate, in order"""
NOTHING = "none of these"
"""stands for one candidate more: that no candidate is right, as it is where an answer is false"""
_CONTENT = 1.0
"""rarity of a word that says something: function words have less"""
_MOST_SENTENCES = 200
"""of a passage that are compared; a longer one was not cut into parts"""


def is_of_documents(candidates: Candidates) -> bool:
    """Return whether a question's passages are parts of documents, and its links are found in them."""
    return candidates.question.answer_entity is None and are_parts(candidates.views)


def score_documents(candidates: Candidates) -> Scores:
    """Return the scores of the candidates of a question, of all shapes."""
    terms = describe_documents(candidates) * [weights("documents")[name] for name in NAMES]  # [candidates, names]
    of_shape = NAMES.index("single")
    parts = {
        "evidence": terms[:, : len(FEATURES)].sum(1),
        "answer": terms[:, len(FEATURES) : of_shape].sum(1),
        "shape": terms[:, of_shape:].sum(1),
    }
    contributions: list[Contributions] = [
        dict(zip(parts, map(float, values), strict=True)) for values in zip(*parts.values(), strict=True)
    ]
    return Scores(contributions, confidences(candidates, terms.sum(1)).tolist())


def confidences(candidates: Candidates, logits: Array) -> Array:
    """Return how likely each candidate has exactly the right passages, whatever their order and links."""
    likely = np.exp(logits - logits.max())
    nothing = np.exp(weights("documents")[NOTHING] - logits.max())
    together: dict[frozenset[int], float] = {}
    sets = [frozenset(chain.passages) for chain in candidates.chains]
    for passages, value in zip(sets, likely.tolist(), strict=True):
        together[passages] = together.get(passages, 0.0) + value
    found: Array = np.array([together[passages] for passages in sets]) / (likely.sum() + nothing)
    return found


def describe_documents(candidates: Candidates) -> Array:
    """Return the numbers that tell for or against each candidate, [candidates, NAMES]."""
    members = np.zeros((len(candidates.chains), len(candidates.views)), dtype=bool)
    for row, chain in enumerate(candidates.chains):
        members[row, list(chain.passages)] = True
    heads, tails = (np.array([chain.passages[end] for chain in candidates.chains]) for end in (0, -1))
    said = _Said(candidates)
    coverage = np.array([candidates.holdings.coverage([passage]) for passage in range(len(candidates.views))])
    columns = [
        *said.together(members),
        *said.in_sentences(members),
        *(share[ends] for ends in (heads, tails) for share in (said.of_question, said.of_answer)),
        [candidates.holdings.coverage(chain.passages) for chain in candidates.chains],
        coverage[heads],
        coverage[tails],
        (members * coverage).max(1),
    ]
    shapes = np.array(list(_of_shapes(candidates)))
    return np.concatenate([weigh(candidates), np.array(columns).T, shapes], axis=1)


def _of_shapes(candidates: Candidates) -> Iterable[Sequence[float]]:
    compared, tails = Comparison.of(candidates), frozenset(candidates.holdings.tails)

    def of(chain: Candidate) -> Sequence[float]:
        all_hold = tails.issuperset(chain.passages)
        if chain.shape != "parallel":
            return (chain.shape == "chain" and all_hold, chain.shape == "single", *(0.0,) * 7)
        return (0.0, 0.0, 1.0, all_hold, chain.weight / 20, *compared)

    return map(of, candidates.chains)


class _Said:
    """The words of question and answer that tell a question's passages apart, and which of them each passage says.

    Rarity is counted among the passages of the question, so that it needs no table of any language.
    """

    def __init__(self, candidates: Candidates) -> None:
        asked = rarities(Text(candidates.question.question))
        question = {stem(word) for word in asked if asked[word] >= _CONTENT}
        answer = {stem(word) for word in candidates.holdings.words} - question
        held = [frozenset(map(stem, view.terms)) & (question | answer) for view in candidates.views]
        words = sorted(frozenset().union(*held))
        self._holds = np.array([[word in some for some in held] for word in words], dtype=bool).reshape(-1, len(held))
        rarity = np.log((len(held) + 1) / self._holds.sum(1))  # [words]
        self._weights = rarity / (rarity.sum() or 1.0)
        self._sentences = np.stack([self._best_sentence(view, words) for view in candidates.views], 1)
        self.of_question, self.of_answer = (self._shares(words, part) for part in (question, answer))

    def _best_sentence(self, view: PassageView, words: Sequence[str]) -> Array:
        """Return which of some words the sentence of a passage holds that holds most of them."""
        texts = view.sentence_texts[:_MOST_SENTENCES]
        held = [frozenset(map(stem, text.terms)) for text in texts] or [frozenset()]
        rows = np.array([[word in some for word in words] for some in held], dtype=bool).reshape(len(held), -1)
        best: Array = rows[np.argmax(rows @ self._weights)]
        return best

    def _shares(self, words: Sequence[str], part: frozenset[str] | set[str]) -> Array:
        """Return how much of a part of the words each passage holds."""
        weights = self._weights * np.array([word in part for word in words])
        shares: Array = weights @ self._holds / (weights.sum() or 1.0)
        return shares

    def together(self, members: Array) -> tuple[Array, Array, Array]:
        """Return how much passages say together, how much of it only one of them says, and how much the best says."""
        times = self._holds.astype(int) @ members.T  # [words, candidates]
        alone = self._weights @ self._holds  # [passages]
        return self._weights @ (times > 0), self._weights @ (times == 1), (members * alone).max(1)

    def in_sentences(self, members: Array) -> tuple[Array, Array]:
        """Return how much the best sentence of each passage says together, and the least that one of them adds."""
        times = self._sentences.astype(int) @ members.T  # [words, candidates]
        added = (self._weights[:, None] * self._sentences).T @ (times == 1)  # [passages, candidates]
        return self._weights @ (times > 0), np.where(members.T, added, np.inf).min(0)
