"""rechain labels: export and import labels, rename annotators, measure their agreement."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from rechain.cli.options import CandidateOptions, OutputOptions, QuestionsInput, grouped
from rechain.cli.tables import Json, plural, print_json, print_table
from rechain.errors import InputError
from rechain.system.files import path_of
from rechain.system.log import note, print_records, printable

if TYPE_CHECKING:
    from rechain.labels.agreement import Agreement
    from rechain.labels.store import LabelStore
    from rechain.schema import Question

labels = typer.Typer(
    help="Labels that people gave in the browser: export, import, measure agreement, rename annotators.",
    no_args_is_help=True,
)

LabelsFile = Annotated[Path, Argument(metavar="LABELS", help="The file of labels, as `rechain serve` writes it.")]


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
    to: Annotated[To, Option(help="Gold, or labelled pairs of entities.")] = To.gold,
    output: OutputOptions,
    candidates: CandidateOptions,
) -> None:
    """Export the evidence that annotators picked as gold, which `rechain evaluate --gold` takes, or labelled pairs.

    For labelled pairs use the same options for candidate chains as when they were labelled.

    Example: rechain labels export labels.sqlite questions.jsonl --to gold --out gold.jsonl
    """
    import orjson

    from rechain.labels.exchange import export_gold, export_pairs
    from rechain.system.provenance import describe_input, heading

    settings = candidates.settings()
    ids: set[str] = set()
    left_out: Counter[str] = Counter()

    def source() -> "Iterator[Question]":
        for question in questions.readable("Exporting labels"):
            ids.add(question.id)  # the questions themselves are too many to keep
            yield question

    with _open(labels_file) as store:
        output.check(labels_file, questions.path, questions.passages)
        if to == To.gold:
            what = "question decided", "questions decided"
            golds = export_gold(source(), store, settings, left_out, questions.index)
            lines = (gold.model_dump_json(exclude_none=True, exclude_defaults=True) for gold in golds)
        else:
            what = "labelled pair", "labelled pairs"
            rows = export_pairs(source(), store, settings, left_out, questions.index)
            lines = (orjson.dumps(row).decode() for row in rows)
        made_by = heading(
            "labels export",
            settings={"to": to, **asdict(settings)},
            input=describe_input(labels_file),
            questions=describe_input(questions.path),
            passages=describe_input(questions.passages),
        )
        written = output.write(lines, made_by)
        others = len(store.questions() - ids)
    reasons = [f"{count} {reason}" for reason, count in left_out.most_common()]
    if others:
        reasons.append(f"labels of {plural(others, 'other question')}")
    end = f"; left out: {', '.join(reasons)}" if reasons else ""
    note(f"{plural(written, *what)}{end}.")


@labels.command("import")
@grouped
def import_(
    *,
    labels_file: LabelsFile,
    file: Annotated[Path, Argument(metavar="FILE", parser=path_of, help="Labelled pairs, or gold chains.")],
    questions: QuestionsInput,
    annotator: Annotated[str, Option(metavar="NAME", help="Whose labels they are.")],
    candidates: CandidateOptions,
) -> None:
    """Import labels from a file of labelled pairs or gold chains, all or none.

    Example: rechain labels import labels.sqlite interactions.jsonl medhop/train.json --annotator paper
    """
    from rechain.evaluation.gold import read_label_rows
    from rechain.labels.exchange import labels_from_rows
    from rechain.labels.store import LabelStore

    rows, settings = read_label_rows(file), candidates.settings()
    with LabelStore(labels_file) as store:
        source = questions.readable("Importing labels")
        imported = labels_from_rows(rows, source, annotator, settings, questions.index)
        if not imported.labels:
            raise InputError(f"{file} has no labels of the questions in {questions.path}.")
        store.add(imported.labels)
    notes = [
        (imported.other_questions, "of a question not given", "of questions not given"),
        (imported.other_pairs, "pair on no candidate chain", "pairs on no candidate chain"),
    ]
    noted = ", ".join(plural(*note) for note in notes if note[0])
    end = f", among them {noted}" if noted else ""
    note(f"{plural(len(imported.labels), 'label')} imported{end}.")


@labels.command()
def agreement(path: LabelsFile, json: Json = False) -> None:
    """Print the agreement of annotators: Cohen's kappa on verdicts, with a 95 % interval over questions, and evidence.

    Example: rechain labels agreement labels.sqlite
    """
    from rechain.labels.agreement import agreements, doubts

    with _open(path) as store:
        compared, differing = agreements(store.common()), [doubt for doubt in doubts(store.all()) if doubt.differs]
    settled = sum(not doubt.is_open for doubt in differing)
    if json:
        print_json({"agreements": compared, "disagreements": len(differing), "settled": settled})
        return
    if compared:
        header = ("annotators", "", "both", "evidence", "equal", "kappa", "95 % interval")
        print_table(f"Agreement in {path}", header, list(map(_row, compared)))
        print(f"{plural(len(differing), 'disagreement')}, of which {settled} resolved.")
    else:
        print(f"No two annotators in {printable(path)} labelled the same question.")


@labels.command()
def annotators(path: LabelsFile, json: Json = False) -> None:
    """Print how much each annotator labelled, and who was renamed or removed.

    Example: rechain labels annotators labels.sqlite
    """
    from rechain.text.label_units import PAIR_VALUES, VERDICT_VALUES

    with _open(path) as store:
        names, tallies, changes = store.annotators(), store.tallies(), store.changes()
    counts = {name: Counter[str]() for name in names}
    for tally in tallies:
        counts[tally.annotator][tally.value] += tally.units
    if json:
        print_json({"annotators": counts, "changes": [change._asdict() for change in changes]})
        return
    values = (*VERDICT_VALUES, *PAIR_VALUES[:2], "settled")
    rows = [(name, *(str(counts[name][value]) for value in values)) for name in names]
    print_table(f"Annotators in {path}", ("annotator", *values), rows)
    for change in changes:
        what = "was removed" if change.name is None else f"was renamed {change.name}"
        events = plural(len(change.events), "label")
        print(printable(f"{change.at:%Y-%m-%d %H:%M} UTC: {change.annotator} {what} ({events})."))


@labels.command()
def rename(
    path: LabelsFile,
    old: Annotated[str, Argument(metavar="OLD", help="The annotator's name.")],
    new: Annotated[str, Argument(metavar="NEW", help="The new name; if it is taken, the newest label counts.")],
) -> None:
    """Give all labels of an annotator another name; the history keeps the old one.

    Example: rechain labels rename labels.sqlite ada "Ada Lovelace"
    """
    with _open(path) as store:
        labels_now = store.rename(old, new)
    note(f"{old} is {new} now, with {plural(labels_now, 'label')}.")


@labels.command()
def remove(
    path: LabelsFile,
    annotator: Annotated[str, Argument(metavar="ANNOTATOR", help="The annotator whose labels are removed.")],
) -> None:
    """Remove all labels of an annotator; the history keeps them.

    Example: rechain labels remove labels.sqlite eve
    """
    with _open(path) as store:
        removed = store.remove(annotator)
    note(f"{plural(removed, 'label')} of {annotator} removed.")


@labels.command()
def history(path: LabelsFile) -> None:
    """Print every label ever given, also removed ones, one JSON object a line, oldest first.

    Example: rechain labels history labels.sqlite

    `given_as` is the name that an annotator had at that time, if it has changed.
    """
    import orjson

    with _open(path) as store:
        old_names: dict[int, str] = {}
        for change in reversed(store.changes()):
            old_names |= dict.fromkeys(change.events, change.annotator)
        for number, label, undone_at in store.history():
            row = {"number": number, **label.model_dump(mode="json", exclude_none=True)}
            row |= {} if undone_at is None else {"undone_at": undone_at}
            old_name = old_names.get(number, label.annotator)
            row |= {} if old_name == label.annotator else {"given_as": old_name}
            print_records(orjson.dumps(row).decode() + "\n")


def _open(path: Path) -> "LabelStore":
    """Open an existing file of labels; LabelStore alone would create one."""
    from rechain.labels.store import LabelStore

    if not path.exists():
        raise InputError(f"{path} does not exist; name the file that the labels were written to.")
    return LabelStore(path)


def _row(compared: "Agreement") -> tuple[str, ...]:
    kappa = compared.kappa
    if kappa is None:
        value, interval = "not defined", ""
    else:
        value = f"{kappa.value:.2f}"
        interval = "too few" if kappa.low is None else f"{kappa.low:.2f} to {kappa.high:.2f}"
    overlap = "" if compared.overlap is None else f"{100 * compared.overlap:.1f} %"
    counts = str(compared.units), overlap, f"{100 * compared.equal:.1f} %"
    return f"{compared.one}, {compared.two}", compared.mode, *counts, value, interval
