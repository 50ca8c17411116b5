"""A run as a folder: stopped anywhere and resumed, it ends the same."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rechain
from rechain.candidates import CandidateSettings
from rechain.datasets import read_questions
from rechain.errors import InputError, RechainError
from rechain.game.settings import GameSettings
from rechain.game.training import Training
from rechain.preparation.vectors import Vectors
from rechain.schema import Passage, Question
from rechain.system.tensors import load_tensors, save_tensors
from rechain.training.game_runs import GameMaterial, _read_vectors, load_game, no_vectors, prepare_game
from rechain.training.runs import CHECKPOINT, STORY, WEIGHTS, KeepCheckpoints, RunFolder, train

pytestmark = pytest.mark.usefixtures("one_thread")
Towns = Callable[..., list[Question]]
SETTINGS = GameSettings(
    hidden=3,
    batch_size=4,
    warm_up_batch_size=1,
    pretrain_epochs=2,
    game_epochs=8,
    patience=1,
    held_out=0.25,
    learning_rate=0.02,
    game_learning_rate=1.0,
    gradient="reinforce",
    samples=2,
    seed=1,
    checkpoint_steps=2,
)


@pytest.fixture(scope="module")
def material(towns: Towns) -> GameMaterial:
    """Twelve questions and three pseudo questions."""
    material = prepare_game(towns(12), no_vectors(), CandidateSettings(), pseudo=3)
    assert material.pseudo is not None and len(material.pseudo["question_text"]) == 3
    return material


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

    def on_checkpoint(self, training: Training) -> None:
        progress = training.progress
        self._note("before checkpoint", progress.phase, progress.epoch, progress.step)
        super().on_checkpoint(training)
        self._note("after checkpoint", progress.phase, progress.epoch, progress.step)


class Whole:
    """A run that nothing disturbed."""

    def __init__(self, material: GameMaterial, path: Path) -> None:
        story = Story(path / CHECKPOINT)
        self.training = train(RunFolder(path), material, SETTINGS, watcher=story)
        self.moments = story.moments
        self.weights = (path / WEIGHTS).read_bytes()
        self.state = load_tensors(path / CHECKPOINT)


@pytest.fixture(scope="module")
def whole(material: GameMaterial, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The run that all others are compared with."""
    import torch

    torch.set_num_threads(1)
    return Whole(material, tmp_path_factory.mktemp("whole") / "run")


def stop_and_resume(material: GameMaterial, path: Path, *moments: int) -> Training:
    """Run, be interrupted at some moments, each counted from the last resumption, and go on to the end."""
    for number, moment in enumerate(moments):
        with pytest.raises(KeyboardInterrupt):
            train(RunFolder(path), material, SETTINGS, resume=number > 0, watcher=Story(path / CHECKPOINT, last=moment))
        assert not (path / WEIGHTS).exists()
    return train(RunFolder(path), material, SETTINGS, resume=True)


def assert_same(path: Path, training: Training, whole: Whole) -> None:
    assert (path / WEIGHTS).read_bytes() == whole.weights
    assert training.progress == whole.training.progress
    tensors, told = load_tensors(path / CHECKPOINT)
    assert told == whole.state[1]
    assert tensors.keys() == whole.state[0].keys()
    assert all(np.array_equal(value, whole.state[0][name]) for name, value in tensors.items())


def test_the_undisturbed_run_has_all_kinds_of_moments(whole: Whole) -> None:
    phases = [told["phase"] for told in whole.training.progress.curve]
    assert sorted(set(phases)) == ["game", "pretraining", "reasoner", "warm-up"]
    assert 1 < phases.count("game") < SETTINGS.game_epochs, "it should stop early"
    assert ("after checkpoint", 1, 0, 2) in whole.moments
    assert ("step", "game", 0, 3) in whole.moments


MOMENTS = {
    "after the first step": ("step", "warm-up", 0, 1),
    "at the end of the warm-up": ("after checkpoint", 0, 1, 0),
    "between warm-up and pretraining": ("after checkpoint", 1, 0, 0),
    "in the middle of an epoch": ("step", "pretraining", 0, 1),
    "after a checkpoint in the middle of an epoch": ("after checkpoint", 1, 0, 2),
    "a step after a checkpoint in an epoch": ("step", "pretraining", 0, 3),
    "in the second epoch": ("step", "pretraining", 1, 2),
    "between pretraining and the Reasoner's epochs": ("after checkpoint", 2, 0, 0),
    "in the Reasoner's epochs": ("step", "reasoner", 1, 1),
    "between these and the game": ("after checkpoint", 3, 0, 0),
    "in the game": ("step", "game", 0, 1),
    "after an epoch of the game": ("after checkpoint", 3, 1, 0),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_is_stopped_ends_as_if_it_were_not(
    material: GameMaterial, whole: Whole, tmp_path: Path, moment: str
) -> None:
    training = stop_and_resume(material, tmp_path / "run", whole.moments.index(MOMENTS[moment]))
    assert_same(tmp_path / "run", training, whole)


def test_a_game_that_is_stopped_when_it_should_end_early_plays_no_other_epoch(
    material: GameMaterial, whole: Whole, tmp_path: Path
) -> None:
    epochs = sum(told["phase"] == "game" for told in whole.training.progress.curve)
    end = whole.moments.index(("after checkpoint", 3, epochs, 0))
    assert_same(tmp_path / "run", stop_and_resume(material, tmp_path / "run", end), whole)


def test_a_run_may_be_stopped_again_and_again(material: GameMaterial, whole: Whole, tmp_path: Path) -> None:
    training = stop_and_resume(material, tmp_path / "run", 4, 5, 0, 7, 3)
    assert_same(tmp_path / "run", training, whole)


@pytest.mark.slow
def test_a_run_that_is_stopped_at_any_moment_at_all_ends_the_same(
    material: GameMaterial, whole: Whole, tmp_path: Path
) -> None:
    for moment in range(len(whole.moments)):
        path = tmp_path / str(moment)
        assert_same(path, stop_and_resume(material, path, moment), whole)


def test_a_finished_run_that_is_resumed_stays_as_it_is(material: GameMaterial, whole: Whole, tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(RunFolder(path), material, SETTINGS)
    again = train(RunFolder(path), material, SETTINGS, resume=True)
    assert_same(path, again, whole)


def test_to_resume_where_nothing_was_begun_starts(material: GameMaterial, whole: Whole, tmp_path: Path) -> None:
    assert_same(tmp_path / "run", train(RunFolder(tmp_path / "run"), material, SETTINGS, resume=True), whole)


# ---- other things than the run was started with


@pytest.fixture
def begun(material: GameMaterial, tmp_path: Path) -> RunFolder:
    """A run that was stopped before its first checkpoint."""
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        train(folder, material, SETTINGS, watcher=Story(folder.path / CHECKPOINT, last=0))
    assert not (folder.path / CHECKPOINT).exists()
    return folder


def other_questions(towns: Towns) -> GameMaterial:
    return prepare_game(towns(11), no_vectors(), CandidateSettings(), pseudo=3)


def other_pseudo_questions(towns: Towns) -> GameMaterial:
    return prepare_game(towns(12), no_vectors(), CandidateSettings(), pseudo=2)


def no_pseudo_questions(towns: Towns) -> GameMaterial:
    return prepare_game(towns(12), no_vectors(), CandidateSettings())


def other_vectors(towns: Towns) -> GameMaterial:
    vectors = Vectors(["unseen"], np.ones((1, 50), np.float16))
    return prepare_game(towns(12), vectors, CandidateSettings(), pseudo=3)


@pytest.mark.parametrize("other", [other_questions, other_pseudo_questions, no_pseudo_questions, other_vectors])
def test_a_run_is_resumed_only_with_what_it_was_started_with(
    begun: RunFolder, towns: Towns, other: Callable[[Towns], GameMaterial]
) -> None:
    with pytest.raises(InputError, match="was started with other questions, vectors or pseudo questions; resume with"):
        train(begun, other(towns), SETTINGS, resume=True)


def test_a_run_is_resumed_only_with_its_settings_even_before_its_first_checkpoint(
    begun: RunFolder, material: GameMaterial
) -> None:
    with pytest.raises(InputError, match=r"run\.json was written with bonus = 0\.5, not 0\.7"):
        train(begun, material, SETTINGS.but(bonus=0.7), resume=True)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"settings": {}}'])
def test_a_broken_record_of_a_run_is_one_sentence(begun: RunFolder, material: GameMaterial, content: str) -> None:
    (begun.path / STORY).write_text(content)
    with pytest.raises(InputError) as failure:
        train(begun, material, SETTINGS, resume=True)
    assert str(failure.value).startswith(str(begun.path / STORY))


@pytest.mark.parametrize("name", ["words.txt", "vectors.safetensors", STORY])
def test_damage_beside_the_weights_is_noticed_by_resume_and_by_loading(
    material: GameMaterial, tmp_path: Path, name: str
) -> None:
    vectors = Vectors(["one", "two"], np.ones((2, 50), np.float16))
    material, folder = GameMaterial(material.questions, None, vectors, {}), RunFolder(tmp_path / "run")
    folder.begin(material, SETTINGS)
    material.training(SETTINGS, "cpu").save_weights(folder.path / WEIGHTS)
    load_game(folder.path)
    whole = (folder.path / name).read_bytes()
    for place in range(0, len(whole), max(len(whole) // 20, 1)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 5
        if name == STORY and chr(damaged[place]).isspace():
            continue
        (folder.path / name).write_bytes(damaged)
        for use in (lambda: folder.check_resumes(material, SETTINGS), lambda: load_game(folder.path)):
            with pytest.raises(InputError) as failure:
                use()
            assert str(failure.value).startswith(str(folder.path / name))


def test_a_run_without_digests_is_still_resumed_and_used(material: GameMaterial, whole: Whole, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.begin(material, SETTINGS)
    (folder.path / WEIGHTS).write_bytes(whole.weights)
    story = json.loads((folder.path / STORY).read_text())
    del story["sha256"]
    (folder.path / STORY).write_text(json.dumps(story))
    folder.check_resumes(material, SETTINGS)
    load_game(folder.path)


@pytest.mark.parametrize(
    "changes",
    [{"hops": 10**9}, {"hops": 3}, {"hops": "two"}, {"hops": None}, {"settings": {"hidden": 100_000}}],
)
def test_weights_that_are_not_what_they_say_take_no_memory(
    whole: Whole, tmp_path: Path, changes: dict[str, Any]
) -> None:
    (tmp_path / "weights").write_bytes(whole.weights)
    tensors, metadata = load_tensors(tmp_path / "weights")
    save_tensors(tensors, metadata | changes, tmp_path / "weights")
    with pytest.raises(InputError, match="is of other networks or word vectors than these"):
        load_game(tmp_path / "weights")


def test_weights_that_are_no_numbers_are_not_used(whole: Whole, tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(whole.weights)
    tensors, metadata = load_tensors(tmp_path / "weights")
    tensors["ranker.score.bias"][0] = float("nan")
    save_tensors(tensors, metadata, tmp_path / "weights")
    with pytest.raises(InputError, match=r"the numbers of ranker\.score\.bias are not all finite"):
        load_game(tmp_path / "weights")


def test_a_folder_without_a_run_says_so(tmp_path: Path) -> None:
    assert not RunFolder(tmp_path).is_begun
    with pytest.raises(InputError, match=r"is no folder of a run: it has no run\.json"):
        RunFolder(tmp_path).story()


def test_the_record_says_what_was_asked(begun: RunFolder, material: GameMaterial) -> None:
    story = json.loads((begun.path / STORY).read_text())
    assert GameSettings.of(story["settings"], "") == SETTINGS
    assert (story["hops"], story["fingerprint"]) == (2, material.fingerprint)


def test_vectors_are_read_as_they_were_written(material: GameMaterial, tmp_path: Path) -> None:
    words = ["plain", "carriage\rreturn", "next\x85line", "naïve"]
    vectors = Vectors(words, np.arange(8, dtype=np.float16).reshape(4, 2))
    folder = RunFolder(tmp_path / "run")
    folder.begin(GameMaterial(material.questions, None, vectors, {}), SETTINGS)
    assert _read_vectors(folder.path).words == words
    assert np.array_equal(_read_vectors(folder.path).matrix, vectors.matrix)


# ---- what is gathered


def lonely(name: str, answer: str = "Prague") -> Question:
    passages = [Passage(id="a", text="It rains."), Passage(id="b", text="Prague lies on a river.")]
    return Question(id=name, question="Where?", answer=answer, passages=passages)


def test_without_any_chain_the_reasons_are_told() -> None:
    questions = [lonely("1"), lonely("2"), lonely("3", answer="Vienna")]
    with pytest.raises(RechainError) as failure:
        prepare_game(questions, no_vectors(), CandidateSettings())
    assert str(failure.value).startswith("no question has a candidate chain to learn from (2 no_link, 1 ")


def test_without_any_question_there_is_none_with_a_chain() -> None:
    with pytest.raises(RechainError, match="no question has a candidate chain to learn from"):
        prepare_game([], no_vectors(), CandidateSettings())


def test_questions_without_a_chain_are_left_out_and_counted(towns: Towns) -> None:
    material = prepare_game([*towns(3), lonely("1")], no_vectors(), CandidateSettings())
    assert dict(material.left_out) == {"no_link": 1}
    assert len(material.questions["question_text"]) == 3


def test_pseudo_questions_depend_on_the_seed_alone(towns: Towns) -> None:
    made = [prepare_game(towns(12), no_vectors(), CandidateSettings(), pseudo=3, seed=seed) for seed in (0, 0, 1)]
    one, same, other = (material.fingerprint for material in made)
    assert one == same != other


@pytest.mark.parametrize("candidates", [CandidateSettings(hops=2), CandidateSettings(hops=2, min_weight=12.0)])
def test_the_chain_of_every_pseudo_question_stands_in_the_c_of_the_run(candidates: CandidateSettings) -> None:
    demo = [*read_questions(Path(rechain.__file__).parent / "data" / "demo.jsonl")]
    pseudo = prepare_game(demo, no_vectors(), candidates, pseudo=30).pseudo
    assert pseudo is not None
    starts = pseudo["chain_start"]
    made = [pseudo["chain_made"][start:end].sum() for start, end in pairwise(starts)]
    assert made == [1] * len(made)
    assert len(made) > 5
