from rechain.evaluation.comparison import Comparison, compare
from rechain.evaluation.judging import JudgedChain
from rechain.evaluation.statistics import paired_difference


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
