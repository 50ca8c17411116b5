"""Wrong answers: of the right kind, in the passages, and never the right answer in other words."""

from collections.abc import Sequence

import pytest

from rechain.reader.wrong_answers import Kind, WrongAnswers, kind_of
from rechain.schema import Passage, Question
from rechain.text.passage_views import PassageView

TEXTS = (
    "Ostrela is a town. Brimlad Vexlor built its bridge in 1871 for Quorvath Zimbelot.",
    "The bridge of Ostrela was widened in 1902 by Karel Munch.",
    "Marbeth Loon was a singer. She died in 1955.",
)


def question(answer: str, asked: str = "Who built the bridge of Ostrela?", **fields: object) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(TEXTS)]
    record = {"id": "q", "question": asked, "answer": answer, "passages": passages, **fields}
    return Question.model_validate(record)


def chosen(asked: Question, others: Sequence[str] = (), most: int = 6, tails: Sequence[int] = (0,)) -> list[str]:
    pool = [asked, *(asked.model_copy(update={"answer": answer}) for answer in others)]
    return WrongAnswers(pool).choose(asked, [PassageView(passage) for passage in asked.passages], tails, most)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("yes", "judgement"),
        ("No.", "judgement"),
        ("1871", "year"),
        ("14 May 2023", "date"),
        ("3,677 seated", "number"),
        ("Brimlad Vexlor", "name"),
        ("a stone bridge", "phrase"),
        ("!!!", "phrase"),
    ],
)
def test_answers_are_told_apart_by_their_form(answer: str, kind: Kind) -> None:
    assert kind_of(answer) == kind


def test_wrong_answers_are_other_names_or_values_of_the_passages() -> None:
    assert set(chosen(question("Brimlad Vexlor"))) == {"Quorvath Zimbelot", "Karel Munch", "Marbeth Loon"}
    assert set(chosen(question("1871"))) == {"1902", "1955"}


def test_the_answers_of_other_questions_count_if_they_stand_in_the_passages_and_are_of_its_kind() -> None:
    asked = question("Brimlad Vexlor")
    wrong = WrongAnswers([asked, question("Karel Munch"), question("Nobody Else"), question("1902"), question("yes")])
    views = [PassageView(passage) for passage in asked.passages]
    assert wrong.of_others(asked, views) == ["Karel Munch"]


@pytest.mark.parametrize(
    "other", ["Vexlor", "Brimlad Vexlor built", "Vexlor Brimlad", "The Brimlad Vexlor", "B. Vexlor"]
)
def test_what_is_almost_the_right_answer_is_not_wrong(other: str) -> None:
    assert other not in chosen(question("Brimlad Vexlor", answer_aliases=["B. Vexlor"]), [other])


def test_what_the_question_names_is_no_hard_answer_but_where_the_right_one_is_named_too() -> None:
    asked = "Who worked for Quorvath Zimbelot?"
    assert "Quorvath Zimbelot" not in chosen(question("Brimlad Vexlor", asked))
    passages = [Passage(id=name, title=name, text="A person.") for name in ("Ana Loon", "Bo Munch")]
    compared = Question(id="c", question="Who is older, Ana Loon or Bo Munch?", answer="Ana Loon", passages=passages)
    assert chosen(compared) == ["Bo Munch"]


def test_the_opposite_of_a_judgement_is_wrong() -> None:
    assert (chosen(question("Yes.")), chosen(question("no"))) == (["no"], ["yes"])


def test_a_phrase_has_phrases_of_its_length() -> None:
    wrong = chosen(question("bridge"))
    assert wrong and all(text.islower() and " " not in text for text in wrong)
    assert chosen(question("!!!")) == []


def test_half_are_of_others_as_far_as_there_are_and_the_question_decides_which() -> None:
    asked = question("Brimlad Vexlor")
    assert set(chosen(asked, ["Marbeth Loon"], most=2)) >= {"Marbeth Loon"}
    assert len(chosen(asked, most=1)) == 1
    assert chosen(asked, ["Karel Munch"]) == chosen(asked, ["Karel Munch"])
