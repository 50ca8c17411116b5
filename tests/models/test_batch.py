"""What the networks read."""

from types import ModuleType

import torch


def test_masks_tell_words_passages_and_chains_from_padding(tiny: ModuleType) -> None:
    batch = tiny.make_batch()
    assert batch.question_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.passage_mask.sum(-1).tolist() == batch.passage_lengths.tolist() == [[5, 3, 4], [2, 5, 0]]
    assert batch.is_passage.tolist() == [[True, True, True], [True, True, False]]
    assert batch.is_chain.tolist() == [[True, True], [True, False]]


def test_the_passages_at_some_places_come_in_that_order_with_all_that_is_known_of_them(tiny: ModuleType) -> None:
    batch = tiny.make_batch(marks=torch.rand(2, 3, 5, 4), mention_weight=torch.rand(2, 3, 3))
    places = [[2, 0, 2, 1], [1, 1, 0, 2]]
    chosen = batch.at(torch.tensor(places))
    named = ("passages", "passage_lengths", "title_lengths", "marks", "mention_entity", "mention_token")
    for name in (*named, "mention_end", "mention_weight"):
        expected = torch.stack([getattr(batch, name)[row][taken] for row, taken in enumerate(places)])
        assert torch.equal(getattr(chosen, name), expected), name
    for name in ("question", "holders", "may_link", "chains"):
        assert torch.equal(getattr(chosen, name), getattr(batch, name)), name


def test_some_questions_of_a_batch_are_a_batch(tiny: ModuleType) -> None:
    batch = tiny.make_batch()
    second = batch.rows(slice(1, None))
    assert second.words is batch.words
    assert second.question.tolist() == [[4, 5, 0]]
    assert second.passage_lengths.tolist() == [[2, 5, 0]]
    assert second.holders.shape == (1, 3, 3)
    assert len(batch.rows(slice(0)).chains) == 0
