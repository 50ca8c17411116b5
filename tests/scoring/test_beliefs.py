"""Beliefs about steps: worked by hand, and the same in whatever order questions come."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.scoring import beliefs as module
from rechain.scoring.beliefs import Beliefs, Offers

NEVER = -np.inf
ONE, TWO, THREE = (f"{number:016x}" for number in (1, 2, 3))
Asked = tuple[Sequence[Sequence[str]], Sequence[float], float]
"""the steps of each chain, the probability of each, and that none is right"""


def learn(*questions: Asked) -> Beliefs:
    offers = Offers()
    for steps, probabilities, nothing in questions:
        offers.add(steps, np.log(probabilities), np.log(nothing) if nothing else NEVER)
    return offers.learn()


def test_two_questions_by_hand() -> None:
    """Each has two chains of one step; they share step 1, of which the second is sure.

    Round 1, nothing is told: uses 1/2, 1/2 and 9/10, 1/10, so that the prior is 2 / 4. The first is told of step 1
    (9/10 + 1/2) / (1 + 1) against 1/2, a ratio of 1.4; the second (1/2 + 1/2) / (1 + 1), a ratio of 1. Of other
    steps nobody knows anything.
    Round 2: the first uses step 1 with 1.4 / 2.4 = 7/12. The second is told (7/12 + 1/2) / (1 + 1): 13/12.
    Round 3: the second uses it with 0.9 * 13/12 / (0.9 * 13/12 + 0.1) = 39/43, which is less than 0.01 more. The first
    is told (39/43 + 1/2) / (1 + 1).
    """
    learnt = learn(([[ONE], [TWO]], [0.5, 0.5], 0), ([[ONE], [THREE]], [0.9, 0.1], 0))
    assert learnt.rounds == 3
    assert learnt.prior == pytest.approx(1 / 2)
    assert learnt.uses.tolist() == pytest.approx([7 / 12 + 39 / 43, 5 / 12, 4 / 43])
    assert learnt.offers.tolist() == [2, 1, 1]
    assert (learnt.questions, learnt.shared) == (2, 1)
    assert learnt.told(0).tolist() == pytest.approx([np.log(39 / 43 + 1 / 2), 0.0])
    assert learnt.told(1).tolist() == pytest.approx([np.log(13 / 12), 0.0])


def test_another_question_hears_all_and_nothing_of_what_nobody_offers() -> None:
    learnt = learn(([[ONE], [TWO]], [0.5, 0.5], 0), ([[ONE], [THREE]], [0.9, 0.1], 0))
    uses, offers = learnt.uses[0], 2
    expected = np.log((uses + learnt.prior) / (offers + 1) / learnt.prior)
    assert learnt.about([f"{9:016x}", ONE]).tolist() == pytest.approx([0.0, expected])


def test_a_question_alone_tells_itself_nothing() -> None:
    learnt = learn(([[ONE, TWO], [THREE]], [0.9, 0.1], 0))
    assert learnt.told(0).tolist() == [0.0, 0.0, 0.0]


def test_the_same_question_many_times_counts_once() -> None:
    asked: Asked = ([[ONE], [TWO]], [0.9, 0.1], 0)
    other: Asked = ([[TWO], [THREE]], [0.5, 0.5], 0)
    once, often = learn(asked, other), learn(asked, asked, other, asked)
    assert often.questions == 2
    for position, same in ((0, 0), (1, 0), (3, 0), (2, 1)):
        assert often.told(position).tolist() == once.told(same).tolist()


def test_the_same_chains_in_another_order_are_the_same_question() -> None:
    learnt = learn(([[TWO], [ONE]], [0.1, 0.9], 0), ([[ONE], [TWO]], [0.9, 0.1], 0))
    assert learnt.questions == 1
    assert learnt.told(0).tolist() == [0.0, 0.0]


def test_that_no_chain_may_be_right_makes_a_question_say_less() -> None:
    sure = learn(([[ONE], [TWO]], [0.8, 0.2], 0), ([[ONE], [THREE]], [0.5, 0.5], 0))
    unsure = learn(([[ONE], [TWO]], [0.08, 0.02], 0.9), ([[ONE], [THREE]], [0.5, 0.5], 0))
    assert unsure.uses[0] < sure.uses[0]


def test_questions_that_use_none_of_their_chains_tell_nothing_absurd() -> None:
    learnt = learn(([[ONE], [TWO]], [1e-30, 1e-30], 1.0), ([[ONE], []], [1e-30, 1.0], 0))
    assert learnt.uses.tolist() == [0.0, 0.0]
    assert np.isfinite(learnt.told(0)).all()


def test_questions_without_steps_take_no_part() -> None:
    learnt = learn(([[], []], [0.5, 0.5], 0), ([[ONE]], [1.0], 0), ([], [], 0))
    assert learnt.questions == 1
    assert [len(learnt.told(position)) for position in range(3)] == [0, 1, 0]
    assert learn().about([ONE]).tolist() == [0.0]


def test_a_chain_without_steps_beside_others_keeps_its_probability() -> None:
    learnt = learn(([[ONE], []], [0.5, 0.5], 0), ([[ONE], [TWO]], [0.9, 0.1], 0))
    assert np.isfinite(learnt.uses).all()
    assert learnt.told(0)[0] > 0  # the other uses step 1 more often than steps are used on average


STEPS = st.lists(st.sampled_from([f"{number:016x}" for number in range(12)]), max_size=3, unique=True)
CHAINS = st.lists(st.tuples(STEPS, st.floats(-30, 0)), min_size=1, max_size=5)
QUESTIONS = st.lists(st.tuples(CHAINS, st.one_of(st.just(NEVER), st.floats(-30, 0))), max_size=8)


@given(QUESTIONS, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_beliefs_are_bit_for_bit_the_same_in_any_order(
    questions: list[tuple[list[tuple[list[str], float]], float]], random: Random
) -> None:
    order = list(range(len(questions)))
    random.shuffle(order)
    first, second = Offers(), Offers()
    for offers, numbers in ((first, range(len(questions))), (second, order)):
        for number in numbers:
            chains, nothing = questions[number]
            offers.add([steps for steps, _ in chains], np.array([value for _, value in chains]), nothing)
    one, two = first.learn(), second.learn()
    assert (one.rounds, one.prior) == (two.rounds, two.prior)
    for place, number in enumerate(order):
        assert one.told(number).tolist() == two.told(place).tolist()
        assert np.isfinite(one.told(number)).all()


def test_the_size_of_blocks_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)

    def ask() -> Asked:
        steps = [[f"{step:016x}" for step in random.choice(20, 3, replace=False)] for _ in range(4)]
        return steps, random.dirichlet(np.ones(4)).tolist(), 0

    questions = [ask() for _ in range(23)]
    whole = learn(*questions)
    monkeypatch.setattr(module, "_BLOCK", 5)
    parts = learn(*questions)
    assert whole.uses.tolist() == parts.uses.tolist()
    assert whole.rounds == parts.rounds
