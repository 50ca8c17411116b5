"""Options that several commands share, and what is made of them."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rechain.errors import QuestionError, RechainError

if TYPE_CHECKING:
    from rechain.candidates import CandidateSettings
    from rechain.datasets import Entry
    from rechain.schema import Gold, Question, Same

Questions = Annotated[
    Path, typer.Argument(metavar="QUESTIONS", help="Questions, in any known format; '-' is standard input.")
]
Passages = Annotated[
    Path | None, typer.Option("--passages", metavar="FILE", help="Passages that the questions name by id.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="TYPE", help="Only questions of this type, e.g. bridge; may be repeated."),
]
Hops = Annotated[
    int | None,
    typer.Option("--hops", min=2, max=8, help="Passages in a chain; overrides the file, which else decides, or 2."),
]
LinkTypes = Annotated[
    str | None,
    typer.Option(
        "--link-types",
        metavar="TYPES",
        help="Types of the linking entities, e.g. gene,drug; overrides the file; '' is any.",
    ),
]
Linkers = Annotated[
    str | None,
    typer.Option("--linkers", metavar="NAMES", help="Linkers: anchors,identifiers,titles,names,spacy."),
]
SpacyModel = Annotated[
    str | None, typer.Option("--spacy-model", metavar="NAME", help="The model of the linker spacy (en_core_web_sm).")
]
MinWeight = Annotated[
    float | None, typer.Option("--min-weight", help="Links of less weight than this do not count (7.0).")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="The most candidate chains a question (1000).")]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        "--min-confidence",
        min=0,
        max=1,
        help="Leave out chains of less confidence; for models that tell one.",
    ),
]
GoldFile = Annotated[
    Path | None,
    typer.Option("--gold", metavar="FILE", help="Gold chains or labelled pairs, if not in the questions file."),
]
Device = Annotated[
    str | None, typer.Option("--device", metavar="NAME", help="cpu, cuda, cuda:1, …; a GPU if there is one.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first question that has an error.")]


def candidate_settings(
    hops: int | None,
    link_types: str | None,
    linkers: str | None,
    spacy_model: str | None,
    min_weight: float | None,
    limit: int | None,
) -> "CandidateSettings":
    """Gather the options that say how C is built."""
    from rechain.candidates import CandidateSettings

    given = {
        "hops": hops,
        "link_types": _separated(link_types),
        "linkers": _separated(linkers),
        "spacy_model": spacy_model,
        "min_weight": min_weight,
        "limit": limit,
    }
    return CandidateSettings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def _separated(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def entries(questions: Path, passages: Path | None, only: list[str] | None, what: str) -> Iterator["Entry"]:
    """Read questions under a progress bar; a file in which no question is of a wanted type is a mistake."""
    from rechain.cli.progress import with_progress, working
    from rechain.datasets.reading import no_question, read_entries
    from rechain.datasets.records import read_by_id
    from rechain.schema import Passage

    with working("Reading passages"):
        known = None if passages is None else read_by_id(passages, Passage)
    found = False
    for entry in with_progress(read_entries(questions, passages=known, only=only or ()), what):
        found = True
        yield entry
    if not found:
        raise no_question(questions, only or ())


def readable(questions: Path, passages: Path | None, only: list[str] | None, what: str) -> Iterator["Question"]:
    """Read the questions that can be read, and say how many cannot, and why the first of them cannot."""
    left_out: list[QuestionError] = []
    for entry in entries(questions, passages, only, what):
        if isinstance(entry.content, QuestionError):
            left_out.append(entry.content)
        else:
            yield entry.content
    if left_out:
        print(f"Left out: {len(left_out)} of the questions cannot be read; the first: {left_out[0]}", file=sys.stderr)


def gold_of(questions: Path, passages: Path | None, gold: Path | None) -> "Mapping[str, Gold]":
    """Read the gold chains, from their own file or out of the questions file; evaluation alone calls this."""
    from rechain.cli.progress import working
    from rechain.datasets import read_entries
    from rechain.evaluation.gold import read_gold

    def asked() -> "Iterator[Question]":
        if questions == Path("-"):
            raise RechainError("standard input can be read only once; put the questions into a file.")
        contents = (entry.content for entry in read_entries(questions, passages=passages))
        yield from (content for content in contents if not isinstance(content, QuestionError))

    if gold is None and questions == Path("-"):
        return {}
    with working("Reading gold"):
        return read_gold(gold or questions, asked(), same_chain_of(questions))


def same_chain_of(questions: Path) -> "Same":
    """Return what counts as the same chain of these questions; of a pipe, which is read only once, the links too."""
    from rechain.datasets.reading import same_chain

    return same_chain(questions) if questions.is_file() or questions.is_dir() else "links"
