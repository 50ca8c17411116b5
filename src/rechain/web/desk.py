"""The labelling desk: who labels, what comes next, one question's units, and where annotators differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rechain.errors import RechainError
from rechain.highlights import Highlighter
from rechain.labels.agreement import agreements, disagreements
from rechain.labels.store import Label, checked_annotator
from rechain.labels.units import THE_QUESTION, Mode, Unit, Units
from rechain.passages import PassageView
from rechain.schema import Chain
from rechain.web.answers import link, page
from rechain.web.pages import AtSite, asked_question, read_form
from rechain.web.site import Site
from rechain.web.views import StepView, chain_steps

ANNOTATOR_COOKIE = "rechain_annotator"
_MODES: tuple[Mode, ...] = get_args(Mode)
_SHOWN = 100
_YEAR = 365 * 24 * 3600

router = APIRouter(prefix="/label", include_in_schema=False)


@dataclass(frozen=True)
class UnitView:
    """Something to label, as the desk shows it."""

    unit: Unit
    names: Sequence[str]
    """its entities, as people see them"""
    steps: Sequence[StepView]
    """its passages, highlighted"""
    shared: int
    """how many candidate chains it decides"""
    value: str | None
    """what the annotator said of it"""
    said: Sequence[Label] = ()
    """what all annotators said, where they differ"""


@router.get("")
async def overview(request: Request, site: AtSite) -> HTMLResponse:
    """Show who has labelled how much, how far they agree, and the way to the desk."""
    return await run_in_threadpool(_overview, request, site)


def _overview(request: Request, site: Site) -> HTMLResponse:
    labels = list(site.labels.all())
    differing = disagreements(labels)
    return page(
        "label.html",
        here="label",
        site=site,
        annotator=annotator_of(request),
        progress=site.queue.progress(site.index.ids()),
        questions=len(site.index),
        agreements=agreements(labels),
        open=sum(one.settled is None for one in differing),
        differing=len(differing),
    )


@router.post("/start")
async def start(request: Request) -> Response:
    """Take an annotator's name and lead to what comes next."""
    form = await read_form(request)
    answer = RedirectResponse(link("/label/next", mode=_mode(form.get("mode"))), 303)
    name = quote(checked_annotator(form.get("annotator", "")))
    answer.set_cookie(ANNOTATOR_COOKIE, name, max_age=_YEAR, httponly=True, samesite="lax")
    return answer


@router.post("/release")
async def release(request: Request, site: AtSite) -> Response:
    """Give back the questions that an annotator has not begun."""
    if (annotator := annotator_of(request)) is not None:
        await run_in_threadpool(site.queue.release, annotator)
    return RedirectResponse("/label", 303)


@router.get("/next")
async def next_question(request: Request, site: AtSite) -> Response:
    """Lead to the next question of an annotator's queue."""
    annotator, mode = annotator_of(request), _mode(request.query_params.get("mode"))
    if annotator is None:
        return RedirectResponse("/label", 303)

    def units_of(name: str) -> Sequence[Unit]:
        units = site.units(site.question(name))
        return units.of(mode) if units else ()

    name = await run_in_threadpool(site.queue.next_question, annotator, mode, site.index.ids(), units_of)
    if name is None:
        return page("label_done.html", here="label", site=site, annotator=annotator, mode=mode)
    return RedirectResponse(link("/label/question", id=name, mode=mode), 303)


@router.get("/question")
async def question(request: Request, site: AtSite) -> Response:
    """Show everything there is to label of a question."""
    stored, mode, annotator = (
        asked_question(site, request),
        _mode(request.query_params.get("mode")),
        annotator_of(request),
    )
    asked = site.readable(stored)
    if annotator is None:
        return RedirectResponse("/label", 303)
    units = site.units(stored)
    said = {label.unit: label.value for label in site.labels.of_question(stored.id) if _is_own(label, annotator)}
    views = [unit_view(units, unit, said.get(unit)) for unit in units.of(mode)] if units else []
    return page(
        "desk.html",
        here="label",
        site=site,
        stored=stored,
        question=asked,
        annotator=annotator,
        mode=mode,
        other=next(one for one in _MODES if one != mode),
        views=views,
    )


@router.get("/disagreements")
async def differ(request: Request, site: AtSite) -> HTMLResponse:
    """Show the units on which annotators differ, to be settled."""
    return await run_in_threadpool(_differ, request, site)


def _differ(request: Request, site: Site) -> HTMLResponse:
    found = disagreements(site.labels.all())
    waiting = [one for one in found if one.settled is None] or found
    views = []
    for one in waiting[:_SHOWN]:
        stored = site.index.named(one.unit.question)
        if stored is None or (units := site.units(stored)) is None:
            continue
        view = unit_view(units, one.unit, one.settled.value if one.settled else None, one.labels)
        views.append((site.readable(stored), view))
    return page(
        "disagreements.html",
        here="label",
        site=site,
        annotator=annotator_of(request),
        views=views,
        found=len(found),
        waiting=sum(one.settled is None for one in found),
    )


def unit_view(units: Units, unit: Unit, value: str | None, said: Sequence[Label] = ()) -> UnitView:
    """Look at something to label."""
    names = [units.name(entity) for entity in (units.in_order(unit) if unit.mode == "pairs" else unit.entities)]
    if unit.mode == "pairs":
        return UnitView(unit, names, _pair(units, unit), len(units.pairs.get(unit, ())), value, said)
    return UnitView(unit, names, _chain(units, unit), 1, value, said)


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
    for mode in _MODES:
        if mode == told:
            return mode
    raise RechainError(f"mode should be one of {', '.join(_MODES)}, not '{str(told)[:20]}'.")
