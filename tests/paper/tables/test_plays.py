"""Plays: what is done is not played again, tables do not mix settings, and branches do not depend on each other."""

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rechain.errors import InputError, RechainError
from rechain.paper import plays
from rechain.paper.game import Players
from rechain.paper.plays import Branch, Play, Stage, play_all, read_plays, write_plays
from rechain.paper.settings import GameSettings
from rechain.paper.stage import TableQuestions, stage
from rechain.paper.tables import contest, table_settings
from rechain.paper.vectors import Vectors
from rechain.schema import Question
from rechain.system.files import read_sealed, write_sealed
from rechain.system.tensors import load_arrays
from rechain.text.candidates import CandidateSettings

PLAYS = [Play(fold, 0, (Branch("cooperative", GameSettings()),)) for fold in range(3)]


class FakeStage:
    """Writes empty scores, but fails on fold 1."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder
        (folder / "plays").mkdir(exist_ok=True)

    def play(self, play: Play) -> None:
        assert torch.get_num_threads() == 1
        if play.fold == 1:
            raise torch.OutOfMemoryError("too little memory.")
        play.path(self.folder, play.branches[0]).touch(exist_ok=False)


def test_a_play_that_fails_stops_no_other_and_is_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plays, "Stage", FakeStage)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for waiting in (3, 1):
            message = f"1 of {waiting} plays failed, the first with: too little memory; what was played is kept in"
            with pytest.raises(RechainError, match=message):
                play_all(tmp_path, PLAYS, "cpu", processes=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert [not play.waiting(tmp_path) for play in PLAYS] == [True, False, True]
    assert capsys.readouterr().err.count("cooperative; fold 0, seed 0: ") == 1


def test_where_all_is_done_nothing_is_loaded(tmp_path: Path) -> None:
    play_all(tmp_path, [], "cpu", processes=2)
    assert list(tmp_path.iterdir()) == []


def test_a_table_does_not_mix_settings(tmp_path: Path) -> None:
    play, (branch,) = PLAYS[0], PLAYS[0].branches
    path = play.path(tmp_path, branch).with_suffix(".json")
    path.parent.mkdir()
    questions = {"share": 1.0, "with_more": False}
    write_sealed(path, {"settings": asdict(branch.settings.but(hidden=7, lexical_weight=2.0)), **questions})
    with pytest.raises(InputError, match="has cooperative played with hidden = 7, not 100; name another folder"):
        write_plays(PLAYS, tmp_path)
    write_sealed(path, {"settings": asdict(branch.settings), **questions, "share": 0.1})
    with pytest.raises(InputError, match=r"has cooperative played with share = 0\.1, not 1\.0; name another folder"):
        write_plays(PLAYS, tmp_path)
    write_sealed(path, {"settings": asdict(branch.settings.but(lexical_weight=2.0)), **questions})
    write_plays(PLAYS, tmp_path)
    assert read_plays(tmp_path) == PLAYS


def test_what_is_played_need_not_travel_with_the_rest(tmp_path: Path) -> None:
    """Two branches, one of which was played here: another machine, without its results, is left the other."""
    here, there = tmp_path / "here", tmp_path / "there"
    play = Play(0, 0, (Branch("cooperative", GameSettings()), Branch("tail-to-head", GameSettings(row="tail to head"))))
    path = play.path(here, play.branches[0])
    path.parent.mkdir(parents=True)
    path.touch()
    write_plays([play, PLAYS[1]], here)
    there.mkdir()
    shutil.copy(here / "plays.json", there)
    carried = read_plays(there)
    assert [[branch.row for branch in play.waiting(there)] for play in carried] == [["tail-to-head"], ["cooperative"]]
    assert carried[0].branches == play.branches


@pytest.mark.parametrize("content", ["", "[3]", '[{"fold": 0}]', '[{"branches": [], "unknown": 1}]'])
def test_a_folder_that_is_not_prepared_is_a_mistake(tmp_path: Path, content: str) -> None:
    (tmp_path / "plays.json").write_text(content)
    with pytest.raises(InputError, match=r"is not prepared to be played: plays\.json is missing or broken"):
        read_plays(tmp_path)


# ---- branches of a play, from a prepared folder


def paper_play() -> Play:
    tiny = {"hidden": 2, "max_tokens": 30, "batch_size": 2, "pretrain_epochs": 2, "game_epochs": 2}
    settings = table_settings("hotpotqa")["paper"].but(**tiny)
    return contest({"paper": settings}, hops=2, folds=2, seeds=1, ablations=False)[0]


def test_a_branch_that_is_played_again_has_the_same_scores_and_others_are_left_alone(folder: Path) -> None:
    play = paper_play()
    Stage(folder, "cpu").play(play)
    paths = [play.path(folder, branch) for branch in play.branches]
    written = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
    removed = folder / "plays" / "cooperative untaught, paper.0.0.safetensors"
    removed.unlink()
    tenth = replace(play, branches=tuple(replace(branch, share=0.1) for branch in play.branches))
    with pytest.raises(InputError, match=r"played with share = 1\.0, not 0\.1"):
        Stage(folder, "cpu").play(tenth)
    assert [branch.row for branch in play.waiting(folder)] == ["cooperative untaught, paper"]
    Stage(folder, "cpu").play(play)
    assert removed.read_bytes() == written[removed][0]
    assert all(path.stat().st_mtime_ns == written[path][1] for path in paths if path != removed)


def test_a_branch_learns_from_a_share_of_the_other_folds_and_from_more_only_if_it_asks(
    folder: Path, tmp_path: Path, questions: list[Question], vectors: Vectors
) -> None:
    stage(tmp_path / "more", TableQuestions(questions[:5], None, questions[5:]), vectors, CandidateSettings(), folds=2)
    loaded, settings = Stage(tmp_path / "more"), GameSettings()
    play = Play(1, 0, ())
    others = np.flatnonzero(loaded.folds == 0).tolist()
    assert loaded.training_questions(play, Branch("a", settings)).tolist() == others
    assert loaded.training_questions(play, Branch("b", settings, with_more=True)).tolist() == [*others, 5, 6]
    (one,) = loaded.training_questions(play, Branch("c", settings, share=1 / len(others))).tolist()
    assert one in others


def test_a_part_of_the_game_can_be_changed_by_a_class_of_ones_own(folder: Path) -> None:
    asked = []

    class Watched(Players):
        def rewards(self, *arguments: Any) -> Tensor:
            asked.append(arguments)
            return super().rewards(*arguments)

    play = paper_play()
    Stage(folder, players=Watched).play(replace(play, branches=play.branches[:1]))
    assert asked


def test_rows_of_a_table_share_the_pretraining_and_have_schedules_of_their_own(folder: Path) -> None:
    play = paper_play()
    Stage(folder, "cpu").play(play)
    curves = {
        branch.row: read_sealed(play.path(folder, branch).with_suffix(".json"))["curve"] for branch in play.branches
    }
    pretraining = [[epoch for epoch in curve if epoch["phase"] == "pretraining"] for curve in curves.values()]
    assert all(one == pretraining[0] for one in pretraining)
    epochs = {row: sum(epoch["phase"] == "reasoner" for epoch in curve) for row, curve in curves.items()}
    assert epochs == {
        "cooperative, paper": 4,
        "tail-to-head, paper": 0,
        "cooperative as written, paper": 0,
        "cooperative untaught, paper": 0,
    }
    assert all(sum(epoch["phase"] == "game" for epoch in curve) == 2 for curve in curves.values())  # none stops early
    scores = load_arrays(folder / "plays" / "cooperative, paper.0.0.safetensors")
    types = {"questions": np.int32, "ranker": np.float32, "reasoner": np.float32, "predicted": np.int16}
    assert {name: array.dtype for name, array in scores.items()} == types
