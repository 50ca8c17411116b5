"""rechain train: play the cooperative game on questions and their answers."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rechain.cli.options import CandidateOptions, Device, QuestionsInput, grouped
from rechain.errors import RechainError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rechain.game.settings import GameSettings
    from rechain.preparation.vectors import Vectors
    from rechain.training.runs import RunFolder

VectorsFile = Annotated[
    Path | None,
    typer.Option("--vectors", metavar="FILE", help="Word vectors: GloVe or word2vec text, word2vec binary, or npz."),
]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Settings: a TOML file, or hotpotqa, drughop or medhop."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, e.g. hidden=64; may be repeated."),
]


@grouped
def train(
    *,
    questions: QuestionsInput,
    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder of the run.")],
    setting: Annotated[
        str | None, typer.Option(metavar="ROW", help="independent, conditional or cooperative (which is the default).")
    ] = None,
    config: Config = None,
    set_: Set = None,
    vectors: VectorsFile = None,
    warm_up: Annotated[
        int, typer.Option("--warm-up", min=0, metavar="N", help="Warm up on so many pseudo questions.")
    ] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed of everything that is random.")] = None,
    device: Device = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")] = False,
    candidates: CandidateOptions,
) -> None:
    """Train a Ranker and a Reasoner from questions and answers alone.

    Example: rechain train hotpot_train_v1.1.json --only bridge --config hotpotqa --vectors glove.6B.100d.txt --out RUN
    """
    from rechain.system.devices import device_named
    from rechain.system.distributed import join
    from rechain.training.game_runs import prepare_game
    from rechain.training.progress import Shown
    from rechain.training.runs import RunFolder
    from rechain.training.runs import train as train_run

    folder = RunFolder(out)
    _check_folder(folder, resume)
    settings = game_settings(config, set_, setting, seed)
    with join(device_named(device)) as where:
        source, known = questions.readable("Preparing"), read_vectors_of(vectors)
        material = prepare_game(source, known, candidates.settings(), warm_up, settings.seed)
        _report_left_out(material.left_out)
        with Shown(folder) as watcher, _saying_how_to_resume(folder):
            training = train_run(folder, material, settings, device=where, resume=resume, watcher=watcher)
        _report_best(out, training.criterion, training.progress.curve)


@contextmanager
def _saying_how_to_resume(folder: "RunFolder") -> "Iterator[None]":
    try:
        yield
    except KeyboardInterrupt:
        if folder.is_begun:
            print(f"The run in {folder.path} goes on from its last checkpoint with --resume.", file=sys.stderr)
        raise


def _check_folder(folder: "RunFolder", resume: bool) -> None:
    if folder.is_begun and not resume:
        raise RechainError(f"{folder.path} holds a run already; go on with it by --resume, or name another --out.")
    if resume and not folder.is_begun:
        raise RechainError(f"{folder.path} holds no run to resume; leave --resume out to start one.")
    if folder.path.exists() and not folder.path.is_dir():
        raise RechainError(f"{folder.path} is a file; --out should be a folder.")


def game_settings(config: str | None, changes: list[str] | None, row: str | None, seed: int | None) -> "GameSettings":
    """Gather settings: a file's or a data set's, then what the flags change."""
    from rechain.game.settings import DATA_SETS, GameSettings

    given: dict[str, Any] = dict(map(_change, changes or ()))
    given |= {name: value for name, value in (("row", row), ("seed", seed)) if value is not None}
    if config is None:
        return GameSettings.of(given, "the command line")
    if config in DATA_SETS:
        return GameSettings.for_data(config, **given)
    return GameSettings.read(Path(config), **given)


def _change(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE, the value as TOML has it; a word needs no quotes."""
    import tomllib

    name, sign, value = text.partition("=")
    if not sign:
        raise RechainError(f"--set {text} should be NAME=VALUE, e.g. --set hidden=64.")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def read_vectors_of(path: Path | None) -> "Vectors":
    """Read word vectors, or none."""
    from rechain.cli.progress import working
    from rechain.preparation.vectors import read_vectors
    from rechain.training.game_runs import no_vectors

    if path is None:
        print("Without --vectors every word is known by its spelling alone.", file=sys.stderr)
        return no_vectors()
    with working("Reading vectors"):
        return read_vectors(path)


def _report_best(out: Path, criterion: str, curve: "Sequence[Mapping[str, Any]]") -> None:
    figures = [epoch[criterion] for epoch in curve if criterion in epoch]
    best = (
        f"its best {criterion} on held-out questions was {max(figures):.3f}" if figures else "no question was held out"
    )
    print(f"{out} holds the model; {best}.", file=sys.stderr)


def _report_left_out(left_out: Any) -> None:
    if left_out:
        reasons = ", ".join(f"{count} {code}" for code, count in left_out.items())
        print(f"Left out, without a chain to learn from: {reasons}.", file=sys.stderr)
