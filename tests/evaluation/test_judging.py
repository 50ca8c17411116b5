"""Verdicts and figures, worked by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.candidates import CandidateSettings
from rechain.errors import QuestionError
from rechain.evaluation.candidates import CandidateCount, count_candidates, errors_of, summarise_candidates
from rechain.evaluation.judging import (
    CONFIDENCES,
    Verdict,
    accuracy_at_confidence,
    expected_calibration_error,
    is_correct,
    is_same_entity,
    is_unambiguous,
    judge,
    most_confident,
    summarise,
)
from rechain.evaluation.statistics import BINS, mean_with_interval
from rechain.schema import Chain, Gold, GoldChain, Link, Passage, Question


def gold(*chains: GoldChain, same: str = "links") -> Gold:
    return Gold(id="q", chains=list(chains), same=same)


def chain(passages: str, *links: str, confidence: float | None = None) -> Chain:
    """A chain of one-letter passages."""
    written = [Link(entity=entity, kind="name", weight=9.0, mentions=(None, None)) for entity in links]
    return Chain(passages=list(passages), links=written, score=0.0, confidence=confidence)


def correct(passages: str, links: list[str], wanted: Gold) -> bool:
    return is_correct(list(passages), links, wanted)


# ---- what counts as the same chain


@pytest.mark.parametrize(
    ("passages", "expected"), [("ab", True), ("ba", True), ("ac", False), ("a", False), ("abc", False)]
)
def test_passages_alone_count_whatever_their_order_and_links(passages: str, expected: bool) -> None:
    assert correct(passages, ["any"], gold(GoldChain(passages=["a", "b"], links=["x"]), same="passages")) is expected


@pytest.mark.parametrize(
    ("passages", "links", "expected"),
    [
        ("abc", ["x", "y"], True),
        ("cba", ["y", "x"], False),
        ("abc", ["y", "x"], False),
        ("abc", ["x"], False),
        ("abd", ["z", "z"], True),
    ],
)
def test_passages_in_order_and_links_count_together(passages: str, links: list[str], expected: bool) -> None:
    wanted = gold(GoldChain(passages=["a", "b", "c"], links=["x", "y"]), GoldChain(passages=["a", "b", "d"]))
    assert correct(passages, links, wanted) is expected


def test_no_gold_chain_makes_no_chain_correct() -> None:
    assert not correct("ab", ["x"], gold())
    assert not correct("ab", ["x"], gold(same="passages"))


passage_lists = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)


@given(passage_lists, st.lists(passage_lists, max_size=3), st.randoms(use_true_random=False))
def test_the_order_of_passages_does_not_matter_where_passages_count(
    passages: list[str], chains: list[list[str]], shuffler: random.Random
) -> None:
    wanted = gold(*(GoldChain(passages=c) for c in chains), same="passages")
    shuffled = gold(*(GoldChain(passages=shuffler.sample(c, len(c))) for c in chains), same="passages")
    reordered = shuffler.sample(passages, len(passages))
    assert is_correct(passages, [], wanted) is is_correct(reordered, [], shuffled)
    assert is_correct(passages, [], wanted) is (set(passages) in map(set, chains))


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ("The Beatles", "Beatles", True),
        ("Mercury (planet)", "Mercury", True),
        ("antonín dvořák", "Antonin Dvorak", True),
        ("St Louis", "St. Louis", True),
        ("gene:1", "gene:1", True),
        ("!!!", "!!!", True),
        ("!!!", "???", False),
        ("The", "A", False),
        ("Beatles", "Beetles", False),
        ("Anton", "Anton Zorn", False),
        ("gene:1", "gene:2", False),
    ],
)
def test_entities_are_the_same_but_for_spelling_article_and_suffix(found: str, wanted: str, same: bool) -> None:
    assert is_same_entity(found, wanted) is same
    assert is_same_entity(wanted, found) is same


# ---- one question

ORDERED = gold(GoldChain(passages=["a", "b"], links=["The Beatles"]), same="passages")


@pytest.mark.parametrize(
    ("recovered", "verdict"),
    [
        (chain("ab", "Beatles", confidence=0.9), Verdict(True, True, True, True, True, True, 0.9, with_links=True)),
        (chain("ab", "Stones"), Verdict(True, True, True, True, True, False, with_links=False)),
        (chain("ba", "Beatles"), Verdict(True, True, False, False, False, with_links=False)),
        (chain("ac", "Beatles"), Verdict(True, False, False, True, False, with_links=False)),
        (chain("cb", "Beatles"), Verdict(True, False, False, False, True, with_links=False)),
        (None, Verdict(False, False, False, False, False, with_links=False)),
    ],
)
def test_a_verdict_tells_what_is_right(recovered: Chain | None, verdict: Verdict) -> None:
    assert judge(recovered, ORDERED) == verdict


def test_order_head_and_tail_are_not_judged_where_the_gold_does_not_tell_them() -> None:
    unordered = gold(GoldChain(passages=["a", "b"], ordered=False), same="passages")
    assert judge(chain("ba", "x"), unordered) == Verdict(True, True)
    assert judge(None, unordered) == Verdict(False, False)


def test_any_of_several_gold_chains_will_do() -> None:
    several = gold(
        GoldChain(passages=["a", "b", "c"], links=["x", "y"]), GoldChain(passages=["d", "b", "c"], links=["z", "y"])
    )
    assert judge(chain("dbc", "z", "y"), several) == Verdict(True, True, True, True, True, True, with_links=True)
    assert judge(chain("dbc", "x", "y"), several) == Verdict(True, False, True, True, True, False, with_links=False)
    assert judge(chain("abe", "x", "y"), several) == Verdict(True, False, False, True, False, with_links=False)


def test_a_question_is_unambiguous_where_one_gold_passage_holds_the_answer() -> None:
    texts = {"a": "by Zorn", "b": "Zorn of Prague", "c": "Prague", "d": "PRAGUE!"}
    asked = Question(
        id="q", question="Where?", answer="Prague", passages=[Passage(id=i, text=text) for i, text in texts.items()]
    )
    assert is_unambiguous(asked, gold(GoldChain(passages=["a", "b"])))
    assert not is_unambiguous(asked, gold(GoldChain(passages=["b", "c"])))
    assert not is_unambiguous(asked, gold(GoldChain(passages=["a"])))


# ---- figures


def test_a_mean_comes_with_its_interval_and_number() -> None:
    figure = mean_with_interval([True, True, True, False])
    assert figure is not None
    assert (figure.value, figure.questions) == (0.75, 4)
    assert 0.0 <= figure.low <= 0.75 <= figure.high == 1.0
    assert mean_with_interval([]) is None
    assert mean_with_interval([2.0, 2.0]) == (2.0, 2.0, 2.0, 2)


def test_an_interval_is_the_same_each_time_and_narrows_with_more_questions() -> None:
    few, many = [True, False] * 20, [True, False] * 500
    assert mean_with_interval(few) == mean_with_interval(few)
    narrow, wide = mean_with_interval(many), mean_with_interval(few)
    assert narrow and wide
    assert narrow.high - narrow.low < (wide.high - wide.low) / 3


def test_the_interval_of_a_mean_is_about_two_standard_errors_on_either_side() -> None:
    figure = mean_with_interval([True] * 300 + [False] * 100)
    assert figure
    error = (0.75 * 0.25 / 400) ** 0.5
    assert figure.low == pytest.approx(0.75 - 1.96 * error, abs=0.006)
    assert figure.high == pytest.approx(0.75 + 1.96 * error, abs=0.006)


def test_intervals_cover_the_truth_in_about_95_of_100_samples() -> None:
    draw = random.Random(7).random
    figures = [mean_with_interval([draw() < 0.7 for _ in range(100)], seed=n) for n in range(60)]
    covering = sum(figure.low <= 0.7 <= figure.high for figure in figures if figure)
    assert 52 <= covering < 60


def test_every_figure_is_taken_over_the_questions_that_allow_it() -> None:
    verdicts = [
        Verdict(True, True, True, True, True, True),
        Verdict(True, True, False, False, False, None),
        Verdict(True, False),
        Verdict(False, False, False, False, False, None),
    ]
    figures = {name: (figure.value, figure.questions) for name, figure in summarise(verdicts).items()}
    third = pytest.approx(1 / 3)
    assert figures == {
        "chain accuracy": (0.5, 4),
        "ordered accuracy": (third, 3),
        "head recall": (third, 3),
        "tail recall": (third, 3),
        "links, where passages are right": (1.0, 1),
        "coverage": (0.75, 4),
    }


def test_figures_that_nothing_allows_are_left_out() -> None:
    assert set(summarise([Verdict(True, True)])) == {"chain accuracy", "coverage"}
    assert summarise([]) == {}


def test_accuracy_is_told_at_every_confidence() -> None:
    verdicts = [
        Verdict(True, True, confidence=0.99),
        Verdict(True, True, confidence=0.9),
        Verdict(True, False, confidence=0.6),
        Verdict(False, False),
    ]
    table = {row.min_confidence: row for row in accuracy_at_confidence(verdicts)}
    assert tuple(table) == CONFIDENCES
    told = {c: (row.kept, row.accuracy and row.accuracy.value) for c, row in table.items()}
    assert told[0.0] == (0.75, pytest.approx(2 / 3))
    assert told[0.6] == (0.75, pytest.approx(2 / 3))
    assert told[0.7] == told[0.9] == (0.5, 1.0)
    assert told[0.99] == (0.25, 1.0)


def test_a_confidence_that_nothing_reaches_has_no_accuracy() -> None:
    last = accuracy_at_confidence([Verdict(True, True, confidence=0.5)])[-1]
    assert (last.kept, last.accuracy) == (0.0, None)


def test_models_without_confidence_have_no_table() -> None:
    assert accuracy_at_confidence([Verdict(True, True)]) == []
    assert accuracy_at_confidence([]) == []


def sure(confidence: float, correct: bool) -> Verdict:
    return Verdict(True, correct, confidence=confidence)


NOTHING = Verdict(False, False)


def test_accuracy_is_told_of_the_most_confident_questions() -> None:
    verdicts = [sure(0.1, False), sure(0.9, True), NOTHING, sure(0.8, True), sure(0.5, False)]
    figures = {name: (figure.value, figure.questions) for name, figure in summarise(verdicts).items()}
    assert figures["accuracy, best half"] == (pytest.approx(2 / 3), 3)
    assert figures["accuracy, best three quarters"] == (0.5, 4)


@pytest.mark.parametrize(
    ("share", "kept"), [(0.5, [0.9, 0.6]), (0.75, [0.9, 0.6, 0.0]), (1.0, [0.9, 0.6, 0.0, None]), (0.1, [0.9])]
)
def test_the_most_confident_come_first_and_those_without_a_chain_last(share: float, kept: list[float | None]) -> None:
    verdicts = [NOTHING, sure(0.0, True), sure(0.9, True), sure(0.6, False)]
    assert [verdict.confidence for verdict in most_confident(verdicts, share)] == kept


def test_chains_that_were_dropped_do_not_change_the_best_half() -> None:
    kept, dropped = [sure(0.9, True), sure(0.7, False)], [sure(0.3, True), sure(0.1, False)]
    assert most_confident(kept + dropped, 0.5) == most_confident(kept + [NOTHING] * 2, 0.5) == kept


def test_the_calibration_error_is_the_weighted_gap_of_the_bins() -> None:
    verdicts = [sure(0.95, True), sure(0.97, True), sure(0.99, False), sure(0.41, False), NOTHING]
    gaps = 3 / 4 * abs((0.95 + 0.97 + 0.99) / 3 - 2 / 3) + 1 / 4 * 0.41
    assert expected_calibration_error(verdicts) == pytest.approx(gaps)


def test_gaps_cancel_within_a_bin_and_not_between_bins() -> None:
    low, high = 0.5 - 0.4 / BINS, 0.5 + 0.4 / BINS
    assert expected_calibration_error([sure(low, False), sure(high, True)]) == pytest.approx(0.0)
    assert expected_calibration_error([sure(0.25, True), sure(0.75, False)]) == pytest.approx(0.75)


@pytest.mark.parametrize(("confidence", "correct", "error"), [(1.0, True, 0.0), (1.0, False, 1.0), (0.0, False, 0.0)])
def test_certainty_is_binned_too(confidence: float, correct: bool, error: float) -> None:
    assert expected_calibration_error([sure(confidence, correct)]) == error


def test_confidence_that_is_as_often_right_as_it_says_has_hardly_an_error() -> None:
    draw = random.Random(3).random
    honest = [sure(confidence, draw() < confidence) for confidence in (draw() for _ in range(20_000))]
    boastful = [sure(min(1.0, v.confidence + 0.2), v.correct) for v in honest if v.confidence is not None]
    assert expected_calibration_error(honest) == pytest.approx(0.0, abs=0.02)
    assert expected_calibration_error(boastful) == pytest.approx(0.18, abs=0.02)


def test_models_without_confidence_have_no_figures_of_it() -> None:
    verdicts = [Verdict(True, True), NOTHING]
    assert expected_calibration_error(verdicts) is None
    assert expected_calibration_error([]) is None
    assert most_confident(verdicts, 0.5) == []
    assert set(summarise(verdicts)) == {"chain accuracy", "coverage"}


# ---- candidates


def test_the_chains_tails_and_correct_chains_of_a_question_are_counted(bridge_question: Question) -> None:
    right = gold(GoldChain(passages=["opera", "composer"]), same="passages")
    count = count_candidates(bridge_question, CandidateSettings(), right)
    assert (count.chains, count.tails, count.correct, count.error, count.is_cut) == (3, 2, 1, None, False)
    assert count_candidates(bridge_question, CandidateSettings(), None).correct is None
    assert count_candidates(bridge_question, CandidateSettings(limit=1), right).is_cut


def test_a_gold_chain_that_names_its_links_by_text_is_found_in_c(bridge_question: Question) -> None:
    right = gold(GoldChain(passages=["opera", "composer"], links=["Anton Quillfeather"]))
    assert count_candidates(bridge_question, CandidateSettings(), right).correct == 1


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
    count = count_candidates(asked, CandidateSettings(hops=hops), gold(GoldChain(passages=["a"])))
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
