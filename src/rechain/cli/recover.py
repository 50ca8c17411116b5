"""rechain recover: from a file of questions to their chains."""

import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Exit, Option

from rechain.bulk import Engine, PartFormat
from rechain.cli.exits import ExitCode, too_many_errors
from rechain.cli.logs import Log, RunLog
from rechain.cli.options import (
    CandidateOptions,
    Corpus,
    Device,
    Found,
    Map,
    MaxErrorRate,
    MinConfidence,
    Only,
    OutputOptions,
    Overwrite,
    Passages,
    Strict,
    grouped,
    open_corpus,
)
from rechain.errors import QuestionError, RechainError, ResumableError
from rechain.system.files import LostOutputError
from rechain.system.stores import is_local, path_of, without_keys
from rechain.system.terminal import note, print_records

if TYPE_CHECKING:
    from rechain.bulk.ray import Cluster
    from rechain.bulk.resume import Progress
    from rechain.bulk.work import Tally, Work, WorkResult
    from rechain.system.provenance import Facts

_ON_RAY = "On Ray"


@dataclass(frozen=True)
class ChainsOutput:
    """Where chains go; an address such as s3://… is no path, so it stays a string."""

    out: Annotated[
        str | None, Option(metavar="FILE", help="Where chains go, a line each, else standard output; on Ray a folder.")
    ] = None
    overwrite: Overwrite = False
    resume: Annotated[
        bool, Option("--resume", help="Go on with the output file where an interrupted run has stopped.")
    ] = False


@dataclass(frozen=True)
class RayOptions:
    """What can be chosen on a Ray cluster alone; None is the default there."""

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
    explain: Annotated[bool, Option("--explain", help="Say what contributed to each score.")] = False,
    min_confidence: MinConfidence = None,
    batch_size: Annotated[int, Option(min=1, help="How many questions are scored together, if the model can.")] = 32,
    workers: Annotated[
        int | None, Option(min=0, help="Worker processes, else one a core; 0: none but this one.")
    ] = None,
    engine: Annotated[Engine, Option(help="Where it runs: on this machine, or on a Ray cluster.")] = Engine.local,
    ray: RayOptions,
    device: Device = None,
    passages: Passages = None,
    corpus: Corpus = None,
    found: Found = None,
    only: Only = None,
    mapping: Map = None,
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
    from rechain.bulk.work import Work, default_workers
    from rechain.datasets.mapping import FieldMap
    from rechain.recovery import Recoverer

    recoverer = partial(
        Recoverer,
        str(Path(model).absolute()) if Path(model).is_dir() else model,  # other nodes have other working folders
        settings=candidates.settings(),
        top=top,
        explain=explain,
        device=device,
        min_confidence=min_confidence,
        corpus=open_corpus(corpus, passages, is_elsewhere=engine == Engine.ray),
        found=found,
    )
    is_special = passages and is_local(passages) and passages.exists() and not (passages.is_file() or passages.is_dir())
    if is_special and workers != 0:
        raise RechainError(f"{passages} is no file, which every worker could read; name one, or choose --workers 0.")
    work = Work(
        recoverer,
        passages and passages.absolute(),
        tuple(only or ()),
        strict,
        FieldMap.of(mapping) if mapping else None,
        jointly,
    )
    out = output.out and without_keys(output.out)
    facts = {"model": model, "input": without_keys(questions), "out": out, "resume": output.resume or None}
    facts["jointly"] = jointly or None
    if engine == Engine.ray and jointly:
        raise RechainError("--jointly works on one machine, as every question counts for all; leave --engine ray out.")
    if engine == Engine.ray:
        from rechain.bulk.ray import Cluster

        cluster = Cluster(batch_size, ray.part_size, workers, ray.gpus)
        with RunLog(log, "recover", {**facts, "engine": engine, "workers": workers}) as run:
            outcome = _recover_on_ray(work, questions, cluster, output, ray.part_format or PartFormat.jsonl, run)
            _report(outcome, max_error_rate, run)
    elif ray != RayOptions() or "://" in (output.out or ""):
        raise RechainError("--format, --part-size, --gpus and output into s3://… are for --engine ray.")
    else:
        file = OutputOptions(Path(output.out) if output.out and output.out != "-" else None, output.overwrite)
        source = path_of(questions)
        file.check(source, passages, resume=output.resume)
        workers = default_workers(model, device) if workers is None else workers
        with RunLog(log, "recover", {**facts, "workers": workers}) as run:
            do = _recover_jointly if jointly else _recover_here
            outcome = do(work, source, batch_size, workers, file, output.resume, run)
            _report(outcome, max_error_rate, run)


class Outcome(NamedTuple):
    """What came of the questions."""

    tally: "Tally"
    """of those that this run recovered"""
    whole: "Tally"
    """of all that are in the output"""
    before: "Progress | None" = None
    """how far an earlier run came"""
    head: "Facts | None" = None
    """what made the output, if it is a file"""


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
    """Recover chains in worker processes of this machine, into a file that is whole whenever they are stopped."""
    from rechain.bulk.resume import GrowingFile, find_progress
    from rechain.bulk.work import reads_apart, recover_chunks
    from rechain.datasets.reading import no_question, read_chunks

    out = output.out
    head = {} if out is None else _heading(work, questions, {"batch_size": batch_size, "workers": workers}, run)
    chunks = read_chunks(questions, batch_size, work.mapping, work.needs_passages)
    before: Progress | None = None
    if out and resume and out.exists():
        before, chunks = find_progress(out, head, chunks, work.line_counter())
    make = work.make_recoverer
    results = recover_chunks(work, chunks, batch_size, workers, reads_apart(make.args[0], make.keywords["device"]))
    with GrowingFile(out, head, before, output.overwrite) if out else nullcontext() as file:
        tally = _collect(results, file.write if file else print_lines, None if is_temporary else out, run)
        if file:
            file.finish()
    if not tally.questions:
        raise no_question(questions, work.only)
    if before and not before.is_checked:
        run.note(f"{out} had no provenance file: its first {before.lines} lines were not checked.")
    return Outcome(tally, file.tally if file else tally, before, head)


def _recover_jointly(
    work: "Work", questions: Path, batch_size: int, workers: int, output: OutputOptions, resume: bool, run: RunLog
) -> Outcome:
    """Recover chains in two passes: candidates of all questions into a file, then from these the chains."""
    from rechain.bulk.joint import JointPass, offers_beside, remove_offers, tally_of_finished
    from rechain.bulk.work import Tally
    from rechain.cli.progress import working

    out = output.out
    with TemporaryDirectory() as folder:
        is_kept = out is not None and (out.is_file() or not out.exists())  # not a device, nor standard output
        offers = offers_beside(out) if out and is_kept else Path(folder) / "offers"
        first = OutputOptions(offers, output.overwrite)
        first.check(questions, resume=resume and is_kept)
        if out and is_kept and resume and out.exists() and not offers.exists():
            whole = tally_of_finished(out, _heading(work, questions, {}, run), questions)
            return Outcome(Tally(), whole)
        outcome = _recover_here(work, questions, batch_size, workers, first, resume and is_kept, run, not is_kept)
        run.doing = "beliefs of all questions"
        with working("Beliefs of all questions"):
            options = work.make_recoverer.keywords
            joint = JointPass(offers, options["top"], options["min_confidence"])
            if out:
                joint.write(out, outcome.head or {})
        if not out:
            for recovered in joint.recovered():
                print_records(f"{recovered.to_json()}\n")
        remove_offers(offers)
    run.doing = None
    facts = joint.facts()
    run.note(
        f"{facts['questions']} different questions offer {facts['steps']} steps, "
        f"{facts['shared_steps']} of them in common with others."
    )
    return Outcome(joint.tally, joint.tally)


def _heading(work: "Work", questions: Path, facts: dict[str, Any], run: RunLog) -> "Facts":
    """Return what makes the output, with facts that make no difference to it; large inputs take a while to read."""
    from rechain.cli.progress import working
    from rechain.system.provenance import describe_input, heading

    run.doing = "digest of the input"
    with working("Digest of the input"):
        facts = {**facts, "device": work.make_recoverer.keywords.get("device")}
        head = heading("recover", **work.described(), input=describe_input(questions), run=facts)
    run.doing = None
    return head


def _recover_on_ray(
    work: "Work", questions: str, cluster: "Cluster", output: ChainsOutput, part_format: PartFormat, run: RunLog
) -> Outcome:
    """Recover chains on a Ray cluster, into a folder of parts, which its workers write themselves."""
    from rechain.bulk.parts import PartsFolder
    from rechain.bulk.ray import recover_parts

    if output.out is None or questions == "-" or cluster.workers == 0:
        raise RechainError("--engine ray reads a file or folder, writes into --out FOLDER and has a worker at least.")
    if output.resume and output.overwrite:
        raise RechainError("--resume goes on with a folder and --overwrite replaces it; choose one of them.")
    folder = PartsFolder(output.out, part_format)
    results = recover_parts(work, questions, folder, cluster, overwrite=output.overwrite, resume=output.resume)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's advice to its own users
        tally = _collect(results, lambda result: None, folder.storage.address_of(""), run)
    return Outcome(tally, folder.tally)


def _collect(
    results: "Generator[WorkResult]", write: "Callable[[WorkResult], object]", place: Path | str | None, run: RunLog
) -> "Tally":
    """Write and count results as they come; if that is interrupted or fails, say where the earlier ones are.

    How to go on is said only where the same command would not fail in the same way again.
    """
    from rechain.bulk.work import Tally
    from rechain.cli.progress import with_tally

    tally = Tally()
    try:
        with closing(results):  # at once, since the traceback of an error would keep the workers
            for result in with_tally(results, tally) if run.shows_bar else results:
                write(result)
                tally.add(result.tally)
                run.questions, run.share, run.errors = tally.questions, result.share, tally.problems.copy()
                if result.stopped_by:
                    raise result.stopped_by
    except (Exception, KeyboardInterrupt) as error:
        if not place or not tally.questions or isinstance(error, LostOutputError):
            raise
        can_resume = isinstance(error, (ResumableError, QuestionError, KeyboardInterrupt))
        hint = f"What was done before is in {place}{': go on with --resume' if can_resume else ''}."
        if isinstance(error, RechainError):
            raise RechainError(f"{error} {hint}") from error
        note(hint)
        raise
    return tally


def print_lines(result: "WorkResult") -> None:
    """Print lines at once, so that a program that reads them need not wait for the next."""
    print_records(result.lines.decode())
    sys.stdout.flush()


def _report(outcome: Outcome, max_error_rate: float | None, run: RunLog) -> None:
    """Say what came of the questions, and exit with a code of its own if too many of them failed."""
    whole = outcome.whole
    failure = too_many_errors(whole.problems.total(), whole.questions, max_error_rate)
    run.end(_summary(outcome.tally, outcome.before), failure)
    if failure:
        raise Exit(ExitCode.TOO_MANY_ERRORS)


def _summary(tally: "Tally", before: "Progress | None") -> str:
    if not tally.questions:
        return "Nothing was left to do: everything is there."
    if before and before.lines + tally.questions == before.whole_lines:
        return f"Nothing was left to do: all {before.whole_lines} questions are there."
    earlier = f" after the {before.lines} that were there" if before and before.lines else ""
    problems = ", ".join(f"{count} {code}" for code, count in tally.problems.most_common())
    end = f"; without: {problems}." if problems else "."
    questions = f"{tally.questions} question{'s' * (tally.questions != 1)}"
    return f"{questions}{earlier}, {tally.with_chain} with a chain{end}{_verdicts(tally)}"


def _verdicts(tally: "Tally") -> str:
    from rechain.schema import VERDICTS

    counts = [f"{tally.verdicts[verdict]} {words}" for verdict, words in VERDICTS.items() if tally.verdicts[verdict]]
    return f" Answers: {', '.join(counts)}." if counts else ""
