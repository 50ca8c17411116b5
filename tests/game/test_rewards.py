"""Rewards on hand-worked cases; the equations are those of Section 3."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rechain.game.rewards import chain_weights, linking_targets, reward, walk_chances, walk_shares, with_bonus

TWO = torch.tensor([[[0, 1], [2, 1], [1, 3]], [[3, 0], [-1, -1], [-1, -1]]])
"""C of two questions, (head, tail)"""
THREE = torch.tensor([[[0, 1, 2], [3, 1, 2], [0, 3, 2]]])


def ones(chains: torch.Tensor) -> torch.Tensor:
    return (chains[..., 0] >= 0).float()


def test_equation_2_a_tail_earns_1_if_it_is_that_of_a_chain_and_a_head_likewise() -> None:
    every = torch.arange(4).expand(2, 4)[..., None]
    assert reward(TWO, ones(TWO), (1,), every).tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    assert reward(TWO, ones(TWO), (0,), every).tolist() == [[1, 1, 1, 0], [0, 0, 0, 1]]


def test_a_pair_earns_1_only_if_it_is_a_chain() -> None:
    pairs = torch.tensor([[[0, 1], [1, 0], [0, 3], [1, 3]], [[3, 0], [0, 3], [3, 3], [0, 0]]])
    assert reward(TWO, ones(TWO), (0, 1), pairs).tolist() == [[1, 0, 0, 1], [1, 0, 0, 0]]
    assert reward(TWO, ones(TWO), (1, 0), pairs.flip(-1)).tolist() == [[1, 0, 0, 1], [1, 0, 0, 0]]


def test_equation_3_a_middle_earns_1_only_if_the_whole_path_is_in_c() -> None:
    paths = torch.tensor([[[0, 1, 2], [0, 3, 2], [3, 1, 2], [3, 0, 2], [2, 1, 0], [0, 1, 1]]])
    assert reward(THREE, ones(THREE), (0, 1, 2), paths).tolist() == [[1, 1, 1, 0, 0, 0]]
    assert reward(THREE, ones(THREE), (0,), paths[..., :1]).tolist() == [[1, 1, 1, 1, 0, 1]]
    assert reward(THREE, ones(THREE), (2,), paths[..., 2:]).tolist() == [[1, 1, 1, 1, 0, 0]]


def test_several_ways_side_by_side_keep_their_places() -> None:
    pairs = torch.tensor([[[[0, 1], [1, 0]], [[1, 3], [2, 1]]], [[[3, 0], [3, 0]], [[0, 3], [1, 1]]]])
    assert reward(TWO, ones(TWO), (0, 1), pairs).tolist() == [[[1, 0], [1, 1]], [[1, 1], [0, 0]]]


def test_with_weights_a_passage_earns_that_of_its_heaviest_chain() -> None:
    weights = torch.tensor([[0.25, 1.0, 0.5], [1.0, 0.0, 0.0]])
    tails = torch.tensor([[[1], [3], [2]], [[0], [1], [3]]])
    assert reward(TWO, weights, (1,), tails).tolist() == [[1.0, 0.5, 0.0], [1.0, 0.0, 0.0]]
    assert reward(TWO, weights, (0, 1), torch.tensor([[[0, 1]], [[3, 0]]])).tolist() == [[0.25], [1.0]]


def test_equation_4_the_targets_are_all_entities_that_also_stand_in_the_next_passage() -> None:
    holders = torch.tensor([[[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 1, 1]]]).bool()  # four entities, three passages
    targets = linking_targets(holders, torch.tensor([[0, 0, 1, 2]]), holders, torch.tensor([[1, 2, 2, 0]]))
    assert targets.int().tolist() == [[[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 1, 0]]]


def test_equation_4_nothing_is_shared() -> None:
    holders = torch.tensor([[[1, 0], [0, 1]]]).bool()
    assert not linking_targets(holders, torch.tensor([[0]]), holders, torch.tensor([[1]])).any()


def test_equation_5_a_named_head_earns_r_more_and_one_outside_c_nothing() -> None:
    earned = with_bonus(torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([0, 1, 0, 1]), 0.5)
    assert earned.tolist() == [1, 1.5, 0, 0]


def test_three_hops_give_0_r_or_2r_on_top_of_r_m_and_nothing_when_the_path_is_not_in_c() -> None:
    paths = torch.tensor([[[0, 1, 2], [0, 1, 2], [0, 1, 2], [1, 0, 2]]])
    r_m = reward(THREE, ones(THREE), (0, 1, 2), paths)
    assert with_bonus(r_m, torch.tensor([[0, 1, 2, 2]]), 0.25).tolist() == [[1, 1.25, 1.5, 0]]


def test_weights_fall_with_the_difference_in_evidence() -> None:
    evidence = torch.tensor([[4.0, 2.0, 9.0], [1.0, 3.0, 3.0]])
    is_chain = torch.tensor([[True, True, False], [True, True, True]])
    weights = chain_weights(evidence, is_chain, 0.5)
    assert weights[0].tolist() == pytest.approx([1, math.exp(-1), 0])
    assert weights[1].tolist() == pytest.approx([math.exp(-1), 1, 1])


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3, width=32), st.booleans()), min_size=1, max_size=8),
    st.floats(0, 10),
)
def test_weights_lie_between_0_and_1_and_the_heaviest_chain_has_1(
    chains: list[tuple[float, bool]], sharpness: float
) -> None:
    evidence, is_chain = (torch.tensor([column]) for column in zip(*chains, strict=True))
    weights = chain_weights(evidence, is_chain, sharpness)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights[~is_chain].eq(0).all()
    if is_chain.any():
        assert weights.max() == 1
        assert weights[0, evidence.masked_fill(~is_chain, -torch.inf).argmax()] == 1


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=8))
def test_without_sharpness_all_chains_weigh_1_as_in_the_paper(evidence: list[float]) -> None:
    told = torch.tensor([evidence])
    assert chain_weights(told, torch.ones_like(told, dtype=torch.bool), 0.0).eq(1).all()


# ---- the bonus of a walk

# entity 0 stands in passages 0, 1 and 2, entity 1 in 0 and 3, entity 2 in 0 alone, entity 3 in 1 and 3
HOLDERS = torch.tensor([[[1, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 1]]]).bool()


def test_a_walk_draws_an_entity_and_then_one_of_the_other_passages_that_hold_it() -> None:
    probability = torch.tensor([[[0.5, 0.2, 0.3, 0.0], [0.4, 0.0, 0.0, 0.6]]])  # named from passages 0 and 1
    chances = walk_chances(HOLDERS, torch.tensor([[0, 1]]), probability)
    # from 0: entity 0 leads to 1 or 2, entity 1 to 3, entity 2 nowhere; from 1: entity 0 to 0 or 2, entity 3 to 3
    assert chances[0, 0].tolist() == pytest.approx([0, 0.25, 0.25, 0.2])
    assert chances[0, 1].tolist() == pytest.approx([0.2, 0, 0.2, 0.6])


def test_all_of_the_bonus_is_the_likeliest_passages() -> None:
    assert walk_shares(torch.tensor([[[0, 0.25, 0.25, 0.2]]])).tolist() == [[pytest.approx([0, 1, 1, 0.8])]]
    assert walk_shares(torch.zeros(1, 1, 4)).tolist() == [[[0, 0, 0, 0]]]


@given(st.data())
def test_a_walk_comes_to_no_more_than_certainty_and_not_back(data: st.DataObject) -> None:
    holders = torch.tensor(data.draw(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=2, max_size=5)))
    named = torch.tensor(data.draw(st.lists(st.floats(0.01, 1), min_size=len(holders), max_size=len(holders))))
    place = data.draw(st.integers(0, 3))
    chances = walk_chances(holders[None], torch.tensor([[place]]), (named / named.sum())[None, None])[0, 0]
    leads = (holders.sum(-1) - holders[:, place].long()) > 0
    assert float(chances.sum()) == pytest.approx(float((named / named.sum())[leads].sum()), abs=1e-5)
    assert float(chances[place]) == 0


# ---- how a bonus is paid


def test_a_bonus_is_added_to_what_is_earned_or_multiplied_into_it() -> None:
    rewards, shares = torch.tensor([1.0, 0.1, 0.0, 0.1]), torch.tensor([1.0, 1.0, 1.0, 0.4])
    assert with_bonus(rewards, shares, 0.5).tolist() == pytest.approx([1.5, 0.15, 0, 0.12])
    assert with_bonus(rewards, shares, 0.5, is_added=True).tolist() == pytest.approx([1.5, 0.6, 0, 0.3])
