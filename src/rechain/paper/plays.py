"""Many games on one data set: every row is trained for every fold and seed, and scores the chains it did not see.

`python -m rechain.paper.plays FOLDER` needs torch, numpy and safetensors alone: the folder can be prepared on one
machine, played on another and judged on a third.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import torch

from rechain.errors import InputError, RechainError
from rechain.paper.data import Prepared
from rechain.paper.decode import decode
from rechain.paper.game import Players
from rechain.paper.settings import AFTER_PRETRAINING, DECODING, GameSettings
from rechain.paper.train import Training, save_players
from rechain.system.files import read_sealed, write_sealed
from rechain.system.processes import in_order
from rechain.system.tensors import Array, load_arrays, save_arrays

QUESTIONS, VECTORS = "questions.safetensors", "vectors.safetensors"
PLAYS = "plays.json"
SCORES = {"ranker": np.float32, "reasoner": np.float32, "predicted": np.int16}
"""what is kept of the scores of chains"""
ONLY_TRAINED = -1
"""the fold of questions that are never tested; only branches that ask for more questions learn from them"""


@dataclass(frozen=True)
class Branch:
    """A row of a table: how the players are trained, and on which of the training questions."""

    row: str
    settings: GameSettings
    share: float = 1.0
    """of the questions of the other folds"""
    with_more: bool = False
    """whether it also learns from the questions that are only trained on"""

    @property
    def pretraining(self) -> tuple[float, bool, str, GameSettings]:
        """What two branches must agree in to share a pretraining: all but the Reasoner and the game."""
        row = self.settings.row if self.settings.row in ("independent", "head to tail") else "tail to head"
        defaults = {name: getattr(GameSettings(), name) for name in AFTER_PRETRAINING}
        return self.share, self.with_more, row, self.settings.but(row="independent", **defaults)


@dataclass(frozen=True)
class Play:
    """A training run for one fold and seed, which branches into one or more rows.

    Neighbouring branches that differ only in the Reasoner and the game share their pretraining.
    """

    fold: int
    seed: int
    branches: tuple[Branch, ...]
    keeps_weights: bool = False
    """whether the weights of the first branch are kept"""
    done: tuple[str, ...] = ()
    """rows that were played before, and whose results need not travel to where the others are played"""

    def __str__(self) -> str:
        """Return its name in a log."""
        return f"{' / '.join(branch.row for branch in self.branches)}; fold {self.fold}, seed {self.seed}"

    def path(self, folder: Path, branch: Branch) -> Path:
        """Return the file for the scores of a branch."""
        return folder / "plays" / f"{branch.row}.{self.fold}.{self.seed}.safetensors"

    def played(self, folder: Path) -> tuple[str, ...]:
        """Return the rows whose results are there."""
        return tuple(branch.row for branch in self.branches if self.path(folder, branch).exists())

    def waiting(self, folder: Path) -> list[Branch]:
        """Return the branches whose results are neither there nor known to be elsewhere."""
        known = {*self.done, *self.played(folder)}
        return [branch for branch in self.branches if branch.row not in known]


def write_plays(plays: Iterable[Play], folder: Path) -> None:
    """Write what is to be played and what of it is done, unless with other settings: a table must not mix two."""
    plays = list(plays)
    for play in plays:
        _check_played(play, folder)
    plays = [replace(play, done=play.played(folder)) for play in plays]
    write_sealed(folder / PLAYS, {"plays": [asdict(play) for play in plays]})


def _check_played(play: Play, folder: Path) -> None:
    """Raise InputError if a row was played with other settings, or on another share of the questions."""
    for branch in play.branches:
        path = play.path(folder, branch).with_suffix(".json")
        if not path.exists():
            continue
        try:
            record = read_sealed(path)
            done = {**record["settings"], **{name: record[name] for name in ("share", "with_more")}}
        except (ValueError, KeyError) as error:
            raise InputError(f"{path} is damaged: {error}; delete it and the scores next to it.") from error
        planned = {**asdict(branch.settings.but(seed=play.seed)), "share": branch.share, "with_more": branch.with_more}
        for name, value in planned.items():
            if name not in DECODING and done.get(name) != value:
                raise InputError(
                    f"{folder} has {branch.row} played with {name} = {done.get(name)}, not {value}; name another "
                    "folder, or another row."
                )


def read_plays(folder: Path) -> list[Play]:
    """Read what is to be played."""
    plays = []
    try:
        for record in read_sealed(folder / PLAYS)["plays"]:
            branches = [
                Branch(**branch | {"settings": GameSettings.of(branch["settings"], PLAYS)})
                for branch in record.pop("branches")
            ]
            plays.append(Play(branches=tuple(branches), done=tuple(record.pop("done", ())), **record))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder} is not prepared to be played: {PLAYS} is missing or broken ({error}).") from error
    return plays


class Stage:
    """A prepared folder, loaded onto a device."""

    def __init__(self, folder: Path, device: str = "cpu", players: type[Players] = Players) -> None:
        """Load a folder; `players` may be a class that changes a reward, a loss or a network of the game."""
        self.folder, self._players = folder, players
        arrays, vectors = load_arrays(folder / QUESTIONS), load_arrays(folder / VECTORS)
        if not arrays.keys() >= {"fold", "merged_passages"} or "vectors" not in vectors:
            raise InputError(f"{folder} is not prepared to be played, or by another version; prepare another folder.")
        self.folds = arrays.pop("fold")
        self.vectors = torch.from_numpy(vectors["vectors"])
        self._data = Prepared(arrays, GameSettings(), device)

    def questions(self, settings: GameSettings, fold: int) -> Prepared:
        """Return the questions as these settings read them, with the beliefs of all other folds."""
        return self._data.view(settings, fold)

    def play(self, play: Play) -> None:
        """Train on the other folds and write the scores that the players give to the chains of this one.

        Branches that were written before an interruption stay as they are: none depends on another.
        """
        _check_played(play, self.folder)
        for _, branches in groupby(play.waiting(self.folder), key=lambda branch: branch.pretraining):
            self._play_branches(play, list(branches))

    def training_questions(self, play: Play, branch: Branch) -> Array:
        """Return the questions that a branch learns from: a share of the other folds', and more if it asks for them."""
        is_other = (self.folds != play.fold) & (self.folds != ONLY_TRAINED)
        others = np.random.default_rng(play.seed).permutation(np.flatnonzero(is_other))
        more = np.flatnonzero(self.folds == ONLY_TRAINED) if branch.with_more else others[:0]
        return np.sort(np.concatenate([others[: max(round(branch.share * len(others)), 1)], more]))

    def _play_branches(self, play: Play, branches: Sequence[Branch]) -> None:
        """Pretrain once, then play the game of every branch."""
        start = time.perf_counter()
        settings = branches[0].settings.but(seed=play.seed)
        questions = self.training_questions(play, branches[0])
        pretrained = Training(self.vectors, self.questions(settings, play.fold), settings, questions, self._players)
        pretrained.run(until="reasoner")
        metadata = {"questions": len(questions), "pretraining_seconds": time.perf_counter() - start}
        for branch in branches:
            start = time.perf_counter()
            settings = branch.settings.but(seed=play.seed)
            training = pretrained.branch(settings, self.questions(settings, play.fold))
            training.run()
            self._write(play, branch, training, metadata | {"game_seconds": time.perf_counter() - start})

    def _write(self, play: Play, branch: Branch, training: Training, metadata: dict[str, float]) -> None:
        """Write metadata, weights and scores; the scores come last, since they mark a play as done."""
        path = play.path(self.folder, branch)
        path.parent.mkdir(exist_ok=True)
        content = {
            **metadata,
            "settings": asdict(training.settings),
            "share": branch.share,
            "with_more": branch.with_more,
            "curve": training.state.progress.curve,
        }
        write_sealed(path.with_suffix(".json"), content)
        if play.keeps_weights and branch is play.branches[0]:
            save_players(training.players, path.with_suffix(".model"))
        save_arrays(chain_scores(training, np.flatnonzero(self.folds == play.fold)), path)


def chain_scores(training: Training, questions: Array) -> dict[str, Array]:
    """Return the players' scores of the chains of some questions, one after another."""
    parts: dict[str, list[Array]] = {name: [] for name in SCORES}
    for batch in training.data.batches(questions, 64):
        with training.arithmetic():
            decoded = decode(training.players, batch)
        for name, values in parts.items():
            values.append(getattr(decoded, name)[batch.is_chain].float().cpu().numpy().astype(SCORES[name]))
    return {"questions": questions.astype(np.int32)} | {name: np.concatenate(values) for name, values in parts.items()}


def play_all(folder: Path, plays: Iterable[Play], device: str, processes: int, is_quiet: bool = False) -> None:
    """Play all that is not done yet, in several processes side by side; if a play fails, the others continue."""
    waiting = [play for play in plays if play.waiting(folder)]
    threads = torch.get_num_threads()
    try:
        if processes > 1 and len(waiting) > 1:
            # All are handed out at once, not in the order of the results: the first plays take much longer than others.
            workers = min(processes, len(waiting))
            outcomes = in_order(partial(_Player, folder, device, is_quiet), waiting, workers, ahead=len(waiting))
        else:
            outcomes = map(_Player(folder, device, is_quiet), waiting) if waiting else iter(())
        failures = [failure for failure in outcomes if failure]
    finally:
        torch.set_num_threads(threads)
    if failures:
        raise RechainError(
            f"{len(failures)} of {len(waiting)} plays failed, the first with: {failures[0]}; "
            f"what was played is kept in {folder}."
        )


class _Player:
    """Plays on one thread: tiny networks gain nothing from more, and several play side by side."""

    def __init__(self, folder: Path, device: str, is_quiet: bool) -> None:
        torch.set_num_threads(1)
        self._is_quiet = is_quiet
        self._stage = Stage(folder, device)

    def __call__(self, play: Play) -> str | None:
        """Play, and return the error if there was one."""
        start = time.perf_counter()
        try:
            self._stage.play(play)
        except (RechainError, RuntimeError, OSError) as error:  # of torch too, such as too little memory
            return str(error).strip().removesuffix(".") or type(error).__name__
        if not self._is_quiet:
            print(f"{play}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        return None


def main() -> None:
    """Play what is written down in a folder."""
    parser = ArgumentParser(description="Play every training run that is written down in a prepared folder.")
    parser.add_argument("folder", type=Path, help="what `rechain reproduce … --prepare-only` has written")
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default, help=f"cpu, cuda, cuda:1, …; {default} by default")
    parser.add_argument("--processes", type=int, default=1, help="how many train side by side; 1 by default")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        play_all(options.folder, read_plays(options.folder), options.device, options.processes)
    except RechainError as error:
        raise SystemExit(f"rechain: {error}") from error
    print(f"All is played, in {time.perf_counter() - start:.0f} s.", file=sys.stderr)


if __name__ == "__main__":
    main()
