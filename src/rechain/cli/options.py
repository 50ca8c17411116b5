"""Options that several commands share: questions, their passages, candidates, and output."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import IntEnum
from functools import cached_property, partial, wraps
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rechain.errors import QuestionError, RechainError
from rechain.system.files import is_local, path_of, replacing
from rechain.system.log import LogFormat, RunLog, bar, note, print_records, working

if TYPE_CHECKING:
    from rechain.formats.datasets import Entry
    from rechain.formats.exports.joining import Complete
    from rechain.index.index import Index
    from rechain.schema import Gold, Question, Same
    from rechain.system.provenance import Facts, Provenance
    from rechain.text.candidates import CandidateSettings
    from rechain.text.collection import PassageCollection

STDIN = Path("-")


class ExitCode(IntEnum):
    """Exit codes other than 0, and 1 for a bug; above 128 as in shells, for signals."""

    MISTAKE = 2
    TOO_MANY_ERRORS = 3
    INTERRUPTED = 130
    READER_GONE = 141
    TERMINATED = 143


Log = Annotated[
    LogFormat | None,
    Option(
        "--log", help="Log to standard error: lines of text or json, or none but errors. (a terminal: bar; else text)"
    ),
]
Questions = Annotated[
    Path,
    Argument(
        metavar="QUESTIONS",
        parser=path_of,
        help="Questions, in any known format; '-' is standard input, and s3://… in a store.",
    ),
]
Passages = Annotated[
    Path | None, Option(metavar="FILE", parser=path_of, help="Passages that the questions name by id.")
]
Only = Annotated[
    list[str] | None, Option(metavar="TYPE", help="Only questions of this type, e.g. bridge; may be repeated.")
]
GoldFile = Annotated[
    Path | None,
    Option(metavar="FILE", parser=path_of, help="Gold chains or labelled pairs, if not in the questions file."),
]
MinConfidence = Annotated[
    float | None, Option(min=0, max=1, help="Leave out chains of less confidence; for models that tell one.")
]
Workers = Annotated[int | None, Option(min=0, help="Worker processes, else one a core; 0: none but this one.")]
Device = Annotated[str | None, Option(metavar="NAME", help="cpu, cuda, cuda:1, …; a GPU if there is one.")]
Strict = Annotated[bool, Option("--strict", help="Stop at the first question that has an error.")]
MaxErrorRate = Annotated[
    float | None,
    Option(
        min=0, max=1, metavar="RATE", help="Exit with code 3 if a greater share of the questions fails. (if all fail)"
    ),
]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace the output file if there is one.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Allow option groups in a command: parameters that are dataclasses, each field of which is an option.

    typer reads the options of a command from its signature. So a group is replaced by its fields in the signature, and
    built from them again when the command is called. Own code, because typer has no
    groups (fastapi/typer#154, open since 2020), pydantic-typer names options `--group.field` (its issue 10), and
    dataclass-click is for click alone.
    """
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind: type[Any] = parameter.annotation
        if is_dataclass(kind):
            groups[parameter.name] = kind
            parameters += inspect.signature(kind).parameters.values()
        else:
            parameters.append(parameter)

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    # Keyword-only, as a positional parameter without a default may not follow one with a default.
    keywords = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return call


def too_many_errors(failed: int, questions: int, most: float | None) -> str:
    """Return a sentence if more questions failed than `most`, a share, allows; without it, if all of them failed."""
    if most is None:
        return "Every question failed." if questions and failed == questions else ""
    if failed <= most * questions:
        return ""
    return f"{100 * failed / questions:.1f} % of the questions failed, but only {100 * most:g} % may."


@dataclass(frozen=True, kw_only=True)
class PassageOptions:
    """Where the passages of questions come from, and how records are read."""

    passages: Passages = None
    mapping: Annotated[
        str | None,
        Option(
            "--map",
            metavar="FIELDS",
            help="Names of the fields: question=user_input,answer=output.text,passages=docs,passage.text=page_content.",
        ),
    ] = None
    corpus: Annotated[
        Path | None,
        Option(metavar="INDEX", help="An index of documents (rechain index) in which passages are searched."),
    ] = None
    found: Annotated[
        int | None,
        Option(
            min=1,
            max=1000,
            help="Passages to find in the index for a question (12, or 60 if the data names its entities).",
        ),
    ] = None

    @cached_property
    def index(self) -> "Index | None":
        """The index that --corpus names, opened once."""
        if self.corpus is None:
            return None
        if self.passages is not None:
            raise RechainError("--passages is a file of passages and --corpus an index of them; choose one of them.")
        from rechain.index.index import Index

        return Index(self.corpus.absolute())


@dataclass(frozen=True, kw_only=True)
class QuestionsInput(PassageOptions):
    """The questions that a command reads."""

    path: Questions
    only: Only = None

    def at(self, path: Path) -> "QuestionsInput":
        """Return the questions of another file over the same collection, which is not read again."""
        other = replace(self, path=path)
        vars(other)["collection"] = self.collection
        return other

    @cached_property
    def collection(self) -> "PassageCollection | Index | None":
        """The passages that questions name by id, or the index in which passages are searched, read once."""
        from rechain.formats.datasets.questions import read_collection

        with working("Reading passages"):
            return read_collection(self.passages) if self.index is None else self.index

    def entries(self, activity: str, log: RunLog | None = None) -> Iterator["Entry"]:
        """Read questions under a progress bar or a log; raises if none is of a type that `only` names."""
        from rechain.formats.datasets.questions import no_question

        entries = self._read(self.only or ())
        if self.index is not None:
            from rechain.index.search import FindSettings, fill_entries

            fill = partial(fill_entries, self.index, settings=FindSettings(self.found))
            entries = (filled for entry in entries for filled in fill([entry]))
        number = 0
        with bar(activity) as show:
            for number, entry in enumerate(entries, start=1):
                if log:
                    log.questions, log.share = number, entry.share
                yield entry
                show(entry.share, number, "")
        if not number:
            raise no_question(self.path, self.only or ())

    def _read(self, only: Sequence[str] = ()) -> Iterator["Entry"]:
        from rechain.formats.datasets.questions import read_entries

        return read_entries(
            self.path,
            passages=self.collection,
            only=only,
            mapping=self.mapping,
            needs_passages=self.corpus is None,
        )

    def completion(self) -> "Complete | None":
        """Return what adds to a question the passages that its chains name and a search did not find, with an index.

        Chains may come from a run with a greater `--found`.
        """
        if self.index is None:
            return None
        from rechain.index.search import add_named

        return partial(add_named, self.index)

    def readable(self, activity: str, log: RunLog | None = None, strict: bool = False) -> Iterator["Question"]:
        """Read the questions that can be read; then print how many cannot, and why the first of them cannot.

        If strict, the first that cannot be read raises its error.
        """
        errors: list[QuestionError] = []
        for entry in self.entries(activity, log):
            if not isinstance(entry.content, QuestionError):
                yield entry.content
            elif strict:
                raise entry.content
            else:
                errors.append(entry.content)
        if errors:
            left_out = f"Left out: {len(errors)} of the questions cannot be read; the first: {errors[0]}"
            (log.note if log else note)(left_out)

    def gold(self, file: Path | None) -> "Mapping[str, Gold]":
        """Read the gold chains, from their own file or out of the questions file; commands that judge call this."""
        from rechain.evaluation.gold import read_gold

        def questions() -> "Iterator[Question]":
            if self.path == STDIN:
                raise RechainError("standard input can be read only once; put the questions into a file.")
            contents = (entry.content for entry in self._read())
            yield from (content for content in contents if not isinstance(content, QuestionError))

        if file is None and (self.path == STDIN or self.mapping):  # mapped fields are no gold
            return {}
        with working("Reading gold"):
            return read_gold(file or self.path, questions(), self.same_chain)

    @property
    def same_chain(self) -> "Same":
        """What counts as the same chain: of a pipe, which is read only once, and with a map, the links too."""
        from rechain.formats.datasets.questions import same_chain

        is_pipe = is_local(self.path) and not (self.path.is_file() or self.path.is_dir())
        return "links" if is_pipe or self.mapping else same_chain(self.path)


@dataclass(frozen=True)
class CandidateOptions:
    """How the candidate chains of a question are built; None: the default of CandidateSettings."""

    hops: Annotated[
        int | None,
        Option(min=2, max=8, help="Passages in a chain; overrides the file. Otherwise 2, or 2 to 4 (default model)."),
    ] = None
    link_types: Annotated[
        str | None,
        Option(metavar="TYPES", help="Types of the linking entities, e.g. gene,drug; overrides the file; '' is any."),
    ] = None
    linkers: Annotated[
        str | None,
        Option(metavar="NAMES", help="Linkers, with commas: anchors, identifiers, titles, names, nouns, runs, spacy."),
    ] = None
    spacy_model: Annotated[
        str | None, Option(metavar="NAME", help="The model of the linker spacy (en_core_web_sm).")
    ] = None
    min_weight: Annotated[float | None, Option(help="Links of less weight than this do not count (7.0).")] = None
    limit: Annotated[int | None, Option(min=1, help="The most candidate chains a question (1000).")] = None

    def settings(self) -> "CandidateSettings":
        """Return these options as settings."""
        from rechain.text.candidates import CandidateSettings

        values = {name: value for name, value in vars(self).items() if value is not None}
        for name in values.keys() & {"link_types", "linkers"}:
            values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
        if values.get("linkers") == []:
            raise RechainError(
                "--linkers names no linker, without which there are no links; name one, or leave it out."
            )
        return CandidateSettings(**values)


@dataclass(frozen=True)
class OutputOptions:
    """The output of a command: a file, which is replaced only with --overwrite, or standard output."""

    out: Annotated[
        Path | None, Option(metavar="FILE", help="Where the records go, a line each; else standard output.")
    ] = None
    overwrite: Overwrite = False

    def check(self, *inputs: Path | None, resume: bool | None = None) -> None:
        """Raise an error if the output file exists and should not be replaced, or is one of the inputs.

        `resume` is None for commands that cannot resume.
        """
        out, overwrite = self.out, self.overwrite
        paths = [path for path in inputs if path is not None and is_local(path)]
        if resume and out is None:
            raise RechainError("--resume goes on with an output file; name it with --out FILE.")
        if resume and overwrite:
            raise RechainError("--resume goes on with a file and --overwrite replaces it; choose one of them.")
        if out is None:
            return
        if not out.parent.is_dir():
            raise RechainError(f"{out} cannot be written: there is no folder {out.parent}.")
        if out.is_dir():
            raise RechainError(f"{out} is a folder; name a file for the output.")
        if resume and out.exists() and not out.is_file():
            raise RechainError(f"{out} is no file that one could go on with; leave --resume out.")
        if any(path.is_dir() and path.resolve() in out.resolve().parents for path in paths):
            raise RechainError(f"{out} lies in a folder that is read; name a file elsewhere for the output.")
        self._check_provenance(out, paths)
        if not out.exists():
            return
        if not overwrite and not resume:
            rest = "replace it with --overwrite" + ("" if resume is None else ", or go on with it with --resume")
            raise RechainError(f"{out} exists; name another file, {'' if resume is not None else 'or '}{rest}.")
        if any(path.exists() and out.samefile(path) for path in paths):
            raise RechainError(f"{out} is what is read; name another file for the output.")

    def _check_provenance(self, out: Path, inputs: Sequence[Path]) -> None:
        """Raise an error if the provenance file would replace a file of another purpose."""
        from rechain.system.provenance import is_provenance, sidecar_of

        if not (sidecar := sidecar_of(out)).exists():
            return
        if any(path.exists() and sidecar.samefile(path) for path in inputs):
            raise RechainError(f"{sidecar}, where the output's provenance goes, is what is read; name another output.")
        if not is_provenance(sidecar):
            raise RechainError(f"{sidecar} exists and says nothing of {out}; move it, or name another output.")

    def write(self, lines: Iterator[str], made_by: "Facts") -> int:
        """Write lines and return how many; a file appears when it is complete, with its provenance."""
        first = list(islice(lines, 1))  # before the file is opened, so that an error in the input leaves it alone
        count = 0
        with nullcontext() if self.out is None else replacing(self.out) as file:
            for line in chain(first, lines):
                count += 1
                if file is None:
                    print_records(f"{line}\n")
                else:
                    file.write(f"{line}\n".encode())
        self.write_provenance(made_by, {"lines": count})
        return count

    def write_provenance(self, made_by: "Facts", counts: Mapping[str, Any]) -> None:
        """Write the provenance of the complete file."""
        from rechain.system.provenance import write_provenance

        if self.out is not None:
            write_provenance(self.out, made_by, counts)


def show_provenance(provenance: "Provenance | None", questions: Path | None = None) -> None:
    """Print the provenance of chains, and warnings about it."""
    if provenance:
        note(provenance.summary())
        for misfit in provenance.misfits(questions):
            note(f"warning: {misfit}")
