"""rechain recover: from a file of questions to their chains."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Exit, Option

from rechain.cli.options import (
    CandidateOptions,
    Device,
    ExitCode,
    Log,
    MaxErrorRate,
    MinConfidence,
    Only,
    OutputOptions,
    Overwrite,
    PassageOptions,
    Strict,
    Workers,
    grouped,
    too_many_errors,
)
from rechain.cli.tables import plural
from rechain.errors import QuestionError, RechainError, ResumableError
from rechain.run import Engine, PartFormat
from rechain.system.files import LostOutputError, is_local, path_of, without_keys
from rechain.system.log import RunLog, Show, bar, note, print_records, working

if TYPE_CHECKING:
    from rechain.run.ray import Cluster
    from rechain.run.resume import Progress
    from rechain.run.work import Tally, Work, WorkResult
    from rechain.system.provenance import Facts

_ON_RAY = "On Ray"


@dataclass(frozen=True)
class ChainsOutput:
    """Where chains go; a string, since an address such as s3://… is not a path."""

    out: Annotated[
        str | None, Option(metavar="FILE", help="Where chains go, a line each, else standard output; on Ray a folder.")
    ] = None
    overwrite: Overwrite = False
    resume: Annotated[
        bool, Option("--resume", help="Continue the output file at the point where an interrupted run stopped.")
    ] = False


@dataclass(frozen=True)
class RayOptions:
    """Options for a Ray cluster; None is the default there."""

    part_format: Annotated[
        PartFormat | None, Option("--format", rich_help_panel=_ON_RAY, help="What the parts of the output are (jsonl).")
    ] = None
    part_size: Annotated[
        int | None, Option(min=1, rich_help_panel=_ON_RAY, help="Questions in a part (256; baselines 1024).")
    ] = None
    gpus: Annotated[
        float | None, Option(min=0, rich_help_panel=_ON_RAY, help="GPUs a worker, e.g. 0.25; else 1, if there are.")
    ] = None


@grouped
def recover(
    *,
    questions: Annotated[
        str,
        Argument(
            metavar="QUESTIONS",
            help="Questions, in any known format: a file, a folder, s3://…, or '-' for standard input.",
        ),
    ],
    model: Annotated[
        str, Option(help="The model: default, lexical, bm25, random, a model's folder or run, or its name on the Hub.")
    ] = "default",
    output: ChainsOutput,
    jointly: Annotated[
        bool,
        Option(
            "--jointly",
            help="Let questions inform each other about which passages relate which entities, where the data names "
            "these; every chain then depends on the whole file.",
        ),
    ] = False,
    top: Annotated[int, Option(min=1, help="How many chains a question, best first.")] = 1,
    explain: Annotated[bool, Option("--explain", help="Add what contributed to each score.")] = False,
    min_confidence: MinConfidence = None,
    batch_size: Annotated[int, Option(min=1, help="How many questions are scored together, if the model can.")] = 32,
    workers: Workers = None,
    engine: Annotated[Engine, Option(help="Where it runs: on this machine, or on a Ray cluster.")] = Engine.local,
    ray: RayOptions,
    device: Device = None,
    source: PassageOptions,
    only: Only = None,
    candidates: CandidateOptions,
    strict: Strict = False,
    max_error_rate: MaxErrorRate = None,
    log: Log = None,
) -> None:
    """Recover the chains of questions.

    Example: rechain recover hotpot_dev_distractor_v1.json --only bridge --out chains.jsonl

    Exit codes: 0 done; 2 a mistake, or a file that cannot be read or written; 3 more questions failed than
    --max-error-rate allows or, without it, all; 130 Ctrl+C; 141 the reader of standard output is gone; 143 SIGTERM.
    """
    from rechain.formats.datasets.plain import FieldMap
    from rechain.recoverer import RecovererConfig
    from rechain.run.work import Work, default_workers

    config = RecovererConfig(
        str(Path(model).absolute()) if Path(model).is_dir() else model,  # other nodes have other working folders
        settings=candidates.settings(),
        top=top,
        explain=explain,
        device=device,
        min_confidence=min_confidence,
        corpus=source.index,
        found=source.found,
    )
    passages = source.passages
    is_special = passages and is_local(passages) and passages.exists() and not (passages.is_file() or passages.is_dir())
    if is_special and workers != 0:
        raise RechainError(f"{passages} is no file, which every worker could read; name one, or choose --workers 0.")
    work = Work(
        config,
        passages and passages.absolute(),
        tuple(only or ()),
        strict,
        FieldMap.of(source.mapping) if source.mapping else None,
        jointly,
    )
    out = output.out and without_keys(output.out)
    facts: dict[str, object] = {"model": model, "input": without_keys(questions), "out": out}
    facts |= {"resume": output.resume or None, "jointly": jointly or None}
    do: Callable[[RunLog], Outcome]
    if engine == Engine.ray and jointly:
        raise RechainError("--jointly works on one machine, as every question counts for all; leave --engine ray out.")
    if engine == Engine.ray:
        from rechain.run.ray import Cluster

        cluster = Cluster(batch_size, ray.part_size, workers, ray.gpus)
        do = partial(_recover_on_ray, work, questions, cluster, output, ray.part_format or PartFormat.jsonl)
        facts["engine"] = engine
    elif ray != RayOptions() or "://" in (output.out or ""):
        raise RechainError("--format, --part-size, --gpus and output into s3://… are for --engine ray.")
    else:
        file = OutputOptions(Path(output.out) if output.out and output.out != "-" else None, output.overwrite)
        path = path_of(questions)
        file.check(path, passages, resume=output.resume)
        workers = default_workers(model, device) if workers is None else workers
        recover_locally = _recover_jointly if jointly else _recover_here
        do = partial(recover_locally, work, path, batch_size, workers, file, output.resume)
    with RunLog(log, "recover", {**facts, "workers": workers}) as run:
        outcome = do(run)
        whole = outcome.whole
        failure = too_many_errors(whole.problems.total(), whole.questions, max_error_rate)
        run.end(_summary(outcome.tally, whole), failure)
        if failure:
            raise Exit(ExitCode.TOO_MANY_ERRORS)


class Outcome(NamedTuple):
    """The counts of a run."""

    tally: "Tally"
    """of the questions that this run recovered"""
    whole: "Tally"
    """of all questions in the output"""
    head: "Facts"
    """the provenance of the output, if it is a file"""


def _recover_here(
    work: "Work",
    questions: Path,
    batch_size: int,
    workers: int,
    output: OutputOptions,
    resume: bool,
    run: RunLog,
    is_temporary: bool = False,
) -> Outcome:
    """Recover chains in worker processes of this machine, into a file that can be resumed after any stop."""
    from rechain.formats.datasets.questions import no_question, read_chunks
    from rechain.run.resume import GrowingFile, find_progress
    from rechain.run.work import Tally, reads_apart, recover_chunks

    out = output.out
    head = {} if out is None else _heading(work, questions, {"batch_size": batch_size, "workers": workers}, run)
    chunks = read_chunks(questions, batch_size, work.mapping, work.needs_passages)
    before: Progress | None = None
    if out and resume and out.exists():
        before, chunks = find_progress(out, questions, head, chunks)
        if before.doubt:
            run.note(f"{before.doubt}: what {out} contains is recovered again and compared.")
    results = recover_chunks(work, chunks, batch_size, workers, reads_apart(work.config.model, work.config.device))
    tally = Tally()
    with GrowingFile(out, head, before, output.overwrite) if out else nullcontext() as file:
        # Closed at once: the traceback of an error would keep the workers.
        with _hint(None if is_temporary else out, tally), closing(results), bar("Recovering") as show:
            for result in results:
                if file:
                    file.write(result)
                else:
                    print_records(result.lines.decode())
                    sys.stdout.flush()  # at once, so that a program that reads the lines need not wait
                _count(result, tally, show, run)
        if file:
            file.finish()
    whole = file.tally if file else tally
    if not whole.questions:
        raise no_question(questions, work.only)
    return Outcome(tally, whole, head)


def _recover_jointly(
    work: "Work", questions: Path, batch_size: int, workers: int, output: OutputOptions, resume: bool, run: RunLog
) -> Outcome:
    """Recover chains in two passes: candidates of all questions into a file, then from these the chains."""
    from rechain.run.work import JointPass, Tally, offers_beside, remove_offers, tally_of_finished

    out = output.out
    with TemporaryDirectory() as folder:
        is_kept = out is not None and (out.is_file() or not out.exists())  # not a device, nor standard output
        offers = offers_beside(out) if out and is_kept else Path(folder) / "offers"
        first = OutputOptions(offers, output.overwrite)
        first.check(questions, resume=resume and is_kept)
        if out and is_kept and resume and out.exists() and not offers.exists():
            head = _heading(work, questions, {}, run)
            return Outcome(Tally(), tally_of_finished(out, head, questions), head)
        outcome = _recover_here(work, questions, batch_size, workers, first, resume and is_kept, run, not is_kept)
        run.doing = "beliefs of all questions"
        with working("Beliefs of all questions"):
            joint = JointPass(offers, work.config.top, work.config.min_confidence, work.strict)
            if out:
                with _hint(offers, outcome.whole) if is_kept else nullcontext():
                    joint.write(out, outcome.head)
        if not out:
            for recovered in joint.recovered():
                print_records(f"{recovered.to_json()}\n")
        remove_offers(offers)
    run.doing = None
    run.note(joint.summary())
    return Outcome(joint.tally, joint.tally, outcome.head)


def _recover_on_ray(
    work: "Work", questions: str, cluster: "Cluster", output: ChainsOutput, part_format: PartFormat, run: RunLog
) -> Outcome:
    """Recover chains on a Ray cluster, into a folder of parts, which its workers write themselves."""
    from rechain.run.parts import PartsFolder
    from rechain.run.ray import recover_parts
    from rechain.run.work import Tally

    if output.out is None or questions == "-" or cluster.workers == 0:
        raise RechainError("--engine ray reads a file or folder, writes into --out FOLDER and has a worker at least.")
    if output.resume and output.overwrite:
        raise RechainError("--resume goes on with a folder and --overwrite replaces it; choose one of them.")
    folder, tally = PartsFolder(output.out, part_format), Tally()
    results = recover_parts(work, questions, folder, cluster, overwrite=output.overwrite, resume=output.resume)
    with warnings.catch_warnings(), _hint(folder.storage.address_of(""), tally):
        warnings.simplefilter("ignore")  # Ray's advice to its own users
        with closing(results), bar("Recovering") as show:
            for result in results:
                _count(result, tally, show, run)
    return Outcome(tally, folder.tally, {})


def _heading(work: "Work", questions: Path, facts: dict[str, Any], run: RunLog) -> "Facts":
    """Return the provenance of the output; the input is digested, which takes a while if it is large."""
    from rechain.system.provenance import describe_input, heading

    run.doing = "digest of the input"
    with working("Digest of the input"):
        facts = {**facts, "device": work.config.device}
        head = heading("recover", **work.described(), input=describe_input(questions), run=facts)
    run.doing = None
    return head


@contextmanager
def _hint(place: Path | str | None, tally: "Tally") -> Iterator[None]:
    """If recovery is interrupted or fails, print where the earlier results are, if there are any.

    A hint to resume is added only if the same command would not fail in the same way again.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        is_stream = isinstance(place, Path) and place.exists() and not (place.is_file() or place.is_dir())
        if not place or is_stream or not tally.questions or isinstance(error, LostOutputError):
            raise
        can_resume = isinstance(error, (OSError, ResumableError, QuestionError, KeyboardInterrupt))
        hint = f"What was done before is in {place}{': go on with --resume' if can_resume else ''}."
        if isinstance(error, RechainError):
            raise RechainError(f"{error} {hint}") from error
        note(hint)
        raise


def _count(result: "WorkResult", tally: "Tally", show: Show, run: RunLog) -> None:
    """Add a result to the counts, show them, and raise the error that stopped strict work."""
    tally.add(result.tally)
    more = f", {100 * tally.with_chain / max(tally.questions, 1):.1f} % with a chain"
    if tally.mean_confidence is not None:
        more += f", mean confidence {tally.mean_confidence:.2f}"
    show(result.share, tally.questions, more)
    run.questions, run.share, run.errors = tally.questions, result.share, tally.problems.copy()
    if result.stopped_by:
        raise result.stopped_by


def _summary(tally: "Tally", whole: "Tally") -> str:
    """Return in a sentence what this run recovered, and in another the verdicts on answers."""
    from rechain.schema import VERDICTS

    if not tally.questions:
        return f"Nothing was left to do: all {whole.questions} questions are there."
    before = whole.questions - tally.questions
    earlier = f" after the {before} that were there" if before else ""
    problems = ", ".join(f"{count} {code}" for code, count in tally.problems.most_common())
    end = f"; without: {problems}." if problems else "."
    verdicts = [f"{tally.verdicts[verdict]} {words}" for verdict, words in VERDICTS.items() if tally.verdicts[verdict]]
    answers = f" Answers: {', '.join(verdicts)}." if verdicts else ""
    return f"{plural(tally.questions, 'question')}{earlier}, {tally.with_chain} with a chain{end}{answers}"
