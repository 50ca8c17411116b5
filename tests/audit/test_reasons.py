"""One plain sentence for every verdict."""

from typing import Any

import pytest

from rechain.schema import Passage


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, "'City rates' holds the answer word for word; 'Travel' leads to it by 'City rates'."),
        (
            {"shape": "single", "passages": ["rates"], "links": []},
            "'City rates' holds the answer word for word.",
        ),
        (
            {"shape": "parallel", "passages": ["leave", "rates"], "links": []},
            "'City rates' holds the answer word for word; it stands side by side with 'Leave'.",
        ),
        ({"answer": None}, "'City rates' holds the answer; 'Travel' leads to it by 'City rates'."),
        (
            {"answer": {"match": "normalised", "passage": "rates"}, "links": []},
            "'City rates' holds the answer in another notation.",
        ),
    ],
)
def test_what_supports_an_answer(answered: Any, chain: Any, change: dict[str, Any], sentence: str) -> None:
    assert answered(chains=[chain | change]).reason == sentence


def test_of_several_links_the_weakest_is_named(answered: Any, chain: Any) -> None:
    weak = chain["links"][0] | {"entity": "How", "weight": 5.0}
    longer = chain | {"passages": ["leave", "travel", "rates"], "links": [chain["links"][0], weak]}
    assert answered(chains=[longer]).reason.endswith("'Leave' leads to it over 2 links, of which 'How' is the weakest.")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("The limit is EUR 999.", "No passage holds '999'."),
        ("The limit is EUR 210 in Zurich.", "No sentence holds '210' together with 'Zurich'."),
        ("It is 27 in Zurich.", "No passage holds '27' together with 'Zurich'."),
        ("Hotels in Zurich need approval from Jonas Feld.", "No passage holds 'need' or 'approval' or 'Jonas'."),
    ],
)
def test_what_a_doubtful_answer_lacks(answered: Any, answer: str, sentence: str) -> None:
    claim = {"text": answer, "verdict": "unsupported"}
    assert answered("unsupported", answer=answer, claims=[claim]).reason == sentence
    assert answered("unsupported", answer=answer).reason == sentence


def test_a_number_is_named_as_it_is_written(answered: Any) -> None:
    assert answered("unsupported", answer="It is EUR 1,250.50.").reason == "No passage holds '1,250.50'."


def test_inflection_does_not_make_a_word_missing(answered: Any) -> None:
    said = answered("unsupported", question="Whom do I ask?", answer="Mara Lind, each Monday.").reason
    assert "Monday" not in said


def test_an_answer_of_words_that_all_stand_together_is_said_to_be_so(answered: Any) -> None:
    said = answered("unsupported", question="who is it?", answer="Mara Lind").reason
    assert said == "The passages hold its words, but not what it says with them."


def test_part_of_an_answer_is_counted(answered: Any) -> None:
    claims = [
        {"text": "The limit is EUR 180.", "verdict": "supported", "passage": "rates", "span": [0, 23]},
        {"text": "Taxis are free.", "verdict": "unsupported"},
    ]
    said = answered("partly", answer="The limit is EUR 180. Taxis are free.", claims=claims).reason
    assert said == "1 of 2 claims held: no passage holds 'Taxis' or 'free'."


def test_an_answer_in_a_script_without_blanks_is_named_by_phrases(answered: Any) -> None:
    passages = [Passage(id="p", text="试用期为三个月。")]
    said = answered("unsupported", question="试用期多长？", answer="试用期为九个星期。", passages=passages).reason
    assert said.startswith("No passage holds '")
    assert "九" in said


def test_without_passages(answered: Any) -> None:
    assert answered("unsupported", passages=[]).reason == "There is no passage that could support it."


def test_without_an_answer_or_a_verdict(answered: Any) -> None:
    assert answered("no_answer", answer="I do not know.").reason == "The answer says that there is none."
    assert answered(None, error={"code": "no_link", "message": "no link."}).reason == "no link."
    assert answered(None).reason == "The model gives no verdict."
