"""Rewards on hand-worked cases; the equations are those of Section 3."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rechain.paper.rewards import cross_entropy, evidence_weights, linking_targets, selection_reward, with_bonus

TWO = torch.tensor([[[0, 1], [2, 1], [1, 3]], [[3, 0], [-1, -1], [-1, -1]]])
"""C of two questions, (head, tail)"""
THREE = torch.tensor([[[0, 1, 2], [3, 1, 2], [0, 3, 2]]])


def ones(chains: torch.Tensor) -> torch.Tensor:
    return (chains[..., 0] >= 0).float()


def test_equation_2_a_tail_earns_1_if_it_is_that_of_a_chain_and_a_head_likewise() -> None:
    every = torch.arange(4).expand(2, 4)[..., None]
    assert selection_reward(TWO, ones(TWO), (1,), every).tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    assert selection_reward(TWO, ones(TWO), (0,), every).tolist() == [[1, 1, 1, 0], [0, 0, 0, 1]]


def test_a_pair_earns_1_only_if_it_is_a_chain() -> None:
    pairs = torch.tensor([[[0, 1], [1, 0], [0, 3], [1, 3]], [[3, 0], [0, 3], [3, 3], [0, 0]]])
    assert selection_reward(TWO, ones(TWO), (0, 1), pairs).tolist() == [[1, 0, 0, 1], [1, 0, 0, 0]]
    assert selection_reward(TWO, ones(TWO), (1, 0), pairs.flip(-1)).tolist() == [[1, 0, 0, 1], [1, 0, 0, 0]]


def test_equation_3_a_middle_earns_1_only_if_the_whole_path_is_in_c() -> None:
    paths = torch.tensor([[[0, 1, 2], [0, 3, 2], [3, 1, 2], [3, 0, 2], [2, 1, 0], [0, 1, 1]]])
    assert selection_reward(THREE, ones(THREE), (0, 1, 2), paths).tolist() == [[1, 1, 1, 0, 0, 0]]
    assert selection_reward(THREE, ones(THREE), (0,), paths[..., :1]).tolist() == [[1, 1, 1, 1, 0, 1]]
    assert selection_reward(THREE, ones(THREE), (2,), paths[..., 2:]).tolist() == [[1, 1, 1, 1, 0, 0]]


def test_several_ways_side_by_side_keep_their_places() -> None:
    pairs = torch.tensor([[[[0, 1], [1, 0]], [[1, 3], [2, 1]]], [[[3, 0], [3, 0]], [[0, 3], [1, 1]]]])
    assert selection_reward(TWO, ones(TWO), (0, 1), pairs).tolist() == [[[1, 0], [1, 1]], [[1, 1], [0, 0]]]


def test_with_weights_a_passage_earns_that_of_its_heaviest_chain() -> None:
    weights = torch.tensor([[0.25, 1.0, 0.5], [1.0, 0.0, 0.0]])
    tails = torch.tensor([[[1], [3], [2]], [[0], [1], [3]]])
    assert selection_reward(TWO, weights, (1,), tails).tolist() == [[1.0, 0.5, 0.0], [1.0, 0.0, 0.0]]
    assert selection_reward(TWO, weights, (0, 1), torch.tensor([[[0, 1]], [[3, 0]]])).tolist() == [[0.25], [1.0]]


def test_equation_4_the_targets_are_all_entities_that_also_stand_in_the_next_passage() -> None:
    contains = torch.tensor([[[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 1, 1]]]).bool()  # four entities, three passages
    targets = linking_targets(contains, torch.tensor([[0, 0, 1, 2]]), contains, torch.tensor([[1, 2, 2, 0]]))
    assert targets.int().tolist() == [[[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 1, 0]]]


def test_equation_4_nothing_is_shared() -> None:
    contains = torch.tensor([[[1, 0], [0, 1]]]).bool()
    assert not linking_targets(contains, torch.tensor([[0]]), contains, torch.tensor([[1]])).any()


def test_equation_5_a_named_head_earns_r_more_and_one_outside_c_nothing() -> None:
    earned = with_bonus(torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([0, 1, 0, 1]), 0.5)
    assert earned.tolist() == [1, 1.5, 0, 0]


def test_three_hops_give_0_r_or_2r_on_top_of_r_m_and_nothing_when_the_path_is_not_in_c() -> None:
    paths = torch.tensor([[[0, 1, 2], [0, 1, 2], [0, 1, 2], [1, 0, 2]]])
    r_m = selection_reward(THREE, ones(THREE), (0, 1, 2), paths)
    assert with_bonus(r_m, torch.tensor([[0, 1, 2, 2]]), 0.25).tolist() == [[1, 1.25, 1.5, 0]]


def test_a_bonus_is_added_to_what_a_weighted_chain_earns() -> None:
    earned = with_bonus(torch.tensor([1.0, 0.1, 0.0]), torch.tensor([1, 1, 1]), 0.5)
    assert earned.tolist() == pytest.approx([1.5, 0.6, 0])


def test_cross_entropy_is_the_mean_over_the_rows_of_a_question_that_have_a_target() -> None:
    probability = torch.tensor([[[0.5, 0.25, 0.25], [0.2, 0.8, 0.0], [0.1, 0.1, 0.8]], [[0.5, 0.5, 0.0]] * 3])
    targets = torch.tensor([[[1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0] * 3], [[0.0, 1.0, 0.0], [0.0] * 3, [0.0] * 3]])
    first = (-(math.log(0.5) + math.log(0.25)) / 2 - math.log(0.8)) / 2
    loss = cross_entropy(probability.clamp(min=1e-9).log(), targets)
    assert loss.item() == pytest.approx((first - math.log(0.5)) / 2)


def test_weights_fall_with_the_difference_in_evidence() -> None:
    evidence = torch.tensor([[4.0, 2.0, 9.0], [1.0, 3.0, 3.0]])
    is_chain = torch.tensor([[True, True, False], [True, True, True]])
    weights = evidence_weights(evidence, is_chain, 0.5)
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
    weights = evidence_weights(evidence, is_chain, sharpness)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights[~is_chain].eq(0).all()
    if is_chain.any():
        assert weights.max() == 1
        assert weights[0, evidence.masked_fill(~is_chain, -torch.inf).argmax()] == 1


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=8))
def test_without_sharpness_all_chains_weigh_1_as_in_the_paper(evidence: list[float]) -> None:
    told = torch.tensor([evidence])
    assert evidence_weights(told, torch.ones_like(told, dtype=torch.bool), 0.0).eq(1).all()
