"""Contests: which plays make a table."""

from pathlib import Path
from typing import Any

import pytest

from rechain.errors import RechainError
from rechain.paper.plays import Branch, Play, read_plays, write_plays
from rechain.paper.settings import GameSettings
from rechain.paper.tables import (
    ABLATIONS,
    CONDITIONS,
    CONTROL,
    GAME_ABLATIONS,
    PRETRAINING_ABLATIONS,
    ROWS,
    condition_of,
    contest,
    row_name,
    table_settings,
)

SETTINGS = GameSettings()
OURS = {"ours": SETTINGS}


def rows(plays: list[Play]) -> dict[str, GameSettings]:
    return {branch.row: branch.settings for play in plays for branch in play.branches}


def test_every_row_of_the_table_is_played_on_every_fold_with_every_seed() -> None:
    plays = contest(OURS, hops=2, folds=3, seeds=2, ablations=False)
    games = [(branch.row, play.fold, play.seed) for play in plays for branch in play.branches]
    assert sorted(games) == sorted((r, f, s) for r in ROWS for f in range(3) for s in range(2))
    assert {name: settings.row for name, settings in rows(plays).items()} == ROWS


def test_chains_of_three_have_no_direction() -> None:
    assert rows(contest(OURS, 3, 2, 1, ablations=False)).keys() == ROWS.keys() - {"head-to-tail"}


@pytest.mark.parametrize("data_set", ["hotpotqa", "drughop"])
def test_ablations_are_named_after_what_they_change_and_played_on_one_fold(data_set: str) -> None:
    settings = GameSettings.for_data(data_set)
    plays = contest({"ours": settings}, 2, 2, 1, ablations=True)
    found = rows(plays)
    for name, changes in ABLATIONS[settings.selects].items():
        assert found[f"cooperative, {name}"] == settings.but(**changes)
        assert found[f"tail-to-head, {name}"] == settings.but(row="tail to head", **changes)
    shares = {branch.row: branch.share for play in plays for branch in play.branches}
    assert shares["cooperative, on 25%"] == 0.25
    assert {play.fold for play in plays if ", " in play.branches[0].row} == {0}


def test_cooperative_rows_of_every_table_come_before_those_with_their_own_pretraining() -> None:
    tables = {name: table_settings("hotpotqa")[name] for name in ("paper", "ours")}
    plays = contest(tables, 2, 1, 2, ablations=False)
    assert [(play.branches[0].row, play.seed) for play in plays] == [
        ("cooperative, paper", 0),
        ("cooperative, paper", 1),
        ("cooperative", 0),
        ("cooperative", 1),
        ("head-to-tail, paper", 0),
        ("independent, paper", 0),
        ("head-to-tail", 0),
        ("independent", 0),
        ("head-to-tail, paper", 1),
        ("independent, paper", 1),
        ("head-to-tail", 1),
        ("independent", 1),
    ]


def test_the_papers_table_has_a_row_with_more_questions_and_a_learning_curve_in_every_fold() -> None:
    tables = table_settings("hotpotqa")
    plays = contest(tables, 2, 2, 3, ablations=True, has_more=True)
    more = [play for play in plays if play.branches[0].with_more]
    assert {(play.fold, play.seed) for play in more} == {(f, s) for f in range(2) for s in range(3)}
    assert [len(play.branches) for play in more] == [2, 2, 1, 1, 1, 1]
    assert more[0].branches[0] == Branch("cooperative, with more questions, paper", tables["paper"], with_more=True)
    curve = [play for play in plays if play.branches[0].row == "cooperative, on 25%, paper"]
    assert [(play.fold, play.seed) for play in curve] == [(0, 0), (1, 0)]
    assert [branch.share for branch in curve[0].branches] == [0.25, 0.25, 0.5, 0.5]
    assert not [b for play in contest(tables, 2, 2, 3, ablations=True) for b in play.branches if b.with_more]


def test_no_two_plays_write_the_same_file_and_they_are_read_again(tmp_path: Path) -> None:
    plays = contest(table_settings("hotpotqa"), 2, 5, 3, ablations=True)
    paths = [play.path(tmp_path, branch) for play in plays for branch in play.branches]
    assert len(paths) == len(set(paths))
    write_plays(plays, tmp_path)
    assert read_plays(tmp_path) == plays


def test_the_papers_table_is_in_the_papers_own_setting() -> None:
    tables = table_settings("hotpotqa")
    paper, features, drughop = tables["paper"], tables["features"], table_settings("drughop")["paper"]
    assert (paper.is_hard, paper.features, paper.selects, paper.gradient) == (True, "none", "passages", "reinforce")
    assert (paper.pretrain_by, paper.update, paper.bonus, paper.reasoner_weight) == ("steps", "residual", 2.0, 1.0)
    assert (features.is_hard, features.features, features.gradient) == (True, "all", "exact")
    assert (drughop.selects, drughop.features, drughop.pretrain_epochs) == ("passages", "none", 8)
    assert tables["ours"] == GameSettings.for_data("hotpotqa")


def test_a_configuration_has_the_last_word(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text("pretrain_epochs = 1\n")
    assert {settings.pretrain_epochs for settings in table_settings("hotpotqa", config).values()} == {1}
    with pytest.raises(RechainError, match="there is no data set 'squad' to reproduce"):
        table_settings("squad")


def test_the_rows_with_a_reasoner_share_the_pretraining_of_the_ranker_alone() -> None:
    plays = contest(table_settings("hotpotqa"), 2, 5, 2, ablations=True)
    shared = [play for play in plays if len(play.branches) >= 4 and ", on " not in play.branches[0].row]
    assert len(shared) == 5 * 2 * len(CONDITIONS)
    for play in shared:
        assert len({branch.pretraining for branch in play.branches}) == 1
        assert "tail to head" in {branch.settings.row for branch in play.branches}


def test_the_control_differs_from_the_cooperative_row_in_that_its_reasoner_learns_nothing() -> None:
    found = rows(contest(OURS, 2, 1, 1, False))
    assert found[CONTROL] == found["cooperative"].but(row="untaught")


@pytest.mark.parametrize(("note", "change"), [*GAME_ABLATIONS.items(), *PRETRAINING_ABLATIONS.items()])
def test_ablations_of_the_papers_setting_change_one_thing_in_every_fold(note: str, change: dict[str, Any]) -> None:
    tables = table_settings("hotpotqa")
    played = [
        (play.fold, play.seed, branch)
        for play in contest(tables, 2, 2, 2, ablations=True)
        for branch in play.branches
        if note in branch.row
    ]
    assert {(fold, seed) for fold, seed, _ in played} == {(0, 0), (1, 0)}
    for _, _, branch in played:
        assert condition_of(branch.row) == "paper"
        assert branch.settings == tables["paper"].but(row=branch.settings.row, **change)


def test_ablations_of_the_game_share_the_pretraining_of_the_table() -> None:
    plays = contest(table_settings("hotpotqa"), 2, 1, 1, ablations=True)
    (play,) = (play for play in plays if play.branches[-1].row == "cooperative, taught everywhere, paper")
    assert play.branches[0].row == "cooperative, paper"
    assert len({branch.pretraining for branch in play.branches}) == 1


def test_names_of_rows_say_their_table() -> None:
    assert row_name("cooperative", "paper", "r 0.5") == "cooperative, r 0.5, paper"
    assert [condition_of(n) for n in ("cooperative", "cooperative, r 0.5, paper", "cooperative, hard C")] == [
        "ours",
        "paper",
        "ours",
    ]
