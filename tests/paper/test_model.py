"""A trained folder as a model."""

from collections.abc import Callable
from math import exp, prod
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from rechain.errors import InputError, RechainError
from rechain.formats.datasets import read_questions
from rechain.paper.model import VECTORS, WORDS, GameMaterial, load_game, prepare_game, train_game
from rechain.paper.settings import GameSettings
from rechain.paper.vectors import Vectors, no_vectors
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question
from rechain.system.tensors import load_tensors, save_tensors
from rechain.system.training import WEIGHTS, RunFolder, TrainingLog
from rechain.text.candidates import CandidateSettings

pytestmark = pytest.mark.usefixtures("one_thread")
Towns = Callable[..., list[Question]]
SETTINGS = GameSettings(hidden=3, batch_size=4, pretrain_epochs=1, game_epochs=1, lexical_weight=0.5)


def train_small(questions: list[Question], path: Path, vectors: Vectors | None = None, **changes: object) -> Path:
    material = prepare_game(questions, vectors or no_vectors(), CandidateSettings())
    train_game(material, SETTINGS.but(**changes), RunFolder(path))
    return path


@pytest.fixture(scope="module")
def run(towns: Towns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that is finished; to be copied before it is broken."""
    words = ["maker", "born", "native"]
    vectors = Vectors(words, np.random.default_rng(0).normal(size=(3, 6)).astype(np.float16))
    return train_small(towns(8), tmp_path_factory.mktemp("trained") / "run", vectors)


@pytest.mark.parametrize("name", [str, Path])
def test_a_folder_is_a_model(run: Path, towns: Towns, name: Callable[[Path], str | Path]) -> None:
    recovered = list(Recoverer(name(run), top=9).recover_many(towns(5, first=90, traps=True)))
    assert all(one.error is None for one in recovered)
    assert all(len(one.chains) > 1 for one in recovered)
    assert all(np.isfinite(chain.score) for one in recovered for chain in one.chains)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, {"ranker", "reasoner", "lexical"}),
        ({"reasoner_weight": 0.0}, {"ranker", "lexical"}),
        ({"row": "tail to head", "lexical_weight": 0.0}, {"ranker"}),
        ({"row": "untaught"}, {"ranker", "lexical"}),
        ({"row": "independent"}, {"ranker", "lexical"}),
    ],
)
def test_what_contributes_to_a_score_is_named(
    towns: Towns, tmp_path: Path, changes: dict[str, object], names: set[str]
) -> None:
    path = train_small(towns(4), tmp_path / "run", **changes)
    (recovered,) = Recoverer(path, top=9, explain=True).recover_many(towns(1, first=90, traps=True))
    for chain in recovered.chains:
        assert chain.why is not None
        steps = chain.why.pop("steps")
        assert chain.why.keys() == names
        assert sum(chain.why.values()) == pytest.approx(chain.score)
        selected = [step for step in steps if step["player"] == "ranker"]
        assert sorted(step["passage"] for step in selected) == sorted(chain.passages)
        assert prod(step["probability"] for step in selected) == pytest.approx(exp(chain.why["ranker"]), rel=1e-4)
        named = [step for step in steps if step["player"] == "reasoner"]
        assert [step["link"] for step in named] == ([chain.links[0].entity] if "reasoner" in names else [])
    assert len({chain.score for chain in recovered.chains}) > 1


def test_chains_of_another_length_are_an_error_of_their_question_alone(run: Path, towns: Towns) -> None:
    one, other, last = towns(3, first=90, traps=True)
    recovered = list(Recoverer(run).recover_many([one, other.model_copy(update={"hops": 3}), last]))
    assert [bool(told.chains) for told in recovered] == [True, False, True]
    assert recovered[1].error is not None
    assert recovered[1].error.code == "other_hops"
    assert "chains of 2 passages, not 3" in recovered[1].error.message


def test_the_score_of_a_question_does_not_depend_on_others(run: Path, towns: Towns) -> None:
    questions = towns(4, first=90, traps=True)
    together = list(Recoverer(run, top=9).recover_many(questions))
    apart = [Recoverer(run, top=9).recover(question) for question in reversed(questions)][::-1]
    assert together == apart


def test_the_order_of_passages_changes_a_score_by_no_more_than_rounding(run: Path, towns: Towns) -> None:
    (question,) = towns(1, first=93, traps=True)
    turned = question.model_copy(update={"passages": question.passages[::-1]})
    scores = [
        {tuple(chain.passages): chain.score for chain in Recoverer(run, top=9).recover(one).chains}
        for one in (question, turned)
    ]
    assert scores[0].keys() == scores[1].keys()
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)


def test_words_that_were_not_seen_in_training_are_read_by_their_spelling(run: Path, towns: Towns) -> None:
    (question,) = towns(1, first=90, traps=True)
    foreign = "Кюри born in Żółć 東京 12,5 ½ \u200b"
    changed = [p.model_copy(update={"text": f"{p.text} {foreign}"}) for p in question.passages]
    recovered = Recoverer(run).recover(question.model_copy(update={"passages": changed}))
    assert recovered.error is None
    assert recovered.chains[0].score != Recoverer(run).recover(question).chains[0].score


def test_the_model_on_disk_is_the_one_that_was_trained(towns: Towns, tmp_path: Path) -> None:
    scores = []
    for number in range(2):
        path = train_small(towns(6), tmp_path / f"run{number}", seed=5)
        recovered = Recoverer(path).recover_many(towns(2, first=90))
        scores.append([chain.score for one in recovered for chain in one.chains])
    assert scores[0] == scores[1]


# ---- missing or broken files


def remove(*names: str) -> Callable[[Path], None]:
    return lambda run: [(run / name).unlink() for name in names] and None


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda run: (run / name).write_bytes(content) and None


def other_width(run: Path) -> None:
    save_file({"vectors": np.zeros((3, 7), np.float16)}, run / VECTORS)


def other_name(run: Path) -> None:
    save_file({"table": np.zeros((3, 6), np.float16)}, run / VECTORS)


def flat(run: Path) -> None:
    save_file({"vectors": np.zeros(3, np.float16)}, run / VECTORS)


@pytest.mark.parametrize(
    ("spoil", "name", "what"),
    [
        (remove(WEIGHTS), "run", "is not finished"),
        (remove(WORDS), WORDS, "cannot be read"),
        (write(WEIGHTS, b"{}"), WEIGHTS, "not a checkpoint"),
        (write(WORDS, b"\xff\xfe"), WORDS, "cannot be read"),
        (write(WORDS, b"one\ntwo"), WORDS, "has 2 words"),
        (other_width, WEIGHTS, "is of other networks or word vectors"),
        (other_name, VECTORS, "has 3 words"),
        (flat, VECTORS, "should be a matrix"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_missing_or_broken_files_are_one_sentence(
    run: Path, tmp_path: Path, spoil: Callable[[Path], None], name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without digests, which would notice all of this."""
    copytree(run, tmp_path / "run")
    monkeypatch.setattr(RunFolder, "check_files", lambda folder: None)
    spoil(tmp_path / "run")
    message = sentence_of(tmp_path / "run")
    assert name in message
    assert what in message


@pytest.mark.parametrize("name", [WORDS, VECTORS])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"one\ntwo"])
def test_a_file_that_is_not_what_its_digest_is_of_is_one_sentence(
    run: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    copytree(run, tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(content)
    assert f"{name} is damaged: its SHA-256 is not the one in run.json" in sentence_of(tmp_path / "run")


def sentence_of(run: Path) -> str:
    """Return why a run cannot be loaded: one sentence that names its folder."""
    with pytest.raises(RechainError) as failure:
        Recoverer(run)
    message = str(failure.value)
    assert str(run) in message
    assert "\n" not in message
    return message


def test_a_folder_without_a_run_and_a_name_without_a_model_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RechainError, match="name the folder of a run that `rechain train` has written"):
        Recoverer(tmp_path)
    with pytest.raises(RechainError, match="there is no model 'nonsense'; the models are"):
        Recoverer("nonsense")


def test_to_recover_needs_no_gradients(run: Path, towns: Towns) -> None:
    with torch.inference_mode(False), torch.enable_grad():
        recovered = Recoverer(run).recover(towns(1)[0])
    assert recovered.chains


def test_a_reasoner_that_does_not_count_is_not_asked(
    run: Path, monkeypatch: pytest.MonkeyPatch, town_file: Path
) -> None:
    model = load_game(run)
    question = next(iter(read_questions(town_file)))
    counted = Recoverer(model, explain=True).recover(question).chains[0].why
    assert counted is not None and "reasoner" in counted
    model.settings = model.settings.but(reasoner_weight=0.0)
    monkeypatch.setattr(model.players, "predict", None)
    silent = Recoverer(model, explain=True).recover(question).chains[0].why
    assert silent is not None and "reasoner" not in silent


def test_a_trained_model_can_be_moved(run: Path, towns: Towns) -> None:
    questions = towns(3, first=90)
    here = list(Recoverer(run, device="cpu").recover_many(questions))
    assert list(Recoverer(run).recover_many(questions, device="cpu")) == here


@pytest.mark.parametrize(
    "changes", [{"hops": 10**9}, {"hops": "two"}, {"hops": None}, {"settings": {"hidden": 100_000}}]
)
def test_weights_that_are_not_what_they_say_take_no_memory(run: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    tensors, metadata = load_tensors(run / WEIGHTS)
    save_tensors(tensors, metadata | changes, tmp_path / "weights")
    with pytest.raises(InputError, match="is of other networks or word vectors than these"):
        load_game(tmp_path / "weights")


def test_weights_that_are_not_finite_are_not_used(run: Path, tmp_path: Path) -> None:
    copytree(run, tmp_path / "run")
    tensors, metadata = load_tensors(run / WEIGHTS)
    tensors["ranker.score.bias"][0] = float("nan")
    save_tensors(tensors, metadata, tmp_path / "run" / WEIGHTS)
    with pytest.raises(InputError, match=r"the numbers of ranker\.score\.bias are not all finite"):
        load_game(tmp_path / "run")


# ---- runs


@pytest.fixture(scope="module")
def material(towns: Towns) -> GameMaterial:
    """Twelve questions."""
    return prepare_game(towns(12), no_vectors(), CandidateSettings())


class Stop(TrainingLog):
    """Ends a run, as Ctrl-C does, at a step."""

    def __init__(self, *moment: object) -> None:
        self._moment = moment

    def step(self, phase: str, epoch: int, step: int, steps: int) -> None:
        if (phase, epoch, step) == self._moment:
            raise KeyboardInterrupt

    def epoch(self, figures: Any) -> None:
        pass


def test_a_run_that_is_stopped_again_and_again_ends_as_if_it_were_not(material: GameMaterial, tmp_path: Path) -> None:
    settings = SETTINGS.but(pretrain_epochs=2, reasoner_epochs=1, gradient="reinforce")
    whole, stopped = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")
    train_game(material, settings, whole)
    for moment in (("pretraining", 0, 2), ("pretraining", 1, 1), ("reasoner", 0, 3), ("game", 0, 2)):
        with pytest.raises(KeyboardInterrupt):
            train_game(material, settings, stopped, resume=True, log=Stop(*moment))
    train_game(material, settings, stopped, resume=True)
    assert (stopped.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()
    train_game(material, settings, stopped, resume=True)
    assert (stopped.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()


def test_a_run_is_resumed_only_with_its_settings_questions_and_vectors(
    run: Path, tmp_path: Path, material: GameMaterial
) -> None:
    copytree(run, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(InputError, match="other questions or other vectors"):
        train_game(material, SETTINGS, folder, resume=True)
    with pytest.raises(InputError, match="hidden = 3, not 4"):
        train_game(material, SETTINGS.but(hidden=4), folder, resume=True)


def test_vectors_are_read_as_they_were_written(towns: Towns, tmp_path: Path) -> None:
    words = ["plain", "carriage\rreturn", "next\x85line", "naïve"]
    vectors = Vectors(words, np.arange(8, dtype=np.float16).reshape(4, 2))
    model = load_game(train_small(towns(4), tmp_path / "run", vectors))
    assert len(model.rows) == 4
    table = model.players.ranker.encoder.vectors.table.numpy()
    assert np.array_equal(table, vectors.table)


def lonely(name: str, answer: str = "Prague") -> Question:
    passages = [Passage(id="a", text="It rains."), Passage(id="b", text="Prague lies on a river.")]
    return Question(id=name, question="Where?", answer=answer, passages=passages)


def test_without_any_chain_the_error_lists_the_reasons() -> None:
    questions = [lonely("1"), lonely("2"), lonely("3", answer="Vienna")]
    with pytest.raises(RechainError) as failure:
        prepare_game(questions, no_vectors(), CandidateSettings())
    assert str(failure.value).startswith("no question has a candidate chain to learn from (2 no_link, 1 ")
    with pytest.raises(RechainError, match="no question has a candidate chain to learn from"):
        prepare_game([], no_vectors(), CandidateSettings())


def test_questions_without_a_chain_are_left_out_and_counted(towns: Towns) -> None:
    material = prepare_game([*towns(3), lonely("1")], no_vectors(), CandidateSettings())
    assert dict(material.left_out) == {"no_link": 1}
    assert len(material.questions["question_text"]) == 3
