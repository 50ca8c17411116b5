"""rechain labels: what annotators labelled, out of its file and into it, and how far they agree."""

import sys
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rechain.cli.options import CandidateOptions, OutputOptions, QuestionsInput, grouped
from rechain.cli.tables import Json, print_json, print_table
from rechain.errors import InputError

if TYPE_CHECKING:
    from rechain.candidates import CandidateSettings
    from rechain.evaluation.statistics import Kappa
    from rechain.labels.agreement import Agreement
    from rechain.labels.exchange import Imported
    from rechain.labels.store import LabelStore
    from rechain.schema import Question

labels = typer.Typer(
    help="Labels that people gave in the browser: export and import them, see how far annotators agree.",
    no_args_is_help=True,
)

LabelsFile = Annotated[Path, typer.Argument(metavar="LABELS", help="The file of labels, as `rechain serve` writes it.")]


class To(StrEnum):
    """What labels are exported as."""

    gold = "gold"
    pairs = "pairs"


@labels.command()
@grouped
def export(
    *,
    labels_file: LabelsFile,
    questions: QuestionsInput,
    to: Annotated[To, typer.Option("--to", help="Gold chains, or labelled pairs.")] = To.gold,
    output: OutputOptions,
    candidates: CandidateOptions,
) -> None:
    """Write what labels decide: gold chains, which `rechain evaluate --gold` takes, or labelled pairs.

    The options that say how candidate chains are built should be those with which they were labelled.

    Example: rechain labels export labels.sqlite questions.jsonl --to gold --out gold.jsonl
    """
    settings = candidates.settings()
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    with _existing(labels_file) as store:
        asked = _noted(questions.readable("Exporting labels"), seen)
        lines = _lines(to, asked, store, settings, left_out)
        output.check(labels_file, questions.path, questions.passages)
        written = output.write(lines)
        others = len(store.questions() - seen)
    _report_export(to, written, left_out, others)


@labels.command("import")
@grouped
def import_(
    *,
    labels_file: LabelsFile,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Labelled pairs, or gold chains.")],
    questions: QuestionsInput,
    annotator: Annotated[str, typer.Option("--annotator", metavar="NAME", help="Whose labels they are.")],
    candidates: CandidateOptions,
) -> None:
    """Take labels over from a file of labelled pairs or gold chains, all or none.

    Example: rechain labels import labels.sqlite interactions.jsonl medhop/train.json --annotator paper
    """
    from rechain.evaluation.gold import read_label_rows
    from rechain.labels.exchange import labels_from_rows
    from rechain.labels.store import LabelStore

    rows, settings = read_label_rows(file), candidates.settings()
    with LabelStore(labels_file) as store:
        asked = questions.readable("Importing labels")
        imported = labels_from_rows(rows, asked, annotator, settings, questions.same_chain)
        if not imported.labels:
            raise InputError(f"{file} holds no label of the questions in {questions.path}.")
        store.add(imported.labels)
    _report_import(imported)


@labels.command()
def agreement(path: LabelsFile, json: Json = False) -> None:
    """Tell how far annotators agree: Cohen's kappa, with a 95 % interval over questions.

    Example: rechain labels agreement labels.sqlite
    """
    from rechain.labels.agreement import agreements, doubts

    with _existing(path) as store:
        given = list(store.all())
    compared, differing = agreements(given), [one for one in doubts(given) if one.differs]
    settled = sum(not one.is_open for one in differing)
    if json:
        print_json({"agreements": compared, "disagreements": len(differing), "settled": settled})
        return
    if compared:
        header = ("annotators", "", "units", "questions", "equal", "kappa", "95 % interval")
        print_table(f"Agreement in {path}", header, list(map(_row, compared)))
        print(f"{_counted(len(differing), 'unit')} labelled differently, of which {settled} settled.")
    else:
        print(f"No two annotators in {path} labelled the same.")


def _existing(path: Path) -> "LabelStore":
    from rechain.labels.store import LabelStore

    if not path.exists():
        raise InputError(f"{path} does not exist; name the file that the labels were written to.")
    return LabelStore(path)


def _noted(questions: "Iterator[Question]", seen: set[str]) -> "Iterator[Question]":
    for question in questions:
        seen.add(question.id)
        yield question


def _lines(
    to: To,
    questions: "Iterator[Question]",
    store: "LabelStore",
    settings: "CandidateSettings",
    left_out: Counter[str],
) -> Iterator[str]:
    import orjson

    from rechain.labels.exchange import export_gold, export_pairs

    if to == To.gold:
        golds = export_gold(questions, store, settings, left_out)
        return (gold.model_dump_json(exclude_none=True, exclude_defaults=True) for gold in golds)
    return (orjson.dumps(row).decode() for row in export_pairs(questions, store, settings, left_out))


def _report_export(to: To, written: int, left_out: Counter[str], others: int) -> None:
    what = "question decided" if to == To.gold else "labelled pair"
    told = _counted(written, what, "questions decided" if to == To.gold else None)
    reasons = [f"{count} {reason}" for reason, count in left_out.most_common()]
    reasons += [f"labels of {_counted(others, 'other question')}"] if others else []
    print(f"{told}{'; left out: ' + ', '.join(reasons) if reasons else ''}.", file=sys.stderr)


def _report_import(imported: "Imported") -> None:
    odd = {
        "row of questions not given, of which pairs are kept": (
            imported.other_questions,
            "rows of questions not given, of which pairs are kept",
        ),
        "pair on no candidate chain": (imported.other_pairs, "pairs on no candidate chain"),
        "right chain that is no candidate": (imported.other_chains, "right chains that are no candidates"),
        "right chain in no order left out": (imported.unusable_chains, "right chains in no order left out"),
    }
    told = [_counted(count, one, many) for one, (count, many) in odd.items() if count]
    end = f"; of note: {', '.join(told)}" if told else ""
    print(f"{_counted(len(imported.labels), 'label')} imported{end}.", file=sys.stderr)


def _row(compared: "Agreement") -> tuple[str, ...]:
    from rich.markup import escape

    kappa = compared.kappa
    return (
        escape(f"{compared.one}, {compared.two}"),
        compared.mode,
        str(compared.units),
        str(compared.questions),
        f"{100 * compared.equal:.1f} %",
        "not defined" if kappa is None else f"{kappa.value:.2f}",
        "" if kappa is None else _interval(kappa),
    )


def _interval(kappa: "Kappa") -> str:
    return "too few" if kappa.low is None else f"{kappa.low:.2f} to {kappa.high:.2f}"


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
