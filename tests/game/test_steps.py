"""The game on steps: the players, what they score, and what does not depend on the order of passages."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.candidates import find_candidates
from rechain.errors import InputError, QuestionError, RechainError
from rechain.game.data import Prepared
from rechain.game.decoding import decode
from rechain.game.model import TrainedModel
from rechain.game.players import EVERY, Players
from rechain.game.settings import AS_WRITTEN, GameSettings
from rechain.game.training import Training
from rechain.preparation.lexicon import Lexicon
from rechain.preparation.questions import prepare
from rechain.schema import Mention, Passage, Question

GENES, DRUGS = "ABCDEFGH", "STUVWXYZ"
SETTINGS = GameSettings(
    selects="steps",
    mark_answer=True,
    hidden=4,
    dropout=0.0,
    evidence="rarity",
    sharpness=1.0,
    batch_size=8,
    pretrain_epochs=4,
    game_epochs=2,
    learning_rate=0.01,
    held_out=0.2,
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
    told = preparation.tell([range(len(questions))])
    return Prepared(preparation.arrays() | told, "cpu", *SETTINGS.but(**changes).reading)


def players_of(seed: int = 0, **changes: Any) -> Players:
    torch.manual_seed(seed)
    players = Players(VECTORS, 3, SETTINGS.but(**changes))
    with torch.no_grad():
        for parameter in players.parameters():
            parameter.copy_(torch.randn_like(parameter) / 2)
    return players.eval()


@pytest.mark.parametrize("pairs", ["none", "closeness", "rarity"])
@pytest.mark.parametrize("gradient", ["exact", "reinforce", "likelihood"])
def test_both_players_learn_from_every_gradient(pairs: str, gradient: str) -> None:
    players = players_of(pairs=pairs, gradient=gradient).train()
    batch = data_of([make_question(n) for n in range(4)]).batch(np.arange(4))
    loss = players.ranker_loss(batch, EVERY) + players.reasoner_loss(batch, players.select(batch))
    loss.backward()
    assert torch.isfinite(loss)
    missing = [name for name, p in players.named_parameters() if p.grad is None and "ngrams" not in name]
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
    shares = players._shares(batch, step, before, EVERY)
    assert shares is not None
    for number in range(3):
        names = [
            players.name(batch, before[..., at], reading).best[number, 0]
            for at, reading in enumerate(players.plan.readings)
        ]
        is_middle = batch.steps.roles[number, :, 1]
        expected = (batch.steps.entities[number] == torch.stack(names)).sum(-1) * is_middle
        assert shares[number, 0].tolist() == expected.tolist()


@pytest.mark.parametrize("bonus_by", ["top-1", "walk"])
def test_what_the_reasoner_pays_for_a_chain_is_what_its_middle_earns(bonus_by: str) -> None:
    players = players_of(bonus_by=bonus_by)
    batch = data_of([make_question(n) for n in range(3)]).batch(np.arange(3))
    decoded = decode(players, batch)
    step = players.plan.steps[-1]
    shares = players._shares(batch, step, batch.chains.clamp(min=0)[..., list(step.given)], EVERY)
    assert shares is not None
    paid = shares.gather(2, batch.chains[..., 1:2].clamp(min=0)).squeeze(-1)
    assert decoded.bonus[batch.is_chain].tolist() == pytest.approx(paid[batch.is_chain].tolist(), abs=1e-6)
    own = batch.chain_links[..., 0].clamp(min=0)
    named = players.name(batch, batch.chains[..., 0].clamp(min=0), players.plan.readings[0]).log_probability
    expected = named.gather(2, own[..., None]).squeeze(-1)
    assert decoded.namings[..., 0][batch.is_chain].tolist() == pytest.approx(
        expected[batch.is_chain].tolist(), abs=1e-5
    )


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
        total = (decoded.ranker + decoded.reasoner + decoded.bonus)[0].tolist()
        scores.append(dict(zip(ids, total, strict=True)))
    assert scores[0].keys() == scores[1].keys()
    assert [scores[1][chain] for chain in scores[0]] == pytest.approx(list(scores[0].values()), abs=1e-3)


def test_the_probabilities_of_heads_middles_and_tails_each_sum_to_one() -> None:
    players = players_of()
    batch = data_of([make_question(n) for n in range(3)]).batch(np.arange(3))
    read = players.ranker.read(batch)
    log_probability, _ = players.ranker.step(read, players.ranker.start(read), "head", 0)
    assert log_probability.exp().sum(-1).flatten().tolist() == pytest.approx([1.0] * 3)
    assert batch.steps is not None
    assert log_probability.exp().squeeze(1)[~batch.steps.roles[..., 0]].max() < 1e-6


def test_chains_weigh_by_rarity_and_by_what_others_tell() -> None:
    batch = data_of([make_question(n) for n in range(40)]).batch(np.arange(40))
    assert batch.rarity is not None and batch.told is not None and batch.told.abs().sum() > 0
    totals = {"lexical": batch.lexical, "rarity": batch.lexical + batch.rarity}
    totals["beliefs"] = totals["rarity"] + batch.told
    for evidence, total in totals.items():
        best = total.masked_fill(~batch.is_chain, -torch.inf).amax(-1, keepdim=True)
        expected = (total - best).exp() * batch.is_chain
        assert torch.allclose(players_of(evidence=evidence).weights(batch), expected, atol=1e-6)
    assert players_of(evidence="none").weights(batch).tolist() == batch.is_chain.float().tolist()


def test_questions_that_nobody_was_asked_about_cannot_be_weighed_by_beliefs() -> None:
    arrays = prepare([make_question(0)], Lexicon({})).arrays()
    batch = Prepared(arrays, "cpu", *SETTINGS.reading).batch(np.arange(1))
    with pytest.raises(InputError, match="no chain can be weighed by beliefs"):
        players_of(evidence="beliefs").weights(batch)


def test_each_part_of_the_questions_tells_its_own() -> None:
    preparation = prepare([make_question(n) for n in range(6)], Lexicon({}))
    arrays = preparation.arrays() | preparation.tell([[0, 1, 2], [3, 4, 5]])
    data = Prepared(arrays, "cpu", *SETTINGS.reading)
    for part in range(2):
        told = data.told_by(part).batch(np.arange(6)).told
        assert told is not None
        assert told[0, 0].item() == pytest.approx(float(arrays["chain_told"][0, part]))


def test_a_game_on_steps_learns_to_find_them() -> None:
    questions = [make_question(number) for number in range(60)]
    data = data_of(questions)
    training = Training(VECTORS, data, SETTINGS, np.arange(50))
    before = training.held_out_figures()["reward"]
    training.run()
    assert training.progress.curve[-1]["reward"] > before + 0.2
    batch = data.batch(np.arange(50, 60))
    decoded = decode(training.players, batch)
    best = (decoded.ranker + decoded.reasoner).masked_fill(~batch.is_chain, -torch.inf).argmax(-1)
    by_evidence = (batch.lexical + batch.rarity).masked_fill(~batch.is_chain, -torch.inf).argmax(-1)
    assert (best == by_evidence).float().mean() >= 0.8


@pytest.mark.parametrize("changes", [AS_WRITTEN, {"reasoner_loss": "walk", "bonus_by": "walk"}, {"row": "independent"}])
def test_every_row_of_the_table_can_be_played(changes: dict[str, Any]) -> None:
    short = {"pretrain_epochs": 1, "game_epochs": 1, "reasoner_epochs": 1}
    settings = SETTINGS.but(**{**short, **changes})
    questions = [make_question(number) for number in range(10)]
    preparation = prepare(questions, Lexicon({}))
    training = Training(VECTORS, Prepared(preparation.arrays(), "cpu", *settings.reading), settings)
    training.run()
    assert torch.isfinite(training.outputs()).all()


def test_a_trained_model_scores_chains_by_steps_and_refuses_data_without_entities(questions: list[Question]) -> None:
    model = TrainedModel(players_of(), SETTINGS, {})
    candidates = find_candidates(make_question(1))
    scored = model.score(candidates)
    assert len(scored) == len(candidates.chains)
    assert all({"ranker", "reasoner"} == set(one) for one in scored)
    assert [len(steps) for steps in model.steps(candidates)] == [5] * len(candidates.chains)
    with pytest.raises(QuestionError, match="chains of 3 passages"):
        model.score(find_candidates(questions[0]))


def test_without_entities_there_are_no_steps_to_select(questions: list[Question]) -> None:
    with pytest.raises(InputError, match="the data does not name the entities"):
        Prepared(prepare(questions, Lexicon({})).arrays(), "cpu", *SETTINGS.reading)
    with pytest.raises(RechainError, match="mark_answer should be true where steps are selected"):
        GameSettings(selects="steps")
