"""A question of one's own: a form for it, and the page of its chain, which has an address."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import Field

from rechain.errors import QuestionError
from rechain.schema import Question
from rechain.web.code import FILE, MOST_INLINE, as_curl, as_json, as_python, fields_of
from rechain.web.contents import NotThereError
from rechain.web.examples import EXAMPLE_NAMES, EXAMPLES
from rechain.web.forms import PastedQuestion, read_form
from rechain.web.queries import PageNumber, PageQuery
from rechain.web.responses import link, page
from rechain.web.results import MOST_RESULTS, Result
from rechain.web.service import BusyError
from rechain.web.site import EVERYTHING, AtSite, Site, ask_for
from rechain.web.views import OwnPassages, question_view

_NO_PASSAGES = "the question has no passages; paste some, or let the server find them: rechain serve --corpus INDEX."
_GONE = (
    f"this result is not kept any more: a server keeps the latest {MOST_RESULTS:,} until it stops; "
    "ask the question again."
)

router = APIRouter(include_in_schema=False)


class FormQuery(PageQuery):
    """What the form holds at first: nothing, an example, or what a result was made of."""

    example: Literal["text", "sentences", "record"] | None = None
    key: str = Field(default="", alias="from")


@router.get("/try")
def form_page(site: AtSite, query: Annotated[FormQuery, Query()]) -> HTMLResponse:
    """Offer a form for a question of one's own."""
    if query.key:
        form = _result(site, query.key).form
    else:
        form = EXAMPLES[query.example] if query.example else PastedQuestion()
    return _form(site, form)


@router.post("/try")
async def ask_question(request: Request, site: AtSite) -> Response:
    """Recover the chain of a question that somebody has pasted, and lead to its page."""
    form = await read_form(request, PastedQuestion)
    try:
        entry = await run_in_threadpool(form.entry, None if site.corpus is None else site.corpus.index)
        if isinstance(entry.content, QuestionError):
            raise entry.content
        if site.corpus is None and not entry.content.passages:
            raise QuestionError("too_few_passages", _NO_PASSAGES)
        ((entry, recovered),) = await ask_for(request, site, [entry], EVERYTHING)
    except (QuestionError, BusyError) as error:
        status = 422 if isinstance(error, QuestionError) else 429
        return await run_in_threadpool(_form, site, form, str(error), status)
    assert isinstance(entry.content, Question)  # what could not be read was refused above
    key = await run_in_threadpool(site.results.add, Result(form, entry.content, entry.own, recovered))
    return RedirectResponse(f"/try/{key}", 303)


class ResultQuery(PageQuery):
    """Which of the candidates is shown."""

    number: PageNumber = Field(default=1, alias="chain")


@router.get("/try/{key}")
def result_page(request: Request, site: AtSite, key: str, query: Annotated[ResultQuery, Query()]) -> HTMLResponse:
    """Show the chain of a question that somebody has tried."""
    form, question, own_ids, recovered = _result(site, key)
    own = None if own_ids is None else OwnPassages(own_ids, "pasted here")
    collection = None if site.corpus is None else site.corpus.index
    view = question_view(question, recovered, query.number - 1, None, site.settings, own, collection)
    fields = fields_of(question, own_ids)
    return page(
        "try_result.html",
        here="try",
        site=site,
        key=key,
        form=form,
        view=view,
        problem=recovered.error.message if recovered.error else None,
        python=as_python(fields, site.model_name, site.corpus is not None),
        curl=as_curl(fields, str(request.base_url), request.app.state.needs_token),
        file=FILE if len(as_json(fields)) > MOST_INLINE else None,
        change=link("/try", **{"from": key}),
    )


@router.get(f"/try/{{key}}/{FILE}")
def question_file(site: AtSite, key: str) -> Response:
    """Return a question that somebody has tried as JSON, as `POST /recover` takes it."""
    _, question, own, _ = _result(site, key)
    headers = {"Content-Disposition": f'attachment; filename="{FILE}"'}
    return Response(as_json(fields_of(question, own)), media_type="application/json", headers=headers)


def _result(site: Site, key: str) -> Result:
    result = site.results.get(key)
    if result is None:
        raise NotThereError(_GONE)
    return result


def _form(site: Site, form: PastedQuestion, problem: str | None = None, status: int = 200) -> HTMLResponse:
    return page("try.html", status, here="try", site=site, form=form, problem=problem, examples=EXAMPLE_NAMES)
