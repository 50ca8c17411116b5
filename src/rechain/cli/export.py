"""rechain export: recovered chains in the formats that others read."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rechain.cli.options import (
    STDIN,
    Corpus,
    Found,
    Map,
    MinConfidence,
    OutputOptions,
    Passages,
    QuestionsInput,
    grouped,
    show_provenance,
)
from rechain.errors import RechainError
from rechain.exports.registry import EXPORTS, load_export
from rechain.system.stores import path_of
from rechain.system.terminal import note

if TYPE_CHECKING:
    from rechain.exports.joining import LineExport

    To = str
else:
    To = StrEnum("To", {name: name for name in EXPORTS})  # typer offers the values of an enum


@grouped
def export(
    *,
    chains: Annotated[
        Path,
        Argument(
            metavar="CHAINS", parser=path_of, help="Chains, as `rechain recover` writes them; '-' is standard input."
        ),
    ],
    to: Annotated[To, Option(help="; ".join(f"{name}: {meaning}" for name, meaning in EXPORTS.items()) + ".")],
    questions: Annotated[
        Path | None,
        Option(metavar="FILE", parser=path_of, help="The questions, in any known format; only parquet needs none."),
    ] = None,
    passages: Passages = None,
    corpus: Corpus = None,
    found: Found = None,
    mapping: Map = None,
    output: OutputOptions,
    min_confidence: MinConfidence = None,
    negatives: Annotated[int | None, Option(min=1, help="Hard negatives a positive, of triplets (1).")] = None,
    weights: Annotated[
        bool, Option("--weights", help="Write the confidence of its chain beside every triplet, as `score`.")
    ] = False,
) -> None:
    """Export the best chain of every question in a format that others read.

    Example: rechain export chains.jsonl --to triplets --questions questions.jsonl --out triplets.jsonl
    """
    from rechain.datasets.records import read_rows
    from rechain.exports.joining import FileExport, Selection
    from rechain.schema import Recovered
    from rechain.system.provenance import describe_input, heading, read_provenance

    chosen, options = load_export(to), _options(to, {"negatives": negatives, "weights": weights or None})
    output.check(chains, questions, passages)
    source = read_provenance(chains)
    settings = {"to": to, "min_confidence": min_confidence, **options, **({"map": mapping} if mapping else {})}
    made_by = heading(
        "export",
        model=source.made_by.get("model") if source else None,
        settings=settings,
        input=source.described() if source else describe_input(chains),
        questions=describe_input(questions),
        passages=describe_input(passages),
    )
    selection = Selection(min_confidence)
    if isinstance(chosen, FileExport):
        if output.out is None:
            raise RechainError(f"{chosen.title} is no text to print; name a file for it with --out FILE.")
        chosen.write(output.out, selection.chains(read_rows(chains, Recovered)), made_by)
        output.write_provenance(made_by, {"questions": selection.exported})
    else:
        path = _questions_of(to, chosen, chains, questions)
        asked = QuestionsInput(path, passages, None, mapping, corpus, found)
        collection = asked.collection()
        entries = asked.entries("Exporting", collection=collection)
        sentences, complete = None if mapping else path, asked.completion(collection)
        lines = chosen.lines(read_rows(chains, Recovered), entries, sentences, selection, options, complete)
        output.write(lines, made_by)
    exported = f"{selection.exported} question{'s' * (selection.exported != 1)}"
    reasons = ", ".join(f"{count} {reason}" for reason, count in selection.left_out.most_common())
    note(f"{exported} exported{'; left out: ' + reasons if reasons else ''}.")
    show_provenance(source, questions)


def _options(to: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were set; it is a mistake if the export does not take one of them."""
    options = {name: value for name, value in values.items() if value is not None}
    for name in options:
        takers = [other for other in EXPORTS if name in load_export(other).options]
        if to not in takers:
            raise RechainError(f"--{name} is for {' and '.join(takers)}; leave it out.")
    return options


def _questions_of(to: str, export: "LineExport", chains: Path, questions: Path | None) -> Path:
    """Return the questions file, or raise why it will not do."""
    if questions is None:
        raise RechainError(f"{to} needs the texts of the questions; name their file with --questions FILE.")
    if questions == chains == STDIN:
        raise RechainError("standard input cannot hold both chains and questions; put the questions into a file.")
    if export.needs_sentences and (questions == STDIN or questions.is_fifo()):
        raise RechainError(f"{to} reads the questions twice, which a pipe does not allow; put them into a file.")
    return questions
