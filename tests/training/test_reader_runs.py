"""A run of the chain reader as a folder: stopped anywhere and resumed, it ends the same; and it is a model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rechain.candidates import CandidateSettings
from rechain.errors import InputError, RechainError
from rechain.reader.pretrained import load
from rechain.reader.settings import ReaderSettings
from rechain.reader.training import ReaderTraining, ReaderTrainingSettings
from rechain.recovery import Recoverer
from rechain.schema import Question
from rechain.system.loop import TrainingLoop
from rechain.system.tensors import load_tensors
from rechain.training.reader_runs import ReaderMaterial, prepare_reader
from rechain.training.runs import CHECKPOINT, STORY, WEIGHTS, KeepCheckpoints, RunFolder, train

pytestmark = pytest.mark.usefixtures("one_thread")
Towns = Callable[..., list[Question]]
SETTINGS = ReaderTrainingSettings(
    max_tokens=64,
    teachers=2,
    epochs=2,
    batch_size=4,
    held_out=0.25,
    checkpoint_steps=2,
    seed=1,
    learning_rate=0.01,
)


def prepare(towns: Towns, encoder: Path, count: int = 12, pseudo: int = 3) -> ReaderMaterial:
    return prepare_reader(towns(count), SETTINGS, CandidateSettings(), encoder, pseudo)


@pytest.fixture(scope="module")
def material(towns: Towns, tiny_encoder: Path) -> ReaderMaterial:
    """Twelve questions and three pseudo questions, for a tiny encoder."""
    return prepare(towns, tiny_encoder)


class Story(KeepCheckpoints):
    """Notes every moment of a run, and ends it, as Ctrl-C does, at one of them."""

    def __init__(self, path: Path, last: int | None = None) -> None:
        super().__init__(path)
        self.moments: list[tuple[Any, ...]] = []
        self._last = last

    def _note(self, *moment: Any) -> None:
        self.moments.append(moment)
        if len(self.moments) - 1 == self._last:
            raise KeyboardInterrupt

    def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        self._note("step", phase, epoch, step)

    def on_checkpoint(self, training: TrainingLoop) -> None:
        super().on_checkpoint(training)
        self._note("checkpoint", training.progress.phase, training.progress.epoch, training.progress.step)


class Whole:
    """A run that nothing disturbed."""

    def __init__(self, material: ReaderMaterial, path: Path) -> None:
        story = Story(path / CHECKPOINT)
        self.path = path
        self.training = train(RunFolder(path), material, SETTINGS, watcher=story)
        self.moments = story.moments
        self.weights = (path / WEIGHTS).read_bytes()
        self.state = load_tensors(path / CHECKPOINT)


@pytest.fixture(scope="module")
def whole(material: ReaderMaterial, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The run that all others are compared with."""
    torch.set_num_threads(1)
    return Whole(material, tmp_path_factory.mktemp("whole") / "run")


def assert_same(path: Path, whole: Whole) -> None:
    assert (path / WEIGHTS).read_bytes() == whole.weights
    tensors, metadata = load_tensors(path / CHECKPOINT)
    assert metadata == whole.state[1]
    assert tensors.keys() == whole.state[0].keys()
    assert all(torch.equal(value, whole.state[0][name]) for name, value in tensors.items())


MOMENTS = {
    "in the warm-up": ("step", "warm-up", 0, 1),
    "between warm-up and EM": ("checkpoint", 1, 0, 0),
    "after a checkpoint in the middle of an epoch": ("checkpoint", 1, 0, 2),
    "a step after a checkpoint in an epoch": ("step", "EM", 0, 3),
    "in the second epoch": ("checkpoint", 1, 1, 2),
    "between teachers and student": ("checkpoint", 2, 0, 0),
    "in the middle of the student's epoch": ("checkpoint", 2, 1, 2),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_is_stopped_ends_as_if_it_were_not(
    material: ReaderMaterial, whole: Whole, tmp_path: Path, moment: str
) -> None:
    last, path = whole.moments.index(MOMENTS[moment]), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(RunFolder(path), material, SETTINGS, watcher=Story(path / CHECKPOINT, last))
    assert not (path / WEIGHTS).exists()
    with pytest.raises(InputError, match="is not finished; finish it with `rechain train … --resume`"):
        Recoverer(path)
    torch.rand(3)  # what was drawn elsewhere meanwhile does not count
    train(RunFolder(path), material, SETTINGS, resume=True)
    assert_same(path, whole)


def test_what_each_reader_said_is_in_the_checkpoint(whole: Whole) -> None:
    chains = whole.training.questions.data.chains  # type: ignore[attr-defined]
    assert {name: tuple(value.shape) for name, value in whole.state[0].items() if name.startswith("beliefs.")} == {
        "beliefs.ranker": (2, chains),
        "beliefs.reasoner": (2, chains),
    }


def test_a_finished_run_that_is_resumed_stays_as_it_is(material: ReaderMaterial, whole: Whole) -> None:
    train(RunFolder(whole.path), material, SETTINGS, resume=True)
    assert_same(whole.path, whole)


def test_a_finished_run_is_a_model_that_can_be_saved(whole: Whole, towns: Towns, tmp_path: Path) -> None:
    questions = towns(4, first=90)
    chains = list(Recoverer(whole.path, top=9).recover_many(questions))
    assert all(one.error is None and one.chains[0].confidence is not None for one in chains)
    Recoverer(whole.path).save_pretrained(tmp_path / "saved")
    assert list(Recoverer(tmp_path / "saved", top=9).recover_many(questions)) == chains
    assert (whole.path / "README.md").read_text().startswith("---\nlibrary_name: rechain")
    settings = load(whole.path).settings
    assert 0 < settings.unlike < 1  # measured: a tiny encoder finds all sentences alike
    assert settings.but(unlike=0.0) == ReaderSettings(
        max_tokens=64, teachers=2, epochs=2, batch_size=4, seed=1, learning_rate=0.01
    )


def test_a_run_can_start_from_a_model_and_believes_it(whole: Whole, towns: Towns, tmp_path: Path) -> None:
    material = prepare(towns, whole.path, pseudo=0)
    training = material.training(SETTINGS.but(teachers=1), "cpu")
    before = load(whole.path).network.evidence.weight
    assert torch.equal(training.reader.evidence.weight, before)
    training.run(until="EM")
    assert training.beliefs.ranker.any()


# ---- when it stops


def test_a_run_stops_when_the_agreement_grows_no_more_and_its_best_weights_are_kept(
    towns: Towns, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, after = SETTINGS.but(teachers=1, epochs=9, patience=2), []
    figures = iter((0.5, 0.7, 0.6, 0.7))

    def scripted(training: ReaderTraining) -> dict[str, float]:
        after.append({name: value.clone() for name, value in training.reader.state_dict().items()})
        return {"agreement": next(figures)}

    monkeypatch.setattr(ReaderTraining, "held_out_figures", scripted)
    train(RunFolder(tmp_path / "run"), prepare(towns, tiny_encoder, pseudo=0), settings)
    assert len(after) == 4
    kept = load(tmp_path / "run").network.state_dict()
    assert all(torch.equal(value, after[1][name]) for name, value in kept.items() if name in after[1])
    assert not torch.equal(kept["hidden.weight"], after[3]["hidden.weight"])


# ---- other things than the run was started with


@pytest.fixture
def stopped(material: ReaderMaterial, tmp_path: Path) -> RunFolder:
    """A run that was stopped after its first checkpoint."""
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        train(folder, material, SETTINGS, watcher=Story(folder.path / CHECKPOINT, last=1))
    return folder


def test_the_record_says_what_it_was_started_with(
    stopped: RunFolder, material: ReaderMaterial, tiny_encoder: Path
) -> None:
    story = json.loads((stopped.path / STORY).read_text())
    assert (story["kind"], story["encoder"], story["fingerprint"]) == (
        "reader",
        str(tiny_encoder),
        material.fingerprint,
    )
    assert ReaderTrainingSettings.of(story["settings"], "") == SETTINGS


def test_a_run_is_resumed_only_with_what_it_was_started_with(
    stopped: RunFolder, material: ReaderMaterial, towns: Towns, tiny_encoder: Path, whole: Whole
) -> None:
    for other in (prepare(towns, tiny_encoder, 11), prepare(towns, tiny_encoder, pseudo=2), prepare(towns, whole.path)):
        with pytest.raises(InputError, match="was started with other questions, another encoder or other pseudo"):
            train(stopped, other, SETTINGS, resume=True)
    with pytest.raises(InputError, match=r"run\.json was written with epochs = 2, not 3; resume with the same"):
        train(stopped, material, SETTINGS.but(epochs=3), resume=True)


@pytest.mark.parametrize("spoil", ["cut", "other encoder", "no beliefs"])
def test_a_damaged_checkpoint_is_one_sentence(
    stopped: RunFolder, material: ReaderMaterial, whole: Whole, spoil: str
) -> None:
    from rechain.system.tensors import save_tensors

    path = stopped.path / CHECKPOINT
    tensors, metadata = load_tensors(path)
    if spoil == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif spoil == "other encoder":
        save_tensors(tensors | {"network.0.hidden.weight": torch.zeros(3, 3)}, metadata, path)
    else:
        save_tensors({name: value for name, value in tensors.items() if "beliefs" not in name}, metadata, path)
    with pytest.raises(InputError) as failure:
        train(stopped, material, SETTINGS, resume=True)
    told = str(failure.value)
    assert told.startswith(f"{path} is damaged, or not" if spoil == "cut" else f"{path} is of another encoder or of")
    assert "\n" not in told


def test_questions_without_a_chain_are_left_out_and_counted(towns: Towns, tiny_encoder: Path) -> None:
    (lonely,) = towns(1, first=70)
    lonely = lonely.model_copy(update={"answer": "Nowhere at all"})
    material = prepare_reader([*towns(3), lonely], SETTINGS, CandidateSettings(), tiny_encoder)
    assert sum(material.left_out.values()) == 1
    with pytest.raises(RechainError, match="no question has a candidate chain to learn from"):
        prepare_reader([lonely], SETTINGS, CandidateSettings(), tiny_encoder)
