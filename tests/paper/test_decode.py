"""What the players say of the chains of C."""

import math
from itertools import permutations
from types import ModuleType

import numpy as np
import pytest
import torch

from rechain.paper.data import Prepared
from rechain.paper.decode import ChainScores, decode
from rechain.paper.game import Players
from rechain.paper.settings import GameSettings

TWO = [[(0, 1), (2, 1), (1, 0)], [(2, 0)]]
TOLD = torch.tensor(
    [
        [[0.6, 0.4, 0.0], [1.0, 0.0, 0.0], [0.0, 0.4, 0.6], [0.3, 0.0, 0.7]],
        [[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)
"""what the Reasoner says of the entities of each passage"""


def test_only_chains_of_c_are_scored_though_the_ranker_selects_from_all_passages(tiny: ModuleType) -> None:
    players = tiny.make_players()
    every = tiny.make_larger_batch([list(permutations(range(4), 2)), list(permutations(range(3), 2))])
    best = int(decode(players, every).ranker[0].argmax())
    favourite = tuple(every.chains[0, best].tolist())
    others = [chain for chain in permutations(range(4), 2) if chain != favourite][:3]
    batch = tiny.make_larger_batch([others, [(2, 0)]])
    decoded = decode(players, batch)
    assert favourite not in others
    assert decoded.ranker.shape == (2, 3)
    # what is left of C is as likely as before: the rest of the probability lies outside
    before = dict(zip(map(tuple, every.chains[0].tolist()), decode(players, every).ranker[0].tolist(), strict=True))
    assert decoded.ranker[0].tolist() == pytest.approx([before[chain] for chain in others], abs=1e-5)
    assert decoded.ranker[0].exp().sum() < 1


def test_the_reasoner_scores_what_both_passages_hold_where_entities_are_not_told_apart(tiny: ModuleType) -> None:
    players, batch = tiny.make_players(), tiny.make_larger_batch(TWO)
    players.reasoner = tiny.KnownReasoner(TOLD)
    decoded = decode(players, batch)
    # it reads the tails 1, 1 and 0 and asks for what the heads 0, 2 and 1 hold: entities 0 1, then 1 2, then 0
    assert decoded.reasoner[0].exp().tolist() == pytest.approx([1.0, 0.0, 0.6], abs=1e-6)
    assert decoded.predicted[0, [0, 2], 0].tolist() == [0, 0]


def test_the_reasoner_scores_the_chains_own_entity_where_the_data_tells(tiny: ModuleType) -> None:
    players = tiny.make_players()
    players.reasoner = tiny.KnownReasoner(TOLD)
    links = torch.tensor([[[1], [2], [0]], [[1], [-1], [-1]]])
    chains, holders = [[(3, 2), (3, 2), (3, 0)], [(0, 1)]], torch.ones(2, 3, 4, dtype=torch.bool)
    decoded = decode(players, tiny.make_larger_batch(chains, chain_links=links, contains=holders))
    assert decoded.reasoner[0].exp().tolist() == pytest.approx([0.4, 0.6, 0.6], abs=1e-6)
    assert float(decoded.reasoner[1, 0].exp()) == pytest.approx(0.3, abs=1e-6)


def test_an_entity_that_may_not_be_the_link_is_not_named(tiny: ModuleType) -> None:
    may_link = torch.tensor([[[False], [True], [True]]] * 2)
    players = tiny.make_players()
    players.reasoner = tiny.KnownReasoner(TOLD)
    holders = torch.ones(2, 3, 4, dtype=torch.bool)
    decoded = decode(players, tiny.make_larger_batch(TWO, may_link=may_link, contains=holders))
    assert decoded.predicted[0, 2].tolist() == [1]
    assert float(decoded.reasoner[0, 2].exp()) == pytest.approx(0.4, abs=1e-6)


def test_of_three_both_links_count(tiny: ModuleType) -> None:
    players = tiny.make_players(3)
    players.reasoner = tiny.KnownReasoner(TOLD)
    decoded = decode(players, tiny.make_larger_batch([[(0, 3, 2)], [(0, 1, 2)]]))
    # head 0 and middle 3 share entity 0, tail 2 and middle 3 entity 2
    assert float(decoded.reasoner[0, 0]) == pytest.approx(math.log(0.6) + math.log(0.6), abs=1e-6)
    assert decoded.predicted[0, 0].tolist() == [0, 2]


def test_independent_selection_has_no_reasoner(tiny: ModuleType) -> None:
    decoded = decode(tiny.make_players(row="independent"), tiny.make_larger_batch(TWO))
    assert decoded.reasoner.eq(0).all()
    assert decoded.predicted.shape == (2, 3, 0)


def test_decoding_drops_nothing_out_and_teaches_nothing(tiny: ModuleType) -> None:
    players, batch = tiny.make_players().train(), tiny.make_larger_batch(TWO)
    one, two = decode(players, batch), decode(players, batch)
    assert torch.equal(one.ranker, two.ranker)
    assert torch.equal(one.reasoner, two.reasoner)
    assert not one.ranker.requires_grad


# ---- batches


def assert_same(one: ChainScores, row: int, other: ChainScores, other_row: int, chains: int) -> None:
    for name in ("ranker", "reasoner"):
        told, wanted = getattr(one, name)[row, :chains], getattr(other, name)[other_row, :chains]
        assert torch.allclose(told, wanted, atol=1e-5), name
    assert torch.equal(one.predicted[row, :chains], other.predicted[other_row, :chains])


@pytest.mark.parametrize("changes", [{}, {"row": "head to tail"}, {"row": "independent"}, {"features": "none"}])
def test_a_question_is_decoded_alike_alone_and_in_any_batch(prepared: Prepared, changes: dict[str, str]) -> None:
    torch.manual_seed(0)
    players = Players(torch.randn(8, 4), 2, GameSettings(hidden=3, **changes))
    alone = [decode(players, prepared.batch(np.array([number]))) for number in range(3)]
    for order in permutations(range(3)):
        batch = prepared.batch(np.array(order))
        together = decode(players, batch)
        for row, number in enumerate(order):
            assert_same(together, row, alone[number], 0, int(batch.is_chain[row].sum()))
