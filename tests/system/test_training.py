"""What training loops share: a run that is stopped anywhere ends as if it were not; damage is one sentence."""

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rechain.errors import InputError, RechainError
from rechain.system.tensors import load_tensors, save_tensors
from rechain.system.training import (
    CHECKPOINT,
    PREVIOUS,
    RUN_FILE,
    Progress,
    RunFolder,
    TrainingLog,
    TrainingState,
    average,
    average_gradients,
    fingerprint,
    is_first,
    is_shared,
    join,
    own_share,
)

pytestmark = pytest.mark.usefixtures("one_thread")
STEPS = 5
RECORD = {"kind": "toy", "settings": {"rate": 0.1, "patience": 2}, "fingerprint": "1"}
Change = Callable[[dict[str, Tensor], dict[str, Any]], Any]


@dataclass(frozen=True)
class ToySettings:
    rate: float = 0.1
    patience: int = 2


class Toy:
    """Fits noise in two phases: weights depend on random numbers, losses, moments and a tensor beside them."""

    def __init__(self, width: int = 3, figures: Mapping[str, list[float]] | None = None, **settings: Any) -> None:
        torch.manual_seed(0)
        self.network = nn.Linear(width, 1)
        self.mean = torch.zeros(1)
        self.figures = figures or {"first": [0.1, 0.3, 0.2, 0.25], "second": [0.5, 0.4, 0.6]}
        self.settings = ToySettings(**settings)
        optimiser = torch.optim.Adam(self.network.parameters(), lr=self.settings.rate)
        self.state = TrainingState(
            self.network,
            {"all": optimiser},
            self.settings,
            phases=("first", "second"),
            criterion="reward",
            checkpoint_steps=2,
            advice="lower rate",
            more={"mean": self.mean},
        )

    def train(self, path: Path | None = None, log: Any = None) -> None:
        state = self.state
        state.start(path, log)
        while state.phase:
            figures, keeps_last = self.figures[state.phase], state.phase == "second"
            while state.progress.epoch < len(figures) and state.progress.worse < self.settings.patience:
                for _ in range(state.progress.step, STEPS):
                    state.end_step({"loss": self.step()}, STEPS)
                state.end_epoch({"reward": figures[state.progress.epoch]}, torch.zeros(2), keeps_last)
            state.restore_best()
            state.end_phase()

    def step(self) -> Tensor:
        (optimiser,) = self.state.optimisers.values()
        optimiser.zero_grad()
        loss = (self.network(torch.rand(4, self.network.in_features)) - self.mean).square().mean()
        loss.backward()
        optimiser.step()
        self.mean.mul_(0.9).add_(0.1 * loss.detach())
        return loss.detach()


class Moments(TrainingLog):
    """Records every moment of a run, and ends it, as Ctrl-C does, at one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.moments: list[tuple[Any, ...]] = []
        self._last = last

    def _record(self, *moment: Any) -> None:
        self.moments.append(moment)
        if len(self.moments) - 1 == self._last:
            raise KeyboardInterrupt

    def step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        self._record(phase, epoch, step)

    def epoch(self, figures: Mapping[str, Any]) -> None:
        self._record(figures["phase"], figures["epoch"])


def tensors_of(toy: Toy) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in toy.state.tensors().items()}


def assert_same(one: Toy, other: Toy) -> None:
    assert one.state.progress == other.state.progress
    tensors, others = one.state.tensors(), other.state.tensors()
    assert tensors.keys() == others.keys()
    assert all(torch.equal(value, others[name]) for name, value in tensors.items())


def stop(path: Path, moment: int, resume: bool = False) -> Toy:
    toy = Toy()
    if resume:
        toy.state.load_last(path)
    with pytest.raises(KeyboardInterrupt):
        toy.train(path, Moments(moment))
    return toy


def resume(path: Path) -> Toy:
    toy = Toy()
    torch.rand(7)  # random numbers drawn elsewhere do not count
    toy.state.load_last(path)
    toy.train(path)
    return toy


@pytest.fixture(scope="module")
def whole() -> Toy:
    """A run that nothing disturbed."""
    toy = Toy()
    toy.train()
    return toy


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the checkpoint of a run that was stopped in its second epoch, after the checkpoint at step 2."""
    stop(tmp_path / CHECKPOINT, 8)
    return tmp_path / CHECKPOINT


# ---- resuming


def test_a_run_stopped_at_any_moment_ends_as_if_it_were_not(whole: Toy, tmp_path: Path) -> None:
    log = Moments()
    Toy().train(log=log)
    assert len(log.moments) == 7 * (STEPS + 1)
    for moment in range(len(log.moments)):
        stop(tmp_path / f"{moment}.{CHECKPOINT}", moment)
        assert_same(resume(tmp_path / f"{moment}.{CHECKPOINT}"), whole)
        (tmp_path / PREVIOUS).unlink(missing_ok=True)


def test_a_run_may_be_stopped_again_and_again(whole: Toy, tmp_path: Path) -> None:
    path = tmp_path / CHECKPOINT
    for number, moment in enumerate((4, 5, 0, 7, 3)):
        stop(path, moment, resume=number > 0)
    assert_same(resume(path), whole)
    assert_same(resume(path), whole)  # a finished run stays as it is


def test_a_checkpoint_restores_everything_and_writing_it_changes_nothing(path: Path) -> None:
    toy = Toy()
    toy.state.load_last(path)
    before = tensors_of(toy)
    parts = {name.partition(".")[0] for name in before}
    assert parts == {"network", "best", "totals", "optimiser", "more", "random"}
    assert (toy.state.progress.epoch, toy.state.progress.step, len(toy.state.progress.curve)) == (1, 2, 1)
    toy.state.path = path
    toy.state.save()
    after = toy.state.tensors()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_checkpoint_is_no_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pickle.dumps", "pickle.loads", "torch.save", "torch.load"):
        monkeypatch.setattr(name, None)
    Toy().train(tmp_path / CHECKPOINT)
    resume(tmp_path / CHECKPOINT)


# ---- when it stops


def test_a_phase_stops_early_with_its_best_weights_or_goes_on_with_its_last() -> None:
    toy, after, kept = Toy(), list[tuple[str, Tensor]](), list[Tensor]()

    class Weights(TrainingLog):
        def epoch(self, figures: Mapping[str, Any]) -> None:
            after.append((figures["phase"], toy.network.weight.detach().clone()))

    toy.state.end_phase = _before(toy.state.end_phase, lambda: kept.append(toy.network.weight.detach().clone()))  # type: ignore[method-assign]
    toy.train(log=Weights())
    assert [phase for phase, _ in after] == ["first"] * 4 + ["second"] * 3
    assert torch.equal(kept[0], after[1][1]) and torch.equal(kept[1], after[-1][1])
    assert toy.state.best_figure == 0.6
    assert {"phase": "first", "epoch": 1, "reward": 0.3}.items() <= toy.state.progress.curve[1].items()


def _before(method: Callable[[], None], record: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        record()
        method()

    return run


def test_without_a_figure_the_last_epoch_is_kept() -> None:
    state = Toy().state
    for _ in range(2):
        state.end_step({"loss": torch.ones(1)}, 1)
        state.end_epoch({}, torch.zeros(1))
    assert (state.progress.worse, state.best_figure) == (0, None)
    assert torch.equal(state.best_weights["weight"], state.network.weight)


@pytest.mark.parametrize("what", ["the loss's loss", "a weight", "the reward on held-out questions", "a score of the"])
def test_a_number_that_is_not_finite_ends_the_run_and_not_the_checkpoint(path: Path, what: str) -> None:
    toy, before = Toy(), path.read_bytes()
    toy.state.load_last(path)
    toy.state.path = path
    reward, scores, loss = 0.5, torch.zeros(2), torch.ones(1)
    if what == "a weight":
        nn.init.constant_(toy.network.weight, torch.nan)
    reward = float("nan") if "reward" in what else reward
    scores = scores + torch.inf if "score" in what else scores
    loss = loss * torch.nan if "loss" in what else loss
    with pytest.raises(RechainError) as failure:
        toy.state.end_step({"loss": loss}, 3)
        toy.state.end_epoch({"reward": reward}, scores)
    assert str(failure.value).startswith(what)
    assert str(failure.value).endswith(
        "no longer a number in epoch 2 of the first; lower rate. The last checkpoint is intact."
    )
    assert path.read_bytes() == before


# ---- faults


def test_a_full_disk_leaves_the_checkpoint_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FillsUp(Moments):
        def epoch(self, figures: Mapping[str, Any]) -> None:
            if figures["epoch"] == 1:
                monkeypatch.setattr(os, "fsync", full)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left on device"):
        Toy().train(tmp_path / CHECKPOINT, FillsUp())
    toy = Toy()
    toy.state.load_last(tmp_path / CHECKPOINT)
    assert (toy.state.progress.epoch, toy.state.progress.step) == (1, 4)


@pytest.mark.parametrize("calls", [0, 1])
def test_a_kill_between_two_renames_leaves_a_whole_checkpoint(
    path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    replace, left = Path.replace, [calls]
    toy = Toy()
    toy.state.load_last(path)

    def killed(self: Path, target: Path) -> Path:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    toy.state.path = path
    with pytest.raises(KeyboardInterrupt):
        toy.state.save()
    assert path.exists() == (calls == 0)
    other = Toy()
    other.state.load_last(path)
    assert_same(other, toy)


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_offered(whole: Toy, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError) as failure:
        Toy().state.load_last(path)
    assert str(failure.value).startswith(f"{path} is damaged, or not a checkpoint")
    assert str(failure.value).endswith(
        "; delete it, and --resume resumes from the intact one before it (first, epoch 2)."
    )
    path.unlink()
    assert_same(resume(path), whole)
    path.write_bytes(b"")
    path.with_name(PREVIOUS).write_bytes(b"")
    with pytest.raises(InputError, match="--resume starts from the beginning, as no intact one is left"):
        Toy().state.load_last(path)


def test_no_flipped_bit_is_accepted(path: Path) -> None:
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    for place in [*range(0, 130, 5), *range(130, header, header // 10), *range(header, len(content), 500)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"checkpoint\.safetensors is damaged"):
            Toy().state.load_last(path)


def foreign(path: Path, header: str | None = None) -> None:
    save_file({"weight": torch.zeros(2)}, path, {"rechain": header} if header else None)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("not a checkpoint"),
        lambda path: path.write_bytes(b""),
        foreign,
        lambda path: foreign(path, json.dumps({"hops": 2})),
        lambda path: foreign(path, "{"),
        Path.mkdir,
    ],
)
def test_a_file_that_is_no_checkpoint_is_named(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "checkpoint")
    with pytest.raises(InputError) as failure:
        Toy().state.load(tmp_path / "checkpoint")
    assert str(failure.value).startswith(f"{tmp_path / 'checkpoint'} is damaged, or not a checkpoint that rechain has")


def test_weights_alone_cannot_be_resumed(tmp_path: Path) -> None:
    save_tensors(nn.Linear(3, 1).state_dict(), {"settings": {}}, tmp_path / "model")
    with pytest.raises(InputError, match="contains only weights, not the state of a run"):
        Toy().state.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"rate": 0.2}, "was written with rate = 0.1, not 0.2; resume with the same settings, or start again"),
        ({"width": 4}, "is of another model or of other data than these: "),
    ],
)
def test_a_checkpoint_of_another_run_says_so(path: Path, other: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError) as failure:
        Toy(**other).state.load_last(path)
    assert str(failure.value).startswith(f"{path} {what}")


def rename(tensors: dict[str, Tensor], old: str, new: str) -> None:
    tensors[new] = tensors.pop(old)


MOMENT = "optimiser.all.0.exp_avg"
CHANGES: dict[str, Change] = {
    "unknown tensor": lambda tensors, _: rename(tensors, "network.bias", "netwosk.bias"),
    "another tensor": lambda tensors, _: tensors.update({"extra": torch.zeros(1)}),
    "a tensor less": lambda tensors, _: tensors.pop("network.bias"),
    "progress is a list": lambda _, metadata: metadata.update(progress=[1, 2]),
    "progress has a text": lambda _, metadata: metadata["progress"].update(epoch="1"),
    "progress is short": lambda _, metadata: metadata["progress"].pop("best"),
    "curve is a number": lambda _, metadata: metadata["progress"].update(curve=3),
    "short random state": lambda tensors, _: tensors.update({"random.cpu": torch.zeros(9, dtype=torch.uint8)}),
    "random state of floats": lambda tensors, _: tensors.update({"random.cpu": torch.zeros(5056)}),
    "settings are a list": lambda _, metadata: metadata.update(settings=[]),
    "a moment of another shape": lambda tensors, _: tensors.update({MOMENT: torch.zeros(2)}),
    "a moment of another type": lambda tensors, _: tensors.update({MOMENT: tensors[MOMENT].double()}),
    "a moment of another name": lambda tensors, _: rename(tensors, MOMENT, f"{MOMENT}x"),
    "a moment of no parameter": lambda tensors, _: rename(tensors, MOMENT, "optimiser.all.999.exp_avg"),
    "a moment of no optimiser": lambda tensors, _: rename(tensors, MOMENT, "optimiser.other.0.exp_avg"),
    "best weights of another shape": lambda tensors, _: tensors.update({"best.bias": torch.zeros(9)}),
    "no further tensor": lambda tensors, _: tensors.pop("more.mean"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_checkpoint_with_a_right_digest_is_one_sentence(path: Path, what: str) -> None:
    tensors, metadata = load_tensors(path)
    CHANGES[what](tensors, metadata)
    save_tensors(tensors, metadata, path)
    with pytest.raises(RechainError) as failure:
        Toy().state.load_last(path)
    (sentence,) = str(failure.value).splitlines()
    assert sentence.startswith(f"{path}") and sentence.endswith(".")


# ---- the folder of a run


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that was started with a file."""
    folder = RunFolder(tmp_path)
    (tmp_path / "words.txt").write_text("one\ntwo")
    assert not folder.is_begun
    folder.begin(RECORD, ["words.txt"])
    return folder


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"kind": "game"}, "was started with --model toy, not game; resume with the same, or start again with another"),
        ({"settings": {"rate": 0.2}}, "/run.json was written with rate = 0.1, not 0.2; resume with the same settings"),
        ({"fingerprint": "2"}, "was started with other toys; resume with the same, or start again with another --out."),
    ],
)
def test_a_run_is_resumed_only_with_what_it_was_started_with(
    folder: RunFolder, changes: dict[str, Any], what: str
) -> None:
    assert folder.is_begun
    folder.check(RECORD, "other toys")
    with pytest.raises(InputError) as failure:
        folder.check({**RECORD, **changes}, "other toys")
    assert str(failure.value).replace(str(folder.path), "").lstrip().startswith(what)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"settings": {}}'])
def test_a_broken_record_is_one_sentence(folder: RunFolder, content: str) -> None:
    (folder.path / RUN_FILE).write_text(content)
    with pytest.raises(InputError) as failure:
        folder.check(RECORD, "other toys")
    assert str(failure.value).startswith(f"{folder.path / RUN_FILE} is damaged or was changed by hand: ")


@pytest.mark.parametrize("name", ["words.txt", RUN_FILE])
def test_damage_of_the_folder_is_noticed(folder: RunFolder, name: str) -> None:
    content = (folder.path / name).read_bytes()
    for place in range(0, len(content), max(len(content) // 20, 1)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 5
        if name == RUN_FILE and chr(damaged[place]).isspace():
            continue
        (folder.path / name).write_bytes(damaged)
        with pytest.raises(InputError) as failure:
            folder.check_files()
        assert str(failure.value).startswith(str(folder.path / name))
    (folder.path / name).unlink()
    with pytest.raises(InputError):
        folder.check_files()


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not the folder of a run: it has no run\.json"):
        RunFolder(tmp_path).record()


def test_the_fingerprint_is_that_of_names_and_values_in_any_order() -> None:
    one, two = np.arange(3), np.ones(2)
    assert fingerprint({"a": one, "b": two}) == fingerprint({"b": two, "a": one})
    assert len({fingerprint({"a": one}), fingerprint({"b": one}), fingerprint({"a": two}), fingerprint({})}) == 4


# ---- what is shown


class Run:
    """Records events as `RunLog` logs them."""

    doing: str | None = None

    def __init__(self) -> None:
        self.texts: list[str] = []

    def event(self, _name: str, text: str, _facts: Mapping[str, Any]) -> None:
        self.texts.append(text)

    def note(self, text: str) -> None:
        self.texts.append(text)


def test_every_epoch_is_a_line_and_a_missing_tensorboard_is_noted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    run = Run()
    with TrainingLog(run, tmp_path / "log") as log:  # type: ignore[arg-type]
        for epoch in range(2):
            log.step("first", epoch, 1, 2)
            log.epoch({"phase": "first", "epoch": epoch, "reward": 0.25})
    assert run.doing == "first, epoch 2, step 1 of 2"
    assert run.texts == [
        "first, epoch 1: reward 0.250",
        "Nothing is logged for TensorBoard; pip install 'rechain[train]' installs it.",
        "first, epoch 2: reward 0.250",
    ]


def test_progress_is_parsed_as_it_was_recorded() -> None:
    progress = Progress(1, 2, 3, 0.5, 1, [{"phase": "first"}])
    assert Progress.parse(json.loads(json.dumps(vars(progress)))) == progress


# ---- several processes that play one game together

PLAY = """
import json, sys
import torch, torch.distributed as dist
from safetensors.torch import save_file
from rechain.formats.datasets import read_questions
from rechain.paper.data import Prepared
from rechain.paper.settings import GameSettings
from rechain.paper import encoder, ranker, reasoner, train
from rechain.paper.train import Training
from rechain.paper.lexicon import Lexicon
from rechain.paper.prepare import prepare
from rechain.paper.vectors import no_vectors

path, out, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for module in (encoder, ranker, reasoner):
    module.DROPOUT = 0.0  # processes draw different random numbers
train.HELD_OUT, train.BONUS_FROM, train.GAME_RATE = 0.25, 0, 1.0
torch.set_num_threads(1)
rank = 0
if len(sys.argv) > 4:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
questions = list(read_questions(path))
table = torch.from_numpy(no_vectors().table)
settings = GameSettings(**settings)
training = Training(table, Prepared(prepare(questions, Lexicon({})).arrays(), settings), settings)
training.run()
save_file(training.players.state_dict(), f"{out}.{rank}")
print(json.dumps(training.state.progress.curve))
if dist.is_initialized():
    dist.barrier()  # one that goes while another still talks to it can bring that one down
    dist.destroy_process_group()
"""


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def play(processes: int, questions: Path, out: Path, settings: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Play in some processes side by side; return what each says of its epochs."""
    command = [sys.executable, "-c", PLAY, str(questions), str(out), json.dumps(settings)]
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": str(processes)}
    started = [
        subprocess.Popen(
            [*command, *(["shared"] if processes > 1 else [])],
            env=os.environ | told | {"RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    ended = [one.communicate(timeout=600) for one in started]
    assert all(one.returncode == 0 for one in started), "\n".join(error for _, error in ended)
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


ADDED_TO_ALL = {"ranker.score.bias", "reasoner.classify.bias"}
"""what is added to all scores alike: its gradient is rounding alone, which Adam enlarges"""


def figures(told: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in told.items() if isinstance(value, float)}


SETTINGS = {
    "hidden": 3,
    "pretrain_epochs": 1,
    "game_epochs": 1,
    "learning_rate": 1e-3,
    "reasoner_epochs": 1,
}


@pytest.mark.parametrize(
    ("processes", "sizes"),
    [
        (
            2,
            {"batch_size": 4},
        ),  # 4, 4 and 1 of nine questions: the second reads none of the last
        pytest.param(3, {"batch_size": 5}, marks=pytest.mark.slow),  # 2, 2, 1
    ],
)
def test_several_processes_come_to_the_same_losses_and_weights_as_one(
    town_file: Path, tmp_path: Path, processes: int, sizes: dict[str, int]
) -> None:
    (alone,) = play(1, town_file, tmp_path / "alone", SETTINGS | sizes)
    together = play(processes, town_file, tmp_path / "together", SETTINGS | sizes)
    assert [told["phase"] for told in alone] == ["pretraining", "reasoner", "game"]
    for curve in together:
        for one, other in zip(alone, curve, strict=True):
            assert figures(one) == pytest.approx(figures(other), rel=1e-5, abs=1e-5)
    expected = load_file(tmp_path / "alone.0")
    first = load_file(tmp_path / "together.0")
    for name, value in (pair for pair in expected.items() if pair[0] not in ADDED_TO_ALL):
        torch.testing.assert_close(first[name], value, rtol=1e-5, atol=1e-5, msg=lambda told, n=name: f"{n}: {told}")
    for rank in range(1, processes):
        other = load_file(tmp_path / f"together.{rank}")
        assert all(torch.equal(first[name], other[name]) for name in first)


def test_a_process_alone_keeps_everything_to_itself() -> None:
    assert not is_shared()
    assert is_first()
    questions = np.arange(5)
    share = own_share(questions)
    assert (share.questions.tolist(), share.weight) == ([0, 1, 2, 3, 4], 5)
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.ones(2)
    average_gradients([parameter], 3)
    assert parameter.grad.tolist() == [1, 1]
    assert average(torch.tensor(7.0), 0).item() == 7


def test_without_torchrun_there_is_nothing_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with join("cpu") as device:
        assert device == "cpu"
        assert not is_shared()


@pytest.mark.slow
def test_torchrun_trains_in_two_processes_and_resumes(town_file: Path, tmp_path: Path) -> None:
    quick = ["hidden=3", "batch_size=4", "pretrain_epochs=2", "game_epochs=1"]
    changes = [word for setting in quick for word in ("--set", setting)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port()]
    rechain = ["-m", "rechain.cli.main", "train", str(town_file), "--device", "cpu", *changes, "--out"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)

    together = run(*torchrun, *rechain, str(tmp_path / "together"))
    assert together.returncode == 0, together.stderr
    assert together.stderr.count("pretraining, epoch 1: ") == 1
    assert together.stderr.count("contains the model") == 1
    two = load_file(tmp_path / "together" / "model.safetensors")
    (tmp_path / "together" / "model.safetensors").unlink()
    again = run(*torchrun, *rechain, str(tmp_path / "together"), "--resume")
    assert again.returncode == 0, again.stderr
    resumed = load_file(tmp_path / "together" / "model.safetensors")
    assert all(torch.equal(two[name], resumed[name]) for name in two)
    refused = run(*torchrun, *rechain, str(tmp_path / "together"))
    assert refused.returncode != 0
    assert "already contains a run; continue it with --resume" in refused.stderr
