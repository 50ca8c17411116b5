"""What is played for each table: its rows over folds and seeds, then the ablations, the most needed first."""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rechain.errors import RechainError
from rechain.game.plays import Branch, Play
from rechain.game.settings import AS_WRITTEN, DATA_SETS, GameSettings

HOPS = {"hotpotqa": 2, "drughop": 3, "medhop": 3}
"""passages in a chain of each table"""
SHARES = (0.1, 0.25, 0.5)
"""of the training questions, for the learning curve; the table itself is its last point"""
LARGE_BONUS = 2.0
"""r of the ablation; that of the tables was fixed before any was played"""

_UNTIL_NO_MORE = {"pretrain_epochs": 40, "patience": 4, "game_keeps": "last"}
"""pretraining as long as the reward rises; a game of as many epochs for every row, so that no row is chosen by a reward
that does not know the bonus"""
_HARD = {"evidence": "none", "head_reward": "set"}
"""C as in the paper: all chains count alike, and a head earns its reward whatever the tail was (equation 2)"""
CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    "paper": {**_HARD, **_UNTIL_NO_MORE, "exact_match": False, "gradient": "reinforce", "pretrain_by": "reward"},
    "features": {**_HARD, **_UNTIL_NO_MORE},
    "ours": {},
}
"""what the tables change in the settings of a data set. paper: as the paper has it, by REINFORCE alone. features: hard
C, but exact-match features and the exact gradient. ours: C weighted by evidence, as the settings say"""

_WALK = {"reasoner_loss": "walk", "bonus_by": "walk", "entities": "all"}
"""a walk counts how many passages hold a name, so that it needs no merging: by evidence alone, names as they were found
tell the best chain from others more often than merged ones, before the Reasoner is taught and after"""
_NOTHING: Mapping[str, Any] = MappingProxyType({})
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "as written": AS_WRITTEN,
    "": _NOTHING,
    "untaught": {"freezes_reasoner": True},
    "walk": _WALK,
    "untaught walk": {**_WALK, "freezes_reasoner": True},
}
"""what the cooperative rows of a table change in its settings; the untaught ones are controls"""
_OF_THREE = ("", "untaught", "as written", "walk")
"""those of a table of three passages, the most needed first"""
LADDER: Mapping[str, Mapping[str, Any]] = {
    "passages": {"selects": "passages", "evidence": "lexical"},
    "steps": {"pairs": "none", "evidence": "lexical"},
    "closeness": {"pairs": "closeness", "evidence": "lexical"},
    "rarity": {"pairs": "rarity", "evidence": "rarity"},
    "hard C": {"evidence": "none"},
}
"""where steps are selected, what each of these adds up to the table's own setting: what the Ranker selects, what it
knows of it, and what weighs C; the last weighs nothing"""
CONTROLS = {"": "untaught", "walk": "untaught walk"}
"""variants, and the control that each has to be above before cooperation may be said to help"""


def row_name(row: str, variant: str = "", condition: str = "ours", large_bonus: bool = False) -> str:
    """Return what a row of a table is called: "cooperative walk, r 2, paper"."""
    name = f"{row} {variant}".strip() + (f", r {LARGE_BONUS:g}" if large_bonus else "")
    return name if condition == "ours" else f"{name}, {condition}"


def table_settings(data_set: str, config: Path | None = None) -> GameSettings:
    """Return the settings of a data set, with those changed that a TOML file names."""
    if data_set not in DATA_SETS:
        raise RechainError(f"there is no data set '{data_set}' to reproduce; the data sets are {', '.join(DATA_SETS)}.")
    settings = GameSettings.for_data(data_set)
    if config is None:
        return settings
    GameSettings.read(config)  # raises what is wrong with the file, naming it
    return settings.but(**tomllib.loads(config.read_text(encoding="utf-8")))


def under_condition(settings: GameSettings, condition: str, config: Path | None = None) -> GameSettings:
    """Return the settings of a table: what a configuration file names has the last word."""
    if condition not in CONDITIONS:
        raise RechainError(f"there is no table '{condition}'; the tables are {', '.join(CONDITIONS)}.")
    changes = tomllib.loads(config.read_text(encoding="utf-8")) if config else {}
    return settings.but(**{**CONDITIONS[condition], **changes})


def contest(
    tables: Mapping[str, GameSettings], hops: int, folds: int, seeds: int, pseudo: int, ablations: bool
) -> list[Play]:
    """Return all plays, the most needed first, which are also the longest: they run side by side.

    After a warm-up on pseudo questions, where there is one, come the cooperative rows of one table after another, each
    with tail-to-head, which shares their pretraining; then the rows with one of their own, seed by seed; then what
    explains ours. `tables` has the settings of every table that is played. The ablation of the bonus has the first seed
    alone.
    """
    plays = []
    ours = tables.get("ours")
    if ours and ablations and pseudo:  # what a warm-up on pseudo questions adds, on the first fold
        plays.append(Play(0, 0, _pair(" after pseudo", ours), pseudo, keeps_weights=True))
        plays.append(Play(0, 0, _curve(" after pseudo", ours), pseudo))
    for condition, settings in tables.items():
        for seed, fold in product(range(seeds), range(folds)):
            branches = tuple(_branches(condition, settings, hops, has_large_bonus=ablations and seed == 0))
            plays.append(Play(fold, seed, branches, keeps_weights=condition == "ours" and fold == seed == 0))
    for seed, (condition, settings) in product(range(seeds), tables.items()):
        plays += [Play(fold, seed, (b,)) for b in _alone(condition, settings, hops) for fold in range(folds)]
    if ours and ablations:
        plays += _ladder(ours) if ours.selects == "steps" else _ablations(ours)
        plays += [Play(fold, 0, _pair(" after pseudo", ours), pseudo) for fold in range(1, folds) if pseudo]
    return plays


def _alone(condition: str, settings: GameSettings, hops: int) -> Iterator[Branch]:
    """Yield the rows that have a pretraining of their own."""
    if hops == 2:  # between three, head and tail are selected independently: there is no direction
        backwards = settings.but(row="conditional", direction="head to tail")
        yield Branch(row_name("head-to-tail", condition=condition), backwards)
    yield Branch(row_name("independent", condition=condition), settings.but(row="independent"))


def _branches(condition: str, settings: GameSettings, hops: int, has_large_bonus: bool) -> Iterator[Branch]:
    """Yield the rows that share a pretraining: the cooperative ones, and the same without a Reasoner."""
    cooperative = settings.but(row="cooperative")
    yield Branch(row_name("cooperative", condition=condition), cooperative)  # the first keeps its weights
    yield Branch(row_name("tail-to-head", condition=condition), settings.but(row="conditional"))
    for variant in VARIANTS if hops == 2 else _OF_THREE:
        if variant:
            yield Branch(row_name("cooperative", variant, condition), cooperative.but(**VARIANTS[variant]))
    for variant, changes in VARIANTS.items() if hops == 2 and has_large_bonus and condition != "ours" else ():
        large = cooperative.but(**changes, bonus=LARGE_BONUS)
        yield Branch(row_name("cooperative", variant, condition, large_bonus=True), large)


def _ablations(settings: GameSettings) -> Iterator[Play]:
    """Yield what features and weights of C add, and how much questions do, on the first fold."""
    yield Play(0, 0, _pair(" without features", settings.but(exact_match=False)))
    yield Play(0, 0, _pair(" links", settings.but(evidence="links")))
    yield Play(0, 0, _curve("", settings))


def _ladder(settings: GameSettings) -> Iterator[Play]:
    """Yield what steps, their features, rarity and beliefs add, on the first fold; the table is the last rung."""
    for name, changes in LADDER.items():
        yield Play(0, 0, _pair(f" {name}", settings.but(**changes)))


def _curve(name: str, settings: GameSettings) -> tuple[Branch, ...]:
    """Return both rows on growing shares of the questions."""
    return tuple(branch for share in SHARES for branch in _pair(f" on {share:.0%}{name}", settings, share))


def _pair(name: str, settings: GameSettings, share: float = 1.0) -> tuple[Branch, Branch]:
    """Return the cooperative row and the conditional one, which share all but the Reasoner."""
    cooperative = Branch(f"cooperative{name}", settings.but(row="cooperative"), share)
    return cooperative, Branch(f"tail-to-head{name}", settings.but(row="conditional"), share)
