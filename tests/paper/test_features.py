"""Exact-match features, worked by hand on the tiny batch: a word's rarity counts as a tenth of half its number."""

from types import ModuleType

import pytest
import torch

from rechain.paper.features import (
    LINK_FEATURES,
    MATCH_FEATURES,
    TOKEN_FEATURES,
    Matches,
    passage_token_features,
    question_token_features,
)


def rarity(word: int) -> float:
    return pytest.approx(word / 20, abs=1e-6)


def test_features_of_the_words_of_a_passage(tiny: ModuleType) -> None:
    marks = torch.zeros(2, 3, 5, 4)
    marks[0, 0, 3] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    marks[0, 0, 4] = torch.tensor([0.0, 1.0, 0.0, 0.0])
    told = passage_token_features(tiny.make_batch(marks=marks))
    assert told.shape == (2, 3, 5, TOKEN_FEATURES)
    # the passage 1 6 7 2 8, whose title is 1, for the question 1 2 3
    assert told[0, 0, 0].tolist() == [1, rarity(1), rarity(1), 1, 0, 0, 0, 0]
    assert told[0, 0, 1].tolist() == [0, 0, rarity(6), 0, 0, 0, 0, 0]
    assert told[0, 0, 3].tolist() == [1, rarity(2), rarity(2), 0, 1, 0, 0, 0]
    assert told[0, 0, 4].tolist() == [0, 0, rarity(8), 0, 0, 1, 0, 0]


def test_the_padding_of_the_question_is_not_found_in_that_of_a_passage(tiny: ModuleType) -> None:
    told = passage_token_features(tiny.make_batch())
    assert told[1, 0, 2:].eq(0).all()
    assert told[1, 2].eq(0).all()


def test_the_words_of_the_question_stand_in_it(tiny: ModuleType) -> None:
    told = question_token_features(tiny.make_batch())
    assert told[0, 2].tolist() == [1, rarity(3), rarity(3), 0, 0, 0, 0, 0]


def test_features_of_the_question_against_a_passage_given_another(tiny: ModuleType) -> None:
    told = Matches(tiny.make_batch()).question_words(torch.tensor([[[1]], [[0]]]))
    assert told.shape == (2, 1, 3, 3, MATCH_FEATURES)
    # the question 1 2 3 against 1 6 7 2 8 (title 1) once 3 9 1 is selected
    one, two, three = told[0, 0, 0].tolist()
    assert one == [rarity(1), 1, rarity(1), 0, rarity(1), rarity(1), 0]
    assert two == [rarity(2), 1, rarity(2), 0, 0, 0, rarity(2)]
    assert three == [rarity(3), 0, 0, 0, 0, rarity(3), 0]


def test_two_words_in_a_row_are_told(tiny: ModuleType) -> None:
    in_a_row = Matches(tiny.make_batch(questions=[[4, 5, 1], [5, 4]]))._in_a_row
    assert in_a_row[0].tolist() == [[False] * 3, [False] * 3, [True, False, False]]  # 4 5 in 10 11 4 5
    assert in_a_row[1].tolist() == [[True, False, False], [False] * 3, [False] * 3]  # 5 4, then no padding


def test_nothing_is_selected_at_first(tiny: ModuleType) -> None:
    matches, nothing = Matches(tiny.make_batch()), torch.zeros(2, 1, 0, dtype=torch.long)
    assert matches.question_words(nothing)[..., 5].eq(0).all()
    assert matches.links(nothing).shape == (2, 1, 3, LINK_FEATURES)
    assert matches.links(nothing).eq(0).all()


def test_links_are_the_share_of_a_title_in_another_passage_both_ways(tiny: ModuleType) -> None:
    passages = [[[6, 8, 1], [8, 2, 3], [4, 6, 8]], [[5, 4], [6]]]
    matches = Matches(tiny.make_batch(passages=passages, titles=[[2, 1, 1], [1, 1]], mentions=[[], []]))
    assert matches._title_share[0, 0].tolist() == pytest.approx([1, 8 / 14, 1])  # the title 6 8
    to, is_whole, back, is_whole_back = matches.links(torch.tensor([[[0]], [[0]]]))[0, 0].T.tolist()
    assert to == pytest.approx([1, 8 / 14, 1])
    assert is_whole == [1, 0, 1]
    assert back == pytest.approx([1, 1, 0])  # of the titles 8 and 4 in 6 8 1
    assert is_whole_back == [1, 1, 0]


def test_a_passage_without_title_has_no_share_and_padding_none_at_all(tiny: ModuleType) -> None:
    share = Matches(tiny.make_batch(titles=[[0, 1, 2], [1, 2]]))._title_share
    assert share[0, 0].tolist() == [0, 0, 0]
    assert share[1, 2].tolist() == [0, 0, 0]
    assert share[1, :, 2].tolist() == [0, 0, 0]


def test_links_to_several_selected_passages_add_up(tiny: ModuleType) -> None:
    matches = Matches(tiny.make_batch())
    both = matches.links(torch.tensor([[[0, 2]], [[0, 1]]]))
    single = [matches.links(torch.tensor([[[place]], [[other]]])) for place, other in ((0, 0), (2, 1))]
    assert torch.allclose(both, single[0] + single[1])
