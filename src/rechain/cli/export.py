"""rechain export: recovered chains in the formats that others read."""

import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rechain.cli.options import MinConfidence, OutputOptions, Passages, QuestionsInput, grouped, report_unfinished
from rechain.errors import RechainError

if TYPE_CHECKING:
    from rechain.exports.joining import Joined, Selection

_STANDARD_INPUT = Path("-")


class To(StrEnum):
    """What chains are exported as."""

    hotpotqa = "hotpotqa"
    triplets = "triplets"
    paths = "paths"
    mdr = "mdr"
    parquet = "parquet"


@grouped
def export(
    *,
    chains: Annotated[
        Path, typer.Argument(metavar="CHAINS", help="Chains, as `rechain recover` writes them; '-' is standard input.")
    ],
    to: Annotated[
        To,
        typer.Option(
            "--to",
            help="Predictions for HotpotQA's evaluation; triplets for sentence-transformers; paths for Beam Retriever, "
            "as MuSiQue has them; training data of MDR; or a Parquet table.",
        ),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions", metavar="FILE", help="The questions, in any known format; only Parquet needs none."
        ),
    ] = None,
    passages: Passages = None,
    output: OutputOptions,
    min_confidence: MinConfidence = None,
    negatives: Annotated[
        int | None, typer.Option("--negatives", min=1, help="Triplets with so many hard negatives a positive (1).")
    ] = None,
) -> None:
    """Export the best chain of every question in a format that others read.

    Example: rechain export chains.jsonl --to triplets --questions questions.jsonl --out triplets.jsonl
    """
    from rechain.exports.joining import Selection

    if negatives is not None and to != To.triplets:
        raise RechainError("--negatives is for triplets; leave it out.")
    output.check(chains, questions, passages)
    report_unfinished(chains)
    selection = Selection(min_confidence)
    if to == To.parquet:
        _write_parquet(chains, output.out, selection)
    else:
        output.write(_lines(to, chains, _named(to, chains, questions), passages, negatives or 1, selection))
    _report(selection)


def _named(to: To, chains: Path, questions: Path | None) -> Path:
    """Return the questions file, or say why it will not do."""
    if questions is None:
        raise RechainError(f"{to} needs the texts of the questions; name their file with --questions FILE.")
    if questions == chains == _STANDARD_INPUT:
        raise RechainError("standard input cannot hold both chains and questions; put the questions into a file.")
    if to == To.hotpotqa and (questions == _STANDARD_INPUT or questions.is_fifo()):
        raise RechainError(f"{to} reads the questions twice, which a pipe does not allow; put them into a file.")
    return questions


def _lines(
    to: To, chains: Path, questions: Path, passages: Path | None, negatives: int, selection: "Selection"
) -> Iterator[str]:
    import orjson

    from rechain.datasets.records import read_rows
    from rechain.exports import hotpotqa
    from rechain.exports.joining import join, with_sentences, without_sentences
    from rechain.schema import Recovered

    asked = QuestionsInput(questions, passages).entries("Exporting")
    told = with_sentences(asked, questions) if to == To.hotpotqa else without_sentences(asked)
    joined = join(read_rows(chains, Recovered), told, selection)
    rows = selection.rows(joined, _rows_of(to, negatives))
    for row in [hotpotqa.prediction(rows)] if to == To.hotpotqa else rows:
        yield orjson.dumps(row).decode()


def _rows_of(to: To, negatives: int) -> "Callable[[Joined], Sequence[Any]]":
    """Return what makes the rows of a question."""
    from rechain.exports import hotpotqa, mdr, paths, triplets

    if to == To.triplets:
        return partial(triplets.rows, negatives=negatives)
    makers: dict[To, Callable[[Joined], Sequence[Any]]]
    makers = {To.hotpotqa: hotpotqa.row, To.paths: paths.row, To.mdr: mdr.row}
    return makers[to]


def _write_parquet(chains: Path, out: Path | None, selection: "Selection") -> None:
    """Write all chains, also where a question has none, or those of enough confidence."""
    from rechain.datasets.records import read_rows
    from rechain.exports import parquet
    from rechain.schema import Recovered

    if out is None:
        raise RechainError("Parquet is no text to print; name a file for it with --out FILE.")

    def kept() -> Iterator[Recovered]:
        for where, recovered in read_rows(chains, Recovered):
            if selection.min_confidence is None or selection.keeps(where, recovered):
                selection.exported += 1
                yield recovered

    parquet.write(out, kept())


def _report(selection: "Selection") -> None:
    told = "1 question" if selection.exported == 1 else f"{selection.exported} questions"
    reasons = ", ".join(f"{count} {reason}" for reason, count in selection.left_out.most_common())
    print(f"{told} exported{'; left out: ' + reasons if reasons else ''}.", file=sys.stderr)
