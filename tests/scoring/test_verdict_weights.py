"""Whether claims are supported: the numbers of small questions by hand, and what follows from the claims together."""

import pytest

from rechain.schema import Passage, Question
from rechain.scoring.verdict_weights import ClaimVerdict, conclude, describe_claims
from rechain.text.answers.claims import Claim
from rechain.text.answers.matcher import HeldClaim
from rechain.text.candidates import Candidates
from rechain.text.evidence.search import find_evidence

RATES = """| City | Hotel per night |
|---|---|
| Bern | EUR 210 |
| Zurich | EUR 180 |

These are prices for rooms with breakfast."""


def numbers(answer: str, *texts: str, asked: str = "What is the hotel rate in Zurich?") -> dict[str, float]:
    rows = [Passage(id=str(n), title=f"Entry {n}", text=text) for n, text in enumerate(texts)]
    question = Question(id="q", question=asked, answer=answer, passages=rows, hops=1)
    candidates: Candidates = find_evidence(question)
    (described,) = describe_claims(candidates, candidates.chains[0], 0.5, [2.5])
    return described


def test_an_answer_that_stands_word_for_word_in_an_entry_is_judged_by_the_judge() -> None:
    found = numbers("EUR 180", "Entry 0 is a hotel in Zurich, for EUR 180.", "Entry 1 is one in Bern, for EUR 210.")
    assert found == {"phrase": 1.0, "phrase: confidence": 0.0, "phrase: judge": 0.5}


def test_an_amount_of_a_passage_about_several_things_is_judged_by_its_rivals() -> None:
    entry, rates = "Entry 0 is about leave.", "Zurich: EUR 180 per night. Oslo: EUR 210 per night."
    assert numbers("EUR 210", entry, rates)["claim: rival value"] > 0
    assert numbers("EUR 180", entry, rates)["claim: rival value"] < 0


def test_the_same_answer_in_parts_of_documents_is_judged_by_its_rivals() -> None:
    parts = [f"Part {n} of the handbook, which says nothing of that.\n\nPage {n} of 9" for n in range(8)]
    rows = [Passage(id=str(n), title="", text=text) for n, text in enumerate((RATES, *parts))]
    question = Question(id="q", question="What is the hotel rate in Zurich?", answer="EUR 210", passages=rows, hops=1)
    candidates = find_evidence(question)
    (described,) = describe_claims(candidates, candidates.chains[0], 0.5, [2.5])
    assert described["claim: rival value"] > 0


def test_a_value_of_another_row_has_a_rival() -> None:
    assert numbers("They pay EUR 210 in Zurich.", RATES)["claim: rival value"] > 0
    assert numbers("They pay EUR 180 in Zurich.", RATES)["claim: rival value"] == -0.25


def test_a_value_that_stands_nowhere_is_told() -> None:
    assert numbers("Per night they pay EUR 999 for rooms with breakfast.", RATES)["claim: value stands nowhere"] == 1
    assert numbers("Per night they pay EUR 180 for rooms with breakfast.", RATES)["claim: value stands nowhere"] == 0


@pytest.mark.parametrize(
    ("probabilities", "verdict", "probability"),
    [
        ([0.9, 0.7], "supported", 14 / 15),  # 7 to 3, six times as likely
        ([0.5], "supported", 6 / 7),
        ([0.9, 0.2], "partly", 4 / 10),
        ([0.6, 0.1], "partly", 6 / 10),
        ([0.3, 0.1], "unsupported", 7 / 25),
    ],
)
def test_the_weakest_and_the_strongest_claim_decide(
    probabilities: list[float], verdict: str, probability: float
) -> None:
    held = HeldClaim(Claim("x", (), ()), {})
    found = conclude([ClaimVerdict(held, value, None) for value in probabilities])
    assert found == (verdict, pytest.approx(probability))


def test_a_question_of_very_many_values_hides_no_rival() -> None:
    asked = f"What is the hotel rate in Zurich, not {' '.join(map(str, range(1000, 5000)))}?"
    assert numbers("They pay EUR 210 in Zurich.", RATES, asked=asked)["claim: rival value"] > 0
