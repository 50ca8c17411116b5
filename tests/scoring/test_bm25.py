"""BM25, compared with its formula."""

from math import log

import pytest

from rechain.candidates import find_candidates
from rechain.recovery import Recoverer
from rechain.schema import Passage, Question
from rechain.scoring import BM25
from rechain.text.words import Text

TEXTS = [
    "Quorvath built a bridge, a long bridge over the river.",
    "Quorvath built a castle.",
    "Quorvath was born in Ostrela near the river.",
    "It rains.",
]


def question(asked: str) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(TEXTS)]
    return Question(id="q", question=asked, answer="Ostrela", passages=passages)


def by_formula(words: list[str], number: int, k1: float = 1.5, b: float = 0.75) -> float:
    documents = [Text(text).words for text in TEXTS]
    mean = sum(map(len, documents)) / len(documents)
    score = 0.0
    for word in words:
        holding, times = sum(word in d for d in documents), documents[number].count(word)
        rarity = log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        score += rarity * times / (times + k1 * (1 - b + b * len(documents[number]) / mean))
    return score


def test_a_chain_has_the_sum_of_its_passages_scores() -> None:
    found = find_candidates(question("Which bridge of the river?"))
    scores = BM25().score(found)
    assert len(scores) == 2
    for chain, score in zip(found.chains, scores, strict=True):
        words = ["bridge", "the", "river"]
        assert score["bm25"] == pytest.approx(sum(by_formula(words, p) for p in chain.passages), rel=1e-4)


@pytest.mark.parametrize(("asked", "head"), [("Which bridge?", "0"), ("A CASTLE!", "1")])
def test_the_passage_that_the_question_speaks_of_wins(asked: str, head: str) -> None:
    assert Recoverer("bm25").recover(question(asked)).chains[0].passages == [head, "2"]


def test_a_question_of_unknown_words_leaves_the_order_of_c() -> None:
    found = find_candidates(question("Warum?"))
    assert [score["bm25"] for score in BM25().score(found)] == [0.0, 0.0]


def test_passages_without_any_word_have_a_score_too() -> None:
    mentions = [{"entity": "gene:1", "start": 0, "end": 1}, {"entity": "gene:9", "start": 0, "end": 1}]
    passages = [Passage.model_validate({"id": str(n), "text": "!!!", "mentions": mentions}) for n in range(2)]
    symbols = Question(id="q", question="Which?", answer="?", answer_entity="gene:9", passages=passages)
    assert [score["bm25"] for score in BM25().score(find_candidates(symbols))] == [0.0, 0.0]
