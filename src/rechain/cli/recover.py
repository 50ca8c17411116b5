"""rechain recover: from a file of questions to their chains."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from rechain.bulk import Engine, PartFormat
from rechain.cli.options import (
    CandidateOptions,
    Device,
    MinConfidence,
    Only,
    OutputOptions,
    Overwrite,
    Passages,
    Strict,
    grouped,
)
from rechain.errors import RechainError

if TYPE_CHECKING:
    from rechain.bulk.ray import Cluster
    from rechain.bulk.resume import Progress
    from rechain.bulk.work import Tally, Work

_ON_RAY = "On Ray"


@grouped
def recover(
    *,
    questions: Annotated[
        str,
        typer.Argument(
            metavar="QUESTIONS",
            help="Questions, in any known format: a file, a folder, or '-' for standard input; on Ray also s3://….",
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="The model: default, lexical, bm25, random, a model's folder or run, or its name on the Hub."
        ),
    ] = "default",
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="Where chains go, a line each, else standard output; on Ray a folder."
        ),
    ] = None,
    overwrite: Overwrite = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the output file where an interrupted run has stopped.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="How many chains a question, best first.")] = 1,
    explain: Annotated[bool, typer.Option("--explain", help="Say what contributed to each score.")] = False,
    min_confidence: MinConfidence = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="How many questions are scored together, if the model can.")
    ] = 32,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=0, help="Worker processes, else one a core; 0: none but this one."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="Where it runs: on this machine, or on a Ray cluster.")
    ] = Engine.local,
    part_format: Annotated[
        PartFormat | None,
        typer.Option("--format", rich_help_panel=_ON_RAY, help="What the parts of the output are (jsonl)."),
    ] = None,
    part_size: Annotated[
        int | None,
        typer.Option("--part-size", min=1, rich_help_panel=_ON_RAY, help="Questions in a part (256; baselines 1024)."),
    ] = None,
    gpus: Annotated[
        float | None,
        typer.Option("--gpus", min=0, rich_help_panel=_ON_RAY, help="GPUs a worker, e.g. 0.25; else 1, if there are."),
    ] = None,
    device: Device = None,
    passages: Passages = None,
    only: Only = None,
    candidates: CandidateOptions,
    strict: Strict = False,
) -> None:
    """Recover the chains of questions.

    Example: rechain recover hotpot_dev_distractor_v1.json --only bridge --out chains.jsonl
    """
    from rechain.bulk.work import Work, default_workers
    from rechain.recovery import Recoverer

    recoverer = partial(
        Recoverer,
        str(Path(model).absolute()) if Path(model).is_dir() else model,  # other nodes have other working folders
        settings=candidates.settings(),
        top=top,
        explain=explain,
        device=device,
        min_confidence=min_confidence,
    )
    if passages and workers != 0 and passages.exists() and not (passages.is_file() or passages.is_dir()):
        raise RechainError(f"{passages} is no file, which every worker could read; name one, or choose --workers 0.")
    work = Work(recoverer, passages and passages.absolute(), tuple(only or ()), strict)
    if engine == Engine.ray:
        from rechain.bulk.ray import Cluster

        cluster = Cluster(batch_size, part_size, workers, gpus)
        _recover_on_ray(work, questions, cluster, out, part_format or PartFormat.jsonl, overwrite, resume)
        return
    if (part_format, part_size, gpus) != (None, None, None) or "://" in questions + (out or ""):
        raise RechainError("--format, --part-size, --gpus and addresses such as s3:// are for --engine ray.")
    file = Path(out) if out and out != "-" else None
    OutputOptions(file, overwrite).check(Path(questions), passages, resume=resume)
    wanted = default_workers(model, device) if workers is None else workers
    _recover_here(work, Path(questions), batch_size, wanted, file, overwrite, resume)


def _recover_here(
    work: "Work", questions: Path, batch_size: int, workers: int, out: Path | None, overwrite: bool, resume: bool
) -> None:
    """Recover chains in worker processes of this machine, into a file that is whole whenever they are stopped."""
    from rechain.bulk.resume import GrowingFile, find_progress
    from rechain.bulk.work import Tally, recover_chunks
    from rechain.cli.progress import with_tally
    from rechain.datasets.reading import no_question, read_chunks

    chunks = read_chunks(questions, batch_size)
    before: Progress | None = None
    if out and resume and out.exists():
        before, chunks = find_progress(out, chunks, work.line_counter())
    tally = Tally()
    with _telling_what_is_done(out, tally), GrowingFile(out, before, overwrite) if out else StandardOutput() as file:
        for result in with_tally(recover_chunks(work, chunks, batch_size, workers), "Recovering", tally):
            file.write(result.lines)
    if not tally.questions:
        raise no_question(questions, work.only)
    _report(tally, before)


def _recover_on_ray(
    work: "Work",
    questions: str,
    cluster: "Cluster",
    out: str | None,
    part_format: PartFormat,
    overwrite: bool,
    resume: bool,
) -> None:
    """Recover chains on a Ray cluster, into a folder of parts."""
    from rechain.bulk.parts import PartsFolder
    from rechain.bulk.ray import recover_parts
    from rechain.bulk.work import Tally
    from rechain.cli.progress import with_tally

    if out is None or questions == "-" or cluster.workers == 0:
        raise RechainError("--engine ray reads a file or folder, writes into --out FOLDER and has a worker at least.")
    if resume and overwrite:
        raise RechainError("--resume goes on with a folder and --overwrite replaces it; choose one of them.")
    folder = PartsFolder(out, part_format)
    parts = recover_parts(work, questions, folder, cluster, overwrite=overwrite, resume=resume)
    tally = Tally()
    with _telling_what_is_done(folder.storage.address_of(""), tally), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's advice to its own users
        for _ in with_tally(parts, "Recovering", tally):
            pass  # the workers write the parts
    if tally.questions:
        _report(tally, None)
    else:
        print("Nothing was left to do: all parts are there.", file=sys.stderr)


class StandardOutput:
    """Takes lines for standard output."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it open: it is not ours."""

    def write(self, lines: bytes) -> None:
        """Print lines at once."""
        sys.stdout.write(lines.decode())
        sys.stdout.flush()


@contextmanager
def _telling_what_is_done(out: Path | str | None, tally: "Tally") -> Iterator[None]:
    """Say, when it is interrupted or fails, where what was done before is."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not out or not tally.questions:
            raise
        hint = f"What was done before is in {out}: go on with --resume."
        if isinstance(error, RechainError):
            raise RechainError(f"{error} {hint}") from error
        print(hint, file=sys.stderr)
        raise


def _report(tally: "Tally", before: "Progress | None") -> None:
    if before and before.lines + tally.questions == before.whole_lines:
        print(f"Nothing was left to do: all {before.whole_lines} questions are there.", file=sys.stderr)
        return
    asked = "1 question" if tally.questions == 1 else f"{tally.questions} questions"
    there = f" after the {before.lines} that were there" if before and before.lines else ""
    without = ", ".join(f"{count} {code}" for code, count in tally.problems.most_common())
    end = f"; without: {without}." if without else "."
    print(f"{asked}{there}, {tally.with_chain} with a chain{end}", file=sys.stderr)
