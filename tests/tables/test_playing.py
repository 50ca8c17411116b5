"""A play of a table, from a prepared folder: its branches go apart after one pretraining, none depends on another."""

import json
from pathlib import Path

import numpy as np

from rechain.game.plays import Play, Stage
from rechain.game.settings import GameSettings
from rechain.system.tensors import load_arrays
from rechain.tables.plan import contest, under_condition

TINY = GameSettings(hidden=2, max_tokens=30, batch_size=2, pretrain_epochs=1, game_epochs=2, held_out=0.2)


def paper_play() -> Play:
    settings = under_condition(TINY, "paper").but(pretrain_epochs=2)
    return contest({"paper": settings}, hops=2, folds=2, seeds=1, pseudo=0, ablations=False)[0]


def test_a_branch_that_is_played_again_has_the_same_scores_and_others_are_left_alone(folder: Path) -> None:
    play = paper_play()
    Stage(folder, "cpu").play(play)
    paths = [play.path(folder, branch) for branch in play.branches]
    written = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
    walk = folder / "plays" / "cooperative walk, paper.0.0.safetensors"
    walk.unlink()
    assert not play.is_done(folder)
    Stage(folder, "cpu").play(play)
    assert walk.read_bytes() == written[walk][0]
    assert all(path.stat().st_mtime_ns == written[path][1] for path in paths if path != walk)


def test_rows_of_a_table_share_the_pretraining_and_have_schedules_of_their_own(folder: Path) -> None:
    play = paper_play()
    Stage(folder, "cpu").play(play)
    curves = {
        branch.row: json.loads(play.path(folder, branch).with_suffix(".json").read_text())["curve"]
        for branch in play.branches
    }
    pretraining = [[told for told in curve if told["phase"] == "pretraining"] for curve in curves.values()]
    assert all(one == pretraining[0] for one in pretraining)
    epochs = {row: sum(told["phase"] == "reasoner" for told in curve) for row, curve in curves.items()}
    assert epochs == {
        "cooperative, paper": 2,
        "tail-to-head, paper": 0,
        "cooperative as written, paper": 0,
        "cooperative untaught, paper": 0,
        "cooperative walk, paper": 2,
        "cooperative untaught walk, paper": 0,
    }
    assert all(sum(told["phase"] == "game" for told in curve) == 2 for curve in curves.values())  # none stops early


def test_scores_are_small_and_tell_what_the_bonus_would_be(folder: Path) -> None:
    play = paper_play()
    Stage(folder, "cpu").play(play)
    scores = load_arrays(folder / "plays" / "cooperative walk, paper.0.0.safetensors")
    types = {name: array.dtype for name, array in scores.items()}
    assert types == {
        "questions": np.int32,
        "ranker": np.float32,
        "reasoner": np.float32,
        "named": np.int16,
        "bonus": np.float16,
    }
    # of three passages the composer's is named by both others: each is as likely, and has all of the bonus
    assert scores["bonus"].tolist() == [1.0] * len(scores["ranker"])
