"""Whether a claimed value or name stands where the question asks for it."""

import pytest

from rechain.schema import Passage, Question
from rechain.scoring.verdict_weights import Rivals
from rechain.text.answers.claims import Claim
from rechain.text.evidence.search import find_evidence

RATES = """| City | Hotel per night | Meals |
|---|---|---|
| London | EUR 210 | EUR 48 |
| Zurich | EUR 180 | EUR 62 |"""
OFFICES = "In the Greifenau plant Swantje Koll is in charge, in the Altmoor plant Bernd Ihlenfeld."


def compare(asked: str, answer: str, *texts: str) -> tuple[Rivals, Claim]:
    rows = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    question = Question(id="q", question=asked, answer=answer, passages=rows, hops=1)
    candidates = find_evidence(question)
    return Rivals(candidates), candidates.holdings.claims[0].claim


def values(asked: str, answer: str, *texts: str) -> float:
    rivals, claim = compare(asked, answer, *texts)
    return rivals.compare_values(claim)


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [
        ("The company pays EUR 180 for a hotel in Zurich.", True),
        ("The company pays EUR 210 for a hotel in Zurich.", False),  # of London
        ("The company pays EUR 62 for a hotel in Zurich.", False),  # for meals
    ],
)
def test_the_row_and_the_column_tell_a_value_from_its_rivals(answer: str, is_right: bool) -> None:
    assert (values("What may a hotel in Zurich cost?", answer, RATES) < 0) == is_right


def test_clauses_tell_values_apart() -> None:
    text = "The free tier has 60 calls a minute, the team tier 600 calls."
    question = "How many calls does the team tier have?"
    assert values(question, "There are 600 of them.", text) < 0
    assert values(question, "There are 60 of them.", text) > 0


def test_values_of_other_kinds_are_no_rivals() -> None:
    assert values("What is the rate in Zurich?", "It is EUR 210.", "Bern: EUR 210. Zurich: 12 kg.") == 0


def test_values_of_other_passages_are_no_rivals() -> None:
    texts = "The rate in Bern is EUR 210.", "The rate in Zurich is EUR 180."
    assert values("What is the rate in Zurich?", "It is EUR 210.", *texts) == 0


def test_a_number_below_the_head_that_says_what_it_counts_is_a_quantity() -> None:
    table = "| Office | Days of leave |\n|---|---|\n| Lyon | 28 |\n| Porto | 25 |"
    assert values("How much leave is there in Porto?", "There are 28 days of leave.", table) > 0
    assert values("How much leave is there in Porto?", "There are 25 days of leave.", table) < 0


def test_opening_hours_may_stand_in_two_parts() -> None:
    text = "The desk is open from 9:00 to 17:00, on Thursdays until 18:30."
    rivals, claim = compare("And on Thursdays?", "The desk opens from 9:00 to 18:30.", text)
    assert [rivals.stands_nowhere(value) for value in rivals.claimed_values(claim)] == [False]


def test_a_value_that_no_passage_has_stands_nowhere() -> None:
    rivals, claim = compare("What is the rate in Zurich?", "For a hotel per night it is EUR 999.", RATES)
    assert [rivals.stands_nowhere(value) for value in rivals.claimed_values(claim)] == [True]


def test_what_the_question_says_and_a_mere_first_are_not_claimed() -> None:
    rivals, claim = compare("Who pays EUR 210?", "First, London pays EUR 210 and EUR 48.", RATES)
    assert [value.key for value in rivals.claimed_values(claim)] == ["=48 EUR"]


@pytest.mark.parametrize(("name", "is_right"), [("Swantje Koll", True), ("Bernd Ihlenfeld", False)])
def test_names_have_rivals_too(name: str, is_right: bool) -> None:
    rivals, claim = compare("Who is in charge of the Greifenau plant?", f"It is led by {name}.", OFFICES)
    assert (rivals.compare_names(claim).question < 0) == is_right


def test_a_word_beside_a_rare_word_of_the_question_leads_on() -> None:
    zones = "Mill Lane is in zone North, Dock Street in zone South."
    fees = "| Zone | Fee |\n|---|---|\n| North | 96 euros |\n| South | 60 euros |"
    question = "What is the fee in Dock Street?"
    assert values(question, "You pay 60 euros there.", zones, fees) < 0
    assert values(question, "You pay 96 euros there.", zones, fees) > 0


def test_another_row_may_fit_better_than_that_with_the_words_of_the_claim() -> None:
    points = "Castle Row: the gate of the churchyard\nCanal Court: the bandstand on the far bank"
    asked = "Where do we meet at Canal Court?"
    wrong, claim = compare(asked, "You meet at the gate of the churchyard.", points)
    assert wrong.compare_rows(claim) > 0
    right, claim = compare(asked, "You meet at the bandstand.", points)
    assert right.compare_rows(claim) == 0
    prose, claim = compare(asked, "You meet at the bandstand.", "At Canal Court we meet. The bandstand is blue.")
    assert prose.compare_rows(claim) == 0
