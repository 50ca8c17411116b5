"""Whether claims are supported: the numbers of small questions by hand, and what follows from the claims together."""

from collections.abc import Sequence
from math import log

import pytest

from rechain.answers.claims import Claim
from rechain.answers.matching import HeldClaim
from rechain.candidates import Candidates, find_of_any_shape
from rechain.schema import Passage, Question
from rechain.scoring.verdicts import ClaimVerdict, conclude, describe_claims

RATES = "The rate in Bern is EUR 210.", "The rate in Zurich is EUR 180."


def numbers(asked: str, answer: str, texts: Sequence[str] = RATES) -> dict[str, float]:
    rows = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    question = Question(id="q", question=asked, answer=answer, passages=rows, hops=1)
    candidates: Candidates = find_of_any_shape(question)
    (described,) = describe_claims(candidates, candidates.chains[0], 0.5, None)
    return described


def test_a_value_of_another_row_has_a_rival_and_a_gap() -> None:
    found = numbers("What is the rate in Zurich?", "EUR 210")
    assert found["phrase: rival value"] == 1
    # of two sentences both hold "the", "rate", "in" and "is", and one holds "zurich"
    shared, alone = log(3 / 2), log(3)
    assert found["phrase: gap"] == pytest.approx(alone / (4 * shared + alone))
    assert found["phrase: gap of a single"] == found["phrase: gap"]


def test_the_value_of_the_row_itself_has_neither() -> None:
    found = numbers("What is the rate in Zurich?", "EUR 180")
    assert (found["phrase: rival value"], found["phrase: gap"]) == (0, 0)


def test_a_value_said_of_another_place_has_a_rival() -> None:
    question = "What is the rate in Zurich?"
    assert numbers(question, "EUR 210 in Zurich")["other: rival value"] == 1
    assert numbers(question, "EUR 180 in Zurich")["other: rival value"] == 0


def test_a_value_of_another_kind_is_no_rival() -> None:
    texts = RATES[0], "The rate in Zurich is 12 kg."
    assert numbers("What is the rate in Zurich?", "EUR 210", texts)["phrase: rival value"] == 0


@pytest.mark.parametrize(
    ("probabilities", "verdict", "probability"),
    [
        ([0.9, 0.7], "supported", 0.7),
        ([0.5], "supported", 0.5),
        ([0.9, 0.2], "partly", 0.8),
        ([0.6, 0.1], "partly", 0.6),
        ([0.3, 0.1], "unsupported", 0.7),
    ],
)
def test_the_weakest_and_the_strongest_claim_decide(
    probabilities: list[float], verdict: str, probability: float
) -> None:
    held = HeldClaim(Claim("x", (), ()), {})
    found = conclude([ClaimVerdict(held, value, None, None) for value in probabilities])
    assert found == (verdict, pytest.approx(probability))


def test_a_question_of_very_many_values_hides_no_rival() -> None:
    question = f"What is the rate in Zurich, not {' '.join(map(str, range(1000, 5000)))}?"
    assert numbers(question, "EUR 210")["phrase: rival value"] == 1
