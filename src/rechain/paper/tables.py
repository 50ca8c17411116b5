"""What is played for each of the paper's tables: its rows over folds and seeds, then the ablations."""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from rechain.errors import RechainError
from rechain.paper.plays import Branch, Play
from rechain.paper.settings import DATA_SETS, GameSettings

HOPS = {"hotpotqa": 2, "drughop": 3, "medhop": 3}
"""passages in a chain of each data set"""
SHARES = (0.25, 0.5)
"""of the training questions, for the learning curve; the table itself is its last point"""
WITH_MORE = "with more questions"
"""the note of a row that also learns from questions that are only trained on"""

CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    # The paper leaves the update's start and the pretraining's loss open. An update that begins at random forgets the
    # question, and a reward that most passages earn alike teaches little. r and the epochs: chosen on folds 0 and 1.
    "paper": {
        "sharpness": 0.0,
        "selects": "passages",
        "features": "none",
        "update": "residual",
        "gradient": "reinforce",
        "bonus": 2.0,
        "pretrain_by": "steps",
        "pretrain_epochs": 20,
        "reasoner_epochs": 4,
        "game_epochs": 10,
        "reasoner_weight": 1.0,
    },
    # pretrained for as long as the reward rises
    "features": {"sharpness": 0.0, "pretrain_epochs": 40, "reasoner_weight": 1.0},
    "ours": {},
}
"""what a table changes in the settings of a data set. paper: the paper's own setting, by REINFORCE; features: hard C,
but with exact-match features and the exact gradient; ours: C weighted by evidence, as the settings of the data set"""
ROWS: Mapping[str, str] = {
    "independent": "independent",
    "head-to-tail": "head to tail",
    "tail-to-head": "tail to head",
    "cooperative as written": "as written",
    "cooperative": "cooperative",
    "cooperative untaught": "untaught",
}
"""the rows of every table in their order, with the setting `row` of each"""
CONTROL = "cooperative untaught"
"""the row that the cooperative one has to be above before cooperation may be said to help"""
PAPER_ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "r 0.5": {"bonus": 0.5},
    "taught everywhere": {"sure_share": 1.0},
    "literal update": {"update": "paper"},
    "reward alone": {"pretrain_by": "reward"},
}
"""what each ablation of the table `paper` changes, for the first seed"""
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "passages": {"without features": {"features": "none"}},
    "steps": {
        "passages": {"selects": "passages"},
        "steps alone": {"features": "matches"},
        "closeness": {"features": "closeness"},
        "hard C": {"sharpness": 0.0},
    },
}
"""what each ablation of the table `ours` changes, by what the Ranker selects there"""


def row_name(row: str, condition: str = "ours", note: str = "") -> str:
    """Return what a row of a table is called: "cooperative, r 0.5, paper"."""
    return ", ".join(filter(None, (row, note, "" if condition == "ours" else condition)))


def condition_of(name: str) -> str:
    """Return the table to which a row of this name belongs."""
    last = name.rpartition(", ")[2]
    return last if last in CONDITIONS else "ours"


def table_settings(data_set: str, config: Path | None = None) -> dict[str, GameSettings]:
    """Return the settings of every table of a data set; what a TOML file names has the last word."""
    if data_set not in DATA_SETS:
        raise RechainError(f"there is no data set '{data_set}' to reproduce; the data sets are {', '.join(DATA_SETS)}.")
    changes: dict[str, Any] = {}
    if config is not None:
        GameSettings.read(config)  # raises what is wrong with the file, naming it
        changes = tomllib.loads(config.read_text(encoding="utf-8"))
    settings = GameSettings.for_data(data_set)
    return {name: settings.but(**{**condition, **changes}) for name, condition in CONDITIONS.items()}


def contest(
    tables: Mapping[str, GameSettings], hops: int, folds: int, seeds: int, ablations: bool, has_more: bool = False
) -> list[Play]:
    """Return all plays of some tables, the longest first, as they run side by side.

    First the rows that share a pretraining, table by table; then those with one of their own, seed by seed, and the
    row of the table `paper` with more questions, if there are any; then the ablations and the learning curve, of the
    first seed alone and, but for those of the table `paper`, of the first fold.
    """
    plays = []
    for condition, settings in tables.items():
        for seed, fold in product(range(seeds), range(folds)):
            names = ["cooperative", *(n for n in ROWS if n not in ("cooperative", "independent", "head-to-tail"))]
            branches = [Branch(row_name(n, condition), settings.but(row=ROWS[n])) for n in names]
            plays.append(Play(fold, seed, tuple(branches), keeps_weights=condition == "ours" and fold == seed == 0))
    # of three passages, head and tail are selected independently: there is no direction
    alone = ["head-to-tail", "independent"] if hops == 2 else ["independent"]
    for seed, (condition, settings), name in product(range(seeds), tables.items(), alone):
        branch = Branch(row_name(name, condition), settings.but(row=ROWS[name]))
        plays += [Play(fold, seed, (branch,)) for fold in range(folds)]
    if has_more and (paper := tables.get("paper")):
        more = tuple(_pair(WITH_MORE, paper, "paper", with_more=True))
        plays += [Play(fold, seed, more) for seed, fold in product(range(seeds), range(folds))]
    if ablations and hops == 2 and (paper := tables.get("paper")):
        changed = [tuple(_pair(note, paper.but(**change), "paper")) for note, change in PAPER_ABLATIONS.items()]
        plays += [Play(fold, 0, branches) for branches in (*changed, _curve(paper, "paper")) for fold in range(folds)]
    if ablations and (ours := tables.get("ours")):
        changed = [tuple(_pair(note, ours.but(**change))) for note, change in ABLATIONS[ours.selects].items()]
        plays += [Play(0, 0, branches) for branches in (*changed, _curve(ours))]
    return plays


def _curve(settings: GameSettings, condition: str = "ours") -> tuple[Branch, ...]:
    """Return the rows of a learning curve."""
    return tuple(b for share in SHARES for b in _pair(f"on {share:.0%}", settings, condition, share=share))


def _pair(note: str, settings: GameSettings, condition: str = "ours", **questions: Any) -> Iterator[Branch]:
    """Yield the cooperative row and the one without a Reasoner; `questions` are those that a branch learns from."""
    for name in ("cooperative", "tail-to-head"):
        yield Branch(row_name(name, condition, note), settings.but(row=ROWS[name]), **questions)
