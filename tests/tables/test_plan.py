"""Contests: which plays make a table."""

from pathlib import Path

import pytest

from rechain.errors import RechainError
from rechain.game.plays import Play, read_plays, write_plays
from rechain.game.settings import GameSettings
from rechain.tables.plan import CONDITIONS, CONTROLS, LADDER, VARIANTS, contest, table_settings, under_condition

SETTINGS = GameSettings()
OURS = {"ours": SETTINGS}
COOPERATIVE = {f"cooperative {variant}".strip() for variant in VARIANTS}
TABLE_ROWS = {*COOPERATIVE, "tail-to-head", "head-to-tail", "independent"}


def rows(plays: list[Play]) -> set[str]:
    return {branch.row for play in plays for branch in play.branches}


def test_every_row_of_the_table_is_played_on_every_fold_with_every_seed() -> None:
    plays = contest(OURS, hops=2, folds=3, seeds=2, pseudo=0, ablations=False)
    games = [(branch.row, play.fold, play.seed) for play in plays for branch in play.branches]
    assert sorted(games) == sorted((r, f, s) for r in TABLE_ROWS for f in range(3) for s in range(2))


def test_chains_of_three_have_no_direction() -> None:
    variants = {f"cooperative {variant}" for variant in ("untaught", "as written", "walk")}
    played = {"cooperative", "tail-to-head", "independent"} | variants
    assert rows(contest(OURS, 3, 2, 1, 0, ablations=False)) == played


def test_where_steps_are_selected_a_ladder_leads_from_passages_to_them() -> None:
    drughop = GameSettings.for_data("drughop")
    assert (drughop.selects, drughop.pairs, drughop.evidence) == ("steps", "rarity", "beliefs")
    plays = contest({"ours": drughop}, 3, 2, 1, 0, ablations=True)
    found = {branch.row: branch.settings for play in plays for branch in play.branches}
    rungs = [(one.selects, one.pairs, one.evidence) for one in (found[f"tail-to-head {name}"] for name in LADDER)]
    assert rungs == [
        ("passages", "rarity", "lexical"),
        ("steps", "none", "lexical"),
        ("steps", "closeness", "lexical"),
        ("steps", "rarity", "rarity"),
        ("steps", "rarity", "none"),
    ]
    assert {play.fold for play in plays if play.branches[0].row.partition(" ")[2] in LADDER} == {0}
    assert not any("without features" in row for row in found)


def test_ablations_are_named_after_what_they_change() -> None:
    plays = contest(OURS, 2, 2, 1, pseudo=50, ablations=True)
    found = {branch.row: branch for play in plays for branch in play.branches}
    assert rows(plays) > TABLE_ROWS
    assert found["cooperative without features"].settings.exact_match is False
    assert found["cooperative on 25%"].share == 0.25
    assert {play.pseudo for play in plays if "pseudo" in play.branches[0].row} == {50}
    assert {play.pseudo for play in plays if "pseudo" not in play.branches[0].row} == {0}


def test_without_pseudo_questions_nothing_comes_after_them() -> None:
    assert not any("pseudo" in row for row in rows(contest(OURS, 2, 2, 1, pseudo=0, ablations=True)))


def test_cooperative_rows_of_every_table_come_before_those_without_a_reasoner() -> None:
    tables = {name: under_condition(SETTINGS, name) for name in ("paper", "ours")}
    plays = contest(tables, 2, 1, 2, pseudo=0, ablations=False)
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


def test_no_two_plays_write_the_same_file(tmp_path: Path) -> None:
    tables = {name: under_condition(SETTINGS, name) for name in CONDITIONS}
    plays = contest(tables, 2, 5, 3, pseudo=100, ablations=True)
    paths = [play.path(tmp_path, branch) for play in plays for branch in play.branches]
    assert len(paths) == len(set(paths))


def test_plays_are_written_down_and_read_again(tmp_path: Path) -> None:
    plays = contest({"ours": GameSettings.for_data("drughop")}, 3, 2, 1, pseudo=7, ablations=True)
    write_plays(plays, tmp_path)
    assert read_plays(tmp_path) == plays


def test_the_papers_table_is_in_the_papers_own_setting() -> None:
    paper = under_condition(table_settings("hotpotqa"), "paper")
    assert (paper.evidence, paper.head_reward, paper.exact_match) == ("none", "set", False)
    assert (paper.gradient, paper.pretrain_by, paper.bonus) == ("reinforce", "reward", 0.5)
    assert paper.pretrain_epochs > 10 * paper.patience / 2
    features = under_condition(table_settings("hotpotqa"), "features")
    assert (features.evidence, features.head_reward, features.exact_match) == ("none", "set", True)
    assert features.gradient == "exact"
    assert under_condition(SETTINGS, "ours") == SETTINGS


def test_a_configuration_has_the_last_word(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text("pretrain_epochs = 1\n")
    assert under_condition(table_settings("hotpotqa", config), "paper", config).pretrain_epochs == 1
    with pytest.raises(RechainError, match="there is no table 'theirs'; the tables are paper, features, ours"):
        under_condition(SETTINGS, "theirs")


def test_every_cooperative_row_of_a_table_shares_the_pretraining_of_the_ranker_alone() -> None:
    tables = {name: under_condition(SETTINGS, name) for name in CONDITIONS}
    plays = contest(tables, 2, 5, 2, pseudo=0, ablations=True)
    shared = [play for play in plays if len(play.branches) > len(VARIANTS) and " on " not in play.branches[0].row]
    assert len(shared) == 5 * 2 * 3
    for play in shared:
        assert len({branch.pretraining for branch in play.branches}) == 1
        (alone,) = [branch for branch in play.branches if branch.row.startswith("tail-to-head")]
        assert alone.settings.row == "conditional"
    assert rows(plays) >= {"cooperative walk, paper", "cooperative untaught walk, features", "tail-to-head, paper"}


def test_a_control_differs_from_its_row_in_that_nobody_teaches_it() -> None:
    found = {branch.row: branch.settings for play in contest(OURS, 2, 1, 1, 0, False) for branch in play.branches}
    for variant, control in CONTROLS.items():
        taught = found[f"cooperative {variant}".strip()]
        assert found[f"cooperative {control}"] == taught.but(freezes_reasoner=True)
    assert found["cooperative walk"].bonus_by == found["cooperative walk"].reasoner_loss == "walk"
    assert found["cooperative as written"].entities == "all"


def test_a_larger_bonus_is_an_ablation_of_the_first_seed_and_of_hard_c() -> None:
    tables = {name: under_condition(SETTINGS, name) for name in CONDITIONS}
    plays = contest(tables, 2, 2, 2, 0, ablations=True)
    large = [(play.seed, branch) for play in plays for branch in play.branches if ", r 2" in branch.row]
    assert {seed for seed, _ in large} == {0}
    assert {branch.settings.bonus for _, branch in large} == {2.0}
    assert {branch.row.rpartition(", ")[2] for _, branch in large} == {"paper", "features"}
    assert not any(", r 2" in row for row in rows(contest(tables, 2, 2, 2, 0, ablations=False)))
