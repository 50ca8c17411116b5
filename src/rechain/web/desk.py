"""The labelling desk: who labels, what comes next, one question's units, and what is left to settle."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rechain.candidates.units import THE_QUESTION, Mode, Unit, Units, Value
from rechain.errors import RechainError
from rechain.labels.agreement import MODES, Doubt, agreements, doubts
from rechain.labels.store import Label, checked_annotator
from rechain.schema import Chain, Passage, Question
from rechain.text.highlights import Highlighter
from rechain.text.passages import PassageView
from rechain.web.forms import read_form
from rechain.web.queries import PageQuery
from rechain.web.responses import link, page
from rechain.web.site import AtSite, Site
from rechain.web.views import StepView, chain_steps, step_view

ANNOTATOR_COOKIE = "rechain_annotator"
_SHOWN = 100
"""units on the page of disagreements: each has its passages highlighted, and nobody settles more in one sitting"""
_YEAR = 365 * 24 * 3600

Asks = Literal["chain", "single", "parallel", "answer", "start", "end", "relation"]
"""what the desk asks about a unit: whether a chain holds, whether one passage suffices, or passages side by side, or
whether a passage says that something is the answer, leads from the question to an entity, leads from an entity to the
answer, or relates two entities"""

router = APIRouter(prefix="/label", include_in_schema=False)


@dataclass(frozen=True)
class UnitView:
    """A unit as the desk shows it."""

    unit: Unit
    asks: Asks
    names: Sequence[str]
    """its entities, as people see them"""
    titles: Sequence[str]
    """the titles of its passages"""
    steps: Sequence[StepView]
    """its passages, highlighted"""
    chains: Sequence[int]
    """the numbers of the candidate chains that a pair is on"""
    own: Label | None
    """the annotator's label, or the one that settles"""
    note: str
    """the annotator's note"""
    labels: Sequence[Label] = ()
    """the labels of all annotators, where it is to be settled"""


class DeskQuery(PageQuery):
    """What is labelled at the desk: pairs or chains, of which question."""

    mode: Mode = "pairs"
    id: str = ""
    question: str = ""
    """the question to begin with, once it is known who labels"""
    after: str = ""
    """the question after which the next one is sought"""


class StartForm(PageQuery):
    """Who labels, what, and which question first."""

    annotator: str = ""
    mode: Mode = "pairs"
    question: str = ""


async def _annotator_of(request: Request) -> str | None:
    """Return who labels in this browser, or None."""
    try:
        return checked_annotator(unquote(request.cookies.get(ANNOTATOR_COOKIE, "")))
    except RechainError:
        return None


Asked = Annotated[DeskQuery, Query()]
AnnotatorCookie = Annotated[str | None, Depends(_annotator_of)]


@router.get("")
def overview(site: AtSite, query: Asked, annotator: AnnotatorCookie) -> HTMLResponse:
    """Show who has labelled how much, how far they agree, and the way to the desk."""
    labels = list(site.labels.all())
    served, path = _served(site, labels), site.labels.path.absolute()
    doubtful = _doubts(site, served)
    begun = {label.unit.question for label in labels if label.annotator == annotator}
    claims = site.labels.claims().items()
    return page(
        "label.html",
        here="label",
        site=site,
        annotator=annotator,
        mode=query.mode,
        question=query.question,
        progress=site.queue.progress(site.index.ids()),
        questions=len(site.index),
        agreements=agreements(served),
        open=sum(doubt.is_open for _, doubt in doubtful),
        doubts=len(doubtful),
        has_idle=any(name == annotator and claimed not in begun for claimed, name in claims),
        file=path.name,
        folder=path.parent,
    )


def _served(site: Site, labels: Sequence[Label]) -> list[Label]:
    """Leave out the labels of questions that are not served."""
    served = frozenset(site.index.ids())
    return [label for label in labels if label.unit.question in served]


def _doubts(site: Site, labels: Sequence[Label]) -> list[tuple[Question, Doubt]]:
    """Return the units in doubt of the questions that can be read."""
    doubtful = doubts(labels)
    contents = {name: site.question(name).content for name in dict.fromkeys(doubt.unit.question for doubt in doubtful)}
    return [(one, doubt) for doubt in doubtful if isinstance(one := contents[doubt.unit.question], Question)]


@router.post("/start")
async def start(request: Request) -> Response:
    """Take an annotator's name and lead to the question that was asked for, or to what comes next."""
    form = await read_form(request, StartForm)
    name = quote(checked_annotator(form.annotator))
    to_question = link("/label/question", id=form.question, mode=form.mode)
    response = RedirectResponse(to_question if form.question else link("/label/next", mode=form.mode), 303)
    response.set_cookie(ANNOTATOR_COOKIE, name, max_age=_YEAR, httponly=True, samesite="lax")
    return response


@router.post("/release")
def release(site: AtSite, annotator: AnnotatorCookie) -> Response:
    """Give back the questions that an annotator has not begun."""
    if annotator is not None:
        site.labels.release(annotator)
    return RedirectResponse("/label", 303)


@router.get("/next")
def next_question(site: AtSite, query: Asked, annotator: AnnotatorCookie) -> Response:
    """Lead to the next question of an annotator's queue, beginning after the one that is named."""
    if annotator is None:
        return RedirectResponse("/label", 303)

    def waiting(name: str, values: Mapping[Unit, Value]) -> Sequence[Unit]:
        content = site.question(name).content
        return site.units(content).waiting(query.mode, values) if isinstance(content, Question) else ()

    ids = site.index.ids()
    place = ids.index(query.after) + 1 if query.after in ids else 0
    name = site.queue.next_question(annotator, query.mode, [*ids[place:], *ids[:place]], waiting)
    if name is None:
        return page("label_done.html", here="label", site=site, annotator=annotator, mode=query.mode)
    return RedirectResponse(link("/label/question", id=name, mode=query.mode), 303)


@router.get("/question")
def question(site: AtSite, query: Asked, annotator: AnnotatorCookie) -> Response:
    """Show everything there is to label of a question."""
    stored = site.question(query.id)
    content = site.readable(stored)
    if annotator is None:
        return RedirectResponse(link("/label", question=stored.id, mode=query.mode), 303)
    units, labels = site.units(content), site.labels.of_question(stored.id)
    own = {label.unit: label for label in labels if label.annotator == annotator and not label.settles}
    return page(
        "desk.html",
        here="label",
        site=site,
        stored=stored,
        question=content,
        annotator=annotator,
        mode=query.mode,
        other=next(mode for mode in MODES if mode != query.mode),
        views=[unit_view(units, unit, own.get(unit), annotator) for unit in _by_passage(units, query.mode)],
    )


def _by_passage(units: Units, mode: Mode) -> list[Unit]:
    """Return all units of a mode, the pairs of one passage together, so that it is read once."""
    in_mode = list(units.of(mode))
    places = {name: place for place, name in enumerate(dict.fromkeys(unit.passages[0] for unit in in_mode))}
    return sorted(in_mode, key=lambda unit: places[unit.passages[0]]) if mode == "pairs" else in_mode


@router.get("/disagreements")
def disagreements(site: AtSite, annotator: AnnotatorCookie) -> HTMLResponse:
    """Show the units on which annotators differ or are unsure, to be settled."""
    doubtful = _doubts(site, _served(site, list(site.labels.all())))
    waiting = [one for one in doubtful if one[1].is_open]
    settled = [one for one in doubtful if not one[1].is_open]
    return page(
        "disagreements.html",
        here="label",
        site=site,
        annotator=annotator,
        waiting=_doubt_views(site, waiting[:_SHOWN], annotator),
        settled=_doubt_views(site, settled[-_SHOWN:], annotator),
        open=len(waiting),
        doubts=len(doubtful),
    )


def _doubt_views(
    site: Site, doubtful: Sequence[tuple[Question, Doubt]], annotator: str | None
) -> list[tuple[Question, UnitView]]:
    built: dict[str, Units] = {}
    views = []
    for content, (unit, labels, settled) in doubtful:
        if content.id not in built:
            built[content.id] = site.units(content)
        labels = [*labels, settled] if settled else labels
        views.append((content, unit_view(built[content.id], unit, settled, annotator, labels)))
    return views


def unit_view(
    units: Units, unit: Unit, own: Label | None, annotator: str | None, labels: Sequence[Label] = ()
) -> UnitView:
    """Return a unit as the desk shows it."""
    is_pair = unit.mode == "pairs"
    passages = {passage.id: passage for passage in units.question.passages if passage.id in unit.passages}
    entities = units.in_order(unit) if is_pair else unit.entities
    names = [_name(units, entity, passages.values()) for entity in entities]
    return UnitView(
        unit=unit,
        asks=_asks(units.question, entities, names) if is_pair else unit.shape,
        names=names,
        titles=[_title(name, passages.get(name)) for name in unit.passages],
        steps=_pair(units, unit) if is_pair else _chain(units, unit),
        chains=units.pairs.get(unit, ()) if is_pair else (),
        own=own,
        note=(own.note if own and own.annotator == annotator else None) or "",
        labels=labels,
    )


def _title(name: str, passage: Passage | None) -> str:
    return passage.title if passage and passage.title else f"Passage {name}"


def _name(units: Units, entity: str, passages: Iterable[Passage]) -> str:
    """Return an entity as people see it: an id of the data after the text that stands for it."""
    for passage in passages:
        for start, end in PassageView(passage).mentions(entity):
            text = passage.text[start:end]
            return units.name(entity) if text.lower() in entity.lower() else f"{text} ({entity})"
    return units.name(entity)


def _asks(question: Question, entities: Sequence[str], names: Sequence[str]) -> Asks:
    """Return what to ask about a pair, whose entities are in the order of the chain."""
    answer = question.answer if question.answer_entity is None else question.answer_entity
    starts, ends = entities[0] == THE_QUESTION, entities[1] == answer.strip()
    if (starts and ends) or names[0].lower() == names[1].lower():
        return "answer"
    if starts:
        return "start"
    return "end" if ends else "relation"


def _pair(units: Units, unit: Unit) -> list[StepView]:
    """Return the passage of a pair with its entities highlighted; those of question and answer are so anyway."""
    ends = (THE_QUESTION, units.question.answer, units.question.answer_entity, *units.question.question_entities)
    links = [units.name(entity) for entity in units.in_order(unit) if entity not in ends]
    highlighter = Highlighter(units.question, links)
    passages = [passage for passage in units.question.passages if passage.id in unit.passages]
    return [step_view(passage, highlighter) for passage in passages]


def _chain(units: Units, unit: Unit) -> list[StepView]:
    """Return the passages of a chain and what links them; of one that is no candidate, the passages alone."""
    number = units.numbers.get(unit)
    links = [] if number is None else units.candidates.chains[number].links
    chain = Chain(shape=unit.shape, passages=list(unit.passages), links=links, score=0.0)
    return chain_steps(units.question, chain)
