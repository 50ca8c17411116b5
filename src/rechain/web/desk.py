"""The labelling desk: who labels, what comes next, one question's units, and what is left to settle."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rechain.candidates.units import THE_QUESTION, Mode, Unit, Units, Value
from rechain.errors import QuestionError, RechainError
from rechain.labels.agreement import MODES, Doubt, agreements, doubts
from rechain.labels.store import Label, checked_annotator
from rechain.schema import Chain, Passage, Question
from rechain.text.highlights import Highlighter
from rechain.text.passages import PassageView
from rechain.web.index import Stored
from rechain.web.pages import AtSite, asked_question, read_form
from rechain.web.responses import link, page
from rechain.web.site import Site
from rechain.web.views import StepView, chain_steps

ANNOTATOR_COOKIE = "rechain_annotator"
_SHOWN = 100
_YEAR = 365 * 24 * 3600

Asks = Literal["chain", "answer", "start", "end", "relation"]
"""what is asked of a unit: whether a chain holds, a passage says that something is the answer, leads from the question
to an entity, or from an entity to the answer, or relates two entities"""

router = APIRouter(prefix="/label", include_in_schema=False)


@dataclass(frozen=True)
class UnitView:
    """Something to label, as the desk shows it."""

    unit: Unit
    asks: Asks
    names: Sequence[str]
    """its entities, as people see them"""
    titles: Sequence[str]
    """what its passages are called"""
    steps: Sequence[StepView]
    """its passages, highlighted"""
    chains: Sequence[int]
    """the numbers of the candidate chains that a pair is on"""
    own: Label | None
    """what the annotator said of it, or what was settled"""
    note: str
    """what the annotator noted with it"""
    said: Sequence[Label] = ()
    """what all annotators said, where it is to be settled"""


@router.get("")
async def overview(request: Request, site: AtSite) -> HTMLResponse:
    """Show who has labelled how much, how far they agree, and the way to the desk."""
    return await run_in_threadpool(_overview, request, site)


def _overview(request: Request, site: Site) -> HTMLResponse:
    annotator, labels, query = annotator_of(request), list(site.labels.all()), request.query_params
    found, path = _doubts(site, labels), site.labels.path.absolute()
    return page(
        "label.html",
        here="label",
        site=site,
        annotator=annotator,
        mode=_mode(query.get("mode")),
        wanted=query.get("question", ""),
        progress=site.queue.progress(site.index.ids()),
        questions=len(site.index),
        agreements=agreements(_served(site, labels)),
        open=sum(doubt.is_open for _, _, doubt in found),
        found=len(found),
        has_idle=_has_idle(site, annotator, labels),
        file=path.name,
        folder=path.parent,
    )


def _has_idle(site: Site, annotator: str | None, labels: Sequence[Label]) -> bool:
    """Return whether somebody has taken questions that he has not begun."""
    begun = {label.unit.question for label in labels if label.annotator == annotator}
    return any(name == annotator and question not in begun for question, name in site.labels.claims().items())


def _served(site: Site, labels: Sequence[Label]) -> list[Label]:
    """Leave out the labels of questions that are not served."""
    served = frozenset(site.index.ids())
    return [label for label in labels if label.unit.question in served]


def _doubts(site: Site, labels: Sequence[Label]) -> list[tuple[Stored, Question, Doubt]]:
    """Return what is in doubt of the questions that are served and can be read."""
    found = doubts(_served(site, labels))
    stored = {name: site.question(name) for name in dict.fromkeys(doubt.unit.question for doubt in found)}
    return [
        (one, one.content, doubt)
        for doubt in found
        if not isinstance((one := stored[doubt.unit.question]).content, QuestionError)
    ]


@router.post("/start")
async def start(request: Request) -> Response:
    """Take an annotator's name and lead to the question that was asked for, or to what comes next."""
    form = await read_form(request)
    mode, wanted = _mode(form.get("mode")), form.get("question")
    path = link("/label/question", id=wanted, mode=mode) if wanted else link("/label/next", mode=mode)
    answer = RedirectResponse(path, 303)
    name = quote(checked_annotator(form.get("annotator", "")))
    answer.set_cookie(ANNOTATOR_COOKIE, name, max_age=_YEAR, httponly=True, samesite="lax")
    return answer


@router.post("/release")
async def release(request: Request, site: AtSite) -> Response:
    """Give back the questions that an annotator has not begun."""
    if (annotator := annotator_of(request)) is not None:
        await run_in_threadpool(site.labels.release, annotator)
    return RedirectResponse("/label", 303)


@router.get("/next")
async def next_question(request: Request, site: AtSite) -> Response:
    """Lead to the next question of an annotator's queue, of those behind the one that is named first."""
    annotator, mode = annotator_of(request), _mode(request.query_params.get("mode"))
    if annotator is None:
        return RedirectResponse("/label", 303)
    name = await run_in_threadpool(_next, site, annotator, mode, request.query_params.get("after"))
    if name is None:
        return page("label_done.html", here="label", site=site, annotator=annotator, mode=mode)
    return RedirectResponse(link("/label/question", id=name, mode=mode), 303)


def _next(site: Site, annotator: str, mode: Mode, after: str | None) -> str | None:
    def waiting(name: str, said: Mapping[Unit, Value]) -> Sequence[Unit]:
        units = site.units(site.question(name))
        return units.waiting(mode, said) if units else ()

    ids = site.index.ids()
    place = ids.index(after) + 1 if after in ids else 0
    return site.queue.next_question(annotator, mode, [*ids[place:], *ids[:place]], waiting)


@router.get("/question")
async def question(request: Request, site: AtSite) -> Response:
    """Show everything there is to label of a question."""
    return await run_in_threadpool(_question, request, site)


def _question(request: Request, site: Site) -> Response:
    stored, mode = asked_question(site, request), _mode(request.query_params.get("mode"))
    asked, annotator = site.readable(stored), annotator_of(request)
    if annotator is None:
        return RedirectResponse(link("/label", question=stored.id, mode=mode), 303)
    units = site.units(stored)
    own = {label.unit: label for label in site.labels.of_question(stored.id) if _is_own(label, annotator)}
    views = [unit_view(units, unit, own.get(unit), annotator) for unit in _in_order(units, mode)] if units else []
    return page(
        "desk.html",
        here="label",
        site=site,
        stored=stored,
        question=asked,
        annotator=annotator,
        mode=mode,
        other=next(one for one in MODES if one != mode),
        views=views,
    )


def _in_order(units: Units, mode: Mode) -> list[Unit]:
    """Return all units of a kind, those of one passage together, so that it is read once."""
    found = units.of(mode)
    if mode == "chains":
        return list(found)
    places = {name: place for place, name in enumerate(dict.fromkeys(unit.passages[0] for unit in found))}
    return sorted(found, key=lambda unit: places[unit.passages[0]])


@router.get("/disagreements")
async def differ(request: Request, site: AtSite) -> HTMLResponse:
    """Show the units on which annotators differ or are unsure, to be settled."""
    return await run_in_threadpool(_differ, request, site)


def _differ(request: Request, site: Site) -> HTMLResponse:
    annotator, found = annotator_of(request), _doubts(site, list(site.labels.all()))
    waiting = [one for one in found if one[2].is_open]
    settled = [one for one in found if not one[2].is_open]
    return page(
        "disagreements.html",
        here="label",
        site=site,
        annotator=annotator,
        waiting=_doubt_views(site, waiting[:_SHOWN], annotator),
        settled=_doubt_views(site, settled[-_SHOWN:], annotator),
        open=len(waiting),
        found=len(found),
    )


def _doubt_views(
    site: Site, found: Sequence[tuple[Stored, Question, Doubt]], annotator: str | None
) -> list[tuple[Question, UnitView]]:
    built: dict[str, Units | None] = {}
    views = []
    for stored, asked, (unit, labels, settled) in found:
        if stored.id not in built:
            built[stored.id] = site.units(stored)
        if units := built[stored.id]:
            said = [*labels, settled] if settled else labels
            views.append((asked, unit_view(units, unit, settled, annotator, said)))
    return views


def unit_view(
    units: Units, unit: Unit, own: Label | None, annotator: str | None, said: Sequence[Label] = ()
) -> UnitView:
    """Look at something to label."""
    is_pair = unit.mode == "pairs"
    passages = {passage.id: passage for passage in units.question.passages if passage.id in unit.passages}
    entities = units.in_order(unit) if is_pair else unit.entities
    names = [_name(units, entity, passages.values()) for entity in entities]
    return UnitView(
        unit=unit,
        asks=_asks(units.question, entities, names) if is_pair else "chain",
        names=names,
        titles=[_title(name, passages.get(name)) for name in unit.passages],
        steps=_pair(units, unit) if is_pair else _chain(units, unit),
        chains=units.pairs.get(unit, ()) if is_pair else (),
        own=own,
        note=(own.note if own and own.annotator == annotator else None) or "",
        said=said,
    )


def _title(name: str, passage: Passage | None) -> str:
    return passage.title if passage and passage.title else f"Passage {name}"


def _name(units: Units, entity: str, passages: Iterable[Passage]) -> str:
    """Return an entity as people see it: of an id of the data first the text that stands for it."""
    for passage in passages:
        for start, end in PassageView(passage).mentions(entity):
            text = passage.text[start:end]
            return units.name(entity) if text.lower() in entity.lower() else f"{text} ({entity})"
    return units.name(entity)


def _asks(question: Question, entities: Sequence[str], names: Sequence[str]) -> Asks:
    """Tell what to ask of a pair, whose entities stand as on the chain."""
    answer = question.answer if question.answer_entity is None else question.answer_entity
    starts, ends = entities[0] == THE_QUESTION, entities[1] == answer.strip()
    if (starts and ends) or names[0].lower() == names[1].lower():
        return "answer"
    if starts:
        return "start"
    return "end" if ends else "relation"


def _pair(units: Units, unit: Unit) -> list[StepView]:
    """Return the passage of a pair with the two entities, of which question and answer have their own colours."""
    ends = (THE_QUESTION, units.question.answer, units.question.answer_entity, *units.question.question_entities)
    links = [units.name(entity) for entity in units.in_order(unit) if entity not in ends]
    highlighter = Highlighter(units.question, links)
    passages = [passage for passage in units.question.passages if passage.id in unit.passages]
    return [StepView(one.id, one.title, highlighter.pieces(PassageView(one))) for one in passages]


def _chain(units: Units, unit: Unit) -> list[StepView]:
    """Return the passages of a chain and what links them; of one that is no candidate, the passages alone."""
    known = {one: number for number, one in enumerate(units.chains)}
    links = units.candidates.chains[known[unit]].links if unit in known else []
    return chain_steps(units.question, Chain(passages=list(unit.passages), links=links, score=0.0))


def annotator_of(request: Request) -> str | None:
    """Return who labels in this browser, or None."""
    try:
        return checked_annotator(unquote(request.cookies.get(ANNOTATOR_COOKIE, "")))
    except RechainError:
        return None


def _is_own(label: Label, annotator: str) -> bool:
    return label.annotator == annotator and not label.settles


def _mode(told: Any) -> Mode:
    if told in (None, ""):
        return "pairs"
    for mode in MODES:
        if mode == told:
            return mode
    raise RechainError(f"mode should be one of {', '.join(MODES)}, not '{str(told)[:20]}'.")
