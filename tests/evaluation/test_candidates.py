"""The statistics of C, worked by hand."""

import pytest

from rechain.errors import QuestionError
from rechain.evaluation.candidates import CandidateCount, count_candidates, errors_of, summarise_candidates
from rechain.schema import Gold, GoldChain, Question
from rechain.text.candidates import CandidateSettings, find_candidates


def gold(*chains: GoldChain, same: str = "links") -> Gold:
    return Gold(id="q", chains=list(chains), same=same)


def count_of(question: Question, settings: CandidateSettings, gold: Gold | None) -> CandidateCount:
    try:
        return count_candidates(question, find_candidates(question, settings), gold)
    except QuestionError as error:
        return count_candidates(question, error, gold)


def test_the_chains_tails_and_correct_chains_of_a_question_are_counted(bridge_question: Question) -> None:
    right = gold(GoldChain(passages=["opera", "composer"]), same="passages")
    count = count_of(bridge_question, CandidateSettings(), right)
    assert (count.chains, count.tails, count.correct, count.error, count.is_cut) == (3, 2, 1, None, False)
    assert count_of(bridge_question, CandidateSettings(), None).correct is None
    assert count_of(bridge_question, CandidateSettings(limit=1), right).is_cut


def test_a_gold_chain_that_names_its_links_by_text_is_found_in_c(bridge_question: Question) -> None:
    right = gold(GoldChain(passages=["opera", "composer"], links=["Anton Quillfeather"]))
    assert count_of(bridge_question, CandidateSettings(), right).correct == 1


@pytest.mark.parametrize(
    ("answer", "hops", "code", "tails"),
    [
        ("Oslo", 2, "no_tail", 0),
        ("yes", 2, "no_tail", 0),
        ("autumn", 2, "no_link", 1),
        ("Prague", 5, "too_few_passages", 2),
    ],
)
def test_a_question_without_a_chain_says_why(
    bridge_question: Question, answer: str, hops: int, code: str, tails: int
) -> None:
    asked = bridge_question.model_copy(update={"answer": answer})
    count = count_of(asked, CandidateSettings(hops=hops), gold(GoldChain(passages=["a"])))
    assert (count.chains, count.tails, count.correct) == (0, tails, 0)
    assert count.error
    assert count.error.code == code


def failed(code: str, tails: int = 0) -> CandidateCount:
    return CandidateCount(0, tails, 0, QuestionError(code, "why"))


def test_the_statistics_of_c_are_those_of_the_paper() -> None:
    counts = [CandidateCount(4, 2, 1), CandidateCount(2, 1, 2), failed("no_tail"), CandidateCount(6, 1, 0)]
    figures = {name: (figure.value, figure.questions) for name, figure in summarise_candidates(counts).items()}
    assert figures == {
        "chains a question": (3.0, 4),
        "tails a question": (1.0, 4),
        "gold chain in C": (0.5, 4),
        "accuracy of a random pick": (pytest.approx((0.25 + 1.0) / 4), 4),
        "questions without a chain": (0.25, 4),
    }


def test_questions_without_a_chain_are_counted_by_why() -> None:
    counts = [failed("no_tail"), CandidateCount(4, 2, 1), failed("no_link", tails=1), failed("no_tail")]
    assert errors_of(counts) == {"no_tail": 2, "no_link": 1}


def test_without_gold_only_sizes_are_told() -> None:
    assert set(summarise_candidates([CandidateCount(4, 2, None)])) == {
        "chains a question",
        "tails a question",
        "questions without a chain",
    }
