"""Answers in sentences: the answer stands in every one, and some have the question's words."""

from random import Random

import pytest

from rechain.preparation.answer_sentences import write_sentence


@pytest.mark.parametrize("asked", ["In which city was Ostrela's mayor born?", "Was it old?", "Name the town."])
def test_every_sentence_holds_the_answer_and_begins_with_a_capital(asked: str) -> None:
    written = {write_sentence(asked, "brown bread", Random(seed)) for seed in range(200)}
    assert len(written) >= 9
    assert all("brown bread" in text.lower() and text[0].isupper() for text in written)


def test_some_have_what_is_asked_for_where_the_question_begins_with_it() -> None:
    written = {write_sentence("Who is the mayor of Ostrela?", "Vexlor", Random(seed)) for seed in range(200)}
    assert "The mayor of Ostrela is Vexlor." in written
    assert not any("{" in text or "?" in text for text in written)
    written = {write_sentence("Is Vexlor the mayor?", "yes", Random(seed)) for seed in range(200)}
    assert not any("mayor" in text for text in written)
