"""Many games on one data set: every contestant plays every fold with every seed, and scores the chains it did not see.

`python -m rechain.game.plays FOLDER` needs torch, numpy and safetensors alone: the folder can be prepared on one
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
from typing import Any

import numpy as np
import torch

from rechain.errors import InputError, RechainError
from rechain.game.data import Prepared
from rechain.game.decoding import decode
from rechain.game.settings import AS_WRITTEN, DECODING, GameSettings
from rechain.game.training import Part, Training
from rechain.system.digests import read_sealed, write_sealed
from rechain.system.processes import in_order
from rechain.system.tensors import Array, load_arrays, save_arrays

QUESTIONS, PSEUDO, VECTORS = "questions.safetensors", "pseudo-{}.safetensors", "vectors.safetensors"
PLAYS = "plays.json"


@dataclass(frozen=True)
class Branch:
    """A row of a table: how the players go on after the warm-up, on what share of the training questions."""

    row: str
    settings: GameSettings
    share: float = 1.0

    @property
    def pretraining(self) -> tuple[float, GameSettings]:
        """What two branches must agree in to share a pretraining: all but what concerns the Reasoner and the game."""
        return self.share, self.settings.but(row="conditional", bonus=0.0, freezes_reasoner=False, **AS_WRITTEN)


@dataclass(frozen=True)
class Play:
    """A training run for one fold and seed, which branches after the warm-up into one or more rows.

    Neighbouring branches that differ only in the Reasoner go apart after the pretraining.
    """

    fold: int
    seed: int
    branches: tuple[Branch, ...]
    pseudo: int = 0
    """pseudo questions of the warm-up"""
    keeps_weights: bool = False
    """whether the weights of the first branch are kept"""
    done: tuple[str, ...] = ()
    """rows that were played before, and whose results need not travel to where the others are played"""

    def __str__(self) -> str:
        """Return what a log calls it."""
        return f"{' / '.join(branch.row for branch in self.branches)}; fold {self.fold}, seed {self.seed}"

    def path(self, folder: Path, branch: Branch) -> Path:
        """Return where the scores of a branch are kept."""
        return folder / "plays" / f"{branch.row}.{self.fold}.{self.seed}.safetensors"

    def played(self, folder: Path) -> tuple[str, ...]:
        """Return the rows whose results are there."""
        return tuple(branch.row for branch in self.branches if self.path(folder, branch).exists())

    def waiting(self, folder: Path) -> list[Branch]:
        """Return the branches whose results are neither there nor known to be elsewhere."""
        known = {*self.done, *self.played(folder)}
        return [branch for branch in self.branches if branch.row not in known]

    def is_done(self, folder: Path) -> bool:
        """Return whether nothing of it is to be played."""
        return not self.waiting(folder)


def write_plays(plays: Iterable[Play], folder: Path) -> None:
    """Write what is to be played and what of it is done, unless with other settings: a table must not mix two."""
    plays = list(plays)
    for play in plays:
        for branch in play.branches:
            path = play.path(folder, branch).with_suffix(".json")
            if not path.exists():
                continue
            try:
                done = GameSettings.recorded(read_sealed(path).get("settings", {}), str(path))
            except ValueError as error:
                raise InputError(f"{path} is damaged: {error}; delete it and the scores beside it.") from error
            planned = branch.settings.but(seed=play.seed)
            for name in sorted(asdict(planned).keys() - DECODING):
                was, now = getattr(done, name), getattr(planned, name)
                if was != now:
                    raise InputError(
                        f"{folder} has {branch.row} played with {name} = {was}, not {now}; name another --out for that."
                    )
    plays = [replace(play, done=play.played(folder)) for play in plays]
    write_sealed(folder / PLAYS, {"plays": [asdict(play) for play in plays]})


def read_plays(folder: Path) -> list[Play]:
    """Read what is to be played."""
    plays = []
    try:
        for record in read_sealed(folder / PLAYS)["plays"]:
            branches = [
                Branch(branch["row"], GameSettings.recorded(branch["settings"], PLAYS), branch["share"])
                for branch in record.pop("branches")
            ]
            plays.append(Play(branches=tuple(branches), done=tuple(record.pop("done", ())), **record))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder} is not prepared to be played: {PLAYS} is missing or broken ({error}).") from error
    return plays


class Stage:
    """A prepared folder, loaded onto a device."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder
        self.device = device
        self.arrays, vectors = load_arrays(folder / QUESTIONS), load_arrays(folder / VECTORS)
        if "fold" not in self.arrays or "vectors" not in vectors:
            raise InputError(f"{folder} is not prepared to be played: {QUESTIONS} or {VECTORS} is of something else.")
        self.folds = self.arrays.pop("fold")
        self.vectors = torch.from_numpy(vectors["vectors"])
        self._loaded: dict[Any, tuple[Prepared, Array]] = {}

    def questions(self, settings: GameSettings, fold: int) -> Prepared:
        """Return the questions as these settings read them; those of all other folds tell of steps."""
        return self._prepared(QUESTIONS, settings)[0].told_by(fold)

    def pseudo(self, settings: GameSettings, fold: int, count: int) -> list[Part]:
        """Return pseudo questions whose chains have nothing of a fold, one part from each of the others."""
        others = [other for other in range(self.folds.max() + 1) if other != fold]
        parts = []
        for other in others if count else ():
            data, allowed = self._prepared(PSEUDO.format(other), settings)
            usable = np.flatnonzero(allowed[:, fold])
            chosen = np.random.default_rng([fold, other]).permutation(usable)[: -(-count // len(others))]
            parts.append(Part(data, chosen))
        return parts

    def _prepared(self, name: str, settings: GameSettings) -> tuple[Prepared, Array]:
        key = (name, *settings.reading)
        if key not in self._loaded:
            arrays = self.arrays if name == QUESTIONS else load_arrays(self.folder / name)
            allowed = arrays.pop("allowed", self.folds)
            self._loaded[key] = Prepared(arrays, self.device, *key[1:]), allowed
        return self._loaded[key]

    def play(self, play: Play) -> None:
        """Train on the other folds and write the scores that the players give to this one's chains.

        Branches that were written before an interruption stay as they are: none depends on another.
        """
        settings = play.branches[0].settings.but(seed=play.seed)
        others = np.random.default_rng(play.seed).permutation(np.flatnonzero(self.folds != play.fold))
        start = time.perf_counter()
        pseudo = self.pseudo(settings, play.fold, play.pseudo)
        warm = Training(self.vectors, self.questions(settings, play.fold), settings, others, pseudo)
        warm.run(until="pretraining")
        metadata = {"pseudo": play.pseudo, "warm_up_seconds": time.perf_counter() - start}
        for (share, _), branches in groupby(play.waiting(self.folder), key=lambda branch: branch.pretraining):
            self._play_branches(play, list(branches), warm, others[: max(round(share * len(others)), 1)], metadata)

    def _play_branches(
        self, play: Play, branches: Sequence[Branch], warm: Training, questions: Array, metadata: dict[str, float]
    ) -> None:
        """Pretrain on some questions, then play the game of every branch."""
        start = time.perf_counter()
        pretrained = warm.branch(branches[0].settings.but(seed=play.seed))
        pretrained.use(np.sort(questions))
        pretrained.run(until="reasoner")
        metadata = metadata | {"questions": len(questions), "pretraining_seconds": time.perf_counter() - start}
        for branch in branches:
            start = time.perf_counter()
            settings = branch.settings.but(seed=play.seed)
            training = pretrained.branch(settings, self.questions(settings, play.fold))
            training.run()
            self._write(play, branch, training, metadata | {"game_seconds": time.perf_counter() - start})

    def _write(self, play: Play, branch: Branch, training: Training, metadata: dict[str, float]) -> None:
        """Write metadata, weights and scores; the scores come last, as by them a play is known to be done."""
        path = play.path(self.folder, branch)
        path.parent.mkdir(exist_ok=True)
        content = metadata | {"settings": asdict(training.settings), "curve": training.progress.curve}
        write_sealed(path.with_suffix(".json"), content)
        if play.keeps_weights and branch is play.branches[0]:
            training.save_weights(path.with_suffix(".model"))
        save_arrays(scores(training, np.flatnonzero(self.folds == play.fold)), path)


def scores(training: Training, questions: Array) -> dict[str, Array]:
    """Return the players' scores of the chains of some questions, one after another.

    They travel from one machine to another: only those by which chains are picked have all their digits.
    """
    types = {"ranker": np.float32, "reasoner": np.float32, "named": np.int16, "bonus": np.float16}
    parts: dict[str, list[Array]] = {name: [] for name in types}
    for batch in training.data.batches(questions, 64):
        with training.arithmetic():
            decoded = decode(training.players, batch)
        for name, values in parts.items():
            values.append(getattr(decoded, name)[batch.is_chain].float().cpu().numpy().astype(types[name]))
    return {"questions": questions.astype(np.int32)} | {name: np.concatenate(values) for name, values in parts.items()}


def play_all(folder: Path, plays: Iterable[Play], device: str, processes: int, is_quiet: bool = False) -> None:
    """Play all that is not done yet, in several processes side by side; where a play fails, the others go on."""
    waiting = [play for play in plays if not play.is_done(folder)]
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
        """Play, and return what went wrong, if anything did."""
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
