"""What an oracle could change, worked by hand."""

import math

import numpy as np
import pytest

from rechain.game.plan import make_plan
from rechain.game.settings import GameSettings
from rechain.tables.headroom import ChainsOfQuestion, chain_rewards, expected_accuracy, with_oracle

# Of the tail 3, head 0 is right. Heads 0 and 1 share the strongest entity with it, heads 0 and 2 the next; tail 4 is
# another.
CHAINS = ChainsOfQuestion(
    passages=np.array([[0, 3], [1, 3], [2, 3], [0, 4]]),
    lexical=np.array([4.0, 6.0, 2.0, 4.0]),
    link_weight=np.array([9.0, 8.0, 7.0, 7.0]),
    holders=np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 0], [1, 0, 0, 0, 1]], dtype=bool),
    links=np.full((4, 1), -1),
)
IS_RIGHT = [1.0, 0.0, 0.0, 0.0]


def test_with_hard_c_all_chains_earn_alike_and_an_oracle_decides() -> None:
    hard = GameSettings(evidence="none", bonus=0.5)
    alone, oracle = chain_rewards(CHAINS, hard), with_oracle(CHAINS, 0, make_plan(2), hard)
    assert alone.tolist() == [1, 1, 1, 1]
    assert oracle.tolist() == [1.5, 1.5, 1, 1]
    assert expected_accuracy(alone, IS_RIGHT) == 0.25
    assert expected_accuracy(oracle, IS_RIGHT) == 0.5


@pytest.mark.parametrize(("kind", "second"), [("sum", 0.5 + math.exp(-2)), ("factor", 1.5 * math.exp(-2))])
def test_with_a_weighted_c_a_bonus_changes_little(kind: str, second: float) -> None:
    weighted = GameSettings(evidence="lexical", sharpness=1.0, bonus=0.5, bonus_is=kind)
    assert chain_rewards(CHAINS, weighted).tolist() == pytest.approx([math.exp(-2), 1, math.exp(-4), math.exp(-2)])
    rewards = with_oracle(CHAINS, 0, make_plan(2), weighted)
    assert rewards[:2].tolist() == pytest.approx([second, 1.5])
    assert expected_accuracy(rewards, IS_RIGHT) == 0


def test_of_three_passages_both_ends_are_read() -> None:
    chains = ChainsOfQuestion(
        passages=np.array([[0, 1, 2], [0, 3, 2], [3, 1, 2]]),
        lexical=np.zeros(3),
        link_weight=np.zeros(3),
        holders=np.array([[1, 1, 0, 1], [0, 1, 1, 0]], dtype=bool),
        links=np.array([[0, 1], [0, 1], [0, 0]]),
        rarity=np.array([0.0, 1.0, 2.0]),
        told=np.array([4.0, 0.0, 0.0]),
    )
    rewards = with_oracle(chains, 0, make_plan(3), GameSettings(evidence="none", bonus=0.25))
    assert rewards.tolist() == [1.5, 1.25, 1.25]
    # where steps are selected, it pays for the entities by which they go, not for what their passages hold
    steps = GameSettings(evidence="none", bonus=0.25, selects="steps", mark_answer=True)
    assert with_oracle(chains, 0, make_plan(3), steps).tolist() == [1.5, 1.5, 1.0]
    # each kind of evidence adds to those before
    assert chain_rewards(chains, steps.but(evidence="rarity")).argmax() == 2
    assert chain_rewards(chains, steps.but(evidence="beliefs")).argmax() == 0
