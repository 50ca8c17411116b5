"""The loop of a run: its phases, what each teaches whom, when it stops, and what it does when a loss is not finite."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rechain.errors import RechainError
from rechain.paper import train
from rechain.paper.data import Prepared
from rechain.paper.lexicon import Lexicon
from rechain.paper.model import prepare_game, train_game
from rechain.paper.prepare import prepare
from rechain.paper.settings import GameSettings
from rechain.paper.train import Training, surer_share
from rechain.paper.vectors import no_vectors
from rechain.recoverer import Recoverer
from rechain.schema import Question
from rechain.system.tensors import load_tensors
from rechain.system.training import RunFolder, TrainingLog
from rechain.text.candidates import CandidateSettings

Towns = Callable[..., list[Question]]
SMALL: dict[str, Any] = {
    "hidden": 3,
    "batch_size": 4,
    "pretrain_epochs": 2,
    "game_epochs": 2,
    "learning_rate": 0.01,
    "reasoner_epochs": 0,
}


@pytest.fixture(autouse=True)
def _held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "HELD_OUT", 0.25)


@pytest.fixture(scope="module")
def arrays(towns: Towns) -> dict[str, Any]:
    """Twelve questions."""
    return prepare(towns(12), Lexicon({})).arrays()


@pytest.fixture
def make(arrays: dict[str, Any]) -> Callable[..., Training]:
    """Return a run on the twelve questions."""

    def build(**changes: Any) -> Training:
        settings = GameSettings(**(SMALL | changes))
        return Training(torch.from_numpy(no_vectors().table), Prepared(arrays, settings), settings)

    return build


Make = Callable[..., Training]


def weights(module: torch.nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(one: Mapping[str, Tensor], two: Mapping[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


class Diary(TrainingLog):
    """Notes the events of a run."""

    def __init__(self, training: Training) -> None:
        self.steps: list[tuple[str, int, int, int]] = []
        self.epochs: list[Mapping[str, Any]] = []
        self.after: list[dict[str, Tensor]] = []
        """the weights after each epoch"""
        self.changed: dict[str, set[str]] = {"ranker": set(), "reasoner": set()}
        """the phases in which the weights of each player change"""
        self.rates: set[tuple[str, float, float]] = set()
        self._training = training
        self._before = {name: weights(getattr(training.players, name)) for name in self.changed}
        training.state.start(log=self)

    def step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        self.steps.append((phase, epoch, step, steps))
        rates = (self._training.optimisers[name].param_groups[0]["lr"] for name in ("ranker", "reasoner"))
        self.rates.add((phase, *rates))  # type: ignore[arg-type]
        for name, phases in self.changed.items():
            now = weights(getattr(self._training.players, name))
            if not same(self._before[name], now):
                phases.add(phase)
            self._before[name] = now

    def epoch(self, figures: Mapping[str, Any]) -> None:
        self.epochs.append(figures)
        self.after.append(weights(self._training.players))


# ---- the order of things


def test_the_phases_follow_each_other(make: Make) -> None:
    training = make(reasoner_epochs=1)
    diary = Diary(training)
    training.run()
    # 9 of 12 questions by four
    phases = [("pretraining", 0), ("pretraining", 1), ("reasoner", 0), ("game", 0), ("game", 1)]
    assert diary.steps == [(*phase, step, 3) for phase in phases for step in (1, 2, 3)]
    assert [(epoch["phase"], epoch["epoch"]) for epoch in diary.epochs] == phases
    assert all(0 <= epoch["reward"] <= 1 for epoch in diary.epochs)
    assert diary.rates == {("pretraining", 0.01, 0.01), ("reasoner", 0.01, 0.01), ("game", 0.005, 0.01)}


def test_a_run_can_stop_before_a_phase_and_continue(make: Make) -> None:
    whole = make()
    whole.run()
    halves = make()
    halves.run(until="game")
    assert {epoch["phase"] for epoch in halves.state.progress.curve} == {"pretraining"}
    halves.run()
    assert same(weights(whole.players), weights(halves.players))


def test_every_epoch_reads_every_question_once_in_another_order(make: Make) -> None:
    training = make()
    epochs = [[n for batch in training.batches("game", epoch) for n in batch.tolist()] for epoch in range(3)]
    assert [sorted(epoch) for epoch in epochs] == [sorted(training.questions.tolist())] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_held_out_questions_are_not_learned_from(make: Make) -> None:
    training = make()
    assert len(training.held_out) == 3
    assert sorted([*training.held_out, *training.questions]) == list(range(12))
    training.use(np.array([2, 3, 5, 7]))
    assert len(training.held_out) == 1
    assert sorted([*training.held_out, *training.questions]) == [2, 3, 5, 7]


def test_without_held_out_questions_all_epochs_are_played_and_the_last_weights_stay(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "HELD_OUT", 0.0)
    monkeypatch.setattr(train, "PATIENCE", 1)
    training = make(game_epochs=4)
    diary = Diary(training)
    training.run()
    assert len(diary.after) == 6
    assert same(weights(training.players), diary.after[-1])
    assert all("reward" not in epoch for epoch in training.state.progress.curve)


def test_without_a_question_there_is_nothing_to_train_on(make: Make) -> None:
    with pytest.raises(RechainError, match="there is no question with a candidate chain to train on"):
        make().use(np.arange(0))


def test_the_same_seed_gives_the_same_weights_and_another_does_not(make: Make) -> None:
    ends = []
    for seed in (3, 3, 4):
        training = make(seed=seed, gradient="reinforce")
        training.run()
        ends.append((weights(training.players), training.state.progress.curve))
    assert same(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]
    assert not same(ends[0][0], ends[2][0])


# ---- who is taught what


@pytest.mark.parametrize(
    ("row", "ranker", "reasoner"),
    [
        ("independent", {"pretraining"}, set()),
        ("tail to head", {"pretraining", "game"}, set()),
        ("untaught", {"pretraining", "game"}, set()),
        ("as written", {"pretraining", "game"}, {"game"}),
        ("cooperative", {"pretraining", "game"}, {"reasoner", "game"}),
    ],
)
def test_who_is_taught_in_which_phase(make: Make, row: str, ranker: set[str], reasoner: set[str]) -> None:
    training = make(row=row, reasoner_epochs=1)
    diary = Diary(training)
    training.run()
    assert diary.changed == {"ranker": ranker, "reasoner": reasoner}
    assert {epoch["phase"] for epoch in training.state.progress.curve if "reasoner" in epoch} == reasoner
    watched = {epoch["phase"] for epoch in training.state.progress.curve if "bonus_auc" in epoch}
    assert watched == ({"game"} | reasoner if row in ("cooperative", "as written", "untaught") else set())


def test_the_reasoner_alone_is_taught_for_all_its_epochs(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "PATIENCE", 1)
    training = make(reasoner_epochs=5, pretrain_epochs=1, game_epochs=0, sure_share=1.0)
    training.run()
    epochs = [epoch for epoch in training.state.progress.curve if epoch["phase"] == "reasoner"]
    assert len(epochs) == 5
    assert epochs[4]["reasoner"] < epochs[0]["reasoner"]
    assert len({epoch["reward"] for epoch in epochs}) == 1  # which is the Ranker's


@pytest.mark.parametrize(
    ("settings", "batches_without_bonus", "taught"),
    [
        # batches of 4, 4 and 1: the surer share teaches; a bonus is paid from epoch 2 on, as written from the first
        ({"sure_share": 0.5}, 3, {4: 2, 1: 1}),
        ({"sure_share": 1.0}, 3, {4: 4, 1: 1}),
        ({"row": "as written"}, 0, {4: 4, 1: 1}),
    ],
)
def test_on_what_the_reasoner_is_taught_and_when_it_pays(
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    batches_without_bonus: int,
    taught: dict[int, int],
) -> None:
    training = make(pretrain_epochs=0, **settings)
    players, seen_pays, seen_taught = training.players, [], []
    ranker_loss, reasoner_loss = players.ranker_loss, players.reasoner_loss

    def learn(batch: Any, pays_bonus: bool) -> Tensor:
        seen_pays.append(pays_bonus)
        return ranker_loss(batch, pays_bonus)

    def teach(batch: Any, chains: Tensor) -> tuple[Tensor, Tensor]:
        seen_taught.append(len(chains))
        return reasoner_loss(batch, chains)

    monkeypatch.setattr(players, "ranker_loss", learn)
    monkeypatch.setattr(players, "reasoner_loss", teach)
    training.run()
    sizes = [len(batch) for epoch in range(2) for batch in training.batches("game", epoch)]
    assert seen_pays == [number >= batches_without_bonus for number in range(len(sizes))]
    assert seen_taught == [taught[size] for size in sizes]


def test_the_surest_are_taught_at_least_one() -> None:
    sureness = torch.tensor([0.2, 0.9, 0.5, 0.9, 0.1])
    assert surer_share(sureness, 0.5).tolist() == [1, 3]
    assert surer_share(sureness, 0.6).tolist() == [1, 3, 2]
    assert surer_share(sureness, 0.0).tolist() == [1]


def test_each_player_has_an_optimiser_of_its_own(make: Make) -> None:
    training = make()
    for name, optimiser in training.optimisers.items():
        own = {id(parameter) for parameter in getattr(training.players, name).parameters()}
        assert {id(parameter) for group in optimiser.param_groups for parameter in group["params"]} == own
    assert training.optimisers["ranker"] is not training.optimisers["reasoner"]


# ---- when it stops


def scripted(training: Training, monkeypatch: pytest.MonkeyPatch, *rewards: float) -> list[dict[str, Tensor]]:
    """Give the epochs some rewards; return the list in which the weights after each will be."""
    after: list[dict[str, Tensor]] = []
    remaining: Iterator[float] = iter(rewards)

    def figures(phase: str) -> dict[str, float]:
        after.append(weights(training.players))
        return {"reward": next(remaining)}

    monkeypatch.setattr(training, "held_out_figures", figures)
    return after


def test_a_phase_stops_when_the_reward_grows_no_more_and_its_best_weights_are_restored(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "PATIENCE", 2)
    training = make(pretrain_epochs=9, game_epochs=9, batch_size=12)
    after = scripted(training, monkeypatch, 0.5, 0.7, 0.6, 0.7, 0.2, 0.3, 0.1, 0.1)
    training.run(until="game")
    assert len(after) == 4
    assert same(weights(training.players), after[1])
    assert not same(after[1], after[3])
    training.run()
    assert len(after) == 8
    assert same(weights(training.players), after[5])
    assert [epoch["reward"] for epoch in training.state.progress.curve] == [0.5, 0.7, 0.6, 0.7, 0.2, 0.3, 0.1, 0.1]


def test_with_hard_c_the_game_keeps_its_last_weights_after_all_its_epochs(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "PATIENCE", 1)
    training = make(pretrain_epochs=1, game_epochs=4, sharpness=0.0)
    after = scripted(training, monkeypatch, 0.5, 0.7, 0.6, 0.5, 0.4)
    training.run()
    assert len(after) == 5
    assert same(weights(training.players), after[4])


def test_the_held_out_figures_need_no_dropout_and_change_nothing(make: Make) -> None:
    training = make()
    before, state = weights(training.players), torch.get_rng_state()
    assert training.held_out_figures("game") == training.held_out_figures("game")
    assert training.held_out_figures("pretraining").keys() == {"reward", "entropy"}
    assert same(before, weights(training.players))
    assert torch.equal(state, torch.get_rng_state())


# ---- when a loss is not finite


def test_a_loss_that_is_not_finite_ends_the_run_and_leaves_the_last_checkpoint_intact(
    make: Make, tmp_path: Path
) -> None:
    training = make(learning_rate=1e30)
    training.state.start(tmp_path / "checkpoint")
    with pytest.raises(RechainError, match="lower learning_rate") as failure:
        training.run()
    assert "The last checkpoint is intact." in str(failure.value)
    tensors, metadata = load_tensors(tmp_path / "checkpoint")
    assert all(bool(value.isfinite().all()) for value in tensors.values() if value.is_floating_point())
    assert metadata["progress"]["epoch"] == 0


@pytest.mark.parametrize("phase", ["pretraining", "game"])
def test_a_run_that_is_resumed_ends_with_the_same_weights_bit_for_bit(
    make: Make, tmp_path: Path, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "CHECKPOINT_STEPS", 1)
    whole = make(reasoner_epochs=1)
    whole.run()

    class Stop(TrainingLog):
        def __init__(self) -> None:
            pass

        def step(self, at: str, epoch: int, step: int, steps: int) -> None:
            if (at, epoch, step) == (phase, 1, 3):
                raise KeyboardInterrupt

        def epoch(self, figures: Mapping[str, Any]) -> None:
            pass

    stopped = make(reasoner_epochs=1)
    stopped.state.start(tmp_path / "checkpoint", Stop())
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    resumed = make(reasoner_epochs=1)
    resumed.state.load_last(tmp_path / "checkpoint")
    resumed.run()
    assert same(weights(resumed.players), weights(whole.players))
    assert resumed.state.progress.curve == whole.state.progress.curve


# ---- branches


def test_a_branch_continues_from_here_and_leaves_the_original_alone(make: Make) -> None:
    trunk = make()
    trunk.run(until="game")
    before = weights(trunk.players)
    branch = trunk.branch(trunk.settings.but(row="tail to head"), trunk.data)
    branch.run()
    assert branch.data is trunk.data
    assert branch.settings.row == branch.players.settings.row == branch.state.settings.row == "tail to head"
    assert trunk.settings.row == trunk.players.settings.row == "cooperative"
    assert not same(before, weights(branch.players))
    assert same(before, weights(trunk.players))
    assert len(trunk.state.progress.curve) == 2
    trunk.run()
    assert not same(before, weights(trunk.players))


def test_branches_do_not_depend_on_those_before(make: Make) -> None:
    trunk = make(gradient="reinforce")
    trunk.run(until="reasoner")
    ends = []
    for plays_another in (False, True):
        if plays_another:
            trunk.branch(trunk.settings.but(row="as written", bonus=2.0), trunk.data).run()
        branch = trunk.branch(trunk.settings, trunk.data)
        branch.run()
        ends.append(weights(branch.players))
    assert same(*ends)


def test_a_branch_reads_the_questions_as_its_settings_say(make: Make) -> None:
    trunk = make()
    settings = trunk.settings.but(row="as written")
    branch = trunk.branch(settings, trunk.data.view(settings))
    assert branch.players.reasoner.scores_first_words
    assert not trunk.players.reasoner.scores_first_words
    questions = np.arange(12)
    assert branch.data.batch(questions).contains.any(-1).sum() > trunk.data.batch(questions).contains.any(-1).sum()


# ---- what it is all for


def test_a_tiny_game_ends_above_its_baselines(towns: Towns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "HELD_OUT", 0.1)
    settings = GameSettings(
        hidden=16, sharpness=0.0, batch_size=16, pretrain_epochs=8, game_epochs=3, learning_rate=5e-3
    )
    material = prepare_game(towns(90), no_vectors(), CandidateSettings())
    train_game(material, settings, RunFolder(tmp_path / "run"))
    unseen = towns(40, first=1000, traps=True)

    def accuracy(model: str | Path) -> float:
        recovered = Recoverer(model).recover_many(unseen)
        return sum(one.chains[0].passages == ["work", "maker"] for one in recovered) / len(unseen)

    reached = accuracy(tmp_path / "run")
    assert reached > 0.8
    assert reached > max(accuracy("random"), accuracy("lexical"), accuracy("bm25")) + 0.3
