"""Which passages of documents are the evidence: parts of handbooks, manuals and web pages, not entries about one thing.

The network has learnt from entries of an encyclopaedia, whose titles name what they are about and whose links are
names. Parts of documents are told apart by other things: which words of question and answer each alone holds, and in
how few sentences. So candidates of all shapes are described by the same numbers, and one softmax over all weighs these.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import orjson

from rechain.scoring.evidence import FEATURES, weigh
from rechain.scoring.interface import Contributions, Scores
from rechain.scoring.shape_weights import Comparison
from rechain.system.tensors import Array
from rechain.text.candidates import Candidate, Candidates
from rechain.text.languages import stem
from rechain.text.linking.content import are_parts
from rechain.text.passage_views import PassageView
from rechain.text.rarity import rarities
from rechain.text.words import Text

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


@cache
def weights() -> Mapping[str, float]:
    """Return what each number weighs, and that there is nothing, as `research/documents.py` fitted them."""
    table: dict[str, float] = orjson.loads(files("rechain").joinpath("data/documents.json").read_bytes())
    return table


def score_documents(candidates: Candidates) -> Scores:
    """Return the scores of the candidates of a question, of all shapes."""
    terms = describe(candidates) * [weights()[name] for name in NAMES]  # [candidates, names]
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
    nothing = np.exp(weights()[NOTHING] - logits.max())
    together: dict[frozenset[int], float] = {}
    sets = [frozenset(chain.passages) for chain in candidates.chains]
    for passages, value in zip(sets, likely.tolist(), strict=True):
        together[passages] = together.get(passages, 0.0) + value
    found: Array = np.array([together[passages] for passages in sets]) / (likely.sum() + nothing)
    return found


def describe(candidates: Candidates) -> Array:
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
