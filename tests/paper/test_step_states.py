"""The states and numbers of steps, worked by hand."""

from types import ModuleType

import pytest
import torch

from rechain.paper.data import Batch, Steps
from rechain.paper.ranker import Ranker
from rechain.paper.reasoner import Reasoner
from rechain.paper.settings import ANSWER, ASKED, STEP_FEATURES, GameSettings
from rechain.paper.steps import PACE, entity_states, joints

# (passage, enter, leave, role) of the steps of the first question of `tiny`, then of the second, whose last is padding.
STEPS = [[(0, -1, 0, 0), (1, 0, 1, 1), (2, 1, -1, 2), (2, 0, 1, 1)], [(0, -1, 0, 0), (1, 0, -1, 2), (1, -1, 1, 0)]]
ROLES = 3


def make_steps() -> Steps:
    most = max(map(len, STEPS))
    padded = [[*one, *[(0, -1, -1, -1)] * (most - len(one))] for one in STEPS]
    told = torch.tensor(padded)
    roles = told[..., 3, None] == torch.arange(ROLES)
    features = torch.arange(2.0 * most * STEP_FEATURES).view(2, most, STEP_FEATURES) / 10
    return Steps(told[..., 0], told[..., 1:3], roles, features)


@pytest.fixture
def batch(tiny: ModuleType) -> Batch:
    chains = [[(0, 1, 2)], [(0, 1, 1)]]
    batch: Batch = tiny.make_batch(chains=chains, steps=make_steps())
    return batch


def test_a_batch_says_which_passage_a_step_is_of_and_by_what_it_is_linked(batch: Batch) -> None:
    assert batch.options == 4
    assert batch.is_option.tolist() == [[True] * 4, [True, True, True, False]]
    assert batch.passages_of(torch.tensor([[[3, 1]], [[2, 0]]])).tolist() == [[[2, 1]], [[1, 0]]]
    # as link 0 of a middle: the steps that are entered by entity 0; those that are left by 1 as link 1
    assert batch.options_with(role=1, link=0)[0].tolist() == [[False, True, False, True], [False] * 4, [False] * 4]
    assert batch.options_with(role=1, link=1)[0].tolist() == [[False] * 4, [False, True, False, True], [False] * 4]
    heads = [[True, False, False, False], [False, False, True, False], [False] * 4]
    assert batch.options_with(role=0, link=0)[1].tolist() == heads


def test_a_step_joins_another_by_the_entity_that_leads_from_one_to_the_other(batch: Batch) -> None:
    assert batch.steps is not None
    # after the head (0, -, 0) and the tail (2, 1, -) of the first question: both middles join on both sides
    found = joints(batch.steps, torch.tensor([[[0, 2]], [[0, 1]]]))[0, 0]
    assert found.tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert joints(batch.steps, torch.zeros(2, 1, 0, dtype=torch.long)).sum() == 0


def test_the_state_of_an_entity_is_the_mean_of_its_mentions_first_and_last_words(tiny: ModuleType) -> None:
    marks = torch.zeros(2, 3, 5, 4)
    marks[0, 0, 2, ASKED] = marks[0, 0, 3, ASKED] = marks[0, 1, 1, ANSWER] = 1
    ends = tiny.make_batch().mention_end.clone()
    ends[0, 0, 1] = 5  # the mention of entity 1 at word 3 has two words
    batch = tiny.make_batch(marks=marks, mention_end=ends)
    words = torch.arange(2 * 3 * 5.0).view(2, 3, 5, 1)
    states = entity_states(batch, words)[..., 0]
    assert states.shape == (2, 3, 3 + 2)
    assert states[0, 0].tolist() == [(1 + 4) / 2, (3 + 4) / 2, 0, (2 + 3) / 2, 0]
    assert states[0, 1].tolist() == [5 + 1, 0, 0, 0, 5 + 1]
    assert states[1, 2].tolist() == [0, 0, 0, 0, 0]  # no such passage


def make_ranker(tiny: ModuleType, features: str = "all") -> Ranker:
    torch.manual_seed(0)
    return Ranker(tiny.vectors(), GameSettings(hidden=3, selects="steps", features=features)).eval()


@pytest.mark.parametrize("features", ["none", "matches", "closeness", "all"])
def test_steps_are_selected_that_fit_their_place_and_whose_passage_is_not_taken(
    tiny: ModuleType, batch: Batch, features: str
) -> None:
    ranker = make_ranker(tiny, features)
    read = ranker.encode(batch)
    log_probability, states = ranker.step(read, ranker.start(read), "head", 0)
    assert states.shape == (2, 1, 4, 6)
    likely = log_probability.exp().squeeze(1)
    assert likely[0].tolist() == pytest.approx([1, 0, 0, 0])
    assert likely[1, [1, 3]].tolist() == pytest.approx([0, 0])
    places = torch.tensor([[2], [1]])
    selected = ranker.select(ranker.start(read), places, states[:, :, 0])
    after, _ = ranker.step(read, selected, "middle", 1)
    assert after[0, 0].exp().tolist() == pytest.approx([0, 1, 0, 0])  # the other middle is of the tail's passage
    anything, _ = ranker.step(read, ranker.start(read), "tail")
    assert (anything[0].exp() > 1e-6).all() and anything[1, 0, 3].exp() < 1e-6


def test_a_number_counts_by_its_weight_in_the_role_that_is_selected(tiny: ModuleType, batch: Batch) -> None:
    ranker = make_ranker(tiny)
    assert batch.steps is not None
    with torch.no_grad():
        ranker.steps.direct[1, 2] = 0.5
        ranker.steps.direct[1, STEP_FEATURES] = 0.25
    told = ranker.steps.bias(batch.steps, torch.tensor([[[0]], [[0]]]), role=1)
    by_number = PACE * 0.5 * batch.steps.features[0, :, 2]
    by_joint = PACE * 0.25 * torch.tensor([0.0, 1, 0, 1])  # entered by entity 0, by which the head is left
    assert told[0, 0].tolist() == pytest.approx((by_number + by_joint).tolist())
    assert ranker.steps.bias(batch.steps, torch.tensor([[[0]], [[0]]]), role=0).abs().sum() == 0


def test_the_reasoner_hears_of_the_steps_of_the_role_that_it_reads(tiny: ModuleType, batch: Batch) -> None:
    torch.manual_seed(0)
    reasoner = Reasoner(tiny.vectors(), GameSettings(hidden=3, selects="steps")).eval()
    places = torch.tensor([[0], [0]])
    before = reasoner(batch, places, 0, 0).log_probability
    assert batch.steps is not None
    with torch.no_grad():
        reasoner.of_steps[0] = 3.0
    after = reasoner(batch, places, 0, 0).log_probability
    # of the head's passage, the step (0, -, 0) tells of entity 0, and none of entity 1
    odds = (after - before)[0, 0, 0] - (after - before)[0, 0, 1]
    assert odds.item() == pytest.approx(PACE * 3.0 * batch.steps.features[0, 0, 0].item(), abs=1e-4)
    assert reasoner(batch, places, 1, 2).log_probability.shape == before.shape
