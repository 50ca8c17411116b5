"""MatchLSTM of Appendix A against the same in NumPy."""

from types import ModuleType

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rechain.paper.encoder import compare, masked
from rechain.paper.ranker import MatchLSTM


def make_match(features: int = 0) -> MatchLSTM:
    torch.manual_seed(2)
    return MatchLSTM(3, features)


QUERY = torch.randn(2, 2, 3, 3, generator=torch.Generator().manual_seed(3))
"""two queries for each of two questions"""
PASSAGES = torch.randn(2, 3, 5, 3, generator=torch.Generator().manual_seed(4))
QUERY_LENGTHS = [3, 2]
PASSAGE_LENGTHS = [[5, 3, 4], [2, 5, 1]]


def up_to(lengths: list[int] | list[list[int]], most: int) -> Tensor:
    return torch.arange(most) < torch.tensor(lengths)[..., None]


QUERY_MASK, PASSAGE_MASK = up_to(QUERY_LENGTHS, 3), up_to(PASSAGE_LENGTHS, 5)


def test_attention_worked_by_hand() -> None:
    query = torch.tensor([[[[1.0, 0.0]]]])
    passage = torch.tensor([[[[np.log(3.0), 2.0], [0.0, 4.0], [9.0, 9.0]]]]).float()
    attended = MatchLSTM.attend(query, passage, torch.tensor([[[True, True, False]]]))
    # e = (log 3, 0), so the weights are 3/4 and 1/4; the third word is padding
    np.testing.assert_allclose(attended[0, 0, 0, 0], [0.75 * np.log(3), 0.75 * 2 + 0.25 * 4], rtol=1e-6)


def test_comparison_is_both_their_difference_and_their_product() -> None:
    assert compare(torch.tensor([2.0, 3.0]), torch.tensor([5.0, -1.0])).tolist() == [2, 3, 5, -1, -3, 4, 10, -3]


def test_matching_states_of_every_query_with_every_passage(reference: ModuleType) -> None:
    match = make_match()
    states = match(QUERY, PASSAGES, QUERY_MASK, PASSAGE_MASK)
    assert states.shape == (2, 2, 3, 3)
    for question, side, passage in np.ndindex(2, 2, 3):
        query = reference.array(QUERY[question, side, : QUERY_LENGTHS[question]])
        words = reference.array(PASSAGES[question, passage, : PASSAGE_LENGTHS[question][passage]])
        expected = reference.match(query, words, match.gru)
        np.testing.assert_allclose(reference.array(states[question, side, passage]), expected, atol=1e-6)


def test_features_join_what_the_gru_reads(reference: ModuleType) -> None:
    match, features = make_match(2), torch.rand(2, 2, 3, 3, 2)
    states = match(QUERY, PASSAGES, QUERY_MASK, PASSAGE_MASK, features)
    query, words = reference.array(QUERY[1, 0, :2]), reference.array(PASSAGES[1, 0, :2])
    expected = reference.match(query, words, match.gru, reference.array(features[1, 0, 0, :2]))
    np.testing.assert_allclose(reference.array(states[1, 0, 0]), expected, atol=1e-6)


def test_what_stands_in_the_padding_changes_nothing() -> None:
    match = make_match()
    noisy_query = torch.where(QUERY_MASK[:, None, :, None], QUERY, 50.0)
    noisy_passages = torch.where(PASSAGE_MASK[..., None], PASSAGES, -50.0)
    clean = match(QUERY, PASSAGES, QUERY_MASK, PASSAGE_MASK)
    assert torch.allclose(match(noisy_query, noisy_passages, QUERY_MASK, PASSAGE_MASK), clean, atol=1e-6)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(-100, 100), st.booleans()), min_size=1, max_size=8))
def test_softmax_over_what_is_not_masked(scored: list[tuple[float, bool]]) -> None:
    scores, mask = (torch.tensor(column) for column in zip(*scored, strict=True))
    probability = masked(scores.float(), mask).softmax(-1)
    assert abs(float(probability.sum()) - 1) < 1e-5
    if mask.any():
        assert probability[~mask].eq(0).all()
        assert torch.allclose(probability[mask], scores[mask].float().softmax(-1), atol=1e-6)
