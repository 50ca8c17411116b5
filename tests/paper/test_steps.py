"""The game on steps: the players, what they score, and what does not depend on the order of passages."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.errors import InputError, QuestionError
from rechain.paper.data import Prepared
from rechain.paper.decode import decode
from rechain.paper.game import Players
from rechain.paper.lexicon import Lexicon
from rechain.paper.model import GameModel
from rechain.paper.prepare import prepare
from rechain.paper.settings import GameSettings
from rechain.paper.train import Training
from rechain.schema import Mention, Passage, Question
from rechain.text.candidates import find_candidates

GENES, DRUGS = "ABCDEFGH", "STUVWXYZ"
SETTINGS = GameSettings(
    selects="steps",
    hidden=4,
    sharpness=1.0,
    batch_size=8,
    pretrain_epochs=4,
    game_epochs=2,
    learning_rate=0.01,
)
VECTORS = torch.zeros(1, 4)


def passage(number: int, *sentences: tuple[str, str]) -> Passage:
    """A passage whose sentences each name two things: genes, drugs, or "start" and "end"."""
    text, mentions = "", []
    for one, two in sentences:
        for name, following in ((one, " meets "), (two, ". ")):
            mentions.append(Mention(entity=entity(name), start=len(text), end=len(text) + len(name)))
            text += name + following
    return Passage(id=str(number), text=text.strip(), mentions=mentions)


def entity(name: str) -> str:
    return f"{'gene' if name in GENES or name == 'end' else 'drug'}:{name}"


def make_question(number: int) -> Question:
    """A question with several chains; that of pairs which stand in one sentence is right."""
    drawn = random.Random(number)
    gene, other = drawn.sample(GENES, 2)
    drug, rival = drawn.sample(DRUGS, 2)
    passages = [
        passage(0, ("start", gene), (rival, other)),
        passage(1, (gene, drug)),
        passage(2, (gene, rival), (other, drug)),
        passage(3, (drug, "end"), (rival, gene)),
        passage(4, (rival, gene), (other, "end")),
    ]
    return as_question(str(number), drawn.sample(passages, len(passages)))


def as_question(name: str, passages: list[Passage]) -> Question:
    return Question(
        id=name,
        question="interacts_with start?",
        question_entities=["drug:start"],
        answer="end",
        answer_entity="gene:end",
        hops=3,
        link_types=["gene", "drug"],
        passages=passages,
    )


def data_of(questions: list[Question], **changes: Any) -> Prepared:
    preparation = prepare(questions, Lexicon({}))
    assert len(preparation.ids) == len(questions)
    beliefs = preparation.beliefs([range(len(questions))])
    return Prepared(preparation.arrays() | beliefs, SETTINGS.but(**changes))


def players_of(seed: int = 0, **changes: Any) -> Players:
    torch.manual_seed(seed)
    players = Players(VECTORS, 3, SETTINGS.but(**changes))
    with torch.no_grad():
        for parameter in players.parameters():
            parameter.copy_(torch.randn_like(parameter) / 2)
    return players.eval()


@pytest.mark.parametrize("features", ["none", "matches", "closeness", "all"])
@pytest.mark.parametrize("gradient", ["exact", "reinforce"])
def test_both_players_learn_from_every_gradient(features: str, gradient: str) -> None:
    players = players_of(features=features, gradient=gradient).train()
    batch = data_of([make_question(n) for n in range(4)]).batch(np.arange(4))
    taught = players.chains_to_teach(batch)[0]
    loss = players.ranker_loss(batch, pays_bonus=True) + players.reasoner_loss(batch, taught)[0]
    loss.backward()
    assert torch.isfinite(loss)
    missing = [name for name, p in players.named_parameters() if p.grad is None and p.numel() and "ngrams" not in name]
    assert missing == []


def test_the_reasoner_is_taught_the_entity_by_which_the_next_step_is_entered_or_left() -> None:
    players, data = players_of(), data_of([make_question(n) for n in range(3)])
    batch = data.batch(np.arange(3))
    for reading in players.plan.readings:
        targets = players.targets(batch, batch.chains[:, :1], reading)
        own = batch.chain_links[:, :1, reading.link]
        assert targets.argmax(-1).tolist() == own.tolist()
        assert targets.sum(-1).tolist() == [[1.0]] * 3


def test_a_middle_earns_a_share_for_the_name_of_the_head_and_one_for_that_of_the_tail() -> None:
    players = players_of()
    batch = data_of([make_question(n) for n in range(3)]).batch(np.arange(3))
    assert batch.steps is not None
    step = players.plan.steps[-1]
    before = batch.chains[:, :1, [0, 2]]
    predictions = players.predict(batch)
    shares = players.bonus_shares(batch, step, before, predictions)
    for number in range(3):
        names = [
            predictions[reading].at(batch.passages_of(before[..., at])).best[number, 0]
            for at, reading in enumerate(players.plan.readings)
        ]
        is_middle = batch.steps.roles[number, :, 1]
        expected = (batch.steps.entities[number] == torch.stack(names)).sum(-1) * is_middle
        assert shares[number, 0].tolist() == expected.tolist()


def test_a_link_scores_as_the_chains_own_entity() -> None:
    players = players_of()
    batch = data_of([make_question(n) for n in range(3)]).batch(np.arange(3))
    chains, own = batch.chains.clamp(min=0), batch.chain_links[..., 0].clamp(min=0)
    read = players.predict(batch)[players.plan.readings[0]].at(batch.passages_of(chains[..., 0]))
    expected = read.log_probability.gather(2, own[..., None]).squeeze(-1)[batch.is_chain]
    links = decode(players, batch).links[..., 0][batch.is_chain]
    assert links.tolist() == pytest.approx(expected.tolist(), abs=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.permutations(range(5)))
def test_the_score_of_a_chain_does_not_depend_on_the_order_of_passages(number: int, order: list[int]) -> None:
    question = make_question(number)
    other = as_question("other", [question.passages[place] for place in order])
    players, scores = players_of(), []
    for one in (question, other):
        candidates = find_candidates(one)
        ids = [(*(one.passages[p].id for p in c.passages), *(e.key for e in c.edges)) for c in candidates.chains]
        decoded = decode(players, data_of([one]).batch(np.arange(1)))
        total = (decoded.ranker + decoded.reasoner)[0].tolist()
        scores.append(dict(zip(ids, total, strict=True)))
    assert scores[0].keys() == scores[1].keys()
    assert [scores[1][chain] for chain in scores[0]] == pytest.approx(list(scores[0].values()), abs=1e-3)


def test_the_probabilities_of_heads_middles_and_tails_each_sum_to_one() -> None:
    players = players_of()
    batch = data_of([make_question(n) for n in range(3)]).batch(np.arange(3))
    read = players.ranker.encode(batch)
    log_probability, _ = players.ranker.step(read, players.ranker.start(read), "head", 0)
    assert log_probability.exp().sum(-1).flatten().tolist() == pytest.approx([1.0] * 3)
    assert batch.steps is not None
    assert log_probability.exp().squeeze(1)[~batch.steps.roles[..., 0]].max() < 1e-6


def test_chains_weigh_by_the_lexical_rule_rarity_and_beliefs() -> None:
    questions = [make_question(n) for n in range(40)]
    preparation = prepare(questions, Lexicon({}))
    plain, beliefs = preparation.arrays(), preparation.beliefs([range(40)])
    assert np.abs(beliefs["chain_beliefs"]).sum() > 0
    batch = Prepared(plain | beliefs, SETTINGS).batch(np.arange(40))
    total = np.concatenate([batch.lexical[n][batch.is_chain[n]] for n in range(40)]) + plain["chain_rarity"]
    assert batch.evidence[batch.is_chain].numpy() == pytest.approx(total + beliefs["chain_beliefs"][:, 0], abs=1e-4)
    best = batch.evidence.masked_fill(~batch.is_chain, -torch.inf).amax(-1, keepdim=True)
    expected = (batch.evidence - best).exp() * batch.is_chain
    assert torch.allclose(players_of().weights(batch), expected, atol=1e-6)
    assert players_of(sharpness=0.0).weights(batch).tolist() == batch.is_chain.float().tolist()


def test_each_part_of_the_questions_has_its_own_beliefs() -> None:
    preparation = prepare([make_question(n) for n in range(6)], Lexicon({}))
    arrays = preparation.arrays() | preparation.beliefs([[0, 1, 2], [3, 4, 5]])
    data = Prepared(arrays, SETTINGS)
    evidence = [data.view(SETTINGS, part).batch(np.arange(6)).evidence[0, 0].item() for part in range(2)]
    one, two = arrays["chain_beliefs"][0].tolist()
    assert evidence[0] - evidence[1] == pytest.approx(one - two, abs=1e-5)


def test_a_game_on_steps_learns_to_find_them() -> None:
    data = data_of([make_question(number) for number in range(60)])
    training = Training(VECTORS, data, SETTINGS.but(pretrain_epochs=8), np.arange(50))
    before = training.held_out_figures("pretraining")["reward"]
    training.run()
    assert training.state.progress.curve[-1]["reward"] > before + 0.2
    batch = data.batch(np.arange(50, 60))
    decoded = decode(training.players, batch)
    best = (decoded.ranker + decoded.reasoner).masked_fill(~batch.is_chain, -torch.inf).argmax(-1)
    by_evidence = batch.evidence.masked_fill(~batch.is_chain, -torch.inf).argmax(-1)
    assert (best == by_evidence).float().mean() >= 0.8


@pytest.mark.parametrize("row", ["as written", "untaught", "independent", "tail to head"])
@pytest.mark.parametrize("pretrain_by", ["steps", "reward"])
def test_every_row_of_the_table_can_be_played(row: str, pretrain_by: str) -> None:
    short = {"pretrain_epochs": 1, "game_epochs": 1, "reasoner_epochs": 1}
    settings = SETTINGS.but(**short, row=row, pretrain_by=pretrain_by, update="residual")
    preparation = prepare([make_question(number) for number in range(10)], Lexicon({}))
    training = Training(VECTORS, Prepared(preparation.arrays(), settings), settings)
    training.run()
    assert torch.isfinite(training.some_scores()).all()


def test_a_trained_model_scores_chains_by_steps_and_refuses_data_without_entities(questions: list[Question]) -> None:
    model = GameModel(players_of(), {})
    candidates = find_candidates(make_question(1))
    scored = model.score(candidates)
    assert len(scored) == len(candidates.chains)
    assert all({"ranker", "reasoner"} == set(one) for one in scored)
    assert [len(steps) for steps in model.steps(candidates)] == [5] * len(candidates.chains)
    with pytest.raises(QuestionError, match="chains of 3 passages"):
        model.score(find_candidates(questions[0]))


def test_without_entities_there_are_no_steps_to_select(questions: list[Question]) -> None:
    with pytest.raises(InputError, match="the data does not name the entities"):
        Prepared(prepare(questions, Lexicon({})).arrays(), SETTINGS)
