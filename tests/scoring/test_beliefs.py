"""Beliefs about steps: worked by hand, and the same in whatever order questions come."""

from collections.abc import Sequence
from math import exp, log
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.schema import Chain, Problem, Recovered
from rechain.scoring import beliefs as module
from rechain.scoring.beliefs import Beliefs, Offer, Offers
from rechain.scoring.interface import JOINTLY

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


def test_the_prior_is_exact_for_more_questions_than_a_float_sums_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRID", 2.0**50)  # so fine that floats add up no more than 8 uses exactly
    random = Random(0)
    asked: list[Asked] = []
    for number in range(1, 500):
        likely = random.uniform(0.1, 0.4)
        asked.append(([[f"{number:016x}"]], [likely], 1 - likely))
    priors = {learn(*random.sample(asked, len(asked))).prior for _ in range(10)}
    assert len(priors) == 1


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


def chain(name: str, score: float, confidence: float | None = None, explained: bool = False) -> Chain:
    why = {"words": score, "steps": []} if explained else None
    return Chain(passages=[name, "tail"], links=[], score=score, confidence=confidence, why=why)


def offer(*chains: Chain, steps: list[list[str]]) -> Offer:
    """Offer chains whose confidences are their shares; those of a model that has none divide all by their scores."""
    total = sum(exp(chain.score) for chain in chains)
    shares = [exp(one.score) / total if one.confidence is None else one.confidence for one in chains]
    return Offer.of(Recovered(id="q", chains=list(chains)), steps, "f, line 1", shares)


def test_an_offer_survives_being_written() -> None:
    one = offer(chain("a", 0.1 + 0.2, 0.7, explained=True), chain("b", 1e-17, 0.1), steps=[[ONE, TWO], []])
    assert Offer.of_json(one.to_json()) == one
    assert one.recovered[0].score == 0.1 + 0.2
    assert one.to_json().startswith('{"id":')  # as the lines of a file that can be resumed do
    failed = Offer.of(Recovered(id=None, chains=[], error=Problem(code="no_link", message="f: no link")))
    assert Offer.of_json(failed.to_json()).recovered == failed.recovered


def test_what_is_told_is_added_to_the_score_and_may_change_which_chain_is_best() -> None:
    one = offer(chain("a", 2.0, explained=True), chain("b", 1.0, explained=True), steps=[[ONE], [TWO, THREE]])
    recovered = one.weigh({ONE: -0.5, TWO: 0.5, THREE: 0.25}, top=2, min_confidence=None)
    assert [(c.passages[0], c.score, c.confidence) for c in recovered] == [("b", 1.75, None), ("a", 1.5, None)]
    assert recovered[0].why == {"words": 1.0, "jointly": 0.75, "steps": []}
    assert len(one.weigh({ONE: 0.0, TWO: 0.0, THREE: 0.0}, top=1, min_confidence=None)) == 1


def test_confidence_is_the_share_among_all_chains_and_none_of_them() -> None:
    one = offer(chain("a", 2.0, 0.5), chain("b", 1.0, 0.2), steps=[[ONE], [TWO]])
    recovered = one.weigh({ONE: 0.0, TWO: log(2)}, top=2, min_confidence=None)
    total = 0.5 + 0.4 + 0.3
    expected = JOINTLY.confidences([0.5 / total, 0.4 / total])
    assert [c.confidence for c in recovered] == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_model_may_be_certain(share: float) -> None:
    one, offers = offer(chain("a", 2.0, share), steps=[[ONE]]), Offers()
    one.add_to(offers)
    (best,) = one.settle(offers.learn(), 0, 1, None)
    assert 0 < (best.confidence or 0.0) < 1


def test_chains_of_less_confidence_are_left_out_or_there_is_none() -> None:
    one = offer(chain("a", 2.0, 0.6), chain("b", 1.0, 0.3), steps=[[ONE], [TWO]])
    told = {ONE: 0.0, TWO: 0.0}
    first, second = (c.confidence or 0.0 for c in one.weigh(told, 2, None))
    assert len(one.weigh(told, 2, (first + second) / 2)) == 1
    refused = one.weigh(told, 2, min(first + 0.01, 1.0))
    assert refused.error
    assert not refused.chains
    assert refused.error.code == "low_confidence"
    assert refused.error.message.startswith("f, line 1: the best chain has confidence")


def test_a_question_hears_from_the_others_of_its_input_and_one_without_steps_stays_as_it_is() -> None:
    doubtful = offer(chain("a", 0.1), chain("b", 0.0), steps=[[ONE], [TWO]])
    sure = [
        offer(chain("b", 1.0), chain("c", 1.0 - number), steps=[[TWO], [f"{9 + number:016x}"]]) for number in (5, 6)
    ]
    apart = Offer.of(Recovered(id="p", chains=[chain("x", 1.0)]))
    asked, offers = [doubtful, *sure, apart], Offers()
    for one in asked:
        one.add_to(offers)
    beliefs = offers.learn()
    settled = [one.settle(beliefs, position, 1, None) for position, one in enumerate(asked)]
    assert [recovered[0].passages[0] for recovered in settled] == ["b", "b", "b", "x"]
    assert settled[3] == apart.recovered
    assert settled[0][0].score == pytest.approx(0.0 + beliefs.told(0)[1])
    assert exp(beliefs.told(0)[1]) > 1.5
