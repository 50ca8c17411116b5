"""rechain recover: from a file of questions to their chains."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rechain.cli.options import (
    Device,
    Hops,
    Limit,
    Linkers,
    LinkTypes,
    MinConfidence,
    MinWeight,
    Only,
    Passages,
    Questions,
    SpacyModel,
    Strict,
    candidate_settings,
    no_question,
)
from rechain.cli.output import Out, Overwrite, Resume, StandardOutput, check_output
from rechain.errors import RechainError

if TYPE_CHECKING:
    from rechain.engines.work import Tally, Work


def recover(
    questions: Questions,
    model: Annotated[
        str,
        typer.Option(
            help="The model: default, lexical, bm25, random, a model's folder or run, or its name on the Hub."
        ),
    ] = "default",
    out: Out = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
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
    device: Device = None,
    passages: Passages = None,
    only: Only = None,
    hops: Hops = None,
    link_types: LinkTypes = None,
    linkers: Linkers = None,
    spacy_model: SpacyModel = None,
    min_weight: MinWeight = None,
    limit: Limit = None,
    strict: Strict = False,
) -> None:
    """Recover the chains of questions.

    Example: rechain recover hotpot_dev_distractor_v1.json --only bridge --out chains.jsonl
    """
    from rechain.engines.work import Work
    from rechain.recovery import Recoverer

    check_output(out, overwrite, questions, passages, resume=resume)
    recoverer = partial(
        Recoverer,
        model,
        settings=candidate_settings(hops, link_types, linkers, spacy_model, min_weight, limit),
        top=top,
        explain=explain,
        device=device,
        min_confidence=min_confidence,
    )
    work = Work(recoverer, passages, tuple(only or ()), strict)
    _recover_here(work, questions, batch_size, workers, out, resume)


def _recover_here(
    work: "Work", questions: Path, batch_size: int, workers: int | None, out: Path | None, resume: bool
) -> None:
    """Recover chains in worker processes of this machine, into a file that is whole whenever they are stopped."""
    from rechain.cli.progress import with_tally
    from rechain.datasets.reading import read_chunks
    from rechain.engines.growing import Begun, GrowingFile, take_up
    from rechain.engines.local import recover_chunks
    from rechain.engines.work import Tally

    chunks = read_chunks(questions, batch_size)
    begun: Begun | None = None
    if out and resume and out.exists():
        begun, chunks = take_up(out, chunks, work.line_counter())
    tally = Tally()
    try:
        with GrowingFile(out, begun) if out else StandardOutput() as file:
            for done in with_tally(recover_chunks(work, chunks, batch_size, workers), "Recovering"):
                file.write(done.lines)
                tally.add(done.tally)
                if done.stopped_by:
                    raise done.stopped_by
    except RechainError as error:
        if out and tally.questions:
            raise RechainError(f"{error} What was done before is in {out}: go on with --resume.") from error
        raise
    if not tally.questions:
        raise no_question(questions, work.only)
    _report(tally, begun.lines if begun else 0)


def _report(tally: "Tally", before: int) -> None:
    asked = "1 question" if tally.questions == 1 else f"{tally.questions} questions"
    there = f" after the {before} that were there" if before else ""
    without = ", ".join(f"{count} {code}" for code, count in tally.problems.most_common())
    end = f"; without: {without}." if without else "."
    print(f"{asked}{there}, {tally.with_chain} with a chain{end}", file=sys.stderr)
