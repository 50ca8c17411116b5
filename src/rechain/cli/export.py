"""rechain export: recovered chains in the formats that others read."""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rechain.cli.options import (
    STDIN,
    MinConfidence,
    OutputOptions,
    PassageOptions,
    QuestionsInput,
    grouped,
    show_provenance,
)
from rechain.cli.tables import plural
from rechain.errors import RechainError
from rechain.system.files import path_of
from rechain.system.log import note

# The names of EXPORTS, which are listed here as the help should come at once.
_MEANINGS = {
    "hotpotqa": "predictions for HotpotQA's evaluation",
    "triplets": "training data of sentence-transformers",
    "paths": "training data of Beam Retriever, as MuSiQue has it",
    "mdr": "training data of MDR",
    "parquet": "a table of all chains",
}

if TYPE_CHECKING:
    from rechain.formats.exports.joining import LineExport

    To = str
else:
    To = StrEnum("To", {name: name for name in _MEANINGS})  # typer offers the values of an enum


@grouped
def export(
    *,
    chains: Annotated[
        Path,
        Argument(
            metavar="CHAINS", parser=path_of, help="Chains, as `rechain recover` writes them; '-' is standard input."
        ),
    ],
    to: Annotated[To, Option(help="; ".join(f"{name}: {meaning}" for name, meaning in _MEANINGS.items()) + ".")],
    questions: Annotated[
        Path | None,
        Option(metavar="FILE", parser=path_of, help="The questions, in any known format; only parquet needs none."),
    ] = None,
    source: PassageOptions,
    output: OutputOptions,
    min_confidence: MinConfidence = None,
    negatives: Annotated[int | None, Option(min=1, help="Hard negatives a positive, of triplets (1).")] = None,
    weights: Annotated[
        bool, Option("--weights", help="Add the confidence of its chain to every triplet, as `score`.")
    ] = False,
) -> None:
    """Export the best chain of every question in a format that others read.

    Example: rechain export chains.jsonl --to triplets --questions questions.jsonl --out triplets.jsonl
    """
    from rechain.formats.datasets.records import read_rows
    from rechain.formats.exports import EXPORTS
    from rechain.formats.exports.joining import FileExport, Selection
    from rechain.schema import Recovered
    from rechain.system.provenance import describe_input, heading, read_provenance

    chosen, options = EXPORTS[to], _options(to, {"negatives": negatives, "weights": weights or None})
    output.check(chains, questions, source.passages)
    provenance = read_provenance(chains)
    settings = {"to": to, "min_confidence": min_confidence, **options}
    settings |= {"map": source.mapping} if source.mapping else {}
    made_by = heading(
        "export",
        model=provenance.made_by.get("model") if provenance else None,
        settings=settings,
        input=provenance.described() if provenance else describe_input(chains),
        questions=describe_input(questions),
        passages=describe_input(source.passages),
    )
    selection = Selection(min_confidence)
    if isinstance(chosen, FileExport):
        if output.out is None:
            raise RechainError(f"{chosen.title} is no text to print; name a file for it with --out FILE.")
        chosen.write(output.out, selection.chains(read_rows(chains, Recovered)), made_by)
        output.write_provenance(made_by, {"questions": selection.exported})
    else:
        path = _questions_of(to, chosen, chains, questions)
        input_questions = QuestionsInput(path=path, **asdict(source))
        sentences = None if source.mapping else path
        rows, entries = read_rows(chains, Recovered), input_questions.entries("Exporting")
        lines = chosen.lines(rows, entries, sentences, selection, options, input_questions.completion())
        output.write(lines, made_by)
    reasons = ", ".join(f"{count} {reason}" for reason, count in selection.left_out.most_common())
    note(f"{plural(selection.exported, 'question')} exported{'; left out: ' + reasons if reasons else ''}.")
    show_provenance(provenance, questions)


def _options(to: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were set; raises if the export does not take one of them."""
    from rechain.formats.exports import EXPORTS

    options = {name: value for name, value in values.items() if value is not None}
    for name in options:
        takers = [other for other, export in EXPORTS.items() if name in export.options]
        if to not in takers:
            raise RechainError(f"--{name} is for {' and '.join(takers)}; leave it out.")
    return options


def _questions_of(to: str, export: "LineExport", chains: Path, questions: Path | None) -> Path:
    """Return the questions file; raises if it cannot be used."""
    if questions is None:
        raise RechainError(f"{to} needs the texts of the questions; name their file with --questions FILE.")
    if questions == chains == STDIN:
        raise RechainError("standard input cannot hold both chains and questions; put the questions into a file.")
    if export.needs_sentences and (questions == STDIN or questions.is_fifo()):
        raise RechainError(f"{to} reads the questions twice, which a pipe does not allow; put them into a file.")
    return questions
