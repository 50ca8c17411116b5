"""Labels by REST: give, take back, read, export, import; and how far annotators agree."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, Discriminator, Field, Tag

from rechain.errors import InputError, QuestionError
from rechain.evaluation import Figure
from rechain.gold import PairLabel
from rechain.labels.agreement import agreements
from rechain.labels.exchange import export_gold, export_pairs, read_labels
from rechain.labels.store import Annotator, Label, Note
from rechain.labels.units import Mode, Value
from rechain.schema import Gold, NotBlank, Question
from rechain.web.api import refusals
from rechain.web.pages import AtSite
from rechain.web.site import ConflictError, NotThereError, Site

MOST_LABELS = 1000
MOST_ROWS = 100_000

router = APIRouter(prefix="/labels", tags=["labels"], responses=refusals())


class GivenLabel(BaseModel):
    """What somebody says of a pair (one passage, two entities) or of a chain (its passages and links)."""

    annotator: Annotator
    question: NotBlank
    passages: list[NotBlank] = Field(min_length=1)
    entities: list[str]
    value: Value
    note: Note | None = None
    settles: bool = False
    """whether this settles a disagreement"""


@router.post("", responses=refusals(404))
async def give(site: AtSite, given: Annotated[list[GivenLabel], Field(min_length=1, max_length=MOST_LABELS)]) -> int:
    """Write labels, all or none; when this answers they are on the disk. Returns how many."""
    labels = [_label(site, one) for one in given]
    await run_in_threadpool(site.labels.add, labels)
    return len(labels)


class Who(BaseModel):
    """An annotator."""

    annotator: Annotator


@router.post("/undo")
async def undo(site: AtSite, who: Who) -> Label | None:
    """Take back the latest label of an annotator; returns it, or null where there is none."""
    return await run_in_threadpool(site.labels.undo, who.annotator)


@router.get("")
async def labels(site: AtSite, question: Annotated[NotBlank, Query(description="a question's id")]) -> list[Label]:
    """Return the labels of a question that hold."""
    return site.labels.of_question(question)


class Agreed(BaseModel):
    """How far two annotators agree on what both labelled."""

    mode: Mode
    annotators: tuple[str, str]
    units: int
    equal: float
    kappa: Figure | None


@router.get("/agreement")
async def agreement(site: AtSite) -> list[Agreed]:
    """Return Cohen's kappa, with a 95 % interval, of every two annotators."""
    found = await run_in_threadpool(lambda: agreements(site.labels.all()))
    return [
        Agreed(mode=one.mode, annotators=(one.one, one.two), units=one.units, equal=one.equal, kappa=one.kappa)
        for one in found
    ]


@router.get("/export", response_class=Response, responses={200: {"content": {"application/x-ndjson": {}}}})
async def export(site: AtSite, to: Literal["gold", "pairs"] = "gold") -> Response:
    """Return what was labelled, one JSON object a line: as gold chains, or as labelled pairs."""
    content = await run_in_threadpool(_exported, site, to)
    name = {"Content-Disposition": f'attachment; filename="labels.{to}.jsonl"'}
    return Response(content, media_type="application/x-ndjson", headers=name)


def _exported(site: Site, to: str) -> bytes:
    questions = labelled_questions(site)
    if to == "pairs":
        rows: Iterator[Any] = export_pairs(questions, site.labels, site.settings)
    else:
        rows = (gold.model_dump(exclude_none=True) for gold in export_gold(questions, site.labels, site.settings))
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def labelled_questions(site: Site) -> Iterator[Question]:
    """Yield the questions that have labels, in the order of the file."""
    touched = site.labels.questions()
    for name in site.index.ids():
        if name in touched:
            stored = site.question(name)
            if not isinstance(stored.content, QuestionError):
                yield stored.content


def _kind_of_row(row: Any) -> str:
    return "chains" if isinstance(row, Gold) or (isinstance(row, dict) and "chains" in row) else "pair"


LabelRow = Annotated[
    Annotated[PairLabel, Tag("pair")] | Annotated[Gold, Tag("chains")],
    Discriminator(_kind_of_row),
]


class ImportedCounts(BaseModel):
    """What was imported, and what was odd about it."""

    labels: int
    other_questions: int
    other_pairs: int
    other_chains: int
    unusable_chains: int


@router.post("/import", responses=refusals(409))
async def import_rows(
    site: AtSite,
    annotator: Annotated[Annotator, Query(description="whose labels these are")],
    rows: Annotated[list[LabelRow], Field(min_length=1, max_length=MOST_ROWS)],
) -> ImportedCounts:
    """Take labels from the rows of a file: labelled pairs, or gold chains."""
    return await run_in_threadpool(_import, site, annotator, rows)


def _import(site: Site, annotator: str, rows: list[PairLabel | Gold]) -> ImportedCounts:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(b"".join(row.model_dump_json(exclude_none=True).encode() + b"\n" for row in rows))
        asked = {row.id for row in rows}
        questions = (content for name in asked if (content := _content(site, name)) is not None)
        try:
            found = read_labels(path, questions, annotator, site.settings)
        except InputError as error:
            raise ConflictError(str(error).replace(str(path), "the rows")) from error
    site.labels.add(found.labels)
    odd = (found.other_questions, found.other_pairs, found.other_chains, found.unusable_chains)
    names = ("other_questions", "other_pairs", "other_chains", "unusable_chains")
    return ImportedCounts(labels=len(found.labels), **dict(zip(names, odd, strict=True)))


def _content(site: Site, name: str) -> Question | None:
    stored = site.index.named(name)
    return stored.content if stored and isinstance(stored.content, Question) else None


def _label(site: Site, given: GivenLabel) -> Label:
    """Return a label of what can be labelled; raises NotThereError where it is of something else."""
    units = site.units(site.question(given.question))
    is_pair = len(given.passages) == 1
    wanted = [given.passages, sorted(given.entities) if is_pair else given.entities]
    for unit in units.of("pairs" if is_pair else "chains") if units else ():
        if [list(unit.passages), list(unit.entities)] == wanted:
            told = given.model_dump(include={"annotator", "value", "note", "settles"})
            return Label(unit=unit, **told)
    raise NotThereError(f"the question '{given.question[:80]}' has no such {'pair' if is_pair else 'chain'} to label.")
