"""What is played for each table: its rows over folds and seeds, then the ablations, the most needed first."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from rechain.errors import RechainError
from rechain.game.plays import Branch, Play
from rechain.game.settings import DATA_SETS, GameSettings

HOPS = {"hotpotqa": 2, "drughop": 3, "medhop": 3}
"""passages in a chain of each table"""
SHARES = (0.1, 0.25, 0.5)
"""of the training questions, for the learning curve; the table itself is its last point"""


def table_settings(data_set: str, config: Path | None = None) -> GameSettings:
    """Return the settings of a data set, with those changed that a TOML file names."""
    if data_set not in DATA_SETS:
        raise RechainError(f"there is no data set '{data_set}' to reproduce; the data sets are {', '.join(DATA_SETS)}.")
    settings = GameSettings.for_data(data_set)
    if config is None:
        return settings
    GameSettings.read(config)  # raises what is wrong with the file, naming it
    return settings.but(**tomllib.loads(config.read_text(encoding="utf-8")))


def contest(settings: GameSettings, hops: int, folds: int, seeds: int, pseudo: int, ablations: bool) -> list[Play]:
    """Return all plays, the longest and the most needed first: one seed, what explains it, then the other seeds."""
    plays = []
    if ablations and pseudo:  # what a warm-up on pseudo questions adds, on the first fold
        plays.append(Play(0, 0, _pair(" after pseudo", settings), pseudo, keeps_weights=True))
        plays.append(Play(0, 0, _curve(" after pseudo", settings), pseudo))
        plays.append(Play(0, 0, _pair(" hard C after pseudo", _hard(settings)), pseudo))
    plays += _table(settings, hops, folds, seed=0)
    plays += [*_ablations(settings)] if ablations else []
    plays += [play for seed in range(1, seeds) for play in _table(settings, hops, folds, seed)]
    if ablations and pseudo:
        plays += [Play(fold, 0, _pair(" after pseudo", settings), pseudo) for fold in range(1, folds)]
    return plays


def _table(settings: GameSettings, hops: int, folds: int, seed: int) -> Iterator[Play]:
    """Yield the rows of the paper's table."""
    for fold in range(folds):
        yield Play(fold, seed, _pair("", settings), keeps_weights=fold == seed == 0)
        if hops == 2:  # between three, head and tail are selected independently: there is no direction
            backwards = settings.but(row="conditional", direction="head to tail")
            yield Play(fold, seed, (Branch("head-to-tail", backwards),))
        yield Play(fold, seed, (Branch("independent", settings.but(row="independent")),))


def _ablations(settings: GameSettings) -> Iterator[Play]:
    """Yield what features and weights of C add, and how much questions do, on the first fold."""
    yield Play(0, 0, _pair(" hard C", _hard(settings)))
    yield Play(0, 0, _pair(" as in the paper", _hard(settings).but(exact_match=False, gradient="reinforce")))
    yield Play(0, 0, _pair(" without features", settings.but(exact_match=False)))
    yield Play(0, 0, _pair(" links", settings.but(evidence="links")))
    yield Play(0, 0, _curve("", settings))


def _hard(settings: GameSettings) -> GameSettings:
    """Return the same with C as in the paper: all chains count alike."""
    return settings.but(evidence="none", head_reward="set")


def _curve(name: str, settings: GameSettings) -> tuple[Branch, ...]:
    """Return both rows on growing shares of the questions."""
    return tuple(branch for share in SHARES for branch in _pair(f" on {share:.0%}{name}", settings, share))


def _pair(name: str, settings: GameSettings, share: float = 1.0) -> tuple[Branch, Branch]:
    """Return the cooperative row and the conditional one, which share all but the Reasoner."""
    cooperative = Branch(f"cooperative{name}", settings.but(row="cooperative"), share)
    return cooperative, Branch(f"tail-to-head{name}", settings.but(row="conditional"), share)
