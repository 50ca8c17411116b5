"""rechain train: train the game or the chain reader on questions and their answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Option

from rechain.cli.options import CandidateOptions, Device, Log, QuestionsInput, grouped
from rechain.errors import RechainError
from rechain.system.log import RunLog, note

if TYPE_CHECKING:
    from rechain.paper.vectors import Vectors
    from rechain.system.settings import Settings
    from rechain.system.training import RunFolder

S = TypeVar("S", bound="Settings")

VectorsFile = Annotated[
    Path | None, Option(metavar="FILE", help="Word vectors: GloVe or word2vec text, word2vec binary, or npz.")
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
        str | None, Option(metavar="ROW", help="A row of the paper's tables: cooperative (default), tail to head, …")
    ] = None,
    config: Annotated[
        str | None, Option(metavar="FILE", help="Settings: a TOML file, or hotpotqa, drughop or medhop.")
    ] = None,
    set_: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="Change a setting, e.g. hidden=64; repeatable.")
    ] = None,
    vectors: VectorsFile = None,
    encoder: Annotated[
        Path | None, Option(metavar="FOLDER", help="Train the reader from this encoder, not from the default model.")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="The seed of everything that is random.")] = None,
    device: Device = None,
    resume: Annotated[bool, Option("--resume", help="Continue the run in that folder.")] = False,
    candidates: CandidateOptions,
    log: Log = None,
) -> None:
    """Train a model from questions and answers alone: the game's players, or the chain reader.

    Example: rechain train questions.jsonl --model reader --out RUN
    Example: rechain train hotpot_train_v1.1.json --only bridge --config hotpotqa --vectors glove.6B.100d.txt --out RUN
    """
    from rechain.paper.model import prepare_game, train_game
    from rechain.paper.settings import GameSettings
    from rechain.reader.settings import ReaderSettings
    from rechain.scoring.interface import bundled_folder
    from rechain.system.provenance import describe_input, heading, write_provenance
    from rechain.system.tensors import device_named
    from rechain.system.training import WEIGHTS, RunFolder, TrainingLog, is_first, join

    folder = RunFolder(out)
    _check_folder(folder, resume)
    kind = model or (folder.record()["kind"] if resume else "game")
    _check_options(kind, setting=setting, vectors=vectors, encoder=encoder)
    facts = {"model": kind, "input": str(questions.path), "out": str(out), "resume": resume or None}
    with _resume_hint(folder), join(device_named(device)) as where, RunLog(log, "train", facts) as run:
        collection = questions.collection
        source, chosen = questions.readable("Preparing", run), candidates.settings()
        material: Any
        settings: Any
        if kind == "reader":
            from rechain.reader.prepare import prepare_reader
            from rechain.reader.train import train_reader

            settings = settings_of(ReaderSettings, config, set_, seed=seed)
            encoder = encoder or _recorded_encoder(folder)
            material = prepare_reader(source, settings, chosen, encoder, collection)
            start = {"encoder": describe_input(encoder or bundled_folder())}
        else:
            settings = settings_of(GameSettings, config, set_, row=setting, seed=seed)
            material = prepare_game(source, read_vectors_of(vectors, run.note), chosen, collection)
            start = {"vectors": describe_input(vectors)}
        if material.left_out:
            reasons = ", ".join(f"{count} {code}" for code, count in material.left_out.items())
            run.note(f"Left out, without a chain to learn from: {reasons}.")
        head = heading(
            "train",
            kind=kind,
            settings={"only": questions.only, **asdict(chosen), **asdict(settings)},
            input=describe_input(questions.path),
            passages=describe_input(questions.passages),
            **start,
        )
        run.questions = run.share = None  # those of the preparation; training has its own progress
        with TrainingLog(run, folder.path / "log") as log_of_training:
            start_or_resume = train_reader if kind == "reader" else train_game
            state = start_or_resume(material, settings, folder, device=where, resume=resume, log=log_of_training)
        if is_first():
            write_provenance(out / WEIGHTS, head, {"left_out": dict(material.left_out)})
        best = state.best_figure
        result = f"its best {state.criterion} on held-out questions was {best:.3f}" if best is not None else ""
        run.end(f"{out} contains the model; {result or 'no question was held out'}.")


def _recorded_encoder(folder: "RunFolder") -> Path | None:
    """Return the encoder from which a run that is resumed was started; None is the default model."""
    recorded = folder.record().get("encoder") if folder.is_begun else None
    if recorded is not None and not Path(recorded).is_dir():
        raise RechainError(
            f"{folder.path} was started from the encoder {recorded}, which is no longer there; name its folder with "
            "--encoder."
        )
    return None if recorded is None else Path(recorded)


def _check_options(kind: str, **options: object) -> None:
    """Raise RechainError for an unknown kind of model, and for an option of another kind."""
    if kind not in KINDS:
        raise RechainError(f"there is no model '{kind}' to train; --model is {' or '.join(KINDS)}.")
    for name, value in options.items():
        if value is not None and name not in KINDS[kind]:
            other = next(other for other in KINDS if name in KINDS[other])
            raise RechainError(f"--{name} is for --model {other}; leave it out for --model {kind}.")


@contextmanager
def _resume_hint(folder: "RunFolder") -> Iterator[None]:
    """Note how to continue a run that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if folder.is_begun:
            note(f"The run in {folder.path} continues from its last checkpoint with --resume.")
        else:
            note(f"The run had not started, and nothing was written to {folder.path}: start again.")
        raise


def _check_folder(folder: "RunFolder", resume: bool) -> None:
    if folder.is_begun and not resume:
        raise RechainError(f"{folder.path} already contains a run; continue it with --resume, or name another --out.")
    if resume and not folder.is_begun:
        raise RechainError(f"{folder.path} contains no run to resume; leave --resume out to start one.")
    if folder.path.exists() and not folder.path.is_dir():
        raise RechainError(f"{folder.path} is a file; --out should be a folder.")
    # Perhaps the very encoder that training starts from: a run would replace its weights.
    if not folder.is_begun and any((folder.path / name).exists() for name in ("config.json", "model.safetensors")):
        raise RechainError(f"{folder.path} already contains a model; name another --out.")


def settings_of(kind: "type[S]", config: str | None, changes: list[str] | None, **flags: object) -> "S":
    """Return settings: those of a file or a data set, changed by --set and other options."""
    values = dict(map(_parse_change, changes or ()))
    chosen = {name: value for name, value in flags.items() if value is not None}
    if twice := sorted(values.keys() & chosen.keys()):
        option = {"row": "setting"}.get(twice[0], twice[0])
        raise RechainError(f"--{option} and --set {twice[0]}=… are the same setting; leave one of them out.")
    values |= chosen
    if config is None:
        return kind.of(values, "the command line")
    if config in kind.names:
        return kind.for_data(config, **values)
    from rechain.paper.settings import GameSettings

    if config in GameSettings.names:
        raise RechainError(f"{config} is a configuration of --model game; name a TOML file, or leave --config out.")
    return kind.read(Path(config), **values)


def _parse_change(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE, the value as in TOML; a word needs no quotes."""
    import tomllib

    name, sign, value = text.partition("=")
    if not sign:
        raise RechainError(f"--set {text} should be NAME=VALUE, e.g. --set hidden=64.")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def read_vectors_of(path: Path | None, show: Callable[[str], None] = note) -> "Vectors":
    """Read word vectors; without a file, `show` that there are none."""
    from rechain.paper.vectors import no_vectors, read_vectors
    from rechain.system.log import working

    if path is None:
        show("Without --vectors, words are represented by their spelling alone.")
        return no_vectors()
    with working("Reading vectors"):
        return read_vectors(path)
