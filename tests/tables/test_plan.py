"""Contests: which plays make a table."""

from pathlib import Path

from rechain.game.plays import Play, read_plays, write_plays
from rechain.game.settings import GameSettings
from rechain.tables.plan import contest

SETTINGS = GameSettings()
TABLE_ROWS = {"cooperative", "tail-to-head", "head-to-tail", "independent"}


def rows(plays: list[Play]) -> set[str]:
    return {branch.row for play in plays for branch in play.branches}


def test_every_row_of_the_table_is_played_on_every_fold_with_every_seed() -> None:
    plays = contest(SETTINGS, hops=2, folds=3, seeds=2, pseudo=0, ablations=False)
    games = [(branch.row, play.fold, play.seed) for play in plays for branch in play.branches]
    assert sorted(games) == sorted((r, f, s) for r in TABLE_ROWS for f in range(3) for s in range(2))


def test_chains_of_three_have_no_direction() -> None:
    assert rows(contest(SETTINGS, 3, 2, 1, 0, ablations=False)) == TABLE_ROWS - {"head-to-tail"}


def test_ablations_are_named_after_what_they_change() -> None:
    plays = contest(SETTINGS, 2, 2, 1, pseudo=50, ablations=True)
    found = {branch.row: branch for play in plays for branch in play.branches}
    assert rows(plays) > TABLE_ROWS
    assert found["cooperative hard C"].settings.evidence == "none"
    assert found["cooperative without features"].settings.exact_match is False
    assert found["tail-to-head as in the paper"].settings.gradient == "reinforce"
    assert found["cooperative on 25%"].share == 0.25
    assert {play.pseudo for play in plays if "pseudo" in play.branches[0].row} == {50}
    assert {play.pseudo for play in plays if "pseudo" not in play.branches[0].row} == {0}


def test_without_pseudo_questions_nothing_comes_after_them() -> None:
    assert not any("pseudo" in row for row in rows(contest(SETTINGS, 2, 2, 1, pseudo=0, ablations=True)))


def test_no_two_plays_write_the_same_file(tmp_path: Path) -> None:
    plays = contest(SETTINGS, 2, 5, 3, pseudo=100, ablations=True)
    paths = [play.path(tmp_path, branch) for play in plays for branch in play.branches]
    assert len(paths) == len(set(paths))


def test_plays_are_written_down_and_read_again(tmp_path: Path) -> None:
    plays = contest(GameSettings.for_data("drughop"), 3, 2, 1, pseudo=7, ablations=True)
    write_plays(plays, tmp_path)
    assert read_plays(tmp_path) == plays
