"""What each player is taught."""

import math
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from rechain.game.plan import Reading
from rechain.game.players import NOBODY
from rechain.game.policy import Sample, sample, step_log_probabilities, tables
from rechain.models.batch import Batch

TWO = [[(0, 1), (2, 1), (1, 0), (3, 2)], [(2, 0)]]
THREE = [[(0, 1, 2), (3, 1, 2), (0, 3, 2), (2, 0, 1)], [(0, 1, 2)]]


def drawn(*chosen: list[tuple[int, ...]]) -> Sample:
    """These chains, as if they had been drawn, [B][S]."""
    places = torch.tensor(chosen)
    return Sample(places, torch.zeros(places.shape), torch.zeros(places.shape))


# ---- weights of C


def test_all_chains_weigh_the_same_without_evidence(tiny: ModuleType) -> None:
    batch = tiny.make_larger_batch(TWO, lexical=torch.rand(2, 4), link_weight=torch.rand(2, 4))
    assert tiny.make_players(evidence="none").weights(batch).tolist() == [[1, 1, 1, 1], [1, 0, 0, 0]]


@pytest.mark.parametrize(("evidence", "field"), [("lexical", "lexical"), ("links", "link_weight")])
def test_chains_of_less_evidence_weigh_less(tiny: ModuleType, evidence: str, field: str) -> None:
    told = torch.tensor([[5.0, 3.0, 5.0, 1.0], [-2.0, 9.0, 9.0, 9.0]])
    players = tiny.make_players(evidence=evidence, sharpness=0.5)
    weights = players.weights(tiny.make_larger_batch(TWO, **{field: told}))
    assert weights.tolist() == [pytest.approx([1, math.exp(-1), 1, math.exp(-2)]), [1, 0, 0, 0]]


def test_of_a_pseudo_question_the_chain_that_it_was_made_from_counts_alone(tiny: ModuleType) -> None:
    made = torch.tensor([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    weights = tiny.make_players(evidence="lexical").weights(tiny.make_larger_batch(TWO, made=made))
    assert weights.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]


# ---- rewards of selections


def test_head_and_tail_of_two_earn_apart_as_in_equation_2(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(head_reward="set"), tiny.make_larger_batch(TWO)
    chosen = drawn([(0, 1), (0, 2), (0, 3), (2, 3)], [(2, 0), (1, 0), (2, 1), (0, 1)])
    tail_then_head = players.sampled_rewards(batch, chosen, NOBODY)
    assert tail_then_head.tolist() == [[[1, 1], [1, 1], [0, 1], [0, 1]], [[1, 1], [1, 0], [0, 1], [0, 0]]]


def test_a_head_of_no_chain_with_its_tail_earns_nothing_where_paths_are_rewarded(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(head_reward="path"), tiny.make_larger_batch(TWO)
    chosen = drawn([(0, 1), (0, 2), (0, 3)], [(2, 0), (1, 0), (2, 1)])
    assert players.sampled_rewards(batch, chosen, NOBODY).tolist() == [
        [[1, 1], [1, 0], [0, 0]],
        [[1, 1], [1, 0], [0, 0]],
    ]


def test_the_top_1_entity_of_the_reasoner_decides_the_bonus(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    chosen = drawn([(0, 1), (2, 1), (1, 0)], [(2, 0), (2, 0), (2, 0)])
    # it finds entity 0 of passage 1 the likeliest, which passages 0 and 3 hold too; of 0 entity 1, which 1 lacks
    told = torch.zeros(2, 4, 3)
    told[0, 1], told[0, 0] = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.4, 0.6, 0.0])
    told[1, 0] = torch.tensor([1.0, 0.0, 0.0])
    players.reasoner = tiny.KnownReasoner(told)
    assert players.sampled_rewards(batch, chosen)[..., 1].tolist() == [[1.5, 1, 1], [1, 1, 1]]
    told[0, 1] = torch.tensor([0.2, 0.3, 0.5])  # now passages 2 and 3 hold what it names of passage 1
    players.reasoner = tiny.KnownReasoner(told)
    assert players.sampled_rewards(batch, chosen)[..., 1].tolist() == [[1, 1.5, 1], [1, 1, 1]]


def test_a_first_selection_gets_no_bonus_and_a_selection_outside_c_nothing(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    players.reasoner = tiny.certain([[0] * 4, [0] * 4])
    chosen = drawn([(0, 1), (3, 1)], [(2, 0), (1, 0)])
    assert players.sampled_rewards(batch, chosen).tolist() == [[[1, 1.5], [1, 0]], [[1, 1], [1, 0]]]


def test_a_passage_without_entity_names_none(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    players.reasoner = tiny.certain([[-1] * 4, [-1] * 4])
    assert players.sampled_rewards(batch, drawn([(0, 1)], [(2, 0)])).tolist() == [[[1, 1]], [[1, 1]]]


@pytest.mark.parametrize(
    ("of_head", "of_tail", "middle"), [(1, 2, 1.0), (0, 2, 1.25), (1, 0, 1.25), (0, 0, 1.5), (-1, 0, 1.25)]
)
def test_the_middle_of_three_earns_r_for_the_heads_entity_and_r_for_the_tails(
    tiny: ModuleType, of_head: int, of_tail: int, middle: float
) -> None:
    players, batch = tiny.make_players(3, bonus=0.25), tiny.make_larger_batch(THREE)
    players.reasoner = tiny.certain([[of_head, 0, of_tail, 0], [0] * 4])
    chosen = drawn([(0, 1, 2), (0, 0, 2)], [(0, 1, 2), (0, 0, 2)])
    head_tail_middle = players.sampled_rewards(batch, chosen)[0].tolist()
    assert head_tail_middle == [[1, 1, middle], [1, 1, 0]]  # passage 1 holds entity 0 alone; (0, 0, 2) is not in C


def test_of_three_the_reasoner_reads_head_and_tail_each_for_its_own_link(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(3), tiny.make_larger_batch(THREE)
    players.reasoner = tiny.certain([[0] * 4, [0] * 4])
    players.sampled_rewards(batch, drawn([(3, 1, 2)], [(0, 1, 2)]))
    assert players.reasoner.asked == [([[3], [0]], 0), ([[2], [2]], 1)]


@pytest.mark.parametrize(("row", "is_more"), [("cooperative", True), ("conditional", False)])
@pytest.mark.parametrize("gradient", ["exact", "likelihood"])
def test_only_the_cooperative_row_pays_a_bonus(tiny: ModuleType, row: str, is_more: bool, gradient: str) -> None:
    losses = []
    for named in (0, -1):
        players = tiny.make_players(row=row, gradient=gradient)
        players.reasoner = tiny.certain([[named] * 4, [named] * 4])
        losses.append(float(players.ranker_loss(tiny.make_larger_batch(TWO)).detach()))
    assert (losses[0] < losses[1] - 1e-4) == is_more
    assert is_more or losses[0] == losses[1]


# ---- the walk


def test_by_a_walk_passages_earn_by_their_chance_to_be_reached(tiny: ModuleType) -> None:
    # of the four passages entity 0 stands in 0, 1 and 3, entity 1 in 0 and 2, entity 2 in 2 and 3
    players, batch = tiny.make_players(bonus_by="walk"), tiny.make_larger_batch(TWO)
    told = torch.zeros(2, 4, 3)
    told[0, 0] = torch.tensor([0.8, 0.2, 0.0])
    players.reasoner = tiny.KnownReasoner(told)
    shares = players.shares(batch, torch.tensor([[0], [0]]), Reading(1, 0, 0))
    # 0.8 is shared by passages 1 and 3, 0.2 is passage 2's; the greatest chance is 0.4
    assert shares[0, 0].tolist() == pytest.approx([0, 1, 0.5, 1])
    assert shares[1, 0].tolist() == [0, 0, 0, 0]  # the Reasoner names nothing there
    chosen = drawn([(1, 0), (2, 0), (3, 0)], [(2, 0)] * 3)
    assert players.sampled_rewards(batch, chosen)[0, :, 1].tolist() == pytest.approx(
        [1.5, 0, 0]
    )  # of C is (1, 0) alone


def test_by_a_walk_the_reasoner_learns_what_leads_to_the_next_passage(tiny: ModuleType) -> None:
    told = TOLD.clone()
    told[0, 0] = torch.tensor([0.6, 0.4, 0.0])
    # tail 0 to head 3: entity 0, which two others hold; to head 2: entity 1, which no other holds; in the second
    # question tail 1 to head 0: entity 0, which no other holds
    chosen = [[(3, 0), (2, 0)], [(0, 1), (0, 1)]]
    loss = reasoner_loss(tiny, told, chosen, settings={"reasoner_loss": "walk"})
    assert loss == pytest.approx(-(math.log(0.6 / 2) + math.log(0.4) + 2 * math.log(0.7)) / 4)


def test_by_a_walk_too_a_question_without_shared_entity_is_skipped(tiny: ModuleType) -> None:
    loss = reasoner_loss(tiny, TOLD, [[(1, 2)], [(0, 1)]], settings={"reasoner_loss": "walk"})
    assert loss == pytest.approx(-math.log(0.7))


@pytest.mark.parametrize("gradient", ["exact", "likelihood", "reinforce"])
def test_only_the_questions_asked_about_earn_a_bonus(tiny: ModuleType, gradient: str) -> None:
    batch = tiny.make_larger_batch(TWO)
    losses = {}
    for asked in (NOBODY, slice(1, None), slice(2, None), slice(None)):
        players = tiny.make_players(gradient=gradient, bonus=2.0)
        players.reasoner = tiny.certain([[1] * 4, [1] * 4])
        torch.manual_seed(3)
        losses[str(asked)] = float(players.ranker_loss(batch, asked).detach())
        rows = 0 if asked in (NOBODY, slice(2, None)) else len(range(2)[asked])
        assert all(len(places) == rows for places, _ in players.reasoner.asked)
    none, second, beyond, every = losses.values()
    assert beyond == none
    assert none != every
    assert gradient == "reinforce" or len({none, second, every}) == 3  # samples of one question may all earn alike


def test_a_weighted_chain_gets_all_of_an_added_bonus(tiny: ModuleType) -> None:
    lexical = torch.tensor([[0.0, 4.0, 0.0, 0.0], [0.0] * 4])
    earned = {}
    for kind in ("sum", "factor"):
        players = tiny.make_players(evidence="lexical", sharpness=0.5, bonus_is=kind)
        players.reasoner = tiny.certain([[0] * 4, [-1] * 4])
        chosen = drawn([(0, 1)], [(2, 0)])
        earned[kind] = players.sampled_rewards(tiny.make_larger_batch(TWO, lexical=lexical), chosen)[0, 0, 1].item()
    weight = math.exp(-2)
    assert earned == {"sum": pytest.approx(weight + 0.5), "factor": pytest.approx(1.5 * weight)}


def test_the_worth_of_a_bonus_by_evidence_is_worked_by_hand(tiny: ModuleType) -> None:
    chains = [[(0, 1), (2, 1), (3, 1), (3, 2)], [(2, 0)]]
    lexical = torch.tensor([[1.0, 5.0, 2.0, 3.0], [1.0, 0, 0, 0]])
    batch = tiny.make_larger_batch(chains, lexical=lexical, holders=tiny.make_larger_batch(chains).holders)
    players = tiny.make_players()
    # most evidence is for (2, 1); rivals with tail 1 are heads 0 and 3. The Reasoner names entity 1 of passage 1, which
    # passages 0 and 2 hold: a tie with 0, better than 3. It has no rival in the second question.
    players.reasoner = tiny.certain([[0, 1, 0, 0], [1] * 4])
    watched = players.watch_reasoner(batch)
    assert watched.auc.tolist() == [0.75]
    assert watched.common.tolist() == pytest.approx([2 / 3, 1.0])  # of three and of two other passages


# ---- the Ranker's losses


def test_pretraining_by_the_reward_pays_no_bonus_and_is_the_games_loss_without_one(tiny: ModuleType) -> None:
    batch = tiny.make_larger_batch(TWO)
    players = tiny.make_players(pretrain_by="reward", bonus=3.0)
    players.reasoner = tiny.certain([[0] * 4, [0] * 4])
    alone = tiny.make_players(row="conditional").ranker_loss(batch)
    assert players.supervised_loss(batch).item() == pytest.approx(alone.item())
    assert players.reasoner.asked == []
    assert players.supervised_loss(batch).item() != pytest.approx(tiny.make_players().supervised_loss(batch).item())


def log_probabilities(tiny: ModuleType, hops: int, batch: Batch) -> Tensor:
    players = tiny.make_players(hops)
    made = tables(players.ranker, players.ranker.read(batch), players.plan)
    return step_log_probabilities(made, players.plan, batch.chains).sum(-1)


@pytest.mark.parametrize(("hops", "chains"), [(2, TWO), (3, THREE)])
def test_distant_supervision_makes_c_likely_by_weight(
    tiny: ModuleType, hops: int, chains: list[list[tuple[int, ...]]]
) -> None:
    lexical = torch.tensor([[1.0, 4.0, 2.0, 3.0], [0.0] * 4])
    batch = tiny.make_larger_batch(chains, lexical=lexical)
    players = tiny.make_players(hops, evidence="lexical", sharpness=0.5)
    probability = log_probabilities(tiny, hops, batch).exp()
    first = sum(probability[0, n].item() * math.exp(0.5 * (float(lexical[0, n]) - 4)) for n in range(4))
    expected = -(math.log(first) + math.log(probability[1, 0].item())) / 2
    assert float(players.supervised_loss(batch).detach()) == pytest.approx(expected, rel=1e-5)


def test_a_question_is_taught_alike_alone_and_in_a_batch_however_unlikely_its_chains_are(tiny: ModuleType) -> None:
    parts = (tiny.QUESTIONS, tiny.PASSAGES, tiny.TITLES, tiny.MENTIONS)
    players = tiny.make_players()
    with torch.no_grad():
        players.ranker.score.weight.mul_(-400)

    def apart(chains: list[list[tuple[int, ...]]]) -> list[float]:
        ones = [tiny.make_batch([q], [p], [t], [m], [c]) for q, p, t, m, c in zip(*parts, chains, strict=True)]
        return [players.supervised_loss(one).item() for one in ones]

    rest = [(0, 1), (1, 0)]
    every = [(head, tail) for head in range(3) for tail in range(3) if head != tail]
    least_likely = max(every, key=lambda chain: apart([[chain], rest])[0])
    chains = [[least_likely], rest]
    losses = apart(chains)
    assert losses[0] > 40
    assert players.supervised_loss(tiny.make_batch(*parts, chains)).item() == pytest.approx(sum(losses) / 2, rel=1e-4)


def test_the_logarithm_of_the_reward_counts_chains_with_their_bonus(tiny: ModuleType) -> None:
    batch = tiny.make_larger_batch(TWO)
    players = tiny.make_players(gradient="likelihood", bonus=0.5)
    players.reasoner = tiny.certain([[1, 0, -1, -1], [1, -1, -1, -1]])
    # tail 1 names entity 0, which head 0 holds and head 2 does not; tail 0 names entity 1, which head 1 lacks; in the
    # second question tail 0 names entity 1, which head 2 holds
    probability = log_probabilities(tiny, 2, batch).exp()
    first = (probability[0] * torch.tensor([1.5, 1, 1, 1])).sum()
    expected = -(first.log() + (1.5 * probability[1, 0]).log()) / 2
    assert float(players.ranker_loss(batch).detach()) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_independent_rows_targets_are_all_passages_of_c_by_one_steps_scores(tiny: ModuleType) -> None:
    chains = [[(0, 1), (3, 1)], [(2, 0)]]
    players, batch = tiny.make_players(row="independent"), tiny.make_larger_batch(chains)
    read = players.ranker.read(batch)
    scores = players.ranker.step(read, players.ranker.start(read), "tail")[0][:, 0]
    expected = -(scores[0, [0, 1, 3]].mean() + scores[1, [0, 2]].mean()) / 2
    assert float(players.supervised_loss(batch).detach()) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_moving_baseline_follows_the_mean_reward_to_go(tiny: ModuleType) -> None:
    every = [[(h, t) for h in range(n) for t in range(n) if h != t] for n in (4, 3)]
    players = tiny.make_players(gradient="reinforce", baseline="moving", samples=3, row="conditional")
    batch = tiny.make_larger_batch(every)  # whatever is selected earns 1 and 1
    players.ranker_loss(batch)
    assert players.mean_reward.tolist() == pytest.approx([0.05 * 2, 0.05 * 1])
    players.ranker_loss(batch)
    assert players.mean_reward.tolist() == pytest.approx([2 * (1 - 0.95**2), 1 - 0.95**2])


@pytest.mark.parametrize("gradient", ["exact", "reinforce"])
def test_entropy_is_paid_for(tiny: ModuleType, gradient: str) -> None:
    losses = []
    for weight in (0.0, 0.5):
        players = tiny.make_players(gradient=gradient, entropy=weight, row="conditional")
        torch.manual_seed(3)
        losses.append(float(players.ranker_loss(tiny.make_larger_batch(TWO)).detach()))
    assert losses[1] < losses[0] - 0.01


@pytest.mark.parametrize("gradient", ["exact", "likelihood", "reinforce"])
@pytest.mark.parametrize("hops", [2, 3])
def test_the_ranker_learns_to_earn_more_and_the_reasoner_is_left_alone(
    tiny: ModuleType, gradient: str, hops: int
) -> None:
    players = tiny.make_players(hops, gradient=gradient, samples=16)
    batch = tiny.make_larger_batch(TWO if hops == 2 else THREE)
    before = float(players.evaluate(batch).reward.mean())
    optimiser = torch.optim.Adam(players.ranker.parameters(), lr=0.02)
    torch.manual_seed(0)
    for _ in range(15):
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
    loss = players.reasoner_loss(batch, torch.tensor(chosen))
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


def test_the_ranker_selects_from_all_passages_what_the_reasoner_is_trained_on(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(seed=1), tiny.make_larger_batch([[(0, 1)], [(2, 0)]])
    chosen = players.select(batch)
    assert chosen.tolist() == sample(players.ranker, players.ranker.read(batch), players.plan, 1, True).chosen.tolist()
    assert any(tuple(one) not in told for (one,), told in zip(chosen.tolist(), TWO, strict=True))
    players.reasoner = tiny.KnownReasoner(TOLD)
    players.reasoner_loss(batch, chosen)
    assert players.reasoner.asked == [(chosen[..., 1].tolist(), 0)]  # the tail, selected first


def test_the_reasoners_targets_are_all_entities_that_the_two_selected_passages_share(tiny: ModuleType) -> None:
    # the tail 0 shares entity 0 with head 3, and 1 with head 2; 3 shares 2 with 2; in the second 0 shares 0 with 1, …
    loss = reasoner_loss(tiny, TOLD, [[(3, 0), (2, 3), (2, 0)], [(1, 0), (2, 1), (0, 1)]])
    assert loss == pytest.approx(-sum(map(math.log, [0.6, 0.7, 0.4, 1.0, 0.3, 0.7])) / 6)


def test_several_shared_entities_are_all_right(tiny: ModuleType) -> None:
    holders = torch.ones(2, 3, 4, dtype=torch.bool)
    told = TOLD.clone()
    told[0, 0] = torch.tensor([0.6, 0.3, 0.1])  # of entities 0 and 1, which it mentions, and 2, which it does not
    loss = reasoner_loss(tiny, told, [[(1, 0)], [(0, 1)]], holders=holders)
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
    batch = tiny.make_larger_batch(TWO, mention_weight=weight, holders=torch.ones(2, 3, 4, dtype=torch.bool))
    chosen = torch.tensor([[[1, 0]], [[1, 0]]])
    targets = tiny.make_players(evidence="lexical", sharpness=0.5).targets(batch, chosen, Reading(1, 0, 0))
    assert targets[0, 0].tolist() == pytest.approx([math.exp(-1), 1, 0])
    assert tiny.make_players(evidence="none").targets(batch, chosen, Reading(1, 0, 0))[0, 0].tolist() == [1, 1, 0]


def test_the_reasoner_learns_to_name_the_links(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    chosen = torch.tensor([[[2, 0]], [[1, 0]]])  # entity 1 of passage 0, though 0 stands there twice
    optimiser = torch.optim.Adam(players.reasoner.parameters(), lr=0.02)
    for _ in range(40):
        optimiser.zero_grad()
        players.reasoner_loss(batch, chosen).backward()
        optimiser.step()
    assert int(players.name(batch, chosen[..., 1], players.plan.readings[0]).best[0, 0]) == 1
    assert all(parameter.grad is None for parameter in players.ranker.parameters())


def test_to_be_asked_teaches_the_reasoner_nothing_and_drops_nothing_out(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(dropout=0.5).train(), tiny.make_larger_batch(TWO)
    places = torch.tensor([[0, 1], [0, 1]])
    one, two = (players.name(batch, places, players.plan.readings[0]) for _ in range(2))
    assert torch.equal(one.log_probability, two.log_probability)
    assert not one.log_probability.requires_grad
    assert players.reasoner.training
