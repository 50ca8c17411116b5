"""rechain reproduce: the paper's tables, from the questions to a report."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rechain.cli.options import Device, GoldFile, Passages, Questions, QuestionsInput
from rechain.cli.tables import print_table
from rechain.cli.train import VectorsFile, read_vectors_of
from rechain.errors import RechainError

if TYPE_CHECKING:
    from rechain.evaluation.statistics import Figure
    from rechain.game.settings import GameSettings
    from rechain.schema import Question

_ROW_TYPES = {"hotpotqa": "bridge"}
_HOPS = {"hotpotqa": 2, "drughop": 3, "medhop": 3}


def reproduce(
    data_set: Annotated[str, typer.Argument(metavar="DATASET", help="hotpotqa, drughop or medhop.")],
    questions: Questions,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where everything is kept; nothing is done twice.")],
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Test questions; without them, folds are tested in turn.")
    ] = None,
    passages: Passages = None,
    vectors: VectorsFile = None,
    gold: GoldFile = None,
    folds: Annotated[int, typer.Option(min=2, help="Into how many parts the questions are cut.")] = 5,
    seeds: Annotated[int, typer.Option(min=1, help="How often every row is trained.")] = 3,
    pseudo: Annotated[int, typer.Option(min=0, metavar="N", help="Pseudo questions of the ablations.")] = 100_000,
    no_ablations: Annotated[bool, typer.Option("--no-ablations", help="The rows of the table alone.")] = False,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings to change, as TOML.")] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="RUN", help="A trained model that is asked about labelled pairs.")
    ] = None,
    device: Device = None,
    processes: Annotated[int, typer.Option(min=1, help="How many plays run side by side.")] = 1,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="Only write what is to be played with.")] = False,
    judge_only: Annotated[bool, typer.Option("--judge-only", help="Only judge what is played already.")] = False,
) -> None:
    """Make the paper's table anew: train every row over folds and seeds, judge it, and write FOLDER/report.md.

    Example: rechain reproduce hotpotqa hotpot_dev_distractor_v1.json --vectors glove.6B.100d.txt --out hotpotqa
    """
    settings = _settings(data_set, config)
    asked = _read(data_set, questions, test, passages)
    judging = None if prepare_only else _Judging(asked, test or questions, passages, gold)
    folder = _Folder(out, asked, vectors, 2 if test else folds)
    if judge_only:
        folder.check_played()
    else:
        folder.prepare(0 if no_ablations else pseudo)
        folder.check_hops(_HOPS[data_set])
        folder.write_plays(settings, _HOPS[data_set], 1 if test else folds, seeds, pseudo, not no_ablations)
    if prepare_only:
        print(f"{out} is prepared; `python -m rechain.game.plays {out}` plays it.", file=sys.stderr)
        return
    if not judge_only:
        folder.play(device, processes)
    assert judging is not None
    figures = judging.pairs(model or folder.weights, vectors, device) if judging.labels else {}
    judging.report(out, data_set, settings, figures)


@dataclass(frozen=True)
class _Asked:
    """The questions of a table."""

    training: "Sequence[Question]"
    tested: "Sequence[Question]"
    """those that are judged"""
    extra: "Sequence[Question]"
    """questions of other types, whose passages are only used for pseudo questions"""
    has_test: bool

    @property
    def all(self) -> "list[Question]":
        return [*self.tested, *self.training] if self.has_test else list(self.training)


def _settings(data_set: str, config: Path | None) -> "GameSettings":
    import tomllib

    from rechain.game.settings import DATA_SETS, GameSettings

    if data_set not in DATA_SETS:
        raise RechainError(f"there is no data set '{data_set}' to reproduce; the data sets are {', '.join(DATA_SETS)}.")
    settings = GameSettings.for_data(data_set)
    if config is None:
        return settings
    GameSettings.read(config)  # says what is wrong with it
    return settings.but(**tomllib.loads(config.read_text(encoding="utf-8")))


def _read(data_set: str, questions: Path, test: Path | None, passages: Path | None) -> _Asked:
    wanted = _ROW_TYPES.get(data_set)
    read = list(QuestionsInput(questions, passages).readable("Reading questions"))
    training = [question for question in read if wanted is None or question.type == wanted]
    tested = training
    if test is not None:
        tested = list(QuestionsInput(test, passages).readable("Reading questions"))
        tested = [question for question in tested if wanted is None or question.type == wanted]
    for path, found in ((questions, training), (test, tested)):
        if not found:
            raise RechainError(f"{path} holds no question of type {wanted}.")
    if test is not None and (shared := {q.id for q in training} & {q.id for q in tested}):
        raise RechainError(f"{questions} and {test} share the question '{min(shared)}'; test on other questions.")
    return _Asked(training, tested, [q for q in read if wanted is not None and q.type != wanted], test is not None)


class _Folder:
    """Where a table is prepared and played."""

    def __init__(self, path: Path, asked: _Asked, vectors: Path | None, folds: int) -> None:
        from rechain.tables.stage import INDEX

        self._path = path
        self._asked = asked
        self._vectors = vectors
        self._folds = folds
        self._is_prepared = (path / INDEX).exists()
        if self._is_prepared:
            self._check()

    @property
    def weights(self) -> Path | None:
        """The weights of a cooperative play, if they were kept."""
        path = self._path / "plays" / "cooperative.0.0.model"
        return path if path.exists() else None

    def _check(self) -> None:
        """Say what is wrong where the folder was prepared for something else."""
        from rechain.tables.stage import read_index

        index = read_index(self._path)
        asked, known = [question.id for question in self._asked.all], set(index["ids"])
        is_same = [name for name in asked if name in known] == index["ids"]
        if not is_same or len(asked) != len(index["ids"]) + sum(index["left_out"].values()):
            raise RechainError(f"{self._path} was prepared for other questions; name another folder with --out.")
        if index["folds"] != self._folds or bool(index.get("has_test")) != self._asked.has_test:
            raise RechainError(f"{self._path} was prepared for {index['folds']} folds, or with another --test.")

    def check_hops(self, hops: int) -> None:
        """Say so where the chains are of another length than the table's."""
        from rechain.tables.stage import read_index

        found = read_index(self._path).get("hops", hops)
        if found != hops:
            raise RechainError(
                f"the chains of these questions have {found} passages, not {hops} as those of this table."
            )

    def check_played(self) -> None:
        """Say so where there is nothing to judge."""
        if not self._is_prepared or not any((self._path / "plays").glob("*.safetensors")):
            raise RechainError(f"nothing was played in {self._path} yet; leave --judge-only out.")

    def prepare(self, pseudo: int) -> None:
        """Prepare what is to be played with, if that is not done."""
        from rechain.candidates import CandidateSettings
        from rechain.cli.progress import working
        from rechain.tables.stage import stage

        if self._is_prepared:
            self._check_material(pseudo)
            return
        asked, known = self._asked, read_vectors_of(self._vectors)
        test = asked.tested if asked.has_test else None
        make = partial(stage, folds=self._folds, pseudo=pseudo, extra=asked.extra, test=test)
        with working("Preparing"):
            make(self._path, asked.training, known, CandidateSettings())

    def _check_material(self, pseudo: int) -> None:
        from rechain.game.plays import PSEUDO, VECTORS
        from rechain.preparation.vectors import read_vectors
        from rechain.system.tensors import load_arrays
        from rechain.tables.stage import FIRST, read_index, start_of

        if self._vectors is not None:
            width = load_arrays(self._path / VECTORS)["vectors"].shape[1]
            vectors = start_of(read_vectors(self._vectors, limit=FIRST, width=width))
            if read_index(self._path).get("vectors", vectors) != vectors:
                raise RechainError(f"{self._path} was prepared with other vectors; name another folder with --out.")
        if pseudo and not (self._path / PSEUDO.format(1)).exists():
            raise RechainError(f"{self._path} was prepared without pseudo questions; add --pseudo 0 or change --out.")

    def write_plays(
        self, settings: "GameSettings", hops: int, folds: int, seeds: int, pseudo: int, ablations: bool
    ) -> None:
        """Write down what is to be played."""
        from rechain.game.plays import check_unchanged, write_plays
        from rechain.tables.plan import contest

        plays = contest(settings, hops, folds, seeds, pseudo, ablations)
        check_unchanged(plays, self._path)
        write_plays(plays, self._path)

    def play(self, device: str | None, processes: int) -> None:
        """Play what is not done yet."""
        from rechain.game.plays import play_all, read_plays
        from rechain.system.devices import device_named

        play_all(self._path, read_plays(self._path), device_named(device), processes)


class _Judging:
    """What is judged by; nothing of it is there when the folder is prepared and played."""

    def __init__(self, asked: _Asked, file: Path, passages: Path | None, gold: Path | None) -> None:
        from rechain.tables.judge import choose, read_pair_labels

        self._asked = asked
        self._golds = QuestionsInput(file, passages).gold(gold)
        self.labels = read_pair_labels(gold) if gold else []
        if not self.labels and not choose(asked.tested, self._golds):
            hint = f"in {gold}" if gold else f"in {file}; name their file with --gold"
            raise RechainError(f"no question that is to be judged has gold chains {hint}.")

    def pairs(self, model: Path | None, vectors: Path | None, device: str | None) -> "dict[str, Figure]":
        """Return how well the lexical rule, a guess and a trained Reasoner tell interacting pairs."""
        from rechain.system.devices import device_named
        from rechain.tables.pairs import guess_auc, lexical_auc, pair_auc
        from rechain.training.game_runs import load_game

        told = self._asked.all, self.labels
        figures = {"lexical": lexical_auc(*told), "a guess among the mentions": guess_auc(*told)}
        if model is not None:
            reader = load_game(model, read_vectors_of(vectors), device_named(device))
            figures[f"Reasoner of {model.name}"] = pair_auc(reader, *told)
            figures[f"Reasoner of {model.name}, over the guess"] = pair_auc(reader, *told, over_guess=True)
        return figures

    def report(self, folder: Path, data_set: str, settings: "GameSettings", pairs: "dict[str, Figure]") -> None:
        """Judge what was played, print the table and write the report."""
        from rechain.cli.progress import working
        from rechain.tables.judge import judge_plays
        from rechain.tables.report import NAMES, brief_table, pairs_table, write_report

        with working("Judging"):
            judged = judge_plays(folder, self._asked.tested, self._golds, settings)
        if judged.judged:
            print_table(f"{NAMES[data_set]}, chain accuracy in %", *brief_table(judged, data_set))
        if pairs:
            print_table("Interacting pairs", *pairs_table(pairs))
        print(f"{write_report(folder, judged, data_set, pairs)} says more.", file=sys.stderr)
