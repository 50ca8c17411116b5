"""Verdicts and figures, worked by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import QuestionError
from rechain.evaluation.judging import (
    CONFIDENCES,
    CandidateCount,
    Comparison,
    JudgedAnswer,
    JudgedChain,
    accuracy_at_confidence,
    compare,
    count_candidates,
    is_correct,
    is_same_entity,
    is_unambiguous,
    judge,
    most_confident,
    summarise,
    summarise_candidates,
    summarise_verdicts,
)
from rechain.evaluation.statistics import paired_difference
from rechain.schema import Chain, Gold, GoldChain, Link, Passage, Question, Recovered
from rechain.text.candidates import CandidateSettings


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
        (chain("ab", "Beatles", confidence=0.9), JudgedChain(True, True, True, True, True, True, 0.9, with_links=True)),
        (chain("ab", "Stones"), JudgedChain(True, True, True, True, True, False, with_links=False)),
        (chain("ba", "Beatles"), JudgedChain(True, True, False, False, False, with_links=False)),
        (chain("ac", "Beatles"), JudgedChain(True, False, False, True, False, with_links=False)),
        (chain("cb", "Beatles"), JudgedChain(True, False, False, False, True, with_links=False)),
        (None, JudgedChain(False, False, False, False, False, with_links=False)),
    ],
)
def test_a_verdict_tells_what_is_right(recovered: Chain | None, verdict: JudgedChain) -> None:
    assert judge(recovered, ORDERED) == verdict


def test_order_head_and_tail_are_not_judged_where_the_gold_does_not_tell_them() -> None:
    unordered = gold(GoldChain(passages=["a", "b"], ordered=False), same="passages")
    assert judge(chain("ba", "x"), unordered) == JudgedChain(True, True)
    assert judge(None, unordered) == JudgedChain(False, False)


def test_any_of_several_gold_chains_will_do() -> None:
    several = gold(
        GoldChain(passages=["a", "b", "c"], links=["x", "y"]), GoldChain(passages=["d", "b", "c"], links=["z", "y"])
    )
    assert judge(chain("dbc", "z", "y"), several) == JudgedChain(True, True, True, True, True, True, with_links=True)
    assert judge(chain("dbc", "x", "y"), several) == JudgedChain(True, False, True, True, True, False, with_links=False)
    assert judge(chain("abe", "x", "y"), several) == JudgedChain(True, False, False, True, False, with_links=False)


def test_a_question_is_unambiguous_where_one_gold_passage_holds_the_answer() -> None:
    texts = {"a": "by Zorn", "b": "Zorn of Prague", "c": "Prague", "d": "PRAGUE!"}
    asked = Question(
        id="q", question="Where?", answer="Prague", passages=[Passage(id=i, text=text) for i, text in texts.items()]
    )
    assert is_unambiguous(asked, gold(GoldChain(passages=["a", "b"])))
    assert not is_unambiguous(asked, gold(GoldChain(passages=["b", "c"])))
    assert not is_unambiguous(asked, gold(GoldChain(passages=["a"])))


# ---- figures


def test_every_figure_is_taken_over_the_questions_that_allow_it() -> None:
    verdicts = [
        JudgedChain(True, True, True, True, True, True),
        JudgedChain(True, True, False, False, False, None),
        JudgedChain(True, False),
        JudgedChain(False, False, False, False, False, None),
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


def test_accuracy_is_told_at_every_confidence() -> None:
    verdicts = [
        JudgedChain(True, True, confidence=0.99),
        JudgedChain(True, True, confidence=0.9),
        JudgedChain(True, False, confidence=0.6),
        JudgedChain(False, False),
    ]
    table = {row.min_confidence: row for row in accuracy_at_confidence(verdicts)}
    assert tuple(table) == CONFIDENCES
    rows = {c: (row.kept, row.accuracy and row.accuracy.value) for c, row in table.items()}
    assert rows[0.0] == (0.75, pytest.approx(2 / 3))
    assert rows[0.6] == (0.75, pytest.approx(2 / 3))
    assert rows[0.7] == rows[0.9] == (0.5, 1.0)
    assert rows[0.99] == (0.25, 1.0)
    last = accuracy_at_confidence([JudgedChain(True, True, confidence=0.5)])[-1]
    assert (last.kept, last.accuracy) == (0.0, None)  # no chain is so confident
    assert accuracy_at_confidence([JudgedChain(True, True)]) == accuracy_at_confidence([]) == []


def sure(confidence: float, correct: bool) -> JudgedChain:
    return JudgedChain(True, correct, confidence=confidence)


NOTHING = JudgedChain(False, False)


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


def test_models_without_confidence_have_no_figures_of_it() -> None:
    verdicts = [JudgedChain(True, True), NOTHING]
    assert most_confident(verdicts, 0.5) == []
    assert set(summarise(verdicts)) == {"chain accuracy", "coverage"}
    assert summarise([]) == {}


# ---- shapes


def parallel(passages: str, *links: str) -> Chain:
    return chain(passages, *links).model_copy(update={"shape": "parallel"})


@pytest.mark.parametrize("same", ["links", "passages"])
def test_passages_side_by_side_count_in_any_order(same: str) -> None:
    side_by_side = gold(GoldChain(shape="parallel", passages=["a", "b"]), same=same)
    for found in (parallel("ab"), parallel("ba"), chain("ba", "x")):
        assert judge(found, side_by_side) == JudgedChain(True, True)
    assert not judge(parallel("ac"), side_by_side).correct
    assert judge(None, side_by_side) == JudgedChain(False, False)


def test_passages_side_by_side_are_no_chain_whose_links_count() -> None:
    assert judge(parallel("ba"), gold(GoldChain(passages=["a", "b"]))).correct
    named = gold(GoldChain(passages=["a", "b"], links=["x"]))
    assert judge(parallel("ab"), named) == JudgedChain(True, False, False, False, False, with_links=False)


def test_a_single_is_right_by_its_one_passage() -> None:
    single = gold(GoldChain(passages=["a"], links=[]))
    found = chain("a").model_copy(update={"shape": "single"})
    assert judge(found, single) == JudgedChain(True, True, True, True, True)
    assert judge(chain("ab", "x"), single) == JudgedChain(True, False, False, True, False)


# ---- two sources compared


def test_pairs_are_counted_and_the_second_is_compared_with_the_first() -> None:
    pairs = [(True, True)] * 3 + [(True, False)] * 2 + [(False, True)] * 6 + [(False, False)]
    comparison = Comparison.of(pairs)
    assert comparison == (3, 2, 6, 1)
    assert comparison.gain == paired_difference(6, 2, 12)
    assert Comparison.of([]).gain is None


def test_figures_that_gold_does_not_decide_are_left_out() -> None:
    first = [JudgedChain(True, True, ordered=True), JudgedChain(True, False)]
    second = [JudgedChain(False, False, ordered=False), JudgedChain(True, True)]
    compared = compare(first, second)
    assert compared["chain accuracy"] == (0, 1, 1, 0)
    assert compared["ordered accuracy"] == (0, 1, 0, 0)
    assert compared["coverage"] == (1, 1, 0, 0)
    assert compared.keys() == {"chain accuracy", "ordered accuracy", "coverage"}


# ---- verdicts on answers

ANSWERS = [
    JudgedAnswer("supported", 0.9, "supported"),
    JudgedAnswer("partly", 0.6, "supported"),
    JudgedAnswer("partly", 0.5, "unsupported"),
    JudgedAnswer("unsupported", 0.8, "unsupported"),
    JudgedAnswer(None, None, "no_answer"),
]


def test_figures_over_all_and_by_the_right_verdict() -> None:
    figures = {name: (figure.value, figure.questions) for name, figure in summarise_verdicts(ANSWERS).items()}
    assert figures == {
        "verdict accuracy": (0.4, 5),
        "verdict accuracy, supported": (0.5, 2),
        "verdict accuracy, unsupported": (0.5, 2),
        "verdict accuracy, no answer given": (0.0, 1),
        "unsupported flagged": (1.0, 2),
    }


def test_without_verdicts_there_are_no_figures() -> None:
    silent = [JudgedAnswer.of(recovered, "supported") for recovered in (None, Recovered(chains=[]))]
    assert summarise_verdicts(silent) == {}


# ---- the statistics of C


def test_the_chains_tails_and_correct_chains_of_a_question_are_counted(bridge_question: Question) -> None:
    right = gold(GoldChain(passages=["opera", "composer"]), same="passages")
    count = count_candidates(bridge_question, right)
    assert (count.chains, count.tails, count.correct, count.error, count.is_cut) == (3, 2, 1, None, False)
    assert count_candidates(bridge_question).correct is None
    assert count_candidates(bridge_question, right, CandidateSettings(limit=1)).is_cut


def test_a_gold_chain_that_names_its_links_by_text_is_found_in_c(bridge_question: Question) -> None:
    right = gold(GoldChain(passages=["opera", "composer"], links=["Anton Quillfeather"]))
    assert count_candidates(bridge_question, right).correct == 1


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
    count = count_candidates(asked, gold(GoldChain(passages=["a"])), CandidateSettings(hops=hops))
    assert (count.chains, count.tails, count.correct) == (0, tails, 0)
    assert count.error
    assert count.error.code == code


def test_the_statistics_of_c_are_those_of_the_paper() -> None:
    failed = CandidateCount(0, 0, 0, QuestionError("no_tail", "why"))
    counts = [CandidateCount(4, 2, 1), CandidateCount(2, 1, 2), failed, CandidateCount(6, 1, 0)]
    figures = {name: (figure.value, figure.questions) for name, figure in summarise_candidates(counts).items()}
    assert figures == {
        "chains a question": (3.0, 4),
        "tails a question": (1.0, 4),
        "gold chain in C": (0.5, 4),
        "accuracy of a random pick": (pytest.approx((0.25 + 1.0) / 4), 4),
        "questions without a chain": (0.25, 4),
    }


def test_without_gold_only_sizes_are_told() -> None:
    assert set(summarise_candidates([CandidateCount(4, 2, None)])) == {
        "chains a question",
        "tails a question",
        "questions without a chain",
    }


def test_a_graph_is_right_by_its_passages_in_any_order() -> None:
    links = [
        Link(entity=name, kind="name", weight=1.0, mentions=(None, None), between=ends)
        for name, ends in (("x", (0, 2)), ("y", (1, 2)))
    ]
    graph = Chain(shape="graph", passages=["a", "b", "c"], links=links, score=1.0)
    for gold, is_right in (
        (GoldChain(passages=["b", "a", "c"], shape="graph"), True),
        (GoldChain(passages=["c", "b", "a"], shape="parallel"), True),
        (GoldChain(passages=["b", "c", "a"]), True),  # a chain whose links are not known
        (GoldChain(passages=["a", "b", "c"], links=["x", "y"]), False),  # a graph names no links of a chain
        (GoldChain(passages=["a", "b"], shape="graph"), False),
    ):
        assert judge(graph, Gold(id="q", chains=[gold])).correct is is_right
    chain = Chain(passages=["a", "b", "c"], links=[], score=1.0)
    assert judge(chain, Gold(id="q", chains=[GoldChain(passages=["c", "a", "b"], shape="graph")])).correct
    assert judge(graph, Gold(id="q", chains=[GoldChain(passages=["a", "b", "c"], shape="graph")])).ordered is None
