"""rechain audit: which answers of a log are supported by their passages, as one page."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from typer import Exit, Option

from rechain.cli.options import (
    CandidateOptions,
    Device,
    ExitCode,
    OutputOptions,
    Overwrite,
    QuestionsInput,
    Workers,
    grouped,
)
from rechain.cli.tables import plural
from rechain.errors import RechainError
from rechain.system.files import path_of, replacing
from rechain.system.log import note

if TYPE_CHECKING:
    from rechain.formats.datasets import Entry
    from rechain.formats.exports.joining import Complete
    from rechain.recoverer import RecovererConfig
    from rechain.system.provenance import Facts
    from rechain.web.audit_answers import AuditedAnswer
    from rechain.web.audit_report import Summary

_FEW = 200
"""questions; with fewer, one process finishes before others have loaded the model"""


@grouped
def audit(
    *,
    questions: QuestionsInput,
    out: Annotated[Path, Option(metavar="FILE", help="Where the page goes.")],
    json: Annotated[
        Path | None, Option("--json", metavar="FILE", help="Where counts and a record a question go, as JSON.")
    ] = None,
    chains: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            parser=path_of,
            help="Chains recovered from these questions; else the model recovers them now.",
        ),
    ] = None,
    model: Annotated[str, Option(help="The model: default, or a model's folder or its name on the Hub.")] = "default",
    fail_under: Annotated[
        float | None,
        Option(
            min=0, max=1, metavar="SHARE", help="Exit with code 3 if a smaller share of the answers given is supported."
        ),
    ] = None,
    most: Annotated[
        int, Option(min=0, metavar="N", help="How many answers the page lists, doubtful ones first.")
    ] = 1000,
    serve_url: Annotated[
        str | None, Option(metavar="URL", help="Where `rechain serve` shows the same questions; answers link to it.")
    ] = None,
    workers: Workers = None,
    device: Device = None,
    candidates: CandidateOptions,
    overwrite: Overwrite = False,
) -> None:
    """Audit the answers of a log: which are supported by their passages, which are doubtful, and why.

    Example: rechain audit log.jsonl --out report.html --fail-under 0.9

    Exit codes: 0 done; 2 a mistake; 3 fewer answers are supported than --fail-under demands, or none could be judged.
    """
    from rechain.recoverer import RecovererConfig
    from rechain.web.audit_report import JsonReport, MostDoubtful, Summary, lines_of, write_page

    _check(questions, out, json, chains, serve_url, overwrite)
    config = RecovererConfig(model, candidates.settings(), device=device)
    made_by = _made_by(questions, chains, config)
    entries = questions.entries("Auditing")
    if chains:
        answers = _from_file(chains, entries, questions.completion())
    else:
        answers = _recovered(replace(config, corpus=questions.collection), entries, workers)
    summary, doubtful = Summary(), MostDoubtful(most)
    with ExitStack() as stack:
        records = JsonReport(stack.enter_context(replacing(json))) if json else None
        for place, answer in enumerate(answers, start=1):
            summary.add(answer)
            doubtful.add(place, answer)
            if records:
                records.add(answer)
            if place == _FEW:  # not after hours
                _check_judged(summary, chains or model)
        _check_judged(summary, chains or model)
        if records:
            records.finish(summary, made_by)
    with replacing(out) as file:
        write_page(file, questions.path.name, summary, doubtful, made_by, serve_url)
    for path in (out, json):
        OutputOptions(path).write_provenance(made_by, {"answers": summary.answers, "verdicts": summary.verdicts})
    for line in lines_of(summary):
        note(line)
    note(f"The page is {out}.")
    _judge(summary, fail_under)


def _check(
    questions: QuestionsInput, out: Path, json: Path | None, chains: Path | None, serve_url: str | None, overwrite: bool
) -> None:
    """Check the options, before hours of work."""
    if json and json.absolute() == out.absolute():
        raise RechainError(f"{out} cannot be both the page and the JSON; name another file for one of them.")
    for path in (out, json):
        OutputOptions(path, overwrite).check(questions.path, questions.passages, chains)
    if serve_url and not (urlsplit(serve_url).scheme in ("http", "https") and urlsplit(serve_url).netloc):
        raise RechainError(f"--serve-url should be an address such as http://127.0.0.1:8000, not '{serve_url}'.")


def _made_by(questions: QuestionsInput, chains: Path | None, config: "RecovererConfig") -> "Facts":
    """Return the provenance of the report: the model, or how the chains were made."""
    from rechain.models import describe_model
    from rechain.system.log import working
    from rechain.system.provenance import describe_input, heading, read_provenance

    with working("Digest of the input"):
        inputs = {"input": describe_input(questions.path), "passages": describe_input(questions.passages)}
        if chains is None:
            return heading("audit", model=describe_model(config.model), settings=asdict(config.settings), **inputs)
        source = read_provenance(chains)
        for misfit in source.misfits(questions.path) if source else ():
            note(f"warning: {misfit}")
        made = source.made_by if source else None
        return heading("audit", chains=describe_input(chains), chains_made_by=made, **inputs)


def _recovered(config: "RecovererConfig", entries: "Iterator[Entry]", workers: int | None) -> "Iterator[AuditedAnswer]":
    """Yield the answers of a log as they are recovered, in its order."""
    from rechain.run.work import default_workers
    from rechain.web.audit_answers import audited

    first = list(islice(entries, _FEW))
    if workers is None:
        workers = 0 if len(first) < _FEW else default_workers(config.model, config.device)
    waiting: deque[Entry] = deque()

    def passing() -> "Iterator[Entry]":
        for entry in chain(first, entries):
            waiting.append(entry)  # until its chains come, which are no more than a few batches behind
            yield entry

    for recovered in config.load().recover_many(passing(), workers=workers):
        yield audited(waiting.popleft(), recovered)


def _from_file(chains: Path, entries: "Iterable[Entry]", complete: "Complete | None") -> "Iterator[AuditedAnswer]":
    """Yield the answers whose chains are in a file, in the same order; then print how many answers have none there."""
    from rechain.errors import QuestionError
    from rechain.formats.datasets.questions import Entry
    from rechain.formats.datasets.records import read_rows
    from rechain.formats.exports.joining import next_of
    from rechain.schema import Question, Recovered
    from rechain.web.audit_answers import audited

    questions_read, rows_read = count(), count()
    remaining = ((entry, dict[str, list[str]]()) for entry, _ in zip(entries, questions_read, strict=False))
    for (where, recovered), _ in zip(read_rows(chains, Recovered), rows_read, strict=False):
        if recovered.id is not None:
            entry, _ = next_of(where, recovered.id, remaining)
            if complete and isinstance(entry.content, Question):
                entry = entry._replace(content=complete(entry.content, recovered))
            yield audited(entry, recovered)
        else:
            problem = recovered.error
            error = QuestionError(problem.code, problem.message) if problem else QuestionError("no_id", "no id")
            yield audited(Entry(where, None, error), recovered)
    deque(remaining, maxlen=0)  # to its end
    if left_out := next(questions_read) - next(rows_read):
        note(f"warning: {chains} lacks {plural(left_out, 'question')} of the log; the report is of the others.")


def _check_judged(summary: "Summary", source: Path | str) -> None:
    """Raise an error if the model, or the file of chains, gives no verdicts."""
    if summary.answers and not summary.verdicts and summary.errors["no_verdict"]:
        raise RechainError(f"{source} gives no verdicts on answers; audit with a model that does, such as the default.")


def _judge(summary: "Summary", least: float | None) -> None:
    """Exit with code 3 if too few answers are supported, or if none could be judged."""
    supported = summary.supported
    if not summary.verdicts:
        note("Not one answer could be judged.")
    elif least is not None and supported is None:
        note("No answer was given, so none is supported.")
    elif least is not None and supported is not None and supported.value < least:
        count = summary.verdicts["supported"]
        note(
            f"{count} of {summary.given} answers given are supported: {100 * supported.value:.1f} %, "
            f"but {100 * least:g} % are demanded."
        )
    else:
        return
    raise Exit(ExitCode.TOO_MANY_ERRORS)
