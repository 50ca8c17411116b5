"""What is played for each table: its rows over folds and seeds, then the ablations, the most needed first."""

from collections.abc import Iterator
from importlib.resources import as_file, files

from rechain.game.plays import Branch, Play
from rechain.game.settings import GameSettings

DATA_SETS = ("hotpotqa", "drughop", "medhop")
PSEUDO_QUESTIONS = 100_000
SHARES = (0.1, 0.25, 0.5)


def settings_of(data_set: str) -> GameSettings:
    """Return the settings for a data set."""
    with as_file(files("rechain").joinpath(f"data/settings/{data_set}.toml")) as path:
        return GameSettings.read(path)


def table_plays(settings: GameSettings, hops: int, folds: int, seeds: int) -> Iterator[Play]:
    """Yield the rows of the paper's table, seed by seed."""
    for seed in range(seeds):
        for fold in range(folds):
            yield Play(fold, seed, _pair("", settings))
            if hops == 2:
                yield Play(fold, seed, (Branch("head-to-tail", _conditional(settings, direction="head to tail")),))
            yield Play(fold, seed, (Branch("independent", settings.but(row="independent")),))


def ablation_plays(settings: GameSettings, folds: int, pseudo: int) -> Iterator[Play]:
    """Yield what shows where the figures come from: on the first fold, and with pseudo questions on every fold."""
    hard = settings.but(evidence="none", head_reward="set")
    curve = tuple(branch for share in SHARES for branch in _pair(f" on {share:.0%}", settings, share))
    if pseudo:
        branches = _pair(" after pseudo", settings), _pair(" hard C after pseudo", hard)
        with_curve = tuple(branch for share in SHARES for branch in _pair(f" on {share:.0%} after pseudo", settings, share))
        yield Play(0, 0, (*branches[0], *branches[1], *with_curve), pseudo)
    yield Play(0, 0, curve)
    yield Play(0, 0, _pair(" hard C", hard))
    yield Play(0, 0, _pair(" links", settings.but(evidence="links")))
    yield Play(0, 0, _pair(" without features", settings.but(exact_match=False)))
    yield Play(0, 0, _pair(" as in the paper", hard.but(exact_match=False, gradient="reinforce")))
    for fold in range(1, folds) if pseudo else ():
        yield Play(fold, 0, _pair(" after pseudo", settings), pseudo)


def _pair(name: str, settings: GameSettings, share: float = 1.0) -> tuple[Branch, Branch]:
    """Return the cooperative row and the conditional one, which share all but the Reasoner."""
    cooperative = Branch(f"cooperative{name}", settings.but(row="cooperative"), share)
    return cooperative, Branch(f"tail-to-head{name}", _conditional(settings), share)


def _conditional(settings: GameSettings, **changes: str) -> GameSettings:
    return settings.but(row="conditional", **changes)
