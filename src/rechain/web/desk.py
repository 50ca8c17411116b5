"""The labelling desk: who labels, what comes next, one question's units, and what is left to settle."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, Literal, NamedTuple
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rechain.errors import RechainError
from rechain.labels.agreement import MODES, STATES, State, Status, agreements, by_unit, doubts, overall, statuses
from rechain.labels.queue import Suggestions
from rechain.labels.store import Label, checked_annotator
from rechain.schema import Question
from rechain.text.label_units import Mode, Unit, Units, Value
from rechain.web.chains import best_chain
from rechain.web.filters import PageNumber, PageQuery
from rechain.web.forms import read_form
from rechain.web.guard import is_encrypted, may_administrate
from rechain.web.passages import strip_of
from rechain.web.question_index import PAGE_SIZE, page_of
from rechain.web.responses import link, page
from rechain.web.site import AtSite, ForbiddenError, NotThereError, Site
from rechain.web.views import UnitView, unit_view

ANNOTATOR_COOKIE = "rechain_annotator"
_SHOWN = 100
"""units on the page of disagreements: each has its passages highlighted, and nobody settles more in one sitting"""
UNITS_A_PAGE = 20
"""of one question: its page is drawn within a tenth of a second also where chains are of three long abstracts"""
_YEAR = 365 * 24 * 3600
_AFTER_NAME = "&"
"""stands between name and number in the cookie; in the name it would be written as %26"""
_MOST_DIGITS = 9
"""of the number in the cookie: one that the database can compare"""

router = APIRouter(prefix="/label", include_in_schema=False)


class DeskChoices(PageQuery):
    """What somebody labels, in which order, and whether the model's suggestion is shown."""

    mode: Mode = "pairs"
    order: Literal["least confident", "file"] = "least confident"
    """which questions come first"""
    suggestion: Literal["hidden", "shown"] = "hidden"
    """hidden unless somebody asks for it, so that nobody is led"""

    @property
    def address(self) -> dict[str, str]:
        """The query of an address with these choices; defaults but the mode are left out."""
        chosen = self.model_dump(include=set(DeskChoices.model_fields), exclude_defaults=True)
        return {"mode": self.mode, **chosen}


class DeskQuery(DeskChoices):
    """Which question is labelled, and which of its units."""

    id: str = ""
    question: str = ""
    """the question to begin with, once it is known who labels"""
    after: str = ""
    """the question after which the next one is sought"""
    stay: bool = False
    """whether to go on with that question as long as anything of it waits"""
    page: PageNumber | None = None
    """which of the pages of units; None: the first on which something waits"""


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
    """Take back all labels of an annotator; the history keeps them."""
    _demand_administrator(request)
    form = await read_form(request, AnnotatorQuery)
    if not form.sure:
        raise RechainError("nobody was removed: say that you are sure.")
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
        return site.units(content).waiting(query.mode, values) if isinstance(content, Question) else ()

    ids = site.index.ids(query.order)
    own = site.labels.of_annotator(query.after, annotator) if query.stay else {}
    values = {unit: label.value for unit, label in own.items()}
    if query.stay and query.after in ids and waiting(query.after, values):
        return RedirectResponse(link("/label/question", id=query.after, **query.address), 303)
    place = ids.index(query.after) + 1 if query.after in ids else 0
    name = site.queue.next_question(annotator, query.mode, [*ids[place:], *ids[:place]], waiting)
    if name is None:
        return page("label_done.html", here="label", site=site, annotator=annotator, mode=query.mode)
    return RedirectResponse(link("/label/question", id=name, **query.address), 303)


@router.get("/question")
def question(site: AtSite, query: Asked, annotator: AnnotatorCookie) -> Response:
    """Show everything there is to label of a question."""
    stored = site.question(query.id)
    content = site.readable(stored)
    if annotator is None:
        return RedirectResponse(link("/label", question=stored.id, **query.address), 303)
    units, own = site.units(content), site.labels.of_annotator(stored.id, annotator)
    # by the first source alone: two that disagree would mix their orders
    recovered = site.index.recovered(0, stored.position) if site.sources else None
    best = best_chain(recovered)
    suggestions = Suggestions(units, recovered.chains if recovered else ())
    sheet = Sheet.of(units, query.mode, suggestions.likeliest_first(query.mode), own, query.page)
    is_shown = query.suggestion == "shown"
    return page(
        "desk.html",
        here="label",
        site=site,
        stored=stored,
        question=content,
        annotator=annotator,
        changes=site.labels.count_changes(),
        choices=query,
        other=next(mode for mode in MODES if mode != query.mode),
        sheet=sheet,
        ranked=len(recovered.chains) if recovered and is_shown else 0,
        best=strip_of(content, best) if best and is_shown and query.mode == "pairs" else None,
        views=[
            unit_view(units, unit, own.get(unit), annotator, suggestion=suggestions.of(unit) if is_shown else None)
            for unit in sheet.units
        ],
    )


class Sheet(NamedTuple):
    """A page of a question's units, and how many of the others are done, no longer needed, or waiting."""

    units: Sequence[Unit]
    page: int
    pages: int
    before: int
    """units on earlier pages"""
    total: int
    done: int
    """units on other pages that are labelled"""
    waiting: int
    """units on other pages that are to be labelled"""
    wrong: Sequence[int]
    """the numbers of the chains that are wrong by labels on other pages, so that what is needed here is known"""

    @classmethod
    def of(
        cls, units: Units, mode: Mode, ordered: Sequence[Unit], own: Mapping[Unit, Label], wanted: int | None
    ) -> "Sheet":
        """Return the page that is wanted, the last if there are not so many, or the first on which something waits."""
        waiting = frozenset(units.waiting(mode, {unit: label.value for unit, label in own.items()}))
        pages = max(ceil(len(ordered) / UNITS_A_PAGE), 1)
        first_waiting = next((place for place, unit in enumerate(ordered) if unit in waiting), 0)
        number = min(wanted or first_waiting // UNITS_A_PAGE + 1, pages)
        before = (number - 1) * UNITS_A_PAGE
        shown = ordered[before : before + UNITS_A_PAGE]
        others = [*ordered[:before], *ordered[before + UNITS_A_PAGE :]]
        refused = (unit for unit in others if unit in own and own[unit].value == "no")
        return cls(
            units=shown,
            page=number,
            pages=pages,
            before=before,
            total=len(ordered),
            done=sum(unit in own for unit in others),
            waiting=sum(unit in waiting for unit in others),
            wrong=sorted({chain for unit in refused for chain in units.pairs.get(unit, ())}),
        )


@router.get("/disagreements")
def disagreements(site: AtSite, annotator: AnnotatorCookie) -> HTMLResponse:
    """Show the units on which annotators differ or are unsure, to be settled."""
    readable = frozenset(site.index.ids()) - site.index.unreadable
    doubtful = [(unit, is_open) for unit, is_open in site.labels.doubtful_units() if unit.question in readable]
    waiting = [unit for unit, is_open in doubtful if is_open]
    settled = [unit for unit, is_open in doubtful if not is_open]
    return page(
        "disagreements.html",
        here="label",
        site=site,
        annotator=annotator,
        changes=site.labels.count_changes(),
        waiting=_doubt_views(site, waiting[:_SHOWN], annotator),
        settled=_doubt_views(site, settled[-_SHOWN:], annotator),
        open=len(waiting),
        doubts=len(doubtful),
    )


def _doubt_views(site: Site, shown: Sequence[Unit], annotator: str | None) -> list[tuple[Question, UnitView]]:
    names = dict.fromkeys(unit.question for unit in shown)
    contents = {name: site.readable(site.question(name)) for name in names}
    units = {name: site.units(content) for name, content in contents.items()}
    labels = by_unit(label for name in names for label in site.labels.of_question(name))
    views = []
    for unit in shown:
        (doubt,) = doubts(labels[unit])
        given = [*doubt.labels, doubt.settled] if doubt.settled else doubt.labels
        view = unit_view(units[unit.question], unit, doubt.settled, annotator, given)
        views.append((contents[unit.question], view))
    return views
