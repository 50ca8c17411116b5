"""Labelling: who labels, what comes next, evidence to pick, and disagreements to resolve."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rechain.errors import RechainError
from rechain.labels.agreement import STATES, State, Status, agreements, by_unit, doubts, overall, statuses
from rechain.labels.store import Label, checked_annotator, now
from rechain.schema import Question
from rechain.text.highlights import ANSWER, QUESTION, Highlighter
from rechain.text.label_units import PAIR_VALUES, VERDICT_VALUES, Mode, Unit, Value
from rechain.text.passage_views import PassageView
from rechain.web.chains import best_chain
from rechain.web.filters import PageNumber, PageQuery
from rechain.web.forms import read_form
from rechain.web.guard import is_encrypted, may_administrate
from rechain.web.passages import Names, strip_of
from rechain.web.question_index import PAGE_SIZE, page_of
from rechain.web.question_rows import Stored
from rechain.web.responses import link, page
from rechain.web.site import AtSite, ForbiddenError, NotThereError, Site
from rechain.web.views import OwnPassages, pair_view, step_view

ANNOTATOR_COOKIE = "rechain_annotator"
_SHOWN = 100
"""disagreements on a page: nobody resolves more in one sitting"""
_YEAR = 365 * 24 * 3600
_AFTER_NAME = "&"
"""stands between name and number in the cookie; in the name it would be written as %26"""
_MOST_DIGITS = 9
"""of the number in the cookie: one that the database can compare"""

router = APIRouter(prefix="/label", include_in_schema=False)


class DeskChoices(PageQuery):
    """What somebody labels, in which order, and whether the model's suggestion is shown."""

    mode: Mode = "answers"
    order: Literal["least confident", "file"] = "least confident"
    """which questions come first"""
    suggestion: Literal["hidden", "shown"] = "hidden"
    """hidden unless somebody asks for it, to avoid bias"""

    @property
    def address(self) -> dict[str, Any]:
        """The query of an address with these choices; defaults are left out."""
        return self.model_dump(include=set(DeskChoices.model_fields), exclude_defaults=True)


class DeskQuery(DeskChoices):
    """Which question is labelled."""

    id: str = ""
    question: str = ""
    """the question to begin with, once it is known who labels"""
    after: str = ""
    """the question after which the next one is sought"""
    stay: bool = False
    """whether to go on with that question as long as anything of it waits"""
    pair: PageNumber | None = None
    """which of its pairs; None: the first that waits"""
    settles: bool = False
    """whether the label resolves a disagreement"""


class StartForm(DeskChoices):
    """Who labels, what, and which question first."""

    annotator: str = ""
    question: str = ""


def _annotator_of(request: Request, site: AtSite) -> str | None:
    """Return who labels in this browser, by the name that the annotator has now; None: nobody, or one who was removed.

    The cookie also says how many changes of annotators there had been when it was set, so that somebody who takes a
    name that another has given up is not taken for that one.
    """
    name, _, changes = request.cookies.get(ANNOTATOR_COOKIE, "").partition(_AFTER_NAME)
    try:
        annotator = checked_annotator(unquote(name))
    except RechainError:
        return None
    if not changes:
        return annotator
    is_count = changes.isdecimal() and len(changes) <= _MOST_DIGITS
    return site.labels.name_now(annotator, int(changes)) if is_count else None


Asked = Annotated[DeskQuery, Query()]
AnnotatorCookie = Annotated[str | None, Depends(_annotator_of)]


@router.get("")
def overview(site: AtSite, query: Asked, annotator: AnnotatorCookie) -> HTMLResponse:
    """Show who has labelled how much, how far they agree, and the way to the desk."""
    ids = site.index.ids()
    served, readable = frozenset(ids), frozenset(ids) - site.index.unreadable
    counts = [one for one in site.labels.count_doubts() if one.question in readable]
    return page(
        "label.html",
        here="label",
        site=site,
        annotator=annotator,
        choices=query,
        question=query.question,
        has_confidence=site.index.has_confidence(0),
        progress=site.queue.progress(ids),
        overall=overall(statuses(site.labels), ids),
        agreements=agreements(row for row in site.labels.common() if row.question in served),
        open=sum(one.open for one in counts),
        doubts=sum(one.doubts for one in counts),
        values=(*VERDICT_VALUES, *(PAIR_VALUES[:2] if site.index.has_entities else ()), "settled"),
        has_idle=annotator is not None and site.labels.has_idle_claims(annotator),
        file=site.labels.path.name,
    )


class StatusQuery(PageQuery):
    """Which questions are listed, by their labels."""

    state: State | None = None
    annotator: str | None = None
    page: PageNumber = 1

    @property
    def address(self) -> dict[str, str]:
        """The query of an address with this filter."""
        return self.model_dump(include={"state", "annotator"}, exclude_none=True)


@router.get("/questions")
def questions_page(site: AtSite, query: Annotated[StatusQuery, Query()]) -> HTMLResponse:
    """List the questions by the state of their labels, and by who gave them."""
    found, ids = statuses(site.labels), site.index.ids()
    state = query.state or ("labelled" if query.annotator else None)
    names = [one for one in ids if state is None or found.get(one, Status()).is_in(state, query.annotator)]
    paging = page_of(query.page, len(names))
    shown = names[(paging["page"] - 1) * PAGE_SIZE : paging["page"] * PAGE_SIZE]
    return page(
        "label_questions.html",
        here="label",
        site=site,
        query=query,
        states=STATES,
        annotators=site.labels.annotators(),
        overall=overall(found, ids),
        total=len(names),
        rows=[(site.question(name), found.get(name, Status())) for name in shown],
        **paging,
    )


@router.post("/start")
async def start(request: Request, site: AtSite) -> Response:
    """Take an annotator's name and lead to the question that was asked for, or to what comes next."""
    form = await read_form(request, StartForm)
    to_question = link("/label/question", id=form.question, **form.address)
    response = RedirectResponse(to_question if form.question else link("/label/next", **form.address), 303)
    _remember(request, response, form.annotator, await run_in_threadpool(site.labels.count_changes))
    return response


@router.post("/release")
def release(site: AtSite, annotator: AnnotatorCookie) -> Response:
    """Give back the questions that an annotator has not begun."""
    if annotator is not None:
        site.labels.release(annotator)
    return RedirectResponse("/label", 303)


class AnnotatorQuery(PageQuery):
    """Whose name or labels change, and how."""

    annotator: str = ""
    name: str = ""
    """the new name"""
    sure: bool = False
    """whether somebody is to be removed"""


@router.get("/annotator")
def annotator_page(site: AtSite, query: Annotated[AnnotatorQuery, Query()]) -> HTMLResponse:
    """Show what an annotator has labelled, and the ways to rename and to remove the annotator."""
    progress = next((one for one in site.queue.progress(site.index.ids()) if one.annotator == query.annotator), None)
    changes = [one for one in site.labels.changes() if query.annotator in (one.annotator, one.name)]
    if progress is None and not changes:
        raise NotThereError(f"there is no annotator '{query.annotator[:80]}'.")
    return page("annotator.html", here="label", site=site, name=query.annotator, progress=progress, changes=changes)


@router.post("/annotator/rename")
async def rename(request: Request, site: AtSite, annotator: AnnotatorCookie) -> Response:
    """Give an annotator another name; this browser goes on under it if it was the annotator's."""
    _demand_administrator(request)
    form = await read_form(request, AnnotatorQuery)
    await run_in_threadpool(site.labels.rename, form.annotator, form.name)
    response = RedirectResponse(link("/label/annotator", annotator=checked_annotator(form.name)), 303)
    if annotator == form.annotator:
        _remember(request, response, form.name, await run_in_threadpool(site.labels.count_changes))
    return response


@router.post("/annotator/remove")
async def remove(request: Request, site: AtSite) -> Response:
    """Remove all labels of an annotator; the history keeps them."""
    _demand_administrator(request)
    form = await read_form(request, AnnotatorQuery)
    if not form.sure:
        raise RechainError("nobody was removed: tick the box to confirm.")
    await run_in_threadpool(site.labels.remove, form.annotator)
    return RedirectResponse(link("/label/annotator", annotator=form.annotator), 303)


def _demand_administrator(request: Request) -> None:
    if not may_administrate(request.scope):
        raise ForbiddenError(
            "annotators are renamed and removed with the administrator's token (rechain serve --admin-token), "
            "or by rechain labels."
        )


def _remember(request: Request, response: Response, annotator: str, changes: int) -> None:
    """Let the browser know who labels in it, and how many changes of annotators there were by now."""
    value = f"{quote(checked_annotator(annotator))}{_AFTER_NAME}{changes}"
    secure = is_encrypted(request.scope)
    response.set_cookie(ANNOTATOR_COOKIE, value, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)


@router.get("/next")
def next_question(site: AtSite, query: Asked, annotator: AnnotatorCookie) -> Response:
    """Lead to the next question of an annotator's queue, beginning after the one that is named."""
    if annotator is None:
        return RedirectResponse("/label", 303)

    def waiting(name: str, values: Mapping[Unit, Value]) -> Sequence[Unit]:
        content = site.question(name).content
        if not isinstance(content, Question):
            return ()
        if query.mode == "pairs":
            return site.units(content).waiting(values) if content.question_entities else ()
        return [answer] if (answer := Unit(question=name)) not in values else ()

    ids = site.index.ids(query.order)
    own = site.labels.of_annotator(query.after, annotator) if query.stay else {}
    values = {unit: label.value for unit, label in own.items()}
    if query.stay and query.after in ids and waiting(query.after, values):
        return RedirectResponse(link("/label/question", id=query.after, **query.address), 303)
    place = ids.index(query.after) + 1 if query.after in ids else 0
    name = site.queue.next_question(annotator, query.mode, [*ids[place:], *ids[:place]], waiting)
    if name is None:
        return page("label_done.html", here="label", site=site, annotator=annotator, questions=len(ids))
    return RedirectResponse(link("/label/question", id=name, **query.address), 303)


@router.get("/question")
def question(site: AtSite, query: Asked, annotator: AnnotatorCookie) -> Response:
    """Show a question with the passages from which its evidence is picked, or one of its pairs."""
    stored = site.question(query.id)
    content = site.readable(stored)
    if annotator is None:
        return RedirectResponse(link("/label", question=stored.id, **query.address), 303)
    labels = site.labels.of_question(stored.id)
    own = {one.unit: one for one in labels if one.annotator == annotator and one.settles == query.settles}
    draw = _pair_page if query.mode == "pairs" else _answer_page
    onward = "/label/disagreements" if query.settles else link("/label/next", after=stored.id, **query.address)
    return page(
        **draw(site, query, stored, content, own),
        here="label",
        site=site,
        stored=stored,
        question=content,
        annotator=annotator,
        changes=site.labels.count_changes(),
        choices=query,
        onward=onward,
    )


def _answer_page(
    site: Site, query: DeskQuery, stored: Stored, content: Question, own: Mapping[Unit, Label]
) -> dict[str, Any]:
    recovered = site.index.recovered(0, stored.position) if site.sources and query.suggestion == "shown" else None
    content, best = site.with_chains(content, recovered), best_chain(recovered)
    numbers = {passage.id: number for number, passage in enumerate(content.passages, start=1)}
    known = None if stored.own is None else OwnPassages(stored.own)
    highlighter = Highlighter(content)
    return {
        "template": "desk.html",
        "label": own.get(Unit(question=stored.id)),
        "steps": [
            step_view(view, highlighter, known, (QUESTION, ANSWER)) for view in map(PassageView, content.passages)
        ],
        "suggestion": recovered,
        "best": strip_of(content, best, numbers=numbers) if best else None,
    }


def _pair_page(
    site: Site, query: DeskQuery, stored: Stored, content: Question, own: Mapping[Unit, Label]
) -> dict[str, Any]:
    units = site.units(content)
    pairs = list(units.pairs)
    waiting = units.waiting({unit: label.value for unit, label in own.items()})
    number = min(query.pair, len(pairs)) if query.pair else pairs.index(waiting[0]) + 1 if waiting else len(pairs)
    pair = pairs[number - 1] if pairs else None
    return {
        "template": "pair.html",
        "label": own.get(pair) if pair else None,
        "view": pair_view(units, pair) if pair else None,
        "unit": pair and pair.model_dump(include={"passages", "entities"}),
        "number": number,
        "pairs": [(own[one].value if one in own else "") for one in pairs],
        "waiting": len(waiting),
    }


@router.get("/disagreements")
def disagreements(site: AtSite, annotator: AnnotatorCookie) -> HTMLResponse:
    """Show the answers and pairs on which annotators differ or are unsure, to be resolved."""
    readable = frozenset(site.index.ids()) - site.index.unreadable
    doubtful = [(unit, is_open) for unit, is_open in site.labels.doubtful_units() if unit.question in readable]
    waiting = [unit for unit, is_open in doubtful if is_open]
    resolved = [unit for unit, is_open in doubtful if not is_open]
    return page(
        "disagreements.html",
        here="label",
        site=site,
        annotator=annotator,
        waiting=[_doubt_view(site, unit) for unit in waiting[:_SHOWN]],
        resolved=[_doubt_view(site, unit) for unit in resolved[-_SHOWN:]],
        open=len(waiting),
        doubts=len(doubtful),
    )


def _doubt_view(site: Site, unit: Unit) -> dict[str, Any]:
    content = site.readable(site.question(unit.question))
    (doubt,) = doubts(by_unit(site.labels.of_question(unit.question))[unit])
    pairs = list(site.units(content).pairs) if unit.mode == "pairs" else []
    return {
        "question": content,
        "doubt": doubt,
        "names": Names(content),
        "pair": pair_view(site.units(content), unit) if pairs else None,
        "number": pairs.index(unit) + 1 if unit in pairs else None,
    }


class AcceptForm(PageQuery):
    """Whose label of a unit is accepted."""

    unit: str = ""
    annotator: str = ""


@router.post("/accept")
async def accept(request: Request, site: AtSite, annotator: AnnotatorCookie) -> Response:
    """Resolve a disagreement: accept an annotator's label, in the name of the one who accepts it."""
    form = await read_form(request, AcceptForm)
    await run_in_threadpool(_accept, site, form, annotator)
    return RedirectResponse("/label/disagreements", 303)


def _accept(site: Site, form: AcceptForm, annotator: str | None) -> None:
    if annotator is None:
        raise RechainError("nothing was resolved: enter your name on the page Label first.")
    try:
        unit = Unit.model_validate_json(form.unit)
    except ValueError as error:
        raise NotThereError("there is no such label.") from error
    label = site.labels.of_annotator(unit.question, form.annotator).get(unit)
    if label is None:
        raise NotThereError(f"'{form.annotator[:80]}' has not labelled this.")
    site.labels.add([label.model_copy(update={"annotator": annotator, "settles": True, "at": now()})])


@router.post("/undo")
def undo(site: AtSite, annotator: AnnotatorCookie) -> Response:
    """Undo an annotator's latest label; the page of disagreements needs no JavaScript."""
    if annotator is not None:
        site.labels.undo(annotator)
    return RedirectResponse("/label/disagreements", 303)
