"""What each player is taught."""

import math
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from rechain.paper import game
from rechain.paper.data import Batch
from rechain.paper.game import Players
from rechain.paper.policy import Reading, chain_log_probabilities, sample, selection_tables

TWO = [[(0, 1), (2, 1), (1, 0), (3, 2)], [(2, 0)]]
THREE = [[(0, 1, 2), (3, 1, 2), (0, 3, 2), (2, 0, 1)], [(0, 1, 2)]]


def rewards_of(players: Players, batch: Batch, *chains: list[tuple[int, ...]], asks: bool = True) -> Tensor:
    """Return what each selection of these chains, [B][S], earns, [B, S, steps]."""
    selected = torch.tensor(chains)
    predictions = players.predict(batch) if asks else None
    earned = [
        players.rewards(batch, step, selected[..., step.given], predictions).gather(2, selected[..., step.role, None])
        for step in players.plan.steps
    ]
    return torch.cat(earned, dim=-1)


# ---- weights of C


def test_all_chains_weigh_the_same_without_evidence(tiny: ModuleType) -> None:
    batch = tiny.make_larger_batch(TWO, lexical=torch.rand(2, 4))
    assert tiny.make_players(sharpness=0.0).weights(batch).tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]


# ---- rewards of selections


def test_head_and_tail_of_two_earn_apart_as_in_equation_2(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    chosen = [(0, 1), (0, 2), (0, 3), (2, 3)], [(2, 0), (1, 0), (2, 1), (0, 1)]
    tail_then_head = rewards_of(players, batch, *chosen, asks=False)
    assert tail_then_head.tolist() == [[[1, 1], [1, 1], [0, 1], [0, 1]], [[1, 1], [1, 0], [0, 1], [0, 0]]]


def test_with_weighted_c_a_head_of_no_chain_with_its_tail_earns_nothing(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(sharpness=0.5), tiny.make_larger_batch(TWO)
    chosen = [(0, 1), (0, 2), (0, 3)], [(2, 0), (1, 0), (2, 1)]
    assert rewards_of(players, batch, *chosen, asks=False).tolist() == [
        [[1, 1], [1, 0], [0, 0]],
        [[1, 1], [1, 0], [0, 0]],
    ]


def test_the_top_1_entity_of_the_reasoner_decides_the_bonus(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    chosen = [(0, 1), (2, 1), (1, 0)], [(2, 0), (2, 0), (2, 0)]
    # it finds entity 0 of passage 1 the likeliest, which passages 0 and 3 hold too; of 0 entity 1, which 1 lacks
    told = torch.zeros(2, 4, 3)
    told[0, 1], told[0, 0] = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.4, 0.6, 0.0])
    told[1, 0] = torch.tensor([1.0, 0.0, 0.0])
    players.reasoner = tiny.KnownReasoner(told)
    assert rewards_of(players, batch, *chosen)[..., 1].tolist() == [[1.5, 1, 1], [1, 1, 1]]
    told[0, 1] = torch.tensor([0.2, 0.3, 0.5])  # now passages 2 and 3 hold what it names of passage 1
    players.reasoner = tiny.KnownReasoner(told)
    assert rewards_of(players, batch, *chosen)[..., 1].tolist() == [[1, 1.5, 1], [1, 1, 1]]


def test_a_first_selection_gets_no_bonus_and_a_selection_outside_c_nothing(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(sharpness=1e-9), tiny.make_larger_batch(TWO)
    players.reasoner = tiny.certain([[0] * 4, [0] * 4])
    chosen = [(0, 1), (3, 1)], [(2, 0), (1, 0)]
    assert rewards_of(players, batch, *chosen).tolist() == [[[1, 1.5], [1, 0]], [[1, 1], [1, 0]]]


def test_a_passage_without_entity_names_none(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    players.reasoner = tiny.certain([[-1] * 4, [-1] * 4])
    assert rewards_of(players, batch, [(0, 1)], [(2, 0)]).tolist() == [[[1, 1]], [[1, 1]]]


@pytest.mark.parametrize(
    ("of_head", "of_tail", "middle"), [(1, 2, 1.0), (0, 2, 1.25), (1, 0, 1.25), (0, 0, 1.5), (-1, 0, 1.25)]
)
def test_the_middle_of_three_earns_r_for_the_heads_entity_and_r_for_the_tails(
    tiny: ModuleType, of_head: int, of_tail: int, middle: float
) -> None:
    players, batch = tiny.make_players(3, bonus=0.25), tiny.make_larger_batch(THREE)
    players.reasoner = tiny.certain([[of_head, 0, of_tail, 0], [0] * 4])
    chosen = [(0, 1, 2), (0, 0, 2)], [(0, 1, 2), (0, 0, 2)]
    head_tail_middle = rewards_of(players, batch, *chosen)[0].tolist()
    assert head_tail_middle == [[1, 1, middle], [1, 1, 0]]  # passage 1 holds entity 0 alone; (0, 0, 2) is not in C


def test_of_three_the_reasoner_reads_every_passage_for_the_link_of_head_and_of_tail(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(3), tiny.make_larger_batch(THREE)
    players.reasoner = tiny.certain([[0] * 4, [0] * 4])
    rewards_of(players, batch, [(3, 1, 2)], [(0, 1, 2)])
    assert [link for _, link in players.reasoner.asked] == [0, 1]


@pytest.mark.parametrize("gradient", ["exact", "reinforce"])
def test_a_bonus_is_earned_only_if_the_reasoner_pays(tiny: ModuleType, gradient: str) -> None:
    batch = tiny.make_larger_batch(TWO)
    losses = {}
    for pays_bonus, bonus in ((False, 2.0), (True, 0.0), (True, 2.0)):
        players = tiny.make_players(gradient=gradient, bonus=bonus)
        players.reasoner = tiny.certain([[1] * 4, [1] * 4])
        torch.manual_seed(3)
        losses[pays_bonus, bonus] = float(players.ranker_loss(batch, pays_bonus).detach())
    assert losses[False, 2.0] == losses[True, 0.0] != losses[True, 2.0]


def test_the_worth_of_a_bonus_by_evidence_is_worked_by_hand(tiny: ModuleType) -> None:
    chains = [[(0, 1), (2, 1), (3, 1), (3, 2)], [(2, 0)]]
    batch = tiny.make_larger_batch(chains, lexical=torch.tensor([[1.0, 5.0, 2.0, 3.0], [1.0, 0, 0, 0]]))
    players = tiny.make_players()
    # most evidence is for (2, 1); rivals with tail 1 are heads 0 and 3. The Reasoner predicts entity 1 from passage 1,
    # which passages 0 and 2 contain: a tie with 0, better than 3. The second question has no rival.
    players.reasoner = tiny.certain([[0, 1, 0, 0], [1] * 4])
    assert players.bonus_auc(batch).tolist() == [0.75]


# ---- the Ranker's losses


def test_pretraining_by_the_reward_pays_no_bonus_and_is_the_games_loss_without_one(tiny: ModuleType) -> None:
    batch = tiny.make_larger_batch(TWO)
    players = tiny.make_players(pretrain_by="reward", bonus=3.0)
    players.reasoner = tiny.certain([[0] * 4, [0] * 4])
    alone = tiny.make_players(row="tail to head").ranker_loss(batch)
    assert players.pretraining_loss(batch).item() == pytest.approx(alone.item())
    assert players.reasoner.asked == []
    assert players.pretraining_loss(batch).item() != pytest.approx(tiny.make_players().pretraining_loss(batch).item())


def log_probabilities(tiny: ModuleType, hops: int, batch: Batch, seed: int = 0) -> Tensor:
    players = tiny.make_players(hops, seed=seed)
    made = selection_tables(players.ranker, players.ranker.encode(batch), players.plan)
    return chain_log_probabilities(made, players.plan, batch.chains).sum(-1)


@pytest.mark.parametrize(("hops", "chains"), [(2, TWO), (3, THREE)])
def test_distant_supervision_makes_c_likely_by_weight(
    tiny: ModuleType, hops: int, chains: list[list[tuple[int, ...]]]
) -> None:
    lexical = torch.tensor([[1.0, 4.0, 2.0, 3.0], [0.0] * 4])
    batch = tiny.make_larger_batch(chains, lexical=lexical)
    players = tiny.make_players(hops, sharpness=0.5)
    probability = log_probabilities(tiny, hops, batch).exp()
    first = sum(probability[0, n].item() * math.exp(0.5 * (float(lexical[0, n]) - 4)) for n in range(4))
    expected = -(math.log(first) + math.log(probability[1, 0].item())) / 2
    assert float(players.pretraining_loss(batch).detach()) == pytest.approx(expected, rel=1e-5)


def test_a_question_is_taught_alike_alone_and_in_a_batch_however_unlikely_its_chains_are(tiny: ModuleType) -> None:
    parts = (tiny.QUESTIONS, tiny.PASSAGES, tiny.TITLES, tiny.MENTIONS)
    players = tiny.make_players()
    with torch.no_grad():
        players.ranker.score.weight.mul_(-400)

    def apart(chains: list[list[tuple[int, ...]]]) -> list[float]:
        ones = [tiny.make_batch([q], [p], [t], [m], [c]) for q, p, t, m, c in zip(*parts, chains, strict=True)]
        return [players.pretraining_loss(one).item() for one in ones]

    rest = [(0, 1), (1, 0)]
    every = [(head, tail) for head in range(3) for tail in range(3) if head != tail]
    least_likely = max(every, key=lambda chain: apart([[chain], rest])[0])
    chains = [[least_likely], rest]
    losses = apart(chains)
    assert losses[0] > 40
    assert players.pretraining_loss(tiny.make_batch(*parts, chains)).item() == pytest.approx(sum(losses) / 2, rel=1e-4)


def test_the_independent_rows_targets_are_all_passages_of_c_by_one_steps_scores(tiny: ModuleType) -> None:
    chains = [[(0, 1), (3, 1)], [(2, 0)]]
    players, batch = tiny.make_players(row="independent"), tiny.make_larger_batch(chains)
    read = players.ranker.encode(batch)
    scores = players.ranker.step(read, players.ranker.start(read), "tail")[0][:, 0]
    expected = -(scores[0, [0, 1, 3]].mean() + scores[1, [0, 2]].mean()) / 2
    assert float(players.pretraining_loss(batch).detach()) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_per_step_cross_entropy_worked_by_hand(tiny: ModuleType) -> None:
    """The first step learns the tails of C; the second, given each tail of C, the heads that go with it."""
    players = tiny.make_players(pretrain_by="steps")
    batch = tiny.make_larger_batch([[(0, 1), (2, 1), (3, 2)], [(2, 0)]])
    first, second = selection_tables(players.ranker, players.ranker.encode(batch), players.plan)
    tails, heads = first.log_probability[:, 0], {}
    for row, (tail,) in enumerate(second.history[0].tolist()):
        heads[tail] = second.log_probability[0, row]
    expected_first = -(tails[0, 1] + tails[0, 2]) / 2 - tails[1, 0]
    after_1, after_2 = -(heads[1][0] + heads[1][2]) / 2, -heads[2][3]
    expected_second = (after_1 + after_2) / 2 - second.log_probability[1, 0, 2]
    expected = (expected_first + expected_second) / 2
    assert players.pretraining_loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("hops", [2, 3])
def test_per_step_cross_entropy_makes_c_likely(tiny: ModuleType, hops: int) -> None:
    players = tiny.make_players(hops, pretrain_by="steps", update="residual")
    batch = tiny.make_larger_batch(TWO if hops == 2 else THREE)
    before = float(players.evaluate(batch).reward.mean())
    optimiser = torch.optim.Adam(players.ranker.parameters(), lr=0.02)
    for _ in range(20):
        optimiser.zero_grad()
        players.pretraining_loss(batch).backward()
        optimiser.step()
    assert float(players.evaluate(batch).reward.mean()) > before + 0.05


@pytest.mark.parametrize("gradient", ["exact", "reinforce"])
def test_entropy_is_rewarded(tiny: ModuleType, gradient: str, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = []
    for weight in (0.0, 0.5):
        monkeypatch.setattr(game, "ENTROPY", weight)
        torch.manual_seed(3)
        losses.append(float(tiny.make_players(gradient=gradient).ranker_loss(tiny.make_larger_batch(TWO)).detach()))
    assert losses[1] < losses[0] - 0.01


@pytest.mark.parametrize("gradient", ["exact", "reinforce"])
@pytest.mark.parametrize("hops", [2, 3])
def test_the_ranker_learns_to_earn_more_and_the_reasoner_is_left_alone(
    tiny: ModuleType, gradient: str, hops: int
) -> None:
    players = tiny.make_players(hops, gradient=gradient)
    batch = tiny.make_larger_batch(TWO if hops == 2 else THREE)
    before = float(players.evaluate(batch).reward.mean())
    optimiser = torch.optim.Adam(players.ranker.parameters(), lr=0.02)
    torch.manual_seed(0)
    for _ in range(30):
        optimiser.zero_grad()
        players.ranker_loss(batch).backward()
        optimiser.step()
    assert float(players.evaluate(batch).reward.mean()) > before + 0.05
    assert all(parameter.grad is None for parameter in players.reasoner.parameters())


def test_the_reward_that_is_watched_is_1_at_most_and_knows_no_bonus(tiny: ModuleType) -> None:
    every = [[(h, t) for h in range(n) for t in range(n) if h != t] for n in (4, 3)]
    assert tiny.make_players(bonus=5.0).evaluate(tiny.make_larger_batch(every)).reward.tolist() == pytest.approx([1, 1])


# ---- the Reasoner


def reasoner_loss(
    tiny: ModuleType,
    told: Tensor,
    chosen: list[list[tuple[int, ...]]],
    settings: dict[str, Any] | None = None,
    **changes: Tensor,
) -> float:
    hops = len(chosen[0][0])
    players = tiny.make_players(hops, **(settings or {}))
    players.reasoner = tiny.KnownReasoner(told)
    batch = tiny.make_larger_batch(TWO if hops == 2 else THREE, **changes)
    loss, _ = players.reasoner_loss(batch, torch.tensor(chosen))
    loss.backward()
    assert players.reasoner.probability.grad.isfinite().all()
    return float(loss.detach())


TOLD = torch.tensor(
    [
        [[0.6, 0.4, 0.0], [1.0, 0.0, 0.0], [0.0, 0.4, 0.6], [0.3, 0.0, 0.7]],
        [[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)
"""what the Reasoner says of the entities of each passage"""


def test_the_reasoner_is_taught_on_the_best_chain_in_c_with_its_probability_among_c(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(seed=1), tiny.make_larger_batch(TWO)
    probability = log_probabilities(tiny, 2, batch, seed=1).exp()[0]
    chains, sureness = players.chains_to_teach(batch)
    best = int(probability.argmax())
    assert chains.tolist() == [[list(TWO[0][best])], [[2, 0]]]
    assert sureness.tolist() == pytest.approx([(probability[best] / probability.sum()).item(), 1.0])


def test_as_written_it_is_taught_on_what_the_ranker_selects_from_all_passages(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(seed=1, row="as written"), tiny.make_larger_batch([[(0, 1)], [(2, 0)]])
    chains, sureness = players.chains_to_teach(batch)
    greedy = sample(players.ranker, players.ranker.encode(batch), players.plan, 1, greedy=True).selected
    assert chains.tolist() == greedy.tolist()
    assert any(tuple(one) not in of_c for (one,), of_c in zip(chains.tolist(), [[(0, 1)], [(2, 0)]], strict=True))
    assert sureness.tolist() == [1, 1]
    players.reasoner = tiny.KnownReasoner(TOLD)
    players.reasoner_loss(batch, chains)
    assert players.reasoner.asked == [(chains[..., 1].tolist(), 0)]  # the tail, selected first


def test_the_reasoners_targets_are_all_entities_that_the_two_selected_passages_share(tiny: ModuleType) -> None:
    # the tail 0 shares entity 0 with head 3, and 1 with head 2; 3 shares 2 with 2; in the second 0 shares 0 with 1, …
    loss = reasoner_loss(tiny, TOLD, [[(3, 0), (2, 3), (2, 0)], [(1, 0), (2, 1), (0, 1)]])
    assert loss == pytest.approx(-sum(map(math.log, [0.6, 0.7, 0.4, 1.0, 0.3, 0.7])) / 6)


def test_several_shared_entities_are_all_right(tiny: ModuleType) -> None:
    holders = torch.ones(2, 3, 4, dtype=torch.bool)
    told = TOLD.clone()
    told[0, 0] = torch.tensor([0.6, 0.3, 0.1])  # of entities 0 and 1, which it mentions, and 2, which it does not
    loss = reasoner_loss(tiny, told, [[(1, 0)], [(0, 1)]], contains=holders)
    assert loss == pytest.approx(-(math.log(0.6 + 0.3) + math.log(0.7 + 0.3)) / 2)


def test_a_question_without_shared_entity_is_skipped(tiny: ModuleType) -> None:
    # passages 1 and 2 of the first question share nothing
    assert reasoner_loss(tiny, TOLD, [[(1, 2)], [(0, 1)]]) == pytest.approx(-math.log(0.7))


def test_where_all_questions_are_skipped_the_loss_is_zero_and_no_nan(tiny: ModuleType) -> None:
    assert reasoner_loss(tiny, TOLD, [[(1, 2)], [(0, 2)]]) == 0


def test_entities_that_may_not_be_the_link_are_no_targets(tiny: ModuleType) -> None:
    may_link = torch.ones(2, 3, 1, dtype=torch.bool)
    may_link[0, 0] = False
    assert reasoner_loss(tiny, TOLD, [[(3, 0)], [(0, 1)]], may_link=may_link) == pytest.approx(-math.log(0.7))


def test_of_three_both_the_head_and_the_tail_are_read(tiny: ModuleType) -> None:
    # head 0 and middle 3 share entity 0, tail 2 and middle 3 entity 2; in the second only head 1 and middle 0 share one
    loss = reasoner_loss(tiny, TOLD, [[(0, 3, 2)], [(1, 0, 2)]])
    assert loss == pytest.approx(-(math.log(0.6) + math.log(0.6) + math.log(0.7)) / 3)


def test_stronger_entities_count_more_as_targets_where_there_is_evidence(tiny: ModuleType) -> None:
    weight = torch.zeros(2, 4, 3)
    weight[0, 0] = torch.tensor([1.0, 3.0, 1.0])  # of the mentions of entities 0, 1 and 0
    batch = tiny.make_larger_batch(TWO, mention_weight=weight, contains=torch.ones(2, 3, 4, dtype=torch.bool))
    chosen = torch.tensor([[[1, 0]], [[1, 0]]])
    targets = tiny.make_players(sharpness=0.5).targets(batch, chosen, Reading(1, 0, 0))
    assert targets[0, 0].tolist() == pytest.approx([math.exp(-1), 1, 0])
    assert tiny.make_players(sharpness=0.0).targets(batch, chosen, Reading(1, 0, 0))[0, 0].tolist() == [1, 1, 0]


def test_the_reasoner_learns_to_name_the_links(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    chosen = torch.tensor([[[2, 0]], [[1, 0]]])  # entity 1 of passage 0, though 0 stands there twice
    optimiser = torch.optim.Adam(players.reasoner.parameters(), lr=0.02)
    for _ in range(40):
        optimiser.zero_grad()
        players.reasoner_loss(batch, chosen)[0].backward()
        optimiser.step()
    assert int(players.predict(batch)[players.plan.readings[0]].best[0, 0]) == 1
    assert all(parameter.grad is None for parameter in players.ranker.parameters())


def test_asking_teaches_the_reasoner_nothing_and_uses_no_dropout(tiny: ModuleType) -> None:
    players, batch = tiny.make_players().train(), tiny.make_larger_batch(TWO)
    (one,), (two,) = (players.predict(batch).values() for _ in range(2))
    assert torch.equal(one.log_probability, two.log_probability)
    assert not one.log_probability.requires_grad
    assert players.reasoner.training
