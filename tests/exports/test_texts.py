"""Passages as texts, and hard negatives."""

from typing import Any

import pytest

from rechain.exports.joining import Joined
from rechain.exports.texts import hard_negatives, text_of
from rechain.schema import Passage, Question


@pytest.mark.parametrize(
    ("title", "text", "whole"),
    [
        ("", "It rains.", "It rains."),
        ("  ", "It rains.", "It rains."),
        ("Weather", "It rains.", "Weather: It rains."),
        ("Weather", "Weather, bad.", "Weather, bad."),
        ("Rain", "Rainy days.", "Rain: Rainy days."),
    ],
)
def test_a_passage_has_its_title_once(title: str, text: str, whole: str) -> None:
    assert text_of(Passage(id="p", title=title, text=text)) == whole


def asked(*texts: str, answer: str = "Prague") -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    return Question(id="q", question="Which green river has a bridge?", answer=answer, passages=passages)


TEXTS = ("A river.", "Prague.", "It rains.", "A green river with a bridge.", "A green river.", "A bridge in Prague.")


def names(question: Question, chains: Any) -> list[str]:
    return [passage.id for passage in hard_negatives(Joined(question, chains, {}))]


def test_those_that_hold_the_answer_come_first_then_those_most_like_the_question(recovered: Any) -> None:
    assert names(asked(*TEXTS), recovered("q", ["0", "1"])) == ["5", "3", "4", "2"]


def test_those_that_hold_a_link_come_first_too(recovered: Any) -> None:
    link = {"entity": "It Rains", "kind": "name", "weight": 9.0, "mentions": [None, None]}
    assert names(asked(*TEXTS), recovered("q", ["0", "1"], links=[link])) == ["5", "2", "3", "4"]


def test_passages_of_other_chains_are_no_negatives(recovered: Any) -> None:
    assert names(asked(*TEXTS), recovered("q", ["0", "1"], ["4", "1"])) == ["5", "3", "2"]


def test_a_passage_that_says_the_same_as_one_of_the_chain_is_no_negative(recovered: Any) -> None:
    assert names(asked(*TEXTS, "A river."), recovered("q", ["0", "1"])) == ["5", "3", "4", "2"]


def test_equals_stay_in_the_order_of_the_file(recovered: Any) -> None:
    question = asked("A river.", "Prague.", "It rains.", "It snows.", "It hails.")
    assert names(question, recovered("q", ["0", "1"])) == ["2", "3", "4"]


def test_an_entity_of_the_answer_decides_what_holds_it(recovered: Any) -> None:
    question = asked("DB00001 and P12345", "P12345 and DB00002", "no drug", "river DB00002", answer="DB00002")
    question = question.model_copy(update={"answer_entity": "drug:DB00002"})
    assert names(question, recovered("q", ["0", "1"])) == ["3", "2"]
