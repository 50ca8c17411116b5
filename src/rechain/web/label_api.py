"""Labels by REST: add, undo, read, export, import; and how far annotators agree."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError

from rechain.errors import InputError, RechainError
from rechain.evaluation.gold import PairLabel
from rechain.formats.datasets.formats import describe
from rechain.labels.agreement import agreements
from rechain.labels.exchange import export_gold, export_pairs, labels_from_rows
from rechain.labels.store import Annotator, Label, Note
from rechain.schema import WHOLE, Gold, GoldChain, Many, NotBlank, Question
from rechain.text.label_units import Mode, Unit, Value
from rechain.web.api import CHAINS, PAIR, refusals
from rechain.web.responses import iterate_long, run_long
from rechain.web.site import AtSite, ConflictError, NotThereError, Site

MOST_LABELS = 1000
MOST_ROWS = 10_000
MOST_EVIDENCE = 100
"""limits of one request, which is checked and written as a whole"""
_PART = 10_000
"""bytes of an export that are sent at a time"""

router = APIRouter(prefix="/labels", tags=["labels"], responses=refusals())


Changes = Annotated[
    int,
    Field(
        ge=0,
        le=1_000_000_000,
        strict=True,
        description="how often annotators had been renamed or removed when the name was given: who was renamed since "
        "labels under the new name, and who was removed since is refused",
    ),
    WHOLE,
]


class NewLabel(BaseModel):
    """An annotator's verdict on an answer, with the passages that were picked; or of a pair, whether it is related."""

    annotator: Annotator
    question: NotBlank
    passages: Annotated[Many[NotBlank], Field(max_length=1)] = []
    """of a pair: its passage"""
    entities: Annotated[Many[str], Field(max_length=2)] = []
    """of a pair: the two entities"""
    value: Value
    evidence: Annotated[Many[GoldChain], Field(max_length=MOST_EVIDENCE)] = []
    """of an answer: the evidence as it was picked, its shape and its passages; empty: nothing supports it"""
    note: Note | None = None
    settles: bool = Field(default=False, strict=True)
    """whether this settles a disagreement"""
    changes: Changes | None = None


@router.post("", responses=refusals(404, 409))
def add(site: AtSite, labels: Annotated[Many[NewLabel], Field(min_length=1, max_length=MOST_LABELS)]) -> int:
    """Write labels, all or none; when this answers they are on the disk. Returns how many."""
    site.labels.add(_checked(site, labels))
    return len(labels)


class Who(BaseModel):
    """An annotator."""

    annotator: Annotator
    changes: Changes | None = None


@router.post("/undo", responses=refusals(409))
def undo(site: AtSite, who: Who) -> Label | None:
    """Undo the latest label of an annotator; returns it, or null where there is none."""
    return site.labels.undo(_name_now(site, who))


def _name_now(site: Site, who: Who | NewLabel) -> str:
    """Return the name under which somebody labels: a page that was opened before a change has the old one."""
    name = who.annotator if who.changes is None else site.labels.name_now(who.annotator, who.changes)
    if name is None:
        raise ConflictError(f"the annotator '{who.annotator}' was removed; start again from the page Label.")
    return name


@router.get("")
def labels(site: AtSite, question: Annotated[NotBlank, Query(description="a question's id")]) -> list[Label]:
    """Return the labels of a question that hold."""
    return site.labels.of_question(question)


class Kappa(BaseModel):
    """Cohen's kappa with a 95 % interval, by resampling questions; null where they are fewer than five."""

    value: float
    low: float | None
    high: float | None
    questions: int


class Agreed(BaseModel):
    """How far two annotators agree on what both labelled."""

    mode: Mode
    annotators: tuple[str, str]
    units: int
    equal: float
    kappa: Kappa | None
    """null if both gave one and the same value to everything"""
    overlap: float | None
    """of answers: the mean share of the passages picked by either that both picked"""


@router.get("/agreement")
async def agreement(site: AtSite) -> list[Agreed]:
    """Return Cohen's kappa, with a 95 % interval, of every two annotators."""
    compared = await run_long(lambda: agreements(site.labels.common()))
    return [
        Agreed(
            mode=one.mode,
            annotators=(one.one, one.two),
            units=one.units,
            equal=one.equal,
            overlap=one.overlap,
            kappa=None if one.kappa is None else Kappa(**one.kappa._asdict()),
        )
        for one in compared
    ]


@router.get("/export", response_class=Response, responses={200: {"content": {"application/x-ndjson": {}}}})
async def export(site: AtSite, to: Literal["gold", "pairs"] = "gold") -> Response:
    """Return what labels decide, one JSON object a line: as gold chains, or as labelled pairs.

    Lines come as they are made, question by question; where something fails the answer is cut off, not ended.
    """
    await run_long(site.labels.check)  # first, as damage cannot be reported once the answer has begun
    name = {"Content-Disposition": f'attachment; filename="labels.{to}.jsonl"'}
    parts = iterate_long(_in_parts(_exported(site, to)))
    return StreamingResponse(parts, media_type="application/x-ndjson", headers=name)


def _exported(site: Site, to: str) -> Iterator[dict[str, Any]]:
    questions = labelled_questions(site)
    if to == "pairs":
        return export_pairs(questions, site.labels, site.settings, collection=site.collection)
    golds = export_gold(questions, site.labels, site.settings, collection=site.collection)
    return (gold.model_dump(exclude_none=True, exclude_defaults=True) for gold in golds)


def _in_parts(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield rows as lines, some thousand bytes at a time: to send each alone would take longer than to make it."""
    part = bytearray()
    for row in rows:
        part += orjson.dumps(row) + b"\n"
        if len(part) >= _PART:
            yield bytes(part)
            part.clear()
    yield bytes(part)


def labelled_questions(site: Site) -> Iterator[Question]:
    """Yield the questions that have labels, in the order of the file."""
    touched = site.labels.questions()
    for name in site.index.ids():
        if name in touched and isinstance(content := site.question(name).content, Question):
            yield content


def _kind_of_row(row: Any) -> str:
    return CHAINS if isinstance(row, Gold) or (isinstance(row, dict) and "chains" in row) else PAIR


LabelRow = Annotated[
    Annotated[PairLabel, Tag(PAIR)] | Annotated[Gold, Tag(CHAINS)],
    Discriminator(_kind_of_row),
]


class ImportedCounts(BaseModel):
    """What was imported, and what was unusual about it."""

    labels: int
    other_questions: int
    other_pairs: int


@router.post("/import", responses=refusals(409))
async def import_rows(
    site: AtSite,
    annotator: Annotated[Annotator, Query(description="whose labels these are")],
    rows: Annotated[Many[LabelRow], Field(min_length=1, max_length=MOST_ROWS)],
) -> ImportedCounts:
    """Import labels from the rows of a file: labelled pairs, or gold chains."""
    return await run_long(_import, site, annotator, rows)


def _import(site: Site, annotator: str, rows: list[PairLabel | Gold]) -> ImportedCounts:
    try:  # halves of surrogate pairs, which JSON may escape but neither UTF-8 nor SQLite can store
        for row in rows:
            row.model_dump_json()
    except ValueError as error:
        raise RechainError("the rows contain halves of characters, which are not valid Unicode.") from error
    places = ((f"the rows, line {number}", row) for number, row in enumerate(rows, start=1))
    found = (site.index.named(name) for name in dict.fromkeys(row.id for row in rows))
    questions = (one.content for one in found if one and isinstance(one.content, Question))
    try:
        imported = labels_from_rows(places, questions, annotator, site.settings)
    except InputError as error:
        raise ConflictError(str(error)) from error
    site.labels.add(imported.labels)
    return ImportedCounts.model_validate(vars(imported) | {"labels": len(imported.labels)})


def _checked(site: Site, labels: Sequence[NewLabel]) -> list[Label]:
    """Return labels of what exists; raises NotThereError if something does not."""
    known = {name: _known(site, name) for name in dict.fromkeys(label.question for label in labels)}
    return [_label(label, *known[label.question], _name_now(site, label)) for label in labels]


def _known(site: Site, question: str) -> tuple[Question, set[Unit]]:
    """Return a question, and its pairs, also those that were imported, if its data names entities."""
    content = site.readable(site.question(question))
    imported = {label.unit for label in site.labels.of_question(question)}
    return content, {*imported, *site.units(content).pairs} if content.question_entities else imported


def _label(new: NewLabel, question: Question, pairs: set[Unit], annotator: str) -> Label:
    try:
        unit = Unit(question=question.id, passages=tuple(new.passages), entities=tuple(new.entities))
        if unit.mode == "pairs" and unit not in pairs:
            raise NotThereError(f"the question '{new.question[:80]}' has no such pair to label.")
        known = {passage.id for passage in question.passages}
        unknown = [name for chain in new.evidence for name in chain.passages if name not in known]
        if unknown:
            raise NotThereError(f"the question '{new.question[:80]}' has no passage '{unknown[0][:80]}'.")
        fields = new.model_dump(include={"value", "note", "settles", "evidence"})
        return Label.model_validate({"unit": unit, "annotator": annotator, **fields})
    except ValidationError as error:
        raise RechainError(f"{describe(error)[1]}.") from error
