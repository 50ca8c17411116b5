"""Checkpoints: whole or not at all, exact, and clear about what they are not."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from rechain.errors import InputError, RechainError
from rechain.game.data import Prepared
from rechain.game.settings import GameSettings
from rechain.game.training import Training
from rechain.preparation.lexicon import Lexicon
from rechain.preparation.questions import prepare
from rechain.schema import Passage, Question
from rechain.system.files import write_atomically
from rechain.system.loop import Watcher
from rechain.system.tensors import load_tensors, save_tensors
from rechain.training.game_runs import no_vectors
from rechain.training.runs import PREVIOUS, KeepCheckpoints, load_checkpoint, load_last_checkpoint

Towns = Callable[..., list[Question]]
SMALL: dict[str, Any] = {
    "hidden": 3,
    "batch_size": 4,
    "pretrain_epochs": 2,
    "game_epochs": 1,
    "held_out": 0.25,
    "gradient": "reinforce",
    "baseline": "moving",
}


class StoppedError(Exception):
    """Ends a run where a test wants it to."""


class StopAfter(Watcher):
    def __init__(self, phase: str, epoch: int, step: int) -> None:
        self.moment = (phase, epoch, step)

    def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        if (phase, epoch, step) == self.moment:
            raise StoppedError


@pytest.fixture(scope="module")
def data(towns: Towns) -> Prepared:
    """Twelve questions."""
    return Prepared(prepare(towns(12), Lexicon({})).arrays())


def make(data: Prepared, width: int | None = None, **settings: Any) -> Training:
    table = torch.from_numpy(no_vectors().table) if width is None else torch.zeros(1, width)
    return Training(table, data, GameSettings(**(SMALL | settings)))


def save_checkpoint(training: Training, path: Path) -> None:
    KeepCheckpoints(path).on_checkpoint(training)


@pytest.fixture
def stopped(data: Prepared) -> Training:
    """A run in the middle of the second epoch of its pretraining."""
    training = make(data)
    with pytest.raises(StoppedError):
        training.run(StopAfter("pretraining", 1, 2))
    return training


def state(training: Training) -> dict[str, Any]:
    """Return everything that decides how a run goes on."""
    tensors = {f"players.{name}": value.clone() for name, value in training.players.state_dict().items()}
    tensors |= {f"best.{name}": value.clone() for name, value in training.best_weights.items()}
    tensors |= {f"totals.{name}": value.clone() for name, value in training.totals.items()}
    for player, optimiser in training.optimisers.items():
        for number, told in optimiser.state_dict()["state"].items():
            tensors |= {f"{player}.{number}.{name}": value.clone() for name, value in told.items()}
    return {"tensors": tensors, "random": torch.get_rng_state(), "progress": training.progress}


def test_a_run_is_restored_exactly(data: Prepared, stopped: Training, tmp_path: Path) -> None:
    before = state(stopped)
    assert any(name.startswith("best.") for name in before["tensors"])
    assert any(name.startswith("totals.") for name in before["tensors"])
    assert any(name.startswith("ranker.") for name in before["tensors"])
    assert before["progress"].curve
    save_checkpoint(stopped, tmp_path / "checkpoint")
    other = make(data)
    torch.rand(7)
    load_checkpoint(other, tmp_path / "checkpoint")
    after = state(other)
    assert after["tensors"].keys() == before["tensors"].keys()
    assert all(torch.equal(value, after["tensors"][name]) for name, value in before["tensors"].items())
    assert torch.equal(after["random"], before["random"])
    assert after["progress"] == before["progress"]
    assert other.progress.step == 2


def test_to_write_a_checkpoint_changes_nothing(stopped: Training, tmp_path: Path) -> None:
    before = state(stopped)
    save_checkpoint(stopped, tmp_path / "checkpoint")
    after = state(stopped)
    assert all(torch.equal(value, after["tensors"][name]) for name, value in before["tensors"].items())
    assert torch.equal(after["random"], before["random"])


def test_trained_vectors_are_kept_and_frozen_ones_are_not(data: Prepared, tmp_path: Path) -> None:
    sizes = {}
    for trained in (True, False):
        save_checkpoint(make(data, train_vectors=trained), tmp_path / "checkpoint")
        sizes[trained] = sum("vectors.table" in name for name in load_tensors(tmp_path / "checkpoint")[0])
    assert sizes == {True: 2, False: 0}


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"one", b"another, longer"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, fault: BaseException
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(fault)) as failure:
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    assert not isinstance(fault, OSError) or getattr(failure.value, "filename", None) == str(path)


def test_a_full_disk_ends_a_run_with_the_checkpoint_before_it(
    data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, path = make(data), tmp_path / "checkpoint"

    class FillsUp(KeepCheckpoints):
        def on_epoch(self, figures: Any) -> None:
            if figures["epoch"] == 1:
                monkeypatch.setattr(os, "fsync", full)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left on device"):
        training.run(FillsUp(path))
    other = make(data)
    load_checkpoint(other, path)
    assert (other.progress.phase, other.progress.epoch, other.progress.step) == (1, 1, 0)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"hidden": 4}, "was written with hidden = 3, not 4"),
        ({"row": "conditional"}, "was written with row = cooperative, not conditional"),
        ({"seed": 1}, "was written with seed = 0, not 1"),
    ],
)
def test_a_checkpoint_of_another_setting_says_which(
    data: Prepared, tmp_path: Path, settings: dict[str, Any], what: str
) -> None:
    save_checkpoint(make(data), tmp_path / "checkpoint")
    other = make(data, **settings)
    before = state(other)
    with pytest.raises(InputError) as failure:
        load_checkpoint(other, tmp_path / "checkpoint")
    assert str(failure.value).startswith(f"{tmp_path / 'checkpoint'} {what}; ")
    assert all(torch.equal(value, before["tensors"][name]) for name, value in state(other)["tensors"].items())


def test_a_checkpoint_of_other_hops_is_an_error(data: Prepared, tmp_path: Path) -> None:
    texts = ["Alphon knows Bertulk", "Bertulk knows Cyrdrim", "Cyrdrim went to Prague"]
    passages = [Passage(id=str(n), title=text.split()[0], text=text) for n, text in enumerate(texts)]
    three = Question(id="3", question="Where did Alphon's friend go?", answer="Prague", hops=3, passages=passages)
    save_checkpoint(make(Prepared(prepare([three], Lexicon({})).arrays())), tmp_path / "checkpoint")
    with pytest.raises(InputError, match="is of chains of 3 passages, but the questions have 2"):
        load_checkpoint(make(data), tmp_path / "checkpoint")


def test_a_checkpoint_of_vectors_of_another_width_is_an_error(data: Prepared, tmp_path: Path) -> None:
    save_checkpoint(make(data, width=7), tmp_path / "checkpoint")
    with pytest.raises(InputError, match="is of other networks or word vectors than these"):
        load_checkpoint(make(data), tmp_path / "checkpoint")


def test_weights_alone_cannot_be_resumed(data: Prepared, tmp_path: Path) -> None:
    make(data).save_weights(tmp_path / "model")
    with pytest.raises(InputError, match="holds weights alone, not the state of a run"):
        load_checkpoint(make(data), tmp_path / "model")


def write_text(path: Path) -> None:
    path.write_text("not a checkpoint")


def write_nothing(path: Path) -> None:
    path.write_bytes(b"")


def write_foreign(path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, path)


def write_vague(path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, path, {"rechain": json.dumps({"hops": 2})})


def write_garbled(path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, path, {"rechain": "{"})


def write_list(path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, path, {"rechain": "[]"})


def write_cut(path: Path) -> None:
    save_file({"weight": torch.zeros(99)}, path, {"rechain": "{}"})
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize(
    "write", [write_text, write_nothing, write_foreign, write_vague, write_garbled, write_list, write_cut, Path.mkdir]
)
def test_a_file_that_is_no_checkpoint_is_named(data: Prepared, tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "checkpoint")
    with pytest.raises(InputError) as failure:
        load_checkpoint(make(data), tmp_path / "checkpoint")
    assert str(failure.value).startswith(
        f"{tmp_path / 'checkpoint'} is damaged, or not a checkpoint that rechain has written: "
    )


def test_no_file_at_all_is_said_so(data: Prepared, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"there is no {tmp_path / 'absent'}"):
        load_checkpoint(make(data), tmp_path / "absent")


def test_a_checkpoint_is_no_pickle(data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pickle.dumps", None)
    monkeypatch.setattr("pickle.loads", None)
    monkeypatch.setattr("torch.save", None)
    monkeypatch.setattr("torch.load", None)
    training = make(data)
    training.run(KeepCheckpoints(tmp_path / "checkpoint"))
    load_checkpoint(make(data), tmp_path / "checkpoint")
    head = (tmp_path / "checkpoint").read_bytes()
    assert json.loads(head[8 : 8 + int.from_bytes(head[:8], "little")])["__metadata__"].keys() == {"sealed"}


# ---- damage


def rewrite(path: Path, change: Callable[[dict[str, torch.Tensor], dict[str, Any]], None]) -> None:
    """Change a checkpoint as one does who knows of its digest."""
    tensors, metadata = load_tensors(path)
    change(tensors, metadata)
    save_tensors(tensors, metadata, path)


def rename(tensors: dict[str, torch.Tensor], old: str, new: str) -> None:
    tensors[new] = tensors.pop(old)


STEP = "optimiser.ranker.0.exp_avg"
CHANGES: dict[str, Callable[[dict[str, torch.Tensor], dict[str, Any]], Any]] = {
    "unknown tensor": lambda tensors, _: rename(tensors, "network.mean_reward", "netwosk.mean_reward"),
    "another tensor": lambda tensors, _: tensors.update({"extra": torch.zeros(1)}),
    "progress is a list": lambda _, metadata: metadata.update(progress=[1, 2]),
    "progress has a text": lambda _, metadata: metadata["progress"].update(epoch="1"),
    "progress is short": lambda _, metadata: metadata["progress"].pop("best"),
    "curve is a number": lambda _, metadata: metadata["progress"].update(curve=3),
    "short random state": lambda tensors, _: tensors.update({"random.cpu": torch.zeros(9, dtype=torch.uint8)}),
    "random state of floats": lambda tensors, _: tensors.update({"random.cpu": torch.zeros(5056)}),
    "settings are no numbers": lambda _, metadata: metadata["settings"].update(dropout=float("nan")),
    "settings are a list": lambda _, metadata: metadata.update(settings=[]),
    "a moment of another shape": lambda tensors, _: tensors.update({STEP: torch.zeros(3)}),
    "a moment of another type": lambda tensors, _: tensors.update({STEP: tensors[STEP].double()}),
    "a moment of another name": lambda tensors, _: rename(tensors, STEP, f"{STEP}x"),
    "a moment of no parameter": lambda tensors, _: rename(tensors, STEP, "optimiser.ranker.999.exp_avg"),
    "a moment of nobody": lambda tensors, _: rename(tensors, STEP, "optimiser.nobody.0.exp_avg"),
    "the best weights of another shape": lambda tensors, _: tensors.update({"best.mean_reward": torch.zeros(9)}),
    "a name less": lambda tensors, _: tensors.pop("network.mean_reward"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_checkpoint_that_cannot_be_is_one_sentence(
    data: Prepared, stopped: Training, tmp_path: Path, what: str
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(stopped, path)
    rewrite(path, CHANGES[what])
    with pytest.raises(RechainError) as failure:
        load_last_checkpoint(make(data), path)
    (sentence,) = str(failure.value).splitlines()
    assert sentence.startswith(f"{path}")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_short_random_state_of_a_gpu_is_one_sentence_before_anything_is_loaded(
    data: Prepared, stopped: Training, tmp_path: Path
) -> None:
    path, training = tmp_path / "checkpoint.safetensors", make(data)
    save_checkpoint(stopped, path)
    rewrite(path, lambda tensors, _: tensors.update({"random.cuda": torch.zeros(9, dtype=torch.uint8)}))
    training.device = torch.device("cuda")
    before = {name: value.clone() for name, value in training.network.state_dict().items()}
    with pytest.raises(InputError, match="is damaged: "):
        load_checkpoint(training, path)
    assert all(torch.equal(value, before[name]) for name, value in training.network.state_dict().items())


def test_no_flipped_bit_of_a_checkpoint_is_accepted(data: Prepared, stopped: Training, tmp_path: Path) -> None:
    path, training = tmp_path / "checkpoint.safetensors", make(data)
    save_checkpoint(stopped, path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        header = 8 + int.from_bytes(file.read(8), "little")
        for place in [*range(0, 130, 3), *range(130, header, header // 20), *range(header, size, size // 20)]:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1 << place % 8]))
            file.flush()
            with pytest.raises(InputError, match=r"checkpoint\.safetensors is damaged"):
                load_checkpoint(training, path)
            file.seek(place)
            file.write(bytes([byte]))
            file.flush()
    load_checkpoint(training, path)


def test_a_checkpoint_without_a_digest_is_still_read(data: Prepared, stopped: Training, tmp_path: Path) -> None:
    tensors, metadata = stopped.state()
    save_file(tensors, tmp_path / "checkpoint", {"rechain": json.dumps(metadata)})
    other = make(data)
    load_checkpoint(other, tmp_path / "checkpoint")
    assert other.progress == stopped.progress


class _KeepAndStop(KeepCheckpoints):
    def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        if (phase, epoch, step) == ("pretraining", 1, 3):
            raise StoppedError


def test_the_checkpoint_before_is_kept_and_offered(data: Prepared, tmp_path: Path) -> None:
    path, training = tmp_path / "checkpoint.safetensors", make(data)
    with pytest.raises(StoppedError):
        training.run(_KeepAndStop(path))
    before, last = (load_tensors(file)[1]["progress"] for file in (tmp_path / PREVIOUS, path))
    assert (before["phase"], before["epoch"], last["phase"], last["epoch"]) == (1, 0, 1, 1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError) as failure:
        load_last_checkpoint(make(data), path)
    assert str(failure.value).endswith(
        "; delete it, and --resume goes on from the one before (pretraining, epoch 1), which is whole."
    )
    path.unlink()
    other, undisturbed = make(data), make(data)
    load_last_checkpoint(other, path)
    assert (other.progress.phase, other.progress.epoch) == (1, 0)
    other.run()
    undisturbed = make(data)
    undisturbed.run()
    for name, value in undisturbed.players.state_dict().items():
        assert torch.equal(value, other.players.state_dict()[name])


@pytest.mark.parametrize("calls", [0, 1])
def test_a_kill_between_two_renames_leaves_a_whole_checkpoint(
    data: Prepared, stopped: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(stopped, path)
    replace, left = Path.replace, [calls]

    def killed(self: Path, target: Path) -> Path:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(stopped, path)
    assert path.exists() == (calls == 0)
    other = make(data)
    load_last_checkpoint(other, path)
    assert other.progress == stopped.progress
