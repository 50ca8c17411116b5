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
        "sure_share": 0.5,
        "pretrain_by": "steps",
        "pretrain_epochs": 20,
        "reasoner_epochs": 4,
        "game_epochs": 10,
        "reasoner_weight": 1.0,
    },
    # pretrained for as long as the reward rises; played before the residual update, which adds nothing to features
    "features": {
        "sharpness": 0.0,
        "update": "paper",
        "pretrain_by": "likelihood",
        "pretrain_epochs": 40,
        "reasoner_weight": 1.0,
    },
    "ours": {},
}
"""what a table changes in the settings of a data set. paper: the paper's own setting, by REINFORCE; features: hard C,
but with exact-match features and the exact gradient; ours: C weighted by evidence, as the settings of the data set"""
FEWER_EPOCHS: Mapping[str, int] = {"pretrain_epochs": 8, "reasoner_epochs": 2, "game_epochs": 4}
"""what `paper` changes for chains of three: an epoch over their longer texts takes several times as long"""
ROWS: Mapping[str, str] = {
    "independent": "independent",
    "head-to-tail": "head to tail",
    "tail-to-head": "tail to head",
    "cooperative as written": "as written",
    "cooperative": "cooperative",
    "cooperative untaught": "untaught",
}
"""the rows of every table in their order, with the setting `row` of each"""
TOGETHER = ("cooperative", "cooperative untaught", "tail-to-head", "cooperative as written")
"""the rows that share a pretraining, in the order in which they are played"""
CONTROL = "cooperative untaught"
"""the row that the cooperative one has to be above before cooperation may be said to help"""
GAME_ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "r 0.5": {"bonus": 0.5},
    "taught on 30%": {"sure_share": 0.3},
    "taught on 70%": {"sure_share": 0.7},
    "taught everywhere": {"sure_share": 1.0},
}
"""what ablations of the table `paper` change in the game, for the first seed; their pretraining is that of the table"""
PRETRAINING_ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "literal update": {"update": "paper"},
    "reward alone": {"pretrain_by": "reward"},
}
"""what its other ablations change, for the first seed, too"""
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "passages": {"without features": {"features": "none"}},
    "steps": {
        "passages": {"selects": "passages"},
        "steps alone": {"features": "matches"},
        "closeness": {"features": "closeness"},
        "hard C": {"sharpness": 0.0, "pretrain_by": "likelihood"},
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
    tables = {name: settings.but(**condition) for name, condition in CONDITIONS.items()}
    if HOPS[data_set] > 2:
        tables["paper"] = tables["paper"].but(**FEWER_EPOCHS)
    return {name: table.but(**changes) for name, table in tables.items()}


def contest(
    tables: Mapping[str, GameSettings], hops: int, folds: int, seeds: int, ablations: bool, has_more: bool = False
) -> list[Play]:
    """Return all plays of some tables, the longest first, as they run side by side.

    First the rows that share a pretraining, table by table; then those with one of their own, seed by seed; then
    further rows of the table `paper`, in every fold; then those of the table `ours`, of the first fold alone.
    """
    plays, ablates_paper = [], ablations and hops == 2
    for condition, settings in tables.items():
        for seed, fold in product(range(seeds), range(folds)):
            branches = [Branch(row_name(n, condition), settings.but(row=ROWS[n])) for n in TOGETHER]
            if condition == "paper" and ablates_paper and seed == 0:
                changes = {row_name("cooperative", "paper", note): change for note, change in GAME_ABLATIONS.items()}
                branches += [Branch(name, settings.but(**change)) for name, change in changes.items()]
            plays.append(Play(fold, seed, tuple(branches), keeps_weights=condition == "ours" and fold == seed == 0))
    # of three passages, head and tail are selected independently: there is no direction
    alone = ["head-to-tail", "independent"] if hops == 2 else ["independent"]
    for seed, (condition, settings), name in product(range(seeds), tables.items(), alone):
        branch = Branch(row_name(name, condition), settings.but(row=ROWS[name]))
        plays += [Play(fold, seed, (branch,)) for fold in range(folds)]
    if paper := tables.get("paper"):
        plays += _more_of_paper(paper, folds, seeds, ablates_paper, has_more)
    if ablations and (ours := tables.get("ours")):
        changed = [tuple(_pair(note, ours.but(**change))) for note, change in ABLATIONS[ours.selects].items()]
        plays += [Play(0, 0, branches) for branches in (*changed, _curve(ours))]
    return plays


def _more_of_paper(paper: GameSettings, folds: int, seeds: int, ablations: bool, has_more: bool) -> Iterator[Play]:
    """Yield the ablations and the learning curve of the table `paper`, of the first seed, and the row with more."""
    with_more = tuple(_pair(WITH_MORE, paper, "paper", with_more=True))
    of_first_seed = [with_more] if has_more else []
    if ablations:
        changes = PRETRAINING_ABLATIONS.items()
        of_first_seed += [tuple(_pair(note, paper.but(**change), "paper")) for note, change in changes]
        of_first_seed.append(_curve(paper, "paper"))
    yield from (Play(fold, 0, branches) for branches in of_first_seed for fold in range(folds))
    if has_more:  # the curve alone needs the Ranker alone
        yield from (Play(fold, seed, with_more[:1]) for seed in range(1, seeds) for fold in range(folds))


def _curve(settings: GameSettings, condition: str = "ours") -> tuple[Branch, ...]:
    """Return the rows of a learning curve."""
    return tuple(b for share in SHARES for b in _pair(f"on {share:.0%}", settings, condition, share=share))


def _pair(note: str, settings: GameSettings, condition: str = "ours", **questions: Any) -> Iterator[Branch]:
    """Yield the cooperative row and the one without a Reasoner; `questions` are those that a branch learns from."""
    for name in ("cooperative", "tail-to-head"):
        yield Branch(row_name(name, condition, note), settings.but(row=ROWS[name]), **questions)
