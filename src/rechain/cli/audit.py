"""rechain audit: which answers of a log are supported by their passages, as one page."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from typer import Exit, Option

from rechain.cli.exits import ExitCode
from rechain.cli.options import CandidateOptions, Device, OutputOptions, Overwrite, QuestionsInput, grouped
from rechain.errors import RechainError
from rechain.system.files import replacing
from rechain.system.stores import path_of
from rechain.system.terminal import note

if TYPE_CHECKING:
    from rechain.audit.answers import AuditedAnswer
    from rechain.audit.summary import Summary
    from rechain.datasets import Entry
    from rechain.exports.joining import Complete
    from rechain.recovery import Recoverer
    from rechain.system.provenance import Facts

# Below so many questions one process is done before others have loaded the model.
_FEW = 200


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
        Option(metavar="FILE", parser=path_of, help="What was recovered of them already; else the model does it now."),
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
    workers: Annotated[
        int | None, Option(min=0, help="Worker processes, else one a core; 0: none but this one.")
    ] = None,
    device: Device = None,
    candidates: CandidateOptions,
    overwrite: Overwrite = False,
) -> None:
    """Audit the answers of a log: which are supported by their passages, which are doubtful, and why.

    Example: rechain audit log.jsonl --out report.html --fail-under 0.9

    Exit codes: 0 done; 2 a mistake; 3 fewer answers are supported than --fail-under demands, or none could be judged.
    """
    from rechain.audit.report import JsonReport, MostDoubtful, lines_of, write_page
    from rechain.audit.summary import Summary
    from rechain.recovery import Recoverer

    _check(questions, out, json, chains, serve_url, overwrite)
    make = partial(Recoverer, model, settings=candidates.settings(), device=device)
    made_by = _made_by(questions, chains, make)
    collection = questions.collection()
    entries = questions.entries("Auditing", collection=collection)
    if chains:
        answers = _from_file(chains, entries, questions.completion(collection))
    else:
        answers = _recovered(partial(make, corpus=collection), entries, workers)
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
    """Raise an error for what would fail after hours of work."""
    if json and json.absolute() == out.absolute():
        raise RechainError(f"{out} cannot be both the page and the JSON; name another file for one of them.")
    for path in (out, json):
        OutputOptions(path, overwrite).check(questions.path, questions.passages, chains)
    if serve_url and not (urlsplit(serve_url).scheme in ("http", "https") and urlsplit(serve_url).netloc):
        raise RechainError(f"--serve-url should be an address such as http://127.0.0.1:8000, not '{serve_url}'.")


def _made_by(questions: QuestionsInput, chains: Path | None, make: "partial[Recoverer]") -> "Facts":
    """Return what makes the report: the model, or what made the chains."""
    from dataclasses import asdict

    from rechain.cli.progress import working
    from rechain.recovery import model_facts
    from rechain.system.provenance import describe_input, heading, read_provenance

    with working("Digest of the input"):
        inputs = {"input": describe_input(questions.path), "passages": describe_input(questions.passages)}
        if chains is None:
            return heading("audit", model=model_facts(make), settings=asdict(make.keywords["settings"]), **inputs)
        source = read_provenance(chains)
        for misfit in source.misfits(questions.path) if source else ():
            note(f"warning: {misfit}")
        made = source.made_by if source else None
        return heading("audit", chains=describe_input(chains), chains_made_by=made, **inputs)


def _recovered(
    make: "partial[Recoverer]", entries: "Iterator[Entry]", workers: int | None
) -> "Iterator[AuditedAnswer]":
    """Yield the answers of a log as they are recovered, in its order."""
    from rechain.audit.answers import audited
    from rechain.bulk.work import default_workers

    first = list(islice(entries, _FEW))
    if workers is None:
        workers = 0 if len(first) < _FEW else default_workers(make.args[0], make.keywords["device"])
    waiting: deque[Entry] = deque()

    def passing() -> "Iterator[Entry]":
        for entry in chain(first, entries):
            waiting.append(entry)  # until its chains come, which are no more than a few batches behind
            yield entry

    for recovered in make().recover_many(passing(), workers=workers):
        yield audited(waiting.popleft(), recovered)


def _from_file(
    chains: Path, entries: "Iterable[Entry]", complete: "Complete | None" = None
) -> "Iterator[AuditedAnswer]":
    """Yield the answers whose chains a file holds; both are in the same order. Say how many answers have none there."""
    from rechain.audit.answers import audited
    from rechain.datasets.reading import Entry
    from rechain.datasets.records import read_rows
    from rechain.errors import QuestionError
    from rechain.exports.joining import next_of
    from rechain.schema import Question, Recovered

    asked, judged = count(), count()  # which say how many questions and rows were read
    remaining = ((entry, dict[str, list[str]]()) for entry, _ in zip(entries, asked, strict=False))
    for (where, recovered), _ in zip(read_rows(chains, Recovered), judged, strict=False):
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
    if left_out := next(asked) - next(judged):
        questions = f"{left_out} question{'s' * (left_out != 1)}"
        note(f"warning: {chains} lacks {questions} of the log; the report is of the others.")


def _check_judged(summary: "Summary", source: Path | str) -> None:
    """Raise an error where there is nothing to report, since what judges gives no verdicts."""
    if summary.answers and not summary.verdicts and summary.errors["no_verdict"]:
        raise RechainError(f"{source} gives no verdicts on answers; audit with a model that does, such as the default.")


def _judge(summary: "Summary", least: float | None) -> None:
    """Exit with a code of its own if too few answers are supported, or if none could be judged."""
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
