"""The two gradients of the expected reward, against every selection there is, written apart from the code."""

from collections.abc import Sequence
from itertools import permutations, product
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rechain.paper import game
from rechain.paper.data import Batch
from rechain.paper.game import Players
from rechain.paper.policy import (
    Plan,
    Reading,
    Step,
    chain_log_probabilities,
    make_plan,
    mean_entropy,
    reinforce,
    sample,
    selection_tables,
)
from rechain.paper.ranker import Encoded, Ranker

TWO = [[(0, 1), (2, 1), (1, 0), (3, 2)], [(2, 0)]]
"""tails of the first question: three; of the second: one, and it stands first among the passages"""
THREE = [[(0, 1, 2), (3, 1, 2), (0, 3, 2), (2, 0, 1)], [(0, 1, 2)]]
NAMED = [[0, 0, 1, 2], [0, 1, 1, -1]]
"""what the Reasoner names of each passage; it holds entity 0: passages 0 1 3, and 0 1; 1: 0 2, and 1 2; 2: 2 3"""
HOLDERS = [[{0, 1, 3}, {0, 2}, {2, 3}], [{0, 1}, {1, 2}]]
BONUS = 0.5


def log_probability_of(ranker: Ranker, read: Encoded, plan: Plan, places: tuple[int, ...]) -> Tensor:
    """Return the log-probability of a row of passages, [B], one step after the other."""
    total, states = torch.zeros(len(read.question)), {}
    for step in plan.steps:
        selected = ranker.start(read)
        for role in step.given:
            selected = ranker.select(selected, torch.full((len(total), 1), places[role]), states[role])
        log_probability, matched = ranker.step(read, selected, plan.name(step.role))
        states[step.role] = matched[:, :, places[step.role]]
        total = total + log_probability[:, 0, places[step.role]]
    return total


@torch.no_grad()
def every_selection(ranker: Ranker, read: Encoded, plan: Plan) -> dict[tuple[int, ...], Tensor]:
    """Return the log-probability of every row of passages."""
    rows = product(range(read.batch.passages.shape[1]), repeat=plan.hops)
    return {places: log_probability_of(ranker, read, plan, places) for places in rows}


def earned(
    players: Players, number: int, places: tuple[int, ...], chains: Sequence[Sequence[tuple[int, ...]]]
) -> float:
    """Return what the paper gives for the selection of these passages."""
    in_c, first = chains[number], players.plan.steps[0].role
    heads, tails = {chain[0] for chain in in_c}, {chain[-1] for chain in in_c}

    def is_named(read: int, following: int) -> bool:
        entity = NAMED[number][read]
        return entity >= 0 and following in HOLDERS[number][entity]

    if players.plan.hops == 3:
        named = is_named(places[0], places[1]) + is_named(places[2], places[1])
        return (places[0] in heads) + (places[2] in tails) + (places in in_c) * (1 + BONUS * named)
    ends = (heads, tails)
    second = places[1 - first] in ends[1 - first] if players.settings.is_hard else places in in_c
    return (places[first] in ends[first]) + second * (1 + BONUS * is_named(places[first], places[1 - first]))


# with a very small sharpness all chains count alike, but a head only with its tail
WAYS: list[dict[str, Any]] = [
    {"hops": 2, "row": row, "sharpness": sharpness}
    for row in ("cooperative", "head to tail")
    for sharpness in (0.0, 1e-9)
] + [{"hops": 3}]


@pytest.fixture(autouse=True)
def _no_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game, "ENTROPY", 0.0)


def make_game(tiny: ModuleType, hops: int, **settings: Any) -> tuple[Players, Batch]:
    players = tiny.make_players(hops, bonus=BONUS, **settings)
    players.reasoner = tiny.certain(NAMED)
    return players, tiny.make_larger_batch(TWO if hops == 2 else THREE)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_expected_reward_is_the_sum_over_every_selection(tiny: ModuleType, way: dict[str, Any]) -> None:
    players, batch = make_game(tiny, **way)
    read = players.ranker.encode(batch)
    chains = TWO if way["hops"] == 2 else THREE
    selections = every_selection(players.ranker, read, players.plan)
    brute = [
        sum(log[number].exp().item() * earned(players, number, places, chains) for places, log in selections.items())
        for number in range(2)
    ]
    assert -players.ranker_loss(batch, pays_bonus=True).item() == pytest.approx(sum(brute) / 2)


def everybody(batch: Batch) -> Tensor:
    return torch.ones(len(batch.chains), dtype=torch.bool)


def gradient(loss: Tensor, players: Players) -> Tensor:
    grads = torch.autograd.grad(loss, list(players.ranker.parameters()), allow_unused=True)
    return torch.cat([grad.flatten() for grad in grads if grad is not None])


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_mean_gradient_of_reinforce_converges_to_the_exact_one(
    tiny: ModuleType, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    players, batch = make_game(tiny, **way)
    exact = gradient(players.ranker_loss(batch, pays_bonus=True), players)
    torch.manual_seed(0)
    monkeypatch.setattr(game, "SAMPLES", 24_000)
    players.settings = players.settings.but(gradient="reinforce")
    sampled = gradient(players.ranker_loss(batch, pays_bonus=True), players)
    assert torch.cosine_similarity(sampled, exact, dim=0) > 0.995
    assert float(sampled.norm() / exact.norm()) == pytest.approx(1, abs=0.05)


def test_reinforce_worked_by_hand_with_the_mean_of_the_other_samples() -> None:
    rewards = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    log_probability = torch.zeros(1, 3, 2, requires_grad=True)
    reinforce(log_probability, rewards).backward()
    # to go: (1, 0), (1, 1), (2, 1); the means of the others: (1.5, 1), (1.5, 0.5), (1, 0.5)
    expected = torch.tensor([[[-0.5, -1.0], [-0.5, 0.5], [1.0, 0.5]]])
    assert torch.allclose(log_probability.grad, -expected / 3)


def test_a_reward_is_no_longer_credited_to_later_selections() -> None:
    log_probability = torch.zeros(1, 2, 2, requires_grad=True)
    reinforce(log_probability, torch.tensor([[[5.0, 0.0], [1.0, 0.0]]])).backward()
    assert log_probability.grad[..., 1].eq(0).all()


# ---- what may be selected


def test_training_selects_from_all_passages_not_from_c_alone(tiny: ModuleType) -> None:
    players, batch = make_game(tiny, 2)
    read = players.ranker.encode(batch)
    first = selection_tables(players.ranker, read, players.plan)[0].log_probability.exp()[:, 0]
    assert first[0, 3] > 0  # no tail of any chain
    assert first[1, [1, 2]].gt(0).all()
    torch.manual_seed(0)
    drawn = sample(players.ranker, read, players.plan, 500).selected
    for number in range(2):
        pairs = set(map(tuple, drawn[number].tolist()))
        assert pairs == set(permutations(range(4 - number), 2))
        assert not pairs <= set(TWO[number])


def test_samples_are_as_frequent_as_their_probability(tiny: ModuleType) -> None:
    players, batch = make_game(tiny, 3)
    read = players.ranker.encode(batch)
    torch.manual_seed(1)
    drawn = sample(players.ranker, read, players.plan, 4000)
    expected = every_selection(players.ranker, read, players.plan)
    for places, log in expected.items():
        is_drawn = (drawn.selected == torch.tensor(places)).all(-1)
        assert is_drawn.float().mean(1).tolist() == pytest.approx(log.exp().tolist(), abs=0.04)
        for number in range(2):
            told = drawn.log_probability[number][is_drawn[number]].sum(-1)
            assert torch.allclose(told, log[number].expand_as(told), atol=1e-4)


def test_a_greedy_selection_takes_the_best_passage_of_each_step(tiny: ModuleType) -> None:
    players, batch = make_game(tiny, 2)
    read = players.ranker.encode(batch)
    (chosen,) = sample(players.ranker, read, players.plan, 1, greedy=True).selected.transpose(0, 1).tolist()
    first, second = selection_tables(players.ranker, read, players.plan, every_first=True)
    for number, (head, tail) in enumerate(chosen):
        assert tail == int(first.log_probability[number, 0].argmax())
        assert head == int(second.log_probability[number, tail].argmax())


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), hops=st.integers(2, 3))
def test_no_sample_holds_padding_nor_a_given_passage_twice(tiny: ModuleType, seed: int, hops: int) -> None:
    players, batch = make_game(tiny, hops, seed=seed)
    chosen = sample(players.ranker, players.ranker.encode(batch), players.plan, 20).selected
    assert chosen[1].max() <= 2
    for step in players.plan.steps:
        for role in step.given:
            assert (chosen[..., step.role] != chosen[..., role]).all()


# ---- the probability of chains


def selectable(places: int, hops: int) -> list[tuple[int, ...]]:
    """Return all that can be selected: of more than two, head and tail are selected apart and may be the same."""
    ends = [(h, t) for h in range(places) for t in range(places) if h != t or hops > 2]
    return [
        (head, *middles, tail)
        for head, tail in ends
        for middles in permutations(set(range(places)) - {head, tail}, hops - 2)
    ]


def five_passages(tiny: ModuleType, chains: Sequence[Sequence[tuple[int, ...]]]) -> Batch:
    """Five passages, and four for the second question."""
    passages = [[*tiny.PASSAGES[0], [2, 12, 6], [3, 8]], [*tiny.PASSAGES[1], [3, 8], [7]]]
    return tiny.make_batch(tiny.QUESTIONS, passages, [[1] * 5, [1] * 4], [[], []], chains)


@pytest.mark.parametrize(
    ("hops", "row"), [(2, "tail to head"), (2, "head to tail"), (3, "tail to head"), (4, "tail to head")]
)
def test_the_probabilities_of_all_chains_sum_to_one(tiny: ModuleType, hops: int, row: str) -> None:
    players = tiny.make_players(hops, row=row)
    batch = five_passages(tiny, [selectable(5, hops), selectable(4, hops)])
    made = selection_tables(players.ranker, players.ranker.encode(batch), players.plan)
    total = (chain_log_probabilities(made, players.plan, batch.chains).sum(-1).exp() * batch.is_chain).sum(-1)
    assert total.tolist() == pytest.approx([1, 1], abs=1e-5)


@pytest.mark.parametrize("hops", [2, 3, 4])
def test_the_probability_of_a_chain_is_the_product_of_its_selections(tiny: ModuleType, hops: int) -> None:
    four = [[(0, 1, 2, 3), (3, 1, 0, 2), (0, 2, 1, 3), (0, 1, 4, 3), (4, 1, 0, 2)], [(0, 1, 2, 0)]]
    chains = {2: TWO, 3: THREE, 4: four}[hops]
    players, batch = tiny.make_players(hops), five_passages(tiny, chains)
    read = players.ranker.encode(batch)
    found = chain_log_probabilities(
        selection_tables(players.ranker, read, players.plan), players.plan, batch.chains
    ).sum(-1)
    for number, told in enumerate(chains):
        one_by_one = [log_probability_of(players.ranker, read, players.plan, chain)[number].item() for chain in told]
        assert found[number, : len(told)].tolist() == pytest.approx(one_by_one, abs=1e-5)


def test_of_four_every_middle_earns_by_what_was_selected_before_it(tiny: ModuleType) -> None:
    chains = [[(0, 1, 2, 3), (3, 1, 0, 2), (0, 2, 1, 3)], [(0, 1, 2, 0)]]
    players, batch = tiny.make_players(4, row="tail to head"), tiny.make_larger_batch(chains)

    def reward_of(number: int, places: tuple[int, ...]) -> int:
        roles = ((0,), (3,), (0, 3, 1), (0, 3, 1, 2))
        return sum(any(all(c[r] == places[r] for r in told) for c in chains[number]) for told in roles)

    selections = every_selection(players.ranker, players.ranker.encode(batch), players.plan).items()
    brute = [
        sum(log[number].exp().item() * reward_of(number, places) for places, log in selections) for number in (0, 1)
    ]
    assert (4 * players.evaluate(batch).reward).tolist() == pytest.approx(brute, abs=1e-5)


def test_the_independent_row_uses_one_steps_scores_for_every_passage(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(3, row="independent"), tiny.make_larger_batch(THREE)
    read = players.ranker.encode(batch)
    made = selection_tables(players.ranker, read, make_plan(3, "independent"))
    scores = players.ranker.step(read, players.ranker.start(read), "tail")[0][:, 0]
    assert all(torch.equal(table.log_probability[:, 0], scores) for table in made)
    found = chain_log_probabilities(made, players.plan, batch.chains).sum(-1)
    assert found[0].tolist() == pytest.approx([scores[0, list(chain)].sum().item() for chain in THREE[0]])


def test_head_and_tail_of_three_are_selected_independently_of_each_other(tiny: ModuleType) -> None:
    players, batch = make_game(tiny, 3)
    read = players.ranker.encode(batch)
    head, tail, _ = selection_tables(players.ranker, read, players.plan)
    start = players.ranker.start(read)
    assert torch.equal(head.log_probability, players.ranker.step(read, start, "head")[0])
    assert torch.equal(tail.log_probability, players.ranker.step(read, start, "tail")[0])


def test_the_middle_of_three_is_selected_with_a_query_updated_by_both_head_and_tail(tiny: ModuleType) -> None:
    players, batch = make_game(tiny, 3)
    ranker, read = players.ranker, players.ranker.encode(batch)
    head, tail, middle = selection_tables(ranker, read, players.plan)
    rows = middle.history[0].tolist()
    assert sorted(rows) == [[0, 2], [2, 1], [3, 2]]
    for row, (h, t) in enumerate(rows):
        at = torch.tensor([[h], [0]]), torch.tensor([[t], [2]])
        once = ranker.select(ranker.start(read), at[0], torch.stack([head.states[0, :, h], head.states[1, :, 0]]))
        both = ranker.select(once, at[1], torch.stack([tail.states[0, :, t], tail.states[1, :, 2]]))
        expected = ranker.step(read, both, "middle")[0]
        assert torch.allclose(middle.log_probability[0, row], expected[0, 0], atol=1e-6)
        assert not torch.allclose(middle.log_probability[0, row], ranker.step(read, once, "middle")[0][0, 0], atol=1e-3)


# ---- padding


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_reward_and_entropy_of_a_question_do_not_depend_on_the_others_of_its_batch(
    tiny: ModuleType, way: dict[str, Any]
) -> None:
    players, batch = make_game(tiny, **way)
    parts = [[tiny.QUESTIONS[1]], [[*tiny.PASSAGES[1], [3, 8]]], [[1, 2, 0]], [[*tiny.MENTIONS[1], [(1, 1)]]]]
    alone = tiny.make_batch(*parts, [TWO[1] if way["hops"] == 2 else THREE[1]])
    assert float(players.evaluate(batch).reward[1]) == pytest.approx(float(players.evaluate(alone).reward[0]), abs=1e-6)
    every = players.rewards_any_head
    both, one = (
        selection_tables(players.ranker, players.ranker.encode(of), players.plan, every) for of in (batch, alone)
    )
    for together, apart in zip(both, one, strict=True):
        assert mean_entropy(together)[1].item() == pytest.approx(mean_entropy(apart)[0].item(), abs=1e-5)


def test_entropy_is_that_of_the_selection_mean_over_histories(tiny: ModuleType) -> None:
    players, batch = make_game(tiny, 2)
    first, second = selection_tables(players.ranker, players.ranker.encode(batch), players.plan)

    def of(row: Tensor) -> float:
        return torch.distributions.Categorical(logits=row).entropy().item()

    assert mean_entropy(first)[0].item() == pytest.approx(of(first.log_probability[0, 0]), abs=1e-5)
    rows = [of(second.log_probability[0, row]) for row in range(3)]
    assert mean_entropy(second)[0].item() == pytest.approx(sum(rows) / 3, abs=1e-5)
    assert mean_entropy(second)[1].item() == pytest.approx(of(second.log_probability[1, 0]), abs=1e-5)


# ---- the order of selections


def test_two_hops_from_the_tail() -> None:
    plan = make_plan(2, "tail to head")
    assert plan == Plan(2, (Step(1), Step(0, (1,))), (Reading(role=1, link=0, next=0),))
    assert [plan.name(step.role) for step in plan.steps] == ["tail", "head"]


def test_two_hops_from_the_head() -> None:
    plan = make_plan(2, "head to tail")
    assert plan == Plan(2, (Step(0), Step(1, (0,))), (Reading(role=0, link=0, next=1),))
    assert [plan.name(step.role) for step in plan.steps] == ["head", "tail"]


def test_three_hops_head_and_tail_independently_then_the_middle_given_both() -> None:
    plan = make_plan(3)
    assert plan.steps == (Step(0), Step(2), Step(1, (0, 2)))
    assert plan.readings == (Reading(role=0, link=0, next=1), Reading(role=2, link=1, next=1))
    assert [plan.name(role) for role in range(3)] == ["head", "middle", "tail"]


def test_four_hops_the_middles_from_left_to_right_each_given_all_before() -> None:
    plan = make_plan(4)
    assert plan.steps == (Step(0), Step(3), Step(1, (0, 3)), Step(2, (0, 3, 1)))
    assert plan.readings == (Reading(0, 0, 1), Reading(3, 2, 2))
    assert [plan.name(role) for role in range(4)] == ["head", "middle", "middle", "tail"]


@pytest.mark.parametrize("hops", [2, 3, 4])
def test_independent_selection_gives_nothing_to_a_step_and_reads_nothing(hops: int) -> None:
    plan = make_plan(hops, "independent")
    assert plan.steps == tuple(Step(role) for role in range(hops))
    assert plan.readings == ()
    assert {plan.name(role) for role in range(hops)} == {"tail"}


@pytest.mark.parametrize("hops", range(2, 9))
@pytest.mark.parametrize("direction", ["tail to head", "head to tail", "independent"])
def test_every_role_is_selected_once_and_given_only_to_later_steps(hops: int, direction: str) -> None:
    plan = make_plan(hops, direction)
    assert sorted(step.role for step in plan.steps) == list(range(hops))
    for number, step in enumerate(plan.steps):
        assert plan.step_of(step.role) == number
        assert all(plan.step_of(role) < number for role in step.given)
    for reading in plan.readings:
        assert reading.role in plan.steps[plan.step_of(reading.next)].given
        assert {reading.role, reading.next} == {reading.link, reading.link + 1}
