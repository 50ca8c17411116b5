"""The report: what stands beside the paper's figures, and what is left out."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rechain.evaluation.statistics import Figure
from rechain.paper.judge import Game, Results, judge_plays
from rechain.paper.plays import write_plays
from rechain.paper.report import (
    brief_table,
    conditions_of,
    learning_curves,
    main_table,
    mean_rewards,
    percent,
    points,
    write_report,
)
from rechain.paper.settings import GameSettings
from rechain.paper.tables import CONDITIONS, contest
from rechain.schema import Gold, Question

HEADER_END = ("over folds and seeds, %", "vote added, %", "lexical added, %", "games")
FOLD_0 = ["q0", "q1", "q3", "q5"]
Fabricate = Callable[..., None]
Judge = Callable[[], Results]


def metadata(reward: float = 0.5, questions: int = 100, **seconds: float) -> dict[str, object]:
    curve = [
        {"phase": "pretraining", "epoch": 0, "reward": reward},
        {"phase": "game", "epoch": 0, "reward": 2 * reward},
    ]
    return {"curve": curve, "questions": questions, **seconds}


@pytest.fixture
def judge(folder: Path, questions: list[Question], golds: dict[str, Gold]) -> Judge:
    return lambda: judge_plays(folder, questions, golds, dict.fromkeys(CONDITIONS, GameSettings(lexical_weight=0.5)))


def cells(text: str, row: str) -> list[list[str]]:
    """Return the cells of all lines of tables that begin with a name."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return [line for line in lines if line[0] == row]


def test_figures_show_their_interval() -> None:
    assert percent(Figure(0.9034, 0.893, 0.9127, 10)) == "90.3 (89.3 to 91.3)"
    assert points(Figure(-0.0014, -0.008, 0.005, 10)) == "-0.1 (-0.8 to +0.5)"
    assert percent(None) == points(None) == ""


def test_our_figures_stand_beside_the_papers(fabricate: Fabricate, judge: Judge) -> None:
    fabricate("cooperative", 0, 0, FOLD_0)
    header, rows = main_table(judge(), "hotpotqa")
    assert header == ["", "paper, %", "chain accuracy, %", "head, %", "tail, %", *HEADER_END]
    assert [row[0] for row in rows] == ["random", "cooperative", "lexical"]
    assert rows[1][1] == "87.2 (90.1 / 96.7)"
    assert rows[1][2].startswith("80.0 (")
    assert rows[1][7].startswith("80.0 (")
    assert [rows[0][7], rows[2][7]] == ["", ""]
    assert [bool(row[6]) for row in rows] == [False, True, False]
    header, brief = brief_table(judge(), "hotpotqa")
    assert header[-1] == "from the row above"
    assert [row[1] for row in brief] == ["40.3", "87.2", ""]
    assert brief[2][3] == "+0.0 (+0.0 to +0.0)"


def test_rows_are_compared_on_the_games_they_have_in_common(folder: Path, fabricate: Fabricate, judge: Judge) -> None:
    fabricate("tail-to-head", 0, 0, ["q0"])
    fabricate("cooperative", 0, 0, FOLD_0)
    fabricate("cooperative", 1, 0, [])
    text = write_report(folder, judge(), "hotpotqa").read_text()
    assert "not all played on the same folds and seeds: its table shows each by itself" in text
    assert cells(text, "cooperative")[0][2].startswith("50.0 (")  # 4 of 5 and 0 of 3
    assert [cells(text, row)[0][-1] for row in ("tail-to-head", "cooperative", "random")] == ["1", "2", ""]
    assert cells(text, "cooperative - tail-to-head")[0][1].startswith("+60.0 (")
    left_out = "Not played yet: independent, head-to-tail, cooperative as written."
    assert left_out in text
    header, brief = brief_table(judge(), "hotpotqa")
    assert header[-1] == "games"
    assert {row[0]: row[-1] for row in brief[:3]} == {"random": "", "tail-to-head": "1", "cooperative": "2"}


def test_what_is_not_played_is_left_out_with_a_sentence(folder: Path, fabricate: Fabricate, judge: Judge) -> None:
    write_plays(contest({"ours": GameSettings()}, 2, 2, 1, ablations=False), folder)
    fabricate("independent", 0, 0, FOLD_0)
    text = write_report(folder, judge(), "hotpotqa").read_text()
    assert "Of 6 plays 5 are still to be played" in text
    scores = folder / "plays" / "independent.0.0.safetensors"
    scores.with_suffix(".json").unlink()  # of other settings
    write_plays(contest({"ours": GameSettings()}, 2, 2, 1, ablations=False), folder)
    scores.unlink()
    assert "Of 6 plays 6 are still to be played" in write_report(folder, judge(), "hotpotqa").read_text()
    assert "## Ablations\n\nNone was played." in text
    assert "Learning curve" not in text
    assert "learning_curve.svg" not in text


def test_nothing_played_at_all_still_shows_the_baselines(folder: Path, judge: Judge) -> None:
    text = write_report(folder, judge(), "hotpotqa").read_text()
    assert "Played: no game." in text
    assert cells(text, "lexical")[0][2].startswith("87.5 (")


def test_ablations_are_compared_with_the_plain_row_and_with_the_ranker_alone(
    folder: Path, fabricate: Fabricate, judge: Judge
) -> None:
    fabricate("cooperative", 0, 0, FOLD_0)
    fabricate("cooperative", 1, 0, [])
    fabricate("cooperative, hard C", 0, 0, ["q0", "q1"])
    fabricate("tail-to-head, hard C", 0, 0, ["q0"])
    text = write_report(folder, judge(), "hotpotqa").read_text()
    _, own, change, gain, games = cells(text, "cooperative, hard C")[0]
    assert own.startswith("40.0 (")
    assert change.startswith("-40.0 (")
    assert gain.startswith("+20.0 (")
    assert games == "1"


def test_the_learning_curve_is_on_the_same_games(folder: Path, fabricate: Fabricate, judge: Judge) -> None:
    fabricate("cooperative, on 10%", 0, 0, ["q0"], metadata(questions=10))
    fabricate("cooperative, on 50%", 0, 0, ["q0", "q1"], metadata(questions=50))
    fabricate("cooperative", 0, 0, ["q0", "q1", "q3"], metadata(questions=100))
    fabricate("cooperative", 1, 0, [])
    fabricate("tail-to-head, on 10%", 0, 0, [], metadata(questions=10))
    fabricate("tail-to-head", 0, 0, FOLD_0, metadata(questions=100))
    results = judge()
    curves, games = learning_curves(results)
    assert games == [Game(0, 0)]
    assert {name: [point.share for point in curve] for name, curve in curves.items()} == {
        "cooperative": ["10 %", "50 %", "100 %"],
        "tail-to-head": ["10 %", "100 %"],
    }
    text = write_report(folder, results, "hotpotqa").read_text()
    assert [cells(text, f"{share} %")[0][1] for share in (10, 50, 100)] == ["10", "50", "100"]
    assert [cells(text, f"{share} %")[0][2][:4] for share in (10, 50, 100)] == ["20.0", "40.0", "60.0"]
    assert cells(text, "50 %")[0][3] == ""
    assert (folder / "learning_curve.svg").read_text().startswith("<?xml")
    assert cells(text, "tail-to-head")[0][2].startswith("80.0 (")


def test_a_row_with_more_questions_is_in_the_table_and_ends_the_learning_curve(
    folder: Path, fabricate: Fabricate, judge: Judge
) -> None:
    fabricate("cooperative, on 25%, paper", 0, 0, ["q0"], metadata(questions=25))
    fabricate("cooperative, paper", 0, 0, ["q0", "q1"], metadata(questions=100))
    fabricate("cooperative, with more questions, paper", 0, 0, FOLD_0, metadata(questions=120))
    fabricate("cooperative", 0, 0, [], metadata(questions=90))
    results = judge()
    assert learning_curves(results) == ({}, [])
    (curve,) = learning_curves(results, "paper")[0].values()
    assert [(point.share, point.questions) for point in curve] == [
        ("25 %", 25),
        ("100 %", 100),
        ("100 %, with more questions", 120),
    ]
    text = write_report(folder, results, "hotpotqa").read_text()
    assert cells(text, "cooperative, with more questions")[0][2].startswith("80.0 (")
    assert cells(text, "cooperative, with more questions - cooperative")[0][1].startswith("+40.0 (")
    for plot in ("order_paper.svg", "learning_curve_paper.svg", "order.svg"):
        assert (folder / plot).read_text().startswith("<?xml")


def test_times_that_rows_share_count_once_in_all(folder: Path, fabricate: Fabricate, judge: Judge) -> None:
    fabricate("cooperative", 0, 0, [], metadata(pretraining_seconds=10.25, game_seconds=20.0))
    fabricate("tail-to-head", 0, 0, [], metadata(pretraining_seconds=10.25, game_seconds=5.0))
    fabricate("cooperative", 1, 0, [], metadata(pretraining_seconds=10.25, game_seconds=20.0))
    text = write_report(folder, judge(), "hotpotqa").read_text()
    assert "All plays together took 66 s" in text
    assert cells(text, "cooperative")[-1] == ["cooperative", "2", "60", "30.2"]


def test_rewards_are_averaged_over_games_and_drawn(folder: Path, fabricate: Fabricate, judge: Judge) -> None:
    fabricate("cooperative", 0, 0, [], metadata(reward=0.2))
    fabricate("cooperative", 1, 0, [], metadata(reward=0.4))
    results = judge()
    expected = {("pretraining", 0): pytest.approx(0.3), ("game", 0): pytest.approx(0.6)}
    assert mean_rewards(results.rows["cooperative"]) == expected
    assert "(reward.svg)" in write_report(folder, results, "hotpotqa").read_text()
    first = (folder / "reward.svg").read_bytes()
    write_report(folder, results, "hotpotqa")
    assert (folder / "reward.svg").read_bytes() == first


def test_pairs_are_told_where_there_are_any(folder: Path, judge: Judge) -> None:
    text = write_report(folder, judge(), "medhop", {"lexical": Figure(0.75, 0.7, 0.8, 150)}).read_text()
    assert cells(text, "lexical")[-1] == ["lexical", "75.0 (70.0 to 80.0)", "150"]
    assert "paper, MedHop, %" in text


def test_without_matplotlib_the_plots_are_left_out(folder: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = write_report(folder, judge(), "hotpotqa").read_text()
    assert "They need matplotlib: pip install 'rechain[train]'." in text


def test_every_table_that_was_played_has_its_own_section(folder: Path, fabricate: Fabricate, judge: Judge) -> None:
    fabricate("cooperative, paper", 0, 0, FOLD_0)
    fabricate("tail-to-head, paper", 0, 0, ["q0"])
    fabricate("cooperative, r 0.5, paper", 0, 0, ["q0", "q1"])
    results = judge()
    assert conditions_of(results) == ["paper"]
    text = write_report(folder, results, "hotpotqa").read_text()
    section = text[text.index("## The paper's own setting") :].partition("\n## ")[0]
    assert cells(section, "cooperative")[0][2].startswith("80.0 (")
    assert cells(section, "tail-to-head")[0][2].startswith("20.0 (")
    differences = text[text.index("## Differences between rows, paper") :].partition("\n## ")[0]
    assert cells(differences, "cooperative - tail-to-head")[0][1].startswith("+60.0 (")
    ablation = cells(text, "cooperative, r 0.5, paper")[0]
    assert ablation[2].startswith("-40.0 (")
    assert (folder / "reward_paper.svg").exists() is False  # these plays have no curve


def verdict(judge: Judge, folder: Path) -> str:
    text = write_report(folder, judge(), "hotpotqa").read_text()
    return text[text.index("## Differences between rows") :].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("alone", "untaught", "words"),
    [
        (
            [1, 1, 1, 1],
            [1, 1, 1, 1],
            "Cooperation helps: the row is above the Ranker alone and above",
        ),
        ([1, 1, 1, 1], [3, 3, 3, 3], "not above an untaught Reasoner"),
        ([3, 3, 3, 3], [1, 1, 1, 1], "No gain over the Ranker alone"),
        ([1, 3, 1, 3], [1, 1, 1, 1], "No gain over the Ranker alone"),  # on one fold alone, which may be chance
    ],
)
def test_cooperation_is_said_to_help_only_above_the_ranker_and_an_untaught_reasoner(
    folder: Path, fabricate: Fabricate, judge: Judge, alone: list[int], untaught: list[int], words: str
) -> None:
    folds = {0: FOLD_0, 1: ["q2", "q4", "q6"]}
    for game, (fold, seed) in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)]):
        fabricate("cooperative", fold, seed, folds[fold][:3])
        fabricate("tail-to-head", fold, seed, folds[fold][: alone[game]])
        fabricate("cooperative untaught", fold, seed, folds[fold][: untaught[game]])
    assert words in verdict(judge, folder)


def test_one_game_alone_says_nothing_of_cooperation(folder: Path, fabricate: Fabricate, judge: Judge) -> None:
    for row, right in (("cooperative", FOLD_0), ("tail-to-head", []), ("cooperative untaught", [])):
        fabricate(row, 0, 0, right)
    assert "One game alone shows nothing" in verdict(judge, folder)


def test_what_was_seen_of_the_bonus_is_shown_from_the_first_epoch_to_the_last(
    folder: Path, fabricate: Fabricate, judge: Judge
) -> None:
    for fold, first in ((0, 0.5), (1, 0.7)):
        curve = [
            {"phase": "pretraining", "epoch": 0, "reward": 0.5},
            {"phase": "reasoner", "epoch": 0, "reward": 0.5, "bonus_auc": first},
            {"phase": "game", "epoch": 0, "reward": 0.5, "bonus_auc": 0.9},
        ]
        fabricate("cooperative", fold, 0, [], {"curve": curve})
    text = write_report(folder, judge(), "hotpotqa").read_text()
    section = text[text.index("## The bonus, without gold") :].partition("\n## ")[0]
    assert cells(section, "cooperative") == [["cooperative", "60.0 to 90.0", "2"]]
