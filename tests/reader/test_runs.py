"""A run of the chain reader as a folder: stopped anywhere and resumed, it ends the same; and it is a model."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from rechain.errors import InputError, RechainError
from rechain.reader.pretrained import load
from rechain.reader.runs import ReaderMaterial, prepare_reader, start_training, train_reader
from rechain.reader.settings import ReaderSettings
from rechain.reader.train import ReaderTraining
from rechain.recoverer import Recoverer
from rechain.schema import Question
from rechain.system.tensors import load_tensors, save_tensors
from rechain.system.training import CHECKPOINT, RUN_FILE, WEIGHTS, RunFolder, TrainingLog
from rechain.text.candidates import CandidateSettings

pytestmark = pytest.mark.usefixtures("one_thread")
Towns = Callable[..., list[Question]]
SETTINGS = ReaderSettings(
    max_tokens=64, epochs=2, batch_size=4, held_out=0.25, checkpoint_steps=2, seed=1, learning_rate=0.01
)


def prepare(towns: Towns, encoder: Path, count: int = 12) -> ReaderMaterial:
    return prepare_reader(towns(count), SETTINGS, CandidateSettings(), encoder)


@pytest.fixture(scope="module")
def material(towns: Towns, tiny_encoder: Path) -> ReaderMaterial:
    """Twelve questions, for a tiny encoder."""
    return prepare(towns, tiny_encoder)


class StopAt(TrainingLog):
    """Ends a run, as Ctrl-C does."""

    def __init__(self, *moment: Any) -> None:
        super().__init__()
        self._moment = moment

    def step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        if (epoch, step) == self._moment:
            raise KeyboardInterrupt


def stop(folder: RunFolder, material: ReaderMaterial, epoch: int = 0, step: int = 3) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_reader(material, SETTINGS, folder, log=StopAt(epoch, step))


@pytest.fixture(scope="module")
def whole(material: ReaderMaterial, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The run that all others are compared with."""
    torch.set_num_threads(1)
    folder = RunFolder(tmp_path_factory.mktemp("whole") / "run")
    train_reader(material, SETTINGS, folder)
    return folder


def assert_same(folder: RunFolder, whole: RunFolder) -> None:
    assert (folder.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()
    assert folder.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


@pytest.mark.parametrize(("epoch", "step"), [(0, 1), (0, 2), (0, 3), (1, 1), (1, 3)])
def test_a_run_that_is_stopped_ends_as_if_it_were_not(
    material: ReaderMaterial, whole: RunFolder, tmp_path: Path, epoch: int, step: int
) -> None:
    folder = RunFolder(tmp_path / "run")
    stop(folder, material, epoch, step)
    assert not (folder.path / WEIGHTS).exists()
    with pytest.raises(InputError, match="is not finished; finish it with `rechain train … --resume`"):
        Recoverer(folder.path)
    torch.rand(3)  # random numbers drawn elsewhere do not count
    train_reader(material, SETTINGS, folder, resume=True)
    assert_same(folder, whole)


def test_the_beliefs_are_in_the_checkpoint(whole: RunFolder, material: ReaderMaterial) -> None:
    chains = (len(material.questions["chain_text"]),)
    tensors = load_tensors(whole.checkpoint)[0]
    assert {name: value.shape for name, value in tensors.items() if name.startswith("more.")} == {
        "more.ranker": chains,
        "more.reasoner": chains,
    }


def test_a_finished_run_that_is_resumed_stays_as_it_is(material: ReaderMaterial, whole: RunFolder) -> None:
    before = (whole.path / WEIGHTS).read_bytes()
    train_reader(material, SETTINGS, whole, resume=True)
    assert (whole.path / WEIGHTS).read_bytes() == before


def test_a_finished_run_is_a_model_that_can_be_saved(whole: RunFolder, towns: Towns, tmp_path: Path) -> None:
    questions = towns(4, first=90)
    chains = list(Recoverer(whole.path, top=9).recover_many(questions))
    assert all(one.error is None and one.chains[0].confidence is not None for one in chains)
    Recoverer(whole.path).save_pretrained(tmp_path / "saved")
    assert list(Recoverer(tmp_path / "saved", top=9).recover_many(questions)) == chains
    assert (whole.path / "README.md").read_text().startswith("---\nlibrary_name: rechain")
    settings = load(whole.path).settings
    assert 0 < settings.unlike < 1  # measured: a tiny encoder finds all sentences alike
    assert settings.but(unlike=0.0) == SETTINGS


def test_a_run_can_start_from_a_model_and_believes_it(whole: RunFolder, towns: Towns) -> None:
    training = start_training(prepare(towns, whole.path), SETTINGS, "cpu")
    before = load(whole.path).network.evidence.weight
    assert torch.equal(training.reader.evidence.weight, before)
    assert training.beliefs.ranker.any()


# ---- when it stops


def test_a_run_stops_when_the_agreement_grows_no_more_and_its_best_weights_are_kept(
    material: ReaderMaterial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after: list[dict[str, torch.Tensor]] = []
    figures = iter((0.5, 0.7, 0.6, 0.7))

    def scripted(training: ReaderTraining) -> dict[str, float]:
        after.append({name: value.clone() for name, value in training.reader.state_dict().items()})
        return {"agreement": next(figures)}

    monkeypatch.setattr(ReaderTraining, "held_out_figures", scripted)
    train_reader(material, SETTINGS.but(epochs=9, patience=2), RunFolder(tmp_path / "run"))
    assert len(after) == 4
    kept = load(tmp_path / "run").network.state_dict()
    assert all(torch.equal(value, after[1][name]) for name, value in kept.items() if name in after[1])
    assert not torch.equal(kept["hidden.weight"], after[3]["hidden.weight"])


# ---- other things than the run was started with


@pytest.fixture
def stopped(material: ReaderMaterial, tmp_path: Path) -> RunFolder:
    """A run that was stopped after its first checkpoint."""
    folder = RunFolder(tmp_path / "run")
    stop(folder, material)
    return folder


def test_the_record_has_what_it_was_started_with(
    stopped: RunFolder, material: ReaderMaterial, tiny_encoder: Path
) -> None:
    record = json.loads((stopped.path / RUN_FILE).read_text())
    assert (record["kind"], record["encoder"]) == ("reader", str(tiny_encoder))
    assert record["fingerprint"] == material.record["fingerprint"]
    assert record["settings"] == asdict(SETTINGS)


def test_a_run_is_resumed_only_with_what_it_was_started_with(
    stopped: RunFolder, material: ReaderMaterial, towns: Towns, tiny_encoder: Path, whole: RunFolder
) -> None:
    for other in (prepare(towns, tiny_encoder, 11), prepare(towns, whole.path)):
        with pytest.raises(InputError, match="was started with other questions or another encoder; resume"):
            train_reader(other, SETTINGS, stopped, resume=True)
    with pytest.raises(InputError, match=r"run\.json was written with epochs = 2, not 3; resume with the same"):
        train_reader(material, SETTINGS.but(epochs=3), stopped, resume=True)


@pytest.mark.parametrize("spoil", ["cut", "other encoder"])
def test_a_damaged_checkpoint_is_one_sentence(stopped: RunFolder, material: ReaderMaterial, spoil: str) -> None:
    path = stopped.path / CHECKPOINT
    tensors, metadata = load_tensors(path)
    if spoil == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        save_tensors(tensors | {"network.hidden.weight": torch.zeros(3, 3)}, metadata, path)
    with pytest.raises(InputError) as failure:
        train_reader(material, SETTINGS, stopped, resume=True)
    sentence = str(failure.value)
    assert sentence.startswith(f"{path} is damaged, or not" if spoil == "cut" else f"{path} is of another model or of")
    assert "\n" not in sentence


def test_questions_without_a_chain_are_left_out_and_counted(towns: Towns, tiny_encoder: Path) -> None:
    (lonely,) = towns(1, first=70)
    lonely = lonely.model_copy(update={"answer": "Nowhere at all"})
    material = prepare_reader([*towns(3), lonely], SETTINGS, CandidateSettings(), tiny_encoder)
    assert sum(material.left_out.values()) == 1
    with pytest.raises(RechainError, match="no question has a candidate chain to learn from"):
        prepare_reader([lonely], SETTINGS, CandidateSettings(), tiny_encoder)
