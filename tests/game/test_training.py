"""The loop of a run: its phases, what each teaches whom, when it stops, and what it does when a loss is no number."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rechain.candidates import CandidateSettings, find_candidates
from rechain.errors import RechainError
from rechain.game.data import Prepared
from rechain.game.settings import GameSettings
from rechain.game.training import Part, Training
from rechain.preparation.lexicon import Lexicon
from rechain.preparation.questions import Preparation, prepare
from rechain.recovery import Recoverer
from rechain.schema import Question
from rechain.system.loop import Watcher
from rechain.system.tensors import load_tensors
from rechain.training.game_runs import no_vectors, prepare_game
from rechain.training.runs import KeepCheckpoints, RunFolder, train

Towns = Callable[..., list[Question]]
SMALL: dict[str, Any] = {
    "hidden": 3,
    "dropout": 0.0,
    "batch_size": 4,
    "warm_up_batch_size": 5,
    "pretrain_epochs": 2,
    "game_epochs": 2,
    "held_out": 0.25,
    "learning_rate": 0.01,
    "reasoner_epochs": 0,
    "bonus_from": 0,
    "teaching": "batch",
}
PHASES = ["warm-up", "pretraining", "game"]


@pytest.fixture(scope="module")
def data(towns: Towns) -> Prepared:
    """Twelve questions."""
    return Prepared(prepare(towns(12), Lexicon({})).arrays())


@pytest.fixture(scope="module")
def pseudo(towns: Towns) -> list[Part]:
    """Seven and six pseudo questions: the chains they were made from are known."""
    parts = []
    for first, count in ((50, 7), (60, 6)):
        preparation = Preparation(Lexicon({}))
        for question in towns(count, first):
            preparation.take(question, find_candidates(question).chains[0].passages)
        parts.append(Part(Prepared(preparation.arrays()), np.arange(count)))
    return parts


def make(data: Prepared, pseudo: Sequence[Part] = (), **settings: Any) -> Training:
    table = torch.from_numpy(no_vectors().table)
    return Training(table, data, GameSettings(**(SMALL | settings)), pseudo=pseudo)


def weights(module: torch.nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(one: Mapping[str, Tensor], two: Mapping[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


class Diary(Watcher):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int, int]] = []
        self.epochs: list[Mapping[str, Any]] = []
        self.checkpoints: list[tuple[int, int, int]] = []

    def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        self.steps.append((phase, epoch, step, steps))

    def on_epoch(self, figures: Mapping[str, Any]) -> None:
        self.epochs.append(figures)

    def on_checkpoint(self, training: Training) -> None:
        progress = training.progress
        self.checkpoints.append((progress.phase, progress.epoch, progress.step))


# ---- the order of things


def test_the_phases_follow_each_other(data: Prepared, pseudo: list[Part]) -> None:
    diary = Diary()
    make(data, pseudo).run(diary)
    # 7 and 6 pseudo questions by five, 9 of 12 questions by four
    lengths = {"warm-up": (1, 4), "pretraining": (2, 3), "game": (2, 3)}
    expected = [
        (phase, epoch, step, lengths[phase][1])
        for phase in PHASES
        for epoch in range(lengths[phase][0])
        for step in range(1, lengths[phase][1] + 1)
    ]
    assert diary.steps == expected
    assert [(told["phase"], told["epoch"]) for told in diary.epochs] == [
        ("warm-up", 0),
        *((phase, epoch) for phase in PHASES[1:] for epoch in range(2)),
    ]
    assert all(0 <= told["reward"] <= 1 for told in diary.epochs)


def test_a_checkpoint_follows_every_epoch_every_phase_and_so_many_steps(data: Prepared) -> None:
    diary = Diary()
    make(data, checkpoint_steps=2, game_epochs=0).run(diary)
    assert diary.checkpoints == [(1, 0, 0), (1, 0, 2), (1, 1, 0), (1, 1, 2), (1, 2, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0)]


def test_a_run_can_go_to_the_beginning_of_a_phase_and_on_from_there(data: Prepared, pseudo: list[Part]) -> None:
    whole, halves = make(data, pseudo), make(data, pseudo)
    whole.run()
    diary = Diary()
    halves.run(diary, until="game")
    assert {phase for phase, *_ in diary.steps} == {"warm-up", "pretraining"}
    halves.run()
    assert same(weights(whole.players), weights(halves.players))


def test_the_independent_row_plays_no_game(data: Prepared) -> None:
    diary = Diary()
    make(data, row="independent").run(diary)
    assert {phase for phase, *_ in diary.steps} == {"pretraining"}


def test_every_epoch_reads_every_question_once_in_another_order(
    data: Prepared, pseudo: list[Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    training, read = make(data, pseudo, held_out=0.0, game_epochs=0, pretrain_epochs=3), []
    for part in (data, *(part.data for part in pseudo)):

        def batch(questions: Any, part: Prepared = part, take: Any = part.batch) -> Any:
            read.append((part, questions.tolist()))
            return take(questions)

        monkeypatch.setattr(part, "batch", batch)
    monkeypatch.setattr(training, "outputs", lambda: torch.zeros(1))  # which reads a few after every epoch
    training.run()
    warm, rest = read[:4], read[4:]
    assert Counter(len(questions) for _, questions in warm) == {5: 2, 2: 1, 1: 1}
    for part in pseudo:
        assert sorted(n for data, questions in warm if data is part.data for n in questions) == part.questions.tolist()
    epochs = [[n for _, questions in rest[start : start + 3] for n in questions] for start in (0, 3, 6)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(12))] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_held_out_questions_are_not_learned_from(data: Prepared) -> None:
    training = make(data)
    assert len(training.held_out) == 3
    assert sorted([*training.held_out, *training.questions]) == list(range(12))
    training.use(np.array([2, 3, 5, 7]))
    assert len(training.held_out) == 1
    assert sorted([*training.held_out, *training.questions]) == [2, 3, 5, 7]


def test_without_held_out_questions_all_epochs_are_played_and_the_last_weights_stay(data: Prepared) -> None:
    training, diary = make(data, held_out=0.0, patience=1, game_epochs=4), Diary()
    after: list[dict[str, Tensor]] = []
    diary.on_epoch = lambda figures: after.append(weights(training.players))  # type: ignore[method-assign]
    training.run(diary)
    assert len(after) == 6
    assert same(weights(training.players), after[-1])
    assert all("reward" not in told for told in training.progress.curve)


def test_without_a_question_there_is_nothing_to_train_on(data: Prepared) -> None:
    with pytest.raises(RechainError, match="there is no question with a candidate chain to train on"):
        Training(torch.zeros(1, 4), data, GameSettings(**SMALL), np.arange(0))


def test_the_same_seed_gives_the_same_weights_and_another_does_not(data: Prepared, pseudo: list[Part]) -> None:
    ends = []
    for seed in (3, 3, 4):
        training = make(data, pseudo, seed=seed, dropout=0.3, gradient="reinforce")
        training.run()
        ends.append((weights(training.players), training.progress.curve))
    assert same(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]
    assert not same(ends[0][0], ends[2][0])


# ---- who is taught what


@pytest.mark.parametrize(
    ("row", "taught"),
    [("independent", set()), ("conditional", set()), ("cooperative", {"warm-up", "game"})],
)
def test_the_reasoner_is_taught_in_the_warm_up_and_the_game_of_the_cooperative_row_alone(
    data: Prepared, pseudo: list[Part], row: str, taught: set[str]
) -> None:
    training = make(data, pseudo, row=row)
    seen: dict[str, dict[str, Tensor]] = {}
    changed: set[str] = set()

    class Compare(Watcher):
        def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
            now = weights(training.players.reasoner)
            if not same(seen.setdefault("before", now), now):
                changed.add(phase)

        def on_checkpoint(self, training: Training) -> None:
            seen["before"] = weights(training.players.reasoner)

    seen["before"] = weights(training.players.reasoner)
    training.run(Compare())
    assert changed == taught
    assert {told["phase"] for told in training.progress.curve if "reasoner" in told} == taught


def test_pseudo_questions_teach_the_reasoner_the_chains_they_were_made_from(
    data: Prepared, pseudo: list[Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make(data, pseudo)
    asked: list[tuple[Any, Any]] = []
    monkeypatch.setattr(
        training.players,
        "reasoner_loss",
        lambda batch, chosen: asked.append((batch, chosen)) or torch.zeros(()),
    )
    training.run(until="pretraining")
    assert len(asked) == 4
    for batch, chosen in asked:
        assert chosen.shape[1:] == (1, 2)
        assert torch.equal(chosen[:, 0], batch.chains[batch.made.bool()])


def test_in_the_game_the_reasoner_is_taught_what_the_ranker_selects(
    data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make(data, pretrain_epochs=0, game_epochs=1)
    told: list[bool] = []

    def loss(batch: Any, chosen: Tensor) -> Tensor:
        told.append(torch.equal(chosen, training.players.select(batch)))
        return torch.zeros(())

    monkeypatch.setattr(training.players, "reasoner_loss", loss)
    training.run()
    assert told == [True] * 3


def test_each_player_has_an_optimiser_of_its_own(data: Prepared) -> None:
    training = make(data, train_vectors=True)
    for name, optimiser in training.optimisers.items():
        own = {id(parameter) for parameter in getattr(training.players, name).parameters()}
        assert {id(parameter) for group in optimiser.param_groups for parameter in group["params"]} == own
    assert training.optimisers["ranker"] is not training.optimisers["reasoner"]


@pytest.mark.parametrize(
    ("rates", "moves"),
    [
        ({"learning_rate": 0.01, "game_learning_rate": 0.0}, {"reasoner"}),
        ({"learning_rate": 0.0, "game_learning_rate": 0.01}, {"ranker"}),
    ],
)
def test_a_step_of_one_player_leaves_the_others_weights_alone(
    data: Prepared, rates: dict[str, float], moves: set[str]
) -> None:
    training = make(data, pretrain_epochs=0, game_epochs=1, held_out=0.0, **rates)
    before = {name: weights(getattr(training.players, name)) for name in ("ranker", "reasoner")}
    training.run()
    assert {name for name in before if not same(before[name], weights(getattr(training.players, name)))} == moves


def test_the_ranker_learns_at_another_rate_in_the_game(data: Prepared) -> None:
    training, rates = make(data, game_learning_rate=0.005), []
    diary = Diary()
    diary.on_step = lambda phase, *_: rates.append(  # type: ignore[method-assign]
        (phase, *(training.optimisers[name].param_groups[0]["lr"] for name in ("ranker", "reasoner")))
    )
    training.run(diary)
    assert set(rates) == {("pretraining", 0.01, 0.01), ("game", 0.005, 0.01)}


# ---- the Reasoner's schedule


def changes(training: Training) -> dict[str, set[str]]:
    """Return in which phases the weights of each player change."""
    changed: dict[str, set[str]] = {"ranker": set(), "reasoner": set()}
    before = {name: weights(getattr(training.players, name)) for name in changed}

    class Compare(Watcher):
        def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
            for name, phases in changed.items():
                now = weights(getattr(training.players, name))
                if not same(before[name], now):
                    phases.add(phase)
                before[name] = now

        def on_checkpoint(self, training: Training) -> None:
            before.update({name: weights(getattr(training.players, name)) for name in changed})

    training.run(Compare())
    return changed


def test_before_the_game_the_reasoner_alone_is_taught_for_all_its_epochs(data: Prepared) -> None:
    training = make(data, reasoner_epochs=5, patience=1, pretrain_epochs=1, game_epochs=1)
    assert changes(training) == {"ranker": {"pretraining", "game"}, "reasoner": {"reasoner", "game"}}
    epochs = [told for told in training.progress.curve if told["phase"] == "reasoner"]
    assert len(epochs) == 5
    assert epochs[4]["reasoner"] < epochs[0]["reasoner"]  # its loss
    assert len({told["reward"] for told in epochs}) == 1  # which is the Ranker's


@pytest.mark.parametrize("settings", [{"freezes_reasoner": True}, {"row": "conditional"}])
def test_a_frozen_reasoner_is_never_taught_and_has_no_epochs_of_its_own(
    data: Prepared, pseudo: list[Part], settings: dict[str, Any]
) -> None:
    training = make(data, pseudo, reasoner_epochs=2, **settings)
    assert changes(training)["reasoner"] == set()
    assert "reasoner" not in {told["phase"] for told in training.progress.curve}


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, [slice(None)] * 6),
        ({"bonus_from": 1}, [slice(0)] * 3 + [slice(None)] * 3),
        ({"teaching": "half"}, [slice(2, None), slice(2, None), slice(1, None)] * 2),  # of 4, 4 and 1 questions
    ],
)
def test_when_and_about_what_the_reasoner_is_asked(
    data: Prepared, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], asked: list[slice]
) -> None:
    training = make(data, pretrain_epochs=0, **settings)
    heard, taught = [], []
    players, loss = training.players, training.players.ranker_loss
    monkeypatch.setattr(players, "ranker_loss", lambda batch, asked: heard.append(asked) or loss(batch, asked))
    teach = players.reasoner_loss
    monkeypatch.setattr(players, "reasoner_loss", lambda b, chosen: taught.append(len(chosen)) or teach(b, chosen))
    batches = [len(part.questions) for epoch in range(2) for part in training.batches("game", epoch)]
    training.run()
    if settings.get("teaching") == "half":
        assert heard == [slice(-(-size // 2), None) for size in batches]
        assert taught == [-(-size // 2) for size in batches]
        assert sorted(map(str, heard)) == sorted(map(str, asked))
    else:
        assert heard == asked
        assert taught == batches


def test_the_worth_of_the_bonus_is_logged_while_the_reasoner_learns(data: Prepared) -> None:
    training = make(data, reasoner_epochs=1)
    training.run()
    watched = {told["phase"] for told in training.progress.curve if "bonus_auc" in told and "named_in" in told}
    assert watched == {"reasoner", "game"}
    assert all(0 <= told.get("bonus_auc", 0) <= 1 for told in training.progress.curve)


def test_a_game_may_keep_its_last_weights_and_all_its_epochs(data: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    training = make(data, pretrain_epochs=1, game_epochs=4, patience=1, game_keeps="last")
    after = scripted(training, monkeypatch, 0.5, 0.7, 0.6, 0.5, 0.4)
    training.run()
    assert len(after) == 5
    assert same(weights(training.players), after[4])


# ---- when it stops


def scripted(training: Training, monkeypatch: pytest.MonkeyPatch, *rewards: float) -> list[dict[str, Tensor]]:
    """Give the epochs some rewards; return where the weights after each will be found."""
    after: list[dict[str, Tensor]] = []
    told: Iterator[float] = iter(rewards)

    def figures() -> dict[str, float]:
        after.append(weights(training.players))
        return {"reward": next(told)}

    monkeypatch.setattr(training, "held_out_figures", figures)
    return after


def test_a_phase_stops_when_the_reward_grows_no_more_and_its_best_weights_are_restored(
    data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make(data, pretrain_epochs=9, game_epochs=9, patience=2, batch_size=12)
    after = scripted(training, monkeypatch, 0.5, 0.7, 0.6, 0.7, 0.2, 0.3, 0.1, 0.1)
    training.run(until="game")
    assert len(after) == 4
    assert same(weights(training.players), after[1])
    assert not same(after[1], after[3])
    training.run()
    assert len(after) == 8
    assert same(weights(training.players), after[5])
    assert [told["reward"] for told in training.progress.curve] == [0.5, 0.7, 0.6, 0.7, 0.2, 0.3, 0.1, 0.1]


def test_the_warm_up_does_not_stop_early_but_keeps_its_best(
    data: Prepared, pseudo: list[Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make(data, pseudo, warm_up_epochs=4, patience=1)
    after = scripted(training, monkeypatch, 0.5, 0.7, 0.6, 0.1)
    training.run(until="pretraining")
    assert len(after) == 4
    assert same(weights(training.players), after[1])


def test_the_held_out_reward_needs_no_dropout_and_changes_nothing(data: Prepared) -> None:
    training = make(data, dropout=0.5)
    training.players.train()
    before, state = weights(training.players), torch.get_rng_state()
    assert training.held_out_figures() == training.held_out_figures()
    assert training.held_out_figures().keys() == {"reward", "entropy"}
    assert same(before, weights(training.players))
    assert torch.equal(state, torch.get_rng_state())
    assert training.players.training


# ---- when a loss is no number


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"learning_rate": 1e30}, "the ranker's loss is no longer a number in epoch 1 of the pretraining"),
        ({"learning_rate": 1e30, "batch_size": 99}, "the reward on held-out questions is no longer a number in epoch"),
        ({"pretrain_epochs": 0, "game_learning_rate": 1e30, "gradient": "reinforce"}, "ranker's loss is no longer a"),
        ({"pretrain_epochs": 0, "game_learning_rate": 1e30, "gradient": "likelihood"}, "in epoch 1 of the game"),
        (
            {"pretrain_epochs": 0, "learning_rate": 1e30},
            "the reasoner's loss is no longer a number in epoch 1 of the g",
        ),
    ],
)
def test_a_loss_that_is_no_number_ends_the_run_and_leaves_the_last_checkpoint_intact(
    data: Prepared, tmp_path: Path, settings: dict[str, Any], what: str
) -> None:
    training = make(data, **settings)
    with pytest.raises(RechainError) as failure:
        training.run(KeepCheckpoints(tmp_path / "checkpoint"))
    assert what in str(failure.value)
    assert "The last checkpoint is intact." in str(failure.value)
    tensors, told = load_tensors(tmp_path / "checkpoint")
    assert all(bool(value.isfinite().all()) for value in tensors.values() if value.is_floating_point())
    assert told["progress"]["epoch"] == 0


def test_weights_that_are_no_number_are_noticed_before_the_next_checkpoint(data: Prepared, tmp_path: Path) -> None:
    training = make(data, checkpoint_steps=1)

    class Spoil(KeepCheckpoints):
        def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
            if (epoch, step) == (1, 2):
                with torch.no_grad():
                    training.players.ranker.score.bias.fill_(torch.nan)

    with pytest.raises(RechainError, match="in epoch 2 of the pretraining"):
        training.run(Spoil(tmp_path / "checkpoint"))
    tensors, told = load_tensors(tmp_path / "checkpoint")
    assert (told["progress"]["epoch"], told["progress"]["step"]) == (1, 1)
    assert bool(tensors["network.ranker.score.bias"].isfinite().all())


# ---- branches


def test_a_branch_goes_on_from_here_and_leaves_the_original_alone(data: Prepared) -> None:
    trunk, alone = make(data), make(data)
    for training in (trunk, alone):
        training.run(until="game")
    before = weights(trunk.players)
    state = torch.get_rng_state()
    branch = trunk.branch(trunk.settings.but(row="conditional", bonus=0.0))
    branch.run()
    assert branch.data is trunk.data
    assert branch.settings.row == branch.players.settings.row == "conditional"
    assert trunk.settings.row == trunk.players.settings.row == "cooperative"
    assert not same(before, weights(branch.players))
    assert same(before, weights(trunk.players))
    assert len(trunk.progress.curve) == 2
    for training in (trunk, alone):
        torch.set_rng_state(state)
        training.run()
    assert same(weights(trunk.players), weights(alone.players))


def test_what_was_branched_off_before_makes_no_difference(data: Prepared) -> None:
    trunk = make(data, dropout=0.3, gradient="reinforce")
    trunk.run(until="reasoner")
    ends = []
    for plays_another in (False, True):
        if plays_another:
            trunk.branch(trunk.settings.but(reasoner_loss="walk", bonus=2.0)).run()
        branch = trunk.branch(trunk.settings)
        branch.run()
        ends.append(weights(branch.players))
    assert same(*ends)


def test_a_branch_reads_the_questions_as_its_settings_say(data: Prepared, towns: Towns) -> None:
    trunk = make(data)
    raw = Prepared(prepare(towns(12), Lexicon({})).arrays(), entities="all")
    branch = trunk.branch(trunk.settings.but(entities="all", mention="first word"), raw)
    assert branch.data is raw
    assert not branch.players.reasoner.scores_spans
    assert trunk.data is data
    assert trunk.players.reasoner.scores_spans


# ---- what it is all for


def test_a_tiny_game_ends_above_its_baselines(towns: Towns, tmp_path: Path) -> None:
    settings = GameSettings(
        hidden=16,
        dropout=0.0,
        evidence="none",
        batch_size=16,
        pretrain_epochs=5,
        game_epochs=3,
        learning_rate=5e-3,
        game_learning_rate=2e-3,
    )
    material = prepare_game(towns(90), no_vectors(), CandidateSettings())
    train(RunFolder(tmp_path / "run"), material, settings)
    unseen = towns(40, first=1000, traps=True)

    def accuracy(model: str | Path) -> float:
        recovered = Recoverer(model).recover_many(unseen)
        return sum(one.chains[0].passages == ["work", "maker"] for one in recovered) / len(unseen)

    reached = accuracy(tmp_path / "run")
    assert reached > 0.8
    assert reached > max(accuracy("random"), accuracy("lexical"), accuracy("bm25")) + 0.3
