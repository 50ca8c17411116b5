"""Evidence in documents: the numbers of a small question by hand, and confidences that are probabilities."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.schema import Passage, Question
from rechain.text.evidence.features import FEATURES, weigh
from rechain.scoring.interface import weights
from rechain.scoring.shape_weights import (
    NAMES,
    NOTHING,
    confidences,
    describe_documents,
    is_of_documents,
    score_documents,
)
from rechain.text.candidates import Candidates, find_of_any_shape


def find(
    asked: str, answer: str, texts: Sequence[str], titles: Sequence[str] = (), hops: int | None = None
) -> Candidates:
    named = zip_longest(texts, titles, fillvalue="")
    passages = [Passage(id=str(number), title=title, text=text) for number, (text, title) in enumerate(named)]
    return find_of_any_shape(Question(id="q", question=asked, answer=answer, passages=passages, hops=hops))


ASKED = "Who signs a Zimbelot form?"
BRIDGE = find(
    ASKED, "Ostrela", ["A Zimbelot form goes to Vexlor.", "Ask Vexlor. That is Ostrela.", "Lunch is at noon."]
)
COMPARED = find("Which is older, Zimbelot or Quorvath?", "Quorvath", ["Old.", "Older."], ["Zimbelot", "Quorvath"])


def numbers(candidates: Candidates, passages: tuple[int, ...]) -> dict[str, float]:
    row = [chain.passages for chain in candidates.chains].index(passages)
    return dict(zip(NAMES, describe_documents(candidates)[row].tolist(), strict=True))


def test_a_chain_says_together_what_none_of_its_passages_says_alone() -> None:
    # "zimbelot", "form" and "ostrela" stand in one of three passages each, and tell as much; "signs" stands in none.
    found = numbers(BRIDGE, (0, 1))
    expected = {
        "question and answer": 1,
        "said by one alone": 1,
        "said by the best alone": 2 / 3,
        "said in one sentence each": 1,
        "least said by a sentence alone": 1 / 3,
        "question in head": 1,
        "answer in head": 0,
        "question in tail": 0,
        "answer in tail": 1,
        "coverage": 1,
        "coverage of head": 0,
        "coverage of tail": 1,
        "best coverage": 1,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_words_that_several_passages_say_tell_less() -> None:
    candidates = find(ASKED, "Ostrela", ["A Zimbelot for Vexlor.", "Zimbelot: Vexlor is Ostrela.", "Lunch is at noon."])
    zimbelot, ostrela = log(4 / 2), log(4 / 1)
    found = numbers(candidates, (0, 1))
    assert found["said by one alone"] == pytest.approx(ostrela / (zimbelot + ostrela))
    assert found["said by the best alone"] == pytest.approx(1)
    assert found["least said by a sentence alone"] == pytest.approx(0)


def test_the_first_numbers_are_the_evidence_of_every_chain() -> None:
    np.testing.assert_allclose(describe_documents(BRIDGE)[:, : len(FEATURES)], weigh(BRIDGE))


def test_passages_side_by_side_say_so() -> None:
    found = numbers(COMPARED, (0, 1))
    names = ("single", "parallel", "parallel: compares", "parallel: chooses", "parallel: answer in question")
    assert [found[name] for name in names] == [0, 1, 1, 1, 1]
    assert [numbers(COMPARED, (1,))[name] for name in names] == [1, 0, 0, 0, 0]


def test_a_question_without_a_word_of_the_passages_has_numbers_too() -> None:
    candidates = find("🎼❓", "Ostrela", ["Vexlor of Ostrela", "Vexlor"], hops=1)
    assert np.isfinite(describe_documents(candidates)).all()


def test_scores_are_the_weighed_numbers_and_the_best_chain_is_found() -> None:
    scores = score_documents(BRIDGE)
    sums = [sum(parts.values()) for parts in scores.contributions]
    np.testing.assert_allclose(sums, describe_documents(BRIDGE) @ [weights("documents")[name] for name in NAMES])
    assert BRIDGE.chains[int(np.argmax(sums))].passages == (0, 1)
    assert list(scores.contributions[0]) == ["evidence", "answer", "shape"]


@given(st.data())
def test_confidences_of_different_passages_and_of_none_sum_to_one(data: st.DataObject) -> None:
    logits = np.array([data.draw(st.floats(-50, 50)) for _ in BRIDGE.chains])
    found = dict(zip([frozenset(c.passages) for c in BRIDGE.chains], confidences(BRIDGE, logits), strict=True))
    nothing = exp(weights("documents")[NOTHING])
    assert sum(found.values()) == pytest.approx(1 - nothing / (nothing + np.exp(logits).sum()))


def test_candidates_with_the_same_passages_share_their_confidence() -> None:
    both = find("Who?", "Ostrela", ["Ostrela and Vexlor.", "Vexlor and Ostrela."])
    found = confidences(both, np.zeros(len(both.chains)))
    of_both = [value for chain, value in zip(both.chains, found, strict=True) if len(chain.passages) == 2]
    assert len(of_both) > 1
    expected = len(of_both) / (len(both.chains) + exp(weights("documents")[NOTHING]))
    assert of_both == pytest.approx([expected] * len(of_both))


def test_where_the_data_names_the_answers_entity_passages_are_no_documents() -> None:
    found = find(ASKED, "Ostrela", ["A Zimbelot form goes out. Ask Vexlor.", "Go to Ostrela. Find Vexlor."])
    assert is_of_documents(found)
    question = found.question.model_copy(update={"answer_entity": "E1"})
    assert not is_of_documents(replace(found, question=question))
