"""Many games on one data set: every contestant plays every fold with every seed, and scores the chains it did not see.

`python -m rechain.game.plays FOLDER` needs torch, numpy and safetensors alone: the folder can be prepared on one
machine, played on another and judged on a third.
"""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rechain.errors import InputError, RechainError
from rechain.game.data import Prepared
from rechain.game.decoding import decode
from rechain.game.settings import DECODING, GameSettings
from rechain.game.training import Part, Training
from rechain.system.tensors import Array, load_arrays, save_arrays

QUESTIONS, PSEUDO, VECTORS = "questions.safetensors", "pseudo-{}.safetensors", "vectors.safetensors"
PLAYS = "plays.json"


@dataclass(frozen=True)
class Branch:
    """A row of a table: how the players go on after the warm-up, on what share of the training questions."""

    row: str
    settings: GameSettings
    share: float = 1.0


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

    def path(self, folder: Path, branch: Branch) -> Path:
        """Return where a result is kept."""
        return folder / "plays" / f"{branch.row}.{self.fold}.{self.seed}.safetensors"

    def is_done(self, folder: Path) -> bool:
        """Return whether its results are there."""
        return all(self.path(folder, branch).exists() for branch in self.branches)


def write_plays(plays: Iterable[Play], folder: Path) -> None:
    """Write what is to be played."""
    (folder / PLAYS).write_text(json.dumps([asdict(play) for play in plays], indent=1), encoding="utf-8")


def read_plays(folder: Path) -> list[Play]:
    """Read what is to be played."""
    try:
        records = json.loads((folder / PLAYS).read_text(encoding="utf-8"))
        return [_play(**record) for record in records]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{folder} is not prepared to be played: {PLAYS} is missing or broken ({error}).") from error


def check_unchanged(plays: Iterable[Play], folder: Path) -> None:
    """Say which setting is another than that of a play which is done already: a table must not mix the two."""
    for play in plays:
        for branch in play.branches:
            story = play.path(folder, branch).with_suffix(".json")
            if story.exists():
                done = GameSettings.of(json.loads(story.read_text(encoding="utf-8"))["settings"], str(story))
                _check_same(branch.settings.but(seed=play.seed), done, folder, branch.row)


def _check_same(asked: GameSettings, done: GameSettings, folder: Path, row: str) -> None:
    for name in sorted(asdict(asked).keys() - DECODING):
        was, now = getattr(done, name), getattr(asked, name)
        if was != now:
            raise InputError(f"{folder} has {row} played with {name} = {was}, not {now}; name another --out for that.")


def _play(branches: list[dict[str, Any]], **fields: Any) -> Play:
    made = [Branch(b["row"], GameSettings.of(b["settings"], PLAYS), b["share"]) for b in branches]
    return Play(branches=tuple(made), **fields)


class Stage:
    """A prepared folder, loaded onto a device."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder
        self.device = device
        self.arrays = load_arrays(folder / QUESTIONS)
        self.folds = self.arrays.pop("fold")
        self.vectors = torch.from_numpy(load_arrays(folder / VECTORS)["vectors"])
        self._kept: dict[Any, tuple[Prepared, Array]] = {}

    def questions(self, settings: GameSettings) -> Prepared:
        """Return the questions as these settings read them."""
        return self._prepared(QUESTIONS, settings)[0]

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
        key = (name, settings.max_tokens, settings.mark_answer)
        if key not in self._kept:
            arrays = self.arrays if name == QUESTIONS else load_arrays(self.folder / name)
            allowed = arrays.pop("allowed", self.folds)
            self._kept[key] = Prepared.for_settings(arrays, self.device, settings), allowed
        return self._kept[key]

    def play(self, play: Play) -> None:
        """Train on the other folds and write what the players say of this one's chains."""
        settings = play.branches[0].settings.but(seed=play.seed)
        others = np.random.default_rng(play.seed).permutation(np.flatnonzero(self.folds != play.fold))
        start = time.perf_counter()
        pseudo = self.pseudo(settings, play.fold, play.pseudo)
        warm = Training(self.vectors, self.questions(settings), settings, others, pseudo)
        warm.run(until="pretraining")
        story = {"pseudo": play.pseudo, "warm_up_seconds": time.perf_counter() - start}
        for (share, _), branches in groupby(play.branches, key=_pretraining):
            self._go_on(play, warm, others[: max(round(share * len(others)), 1)], list(branches), story)

    def _go_on(
        self, play: Play, warm: Training, questions: Array, branches: Sequence[Branch], story: dict[str, float]
    ) -> None:
        """Pretrain on some questions, then play the game of every branch."""
        start = time.perf_counter()
        pretrained = warm.branch(branches[0].settings.but(seed=play.seed))
        pretrained.use(np.sort(questions))
        pretrained.run(until="game")
        story = story | {"questions": len(questions), "pretraining_seconds": time.perf_counter() - start}
        for branch in branches:
            start = time.perf_counter()
            training = pretrained.branch(branch.settings.but(seed=play.seed))
            training.run()
            self._write(play, branch, training, story | {"game_seconds": time.perf_counter() - start})

    def _write(self, play: Play, branch: Branch, training: Training, story: dict[str, float]) -> None:
        tested = np.flatnonzero(self.folds == play.fold)
        path = play.path(self.folder, branch)
        path.parent.mkdir(exist_ok=True)
        told = story | {"settings": asdict(training.settings), "curve": training.progress.curve}
        path.with_suffix(".json").write_text(json.dumps(told), encoding="utf-8")
        if play.keeps_weights and branch is play.branches[0]:
            training.save_weights(path.with_suffix(".model"))
        save_arrays(scores(training, tested), path)


def _pretraining(branch: Branch) -> tuple[float, GameSettings]:
    """Return what two branches must agree in to share a pretraining: all but what concerns the Reasoner."""
    return branch.share, branch.settings.but(row="conditional", bonus=0.0)


def scores(training: Training, questions: Array) -> dict[str, Array]:
    """Return what the players say of the chains of some questions, one after another."""
    told: dict[str, list[Array]] = {"ranker": [], "reasoner": [], "named": []}
    for batch in training.data.batches(questions, 64):
        with training.arithmetic():
            decoded = decode(training.players, batch)
        for name in told:
            told[name].append(getattr(decoded, name)[batch.is_chain].float().cpu().numpy())
    return {"questions": questions} | {name: np.concatenate(values) for name, values in told.items()}


def play_all(folder: Path, plays: Iterable[Play], device: str, processes: int) -> None:
    """Play all that is not done yet, in several processes side by side."""
    waiting = [play for play in plays if not play.is_done(folder)]
    context = get_context("spawn")
    queue: Queue[Play | None] = context.Queue()
    for play in (*waiting, *[None] * processes):
        queue.put(play)
    workers = [context.Process(target=_work, args=(folder, device, queue)) for _ in range(min(processes, len(waiting)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed := sum(worker.exitcode != 0 for worker in workers):
        raise RechainError(f"{failed} of {len(workers)} processes failed; what they had played is kept in {folder}.")


def _work(folder: Path, device: str, queue: "Queue[Play | None]") -> None:
    """Play what stands in the queue, and end with one sentence where that fails."""
    try:
        _play_queue(folder, device, queue)
    except RechainError as error:
        raise SystemExit(f"rechain: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _play_queue(folder: Path, device: str, queue: "Queue[Play | None]") -> None:
    torch.set_num_threads(1)
    stage = Stage(folder, device)
    while play := queue.get():
        start = time.perf_counter()
        stage.play(play)
        took = f"{time.perf_counter() - start:.0f} s"
        rows = ", ".join(branch.row for branch in play.branches)
        print(f"{rows}; fold {play.fold}, seed {play.seed}: {took}", file=sys.stderr, flush=True)


def main() -> None:
    """Play what is written down in a folder."""
    parser = ArgumentParser(description="Play every training run that is written down in a prepared folder.")
    parser.add_argument("folder", type=Path, help="what `rechain reproduce … --prepare-only` has written")
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default, help=f"cpu, cuda, cuda:1, …; {default} unless told")
    parser.add_argument("--processes", type=int, default=1, help="how many train side by side; 1 unless told")
    given = parser.parse_args()
    start = time.perf_counter()
    try:
        play_all(given.folder, read_plays(given.folder), given.device, given.processes)
    except RechainError as error:
        raise SystemExit(f"rechain: {error}") from error
    print(f"All is played, in {time.perf_counter() - start:.0f} s.", file=sys.stderr)


if __name__ == "__main__":
    main()
