"""Which passages hold the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import QuestionError
from rechain.schema import Mention, Passage, Question
from rechain.text.answers import AnswerMatcher
from rechain.text.passages import PassageView


def question(answer: str, *texts: str, **fields: object) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    return Question(id="q", question="Which?", answer=answer, **{"passages": passages, **fields})


def tails(asked: Question) -> list[int]:
    return AnswerMatcher(asked).find_tails([PassageView(passage) for passage in asked.passages])


@pytest.mark.parametrize(
    ("answer", "text", "held"),
    [
        ("car", "A car stops.", True),
        ("car", "A caravan stops.", False),
        ("car", "A car's wheel, (car)", True),
        ("dvorak", "Antonín DVOŘÁK", True),
        ("Dvořák", "Antonin Dvorak", True),
        ("Dvor\u030ca\u0301k", "Antonín Dvořák", True),
        ("1,234", "There were 1234 men.", True),
        ("1234", "There were 1,234 men.", True),
        ("234", "There were 1,234 men.", False),
        ("St. Louis", "St Louis, Missouri", True),
        ("St Louis", "in St. Louis", True),
        ("Saint Louis", "in St. Louis", False),
        ("C++", "Vitamin C is sour.", False),
        ("C", "Written in C++.", False),
        ("C++", "Written in C++.", True),
        ("Straße", "die STRASSE", True),
        ("!!!", "The band !!! plays.", True),
        ("!!!", "The band plays!", False),
        ("東京", "彼は東京に住む", True),
        ("1990", "in 1990.", True),
        ("spider man", "Spider-Man", True),
        ("\u0301", "There is no accent here.", False),
        ("ﾞ", "There is no voiced mark here.", False),
    ],
)
def test_an_answer_is_held_as_whole_folded_words(answer: str, text: str, held: bool) -> None:
    assert AnswerMatcher(question(answer)).is_held_by(Passage(id="p", text=text)) is held


def test_the_title_counts_too_but_not_across_into_the_text() -> None:
    passage = Passage(id="p", title="Prague (city)", text="Castle hill")
    assert AnswerMatcher(question("prague")).is_held_by(passage)
    assert not AnswerMatcher(question("Prague Castle")).is_held_by(passage)
    assert AnswerMatcher(question("***")).is_held_by(Passage(id="p", title="B***", text="x"))


def test_an_alias_counts_as_the_answer_does() -> None:
    asked = question("Praha", "Nothing here.", "Prague lies there.", "PRAHA", answer_aliases=["Prague"])
    assert tails(asked) == [1, 2]


def test_the_answers_entity_decides_whatever_the_text_says() -> None:
    passages = [
        Passage(id="text", text="p53 here", mentions=[Mention(entity="gene:2", start=0, end=3)]),
        Passage(id="entity", text="TP53 here", mentions=[Mention(entity="gene:1", start=0, end=4)]),
    ]
    asked = question("p53", passages=passages, answer_entity="gene:1")
    assert tails(asked) == [1]


def test_an_identifier_in_the_text_is_the_answers_entity_where_no_mentions_are_given() -> None:
    assert tails(question("DB00072", "DB00072 works", "DB00073 works", answer_entity="drug:DB00072")) == [0]


@pytest.mark.parametrize("answer", ["yes", "No", "YES.", " no ", "Yes!"])
def test_a_judgement_has_no_tail_and_the_error_says_why(answer: str) -> None:
    with pytest.raises(QuestionError, match=f"no tail: the answer '{answer}' judges") as caught:
        tails(question(answer, "yes or no"))
    assert caught.value.code == "no_tail"


def test_a_judging_word_with_an_entity_is_an_answer_like_others() -> None:
    passages = [Passage(id="p", text="Yes plays", mentions=[Mention(entity="band:Yes", start=0, end=3)])]
    assert tails(question("Yes", passages=passages, answer_entity="band:Yes")) == [0]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (question("Oslo", "in Prague", answer_aliases=["Kristiania"]), "'Oslo' or 'Kristiania' as whole words"),
        (question("Oslo", "in Oslo", answer_entity="city:1"), "mentions the answer's entity 'city:1'"),
        (question("x" * 200, "in Oslo"), "x{79}…'"),
    ],
)
def test_an_answer_that_no_passage_holds_gives_no_tail(asked: Question, reason: str) -> None:
    with pytest.raises(QuestionError, match=reason) as caught:
        tails(asked)
    assert caught.value.code == "no_tail"


@given(st.text(min_size=1).filter(str.strip), st.text("., ()\n", max_size=3), st.text("., ()\n", max_size=3))
def test_a_passage_that_is_the_answer_between_punctuation_holds_it(answer: str, before: str, after: str) -> None:
    assert AnswerMatcher(question(answer)).is_held_by(Passage(id="p", text=f"{before} {answer} {after}"))
