"""rechain train: train the game or the chain reader on questions and their answers."""

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Option

from rechain.cli.logs import Log, RunLog
from rechain.cli.options import CandidateOptions, Device, QuestionsInput, grouped
from rechain.errors import RechainError
from rechain.system.terminal import note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rechain.preparation.vectors import Vectors
    from rechain.system.provenance import Facts
    from rechain.system.settings import Settings
    from rechain.training.progress import Shown
    from rechain.training.runs import Material, RunFolder

S = TypeVar("S", bound="Settings")

VectorsFile = Annotated[
    Path | None, Option(metavar="FILE", help="Word vectors: GloVe or word2vec text, word2vec binary, or npz.")
]
Config = Annotated[str | None, Option(metavar="FILE", help="Settings: a TOML file, or hotpotqa, drughop or medhop.")]
Set = Annotated[
    list[str] | None, Option("--set", metavar="NAME=VALUE", help="Change a setting, e.g. hidden=64; may be repeated.")
]


KINDS = {"game": ("setting", "vectors"), "reader": ("encoder",)}
"""what can be trained, and the options that it alone has"""


@grouped
def train(
    *,
    questions: QuestionsInput,
    out: Annotated[Path, Option(metavar="RUN", help="The folder of the run.")],
    model: Annotated[
        str | None,
        Option(metavar="KIND", help="game, the paper's Ranker and Reasoner (default), or reader, the default model."),
    ] = None,
    setting: Annotated[
        str | None, Option(metavar="ROW", help="independent, conditional or cooperative (which is the default).")
    ] = None,
    config: Config = None,
    set_: Set = None,
    vectors: VectorsFile = None,
    encoder: Annotated[
        Path | None, Option(metavar="FOLDER", help="Train the reader from this encoder, not from the default model.")
    ] = None,
    warm_up: Annotated[int, Option(min=0, metavar="N", help="Warm up on this many pseudo questions.")] = 0,
    seed: Annotated[int | None, Option(min=0, help="The seed of everything that is random.")] = None,
    device: Device = None,
    resume: Annotated[bool, Option("--resume", help="Go on with the run in that folder.")] = False,
    candidates: CandidateOptions,
    log: Log = None,
) -> None:
    """Train a model from questions and answers alone: the game's players, or the chain reader.

    Example: rechain train questions.jsonl --model reader --out RUN
    Example: rechain train hotpot_train_v1.1.json --only bridge --config hotpotqa --vectors glove.6B.100d.txt --out RUN
    """
    from rechain.scoring.model import bundled_folder
    from rechain.system.devices import device_named
    from rechain.system.distributed import is_first, join
    from rechain.system.provenance import write_provenance
    from rechain.training.runs import WEIGHTS, RunFolder
    from rechain.training.runs import train as train_run

    folder = RunFolder(out)
    _check_folder(folder, resume)
    kind = _kind(model or (folder.kind if resume else "game"), setting=setting, vectors=vectors, encoder=encoder)
    facts = {"model": kind, "input": str(questions.path), "out": str(out), "resume": resume or None}
    with _saying_how_to_go_on(folder), join(device_named(device)) as where, RunLog(log, "train", facts) as run:
        collection = questions.collection()
        source, chosen = questions.readable("Preparing", run, collection), candidates.settings()
        material: Material
        settings: Settings
        if kind == "reader":
            from rechain.reader.training import ReaderTrainingSettings
            from rechain.training.reader_runs import prepare_reader

            settings = settings_of(ReaderTrainingSettings, config, set_, seed=seed)
            encoder = encoder or _recorded_encoder(folder)
            material = prepare_reader(source, settings, chosen, encoder, warm_up, collection)
        else:
            from rechain.game.settings import GameSettings
            from rechain.training.game_runs import prepare_game

            settings = settings_of(GameSettings, config, set_, row=setting, seed=seed)
            known = read_vectors_of(vectors, run.note)
            material = prepare_game(source, known, chosen, warm_up, settings.seed, collection)
        if material.left_out:
            reasons = ", ".join(f"{count} {code}" for code, count in material.left_out.items())
            run.note(f"Left out, without a chain to learn from: {reasons}.")
        started_from = {"encoder": encoder or bundled_folder()} if kind == "reader" else {"vectors": vectors}
        made_by = _made_by(kind, {"warm_up": warm_up, **asdict(chosen), **asdict(settings)}, questions, started_from)
        with _logged(folder, run) as watcher:
            training = train_run(folder, material, settings, device=where, resume=resume, watcher=watcher)
        if is_first():
            write_provenance(out / WEIGHTS, made_by, {"left_out": dict(material.left_out)})
        curve, criterion = training.progress.curve, training.criterion
        # The weights that are kept are the best of the last phase, so earlier phases do not count.
        figures = [epoch[criterion] for epoch in curve if epoch["phase"] == curve[-1]["phase"] and criterion in epoch]
        best = f"its best {criterion} on held-out questions was {max(figures):.3f}" if figures else ""
        run.end(f"{out} holds the model; {best or 'no question was held out'}.")


def _recorded_encoder(folder: "RunFolder") -> Path | None:
    """Return the encoder from which a run that is resumed was started; None is the default model."""
    recorded = folder.story().get("encoder") if folder.is_begun else None
    if recorded is not None and not Path(str(recorded)).is_dir():
        raise RechainError(
            f"{folder.path} was started from the encoder {recorded}, which is no longer there; name its folder with "
            "--encoder."
        )
    return None if recorded is None else Path(recorded)


def _logged(folder: "RunFolder", run: RunLog) -> "Shown":
    """Return what shows and logs a run of training."""
    from rechain.training.progress import Shown

    class Logged(Shown):
        def on_step(self, phase: str, epoch: int, step: int, steps: int) -> None:
            super().on_step(phase, epoch, step, steps)
            run.doing = f"{phase}, epoch {epoch + 1}, step {step} of {steps}"

    run.questions = run.share = None  # those that were prepared say nothing about training
    return Logged(folder, run.shows_bar, run.event)


def _made_by(
    kind: str, settings: Mapping[str, Any], questions: QuestionsInput, started_from: Mapping[str, Path | None]
) -> "Facts":
    """Return what makes the model."""
    from rechain.system.provenance import describe_input, heading

    return heading(
        "train",
        kind=kind,
        settings={"only": questions.only, **settings},
        input=describe_input(questions.path),
        passages=describe_input(questions.passages),
        **{name: describe_input(path) for name, path in started_from.items()},
    )


def _kind(kind: str, **options: object) -> str:
    """Return what is trained; an option of the other kind is a mistake."""
    if kind not in KINDS:
        raise RechainError(f"there is no model '{kind}' to train; --model is {' or '.join(KINDS)}.")
    for name, value in options.items():
        if value is not None and name not in KINDS[kind]:
            other = next(other for other in KINDS if name in KINDS[other])
            raise RechainError(f"--{name} is for --model {other}; leave it out for --model {kind}.")
    return kind


@contextmanager
def _saying_how_to_go_on(folder: "RunFolder") -> "Iterator[None]":
    try:
        yield
    except KeyboardInterrupt:
        if folder.is_begun:
            note(f"The run in {folder.path} goes on from its last checkpoint with --resume.")
        else:
            note(f"The run had not begun, and nothing was kept in {folder.path}: start again.")
        raise


def _check_folder(folder: "RunFolder", resume: bool) -> None:
    if folder.is_begun and not resume:
        raise RechainError(f"{folder.path} holds a run already; go on with it by --resume, or name another --out.")
    if resume and not folder.is_begun:
        raise RechainError(f"{folder.path} holds no run to resume; leave --resume out to start one.")
    if folder.path.exists() and not folder.path.is_dir():
        raise RechainError(f"{folder.path} is a file; --out should be a folder.")
    # Perhaps the very encoder that training starts from: a run would replace its weights.
    if not folder.is_begun and any((folder.path / name).exists() for name in ("config.json", "model.safetensors")):
        raise RechainError(f"{folder.path} holds a model already; name another --out.")


def settings_of(kind: "type[S]", config: str | None, changes: list[str] | None, **flags: object) -> "S":
    """Gather settings: a file's or a data set's, then what the flags change."""
    values = dict(map(_change, changes or ()))
    chosen = {name: value for name, value in flags.items() if value is not None}
    if twice := sorted(values.keys() & chosen.keys()):
        option = {"row": "setting"}.get(twice[0], twice[0])
        raise RechainError(f"--{option} and --set {twice[0]}=… say the same thing; leave one of them out.")
    values |= chosen
    if config is None:
        return kind.of(values, "the command line")
    if config in kind.names:
        return kind.for_data(config, **values)
    from rechain.game.settings import GameSettings

    if config in GameSettings.names:
        raise RechainError(f"{config} is a configuration of --model game; name a TOML file, or leave --config out.")
    return kind.read(Path(config), **values)


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


def read_vectors_of(path: Path | None, tell: Callable[[str], None] = note) -> "Vectors":
    """Read word vectors, or `tell` that there are none."""
    from rechain.cli.progress import working
    from rechain.preparation.vectors import read_vectors
    from rechain.training.game_runs import no_vectors

    if path is None:
        tell("Without --vectors every word is known by its spelling alone.")
        return no_vectors()
    with working("Reading vectors"):
        return read_vectors(path)
