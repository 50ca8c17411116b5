"""A question of one's own: a form for it, and the page of its chain, which has an address."""

import json
from pprint import pformat
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import Field

from rechain.errors import QuestionError
from rechain.schema import Question
from rechain.scoring.interface import BUNDLED
from rechain.web.filters import PageNumber, PageQuery
from rechain.web.forms import MOST_RESULTS, PastedQuestion, Result, read_form
from rechain.web.responses import link, page
from rechain.web.service import BusyError
from rechain.web.site import EVERYTHING, AtSite, NotThereError, Site, ask_for
from rechain.web.views import OwnPassages, question_view

_PASSAGES = {
    "Polonium": "Polonium is a chemical element that Marie Curie found in pitchblende in 1898. She named it after the "
    "country that she came from.",
    "Marie Curie": "Marie Curie was born in Warsaw in 1867, studied in Paris, and was the first woman to receive a "
    "Nobel Prize.",
    "Radium": "Radium was found in the same year. It glows in the dark, and was used for the hands of watches.",
    "Pierre Curie": "Pierre Curie was born in Paris. He taught physics at the Sorbonne.",
}
_QUESTION = "Where was the discoverer of polonium born?"
_SENTENCES = "She was born in Warsaw in 1867. She received a Nobel Prize. Her watch is kept in London."
_RAGAS = {
    "user_input": _QUESTION,
    "response": _SENTENCES,
    "retrieved_contexts": [f"{title}. {text}" for title, text in _PASSAGES.items()],
}
_TEXT = "\n\n".join(f"# {title}\n{text}" for title, text in _PASSAGES.items())

EXAMPLES = {
    "text": PastedQuestion(question=_QUESTION, answer="Warsaw", passages=_TEXT),
    "sentences": PastedQuestion(question=_QUESTION, answer=_SENTENCES, passages=_TEXT),
    "record": PastedQuestion(passages=json.dumps(_RAGAS, indent=2)),
}
"""one of each way to fill in the form"""
EXAMPLE_NAMES = {"text": "a short answer", "sentences": "an answer in sentences", "record": "a record of Ragas"}


MOST_INLINE = 60_000
"""characters of a question that are written into the code; a longer one comes from a file beside it"""
FILE = "question.json"


def fields_of(question: Question, own: frozenset[str] | None) -> dict[str, Any]:
    """Return the fields with which the same is asked: where an index finds passages, those that came with it."""
    passages = [passage for passage in question.passages if own is None or passage.id in own]
    return question.model_copy(update={"passages": passages}).model_dump(
        mode="json", exclude={"id"}, exclude_defaults=True
    )


def as_json(fields: dict[str, Any]) -> str:
    """Return a question as one line of JSON."""
    return orjson.dumps(fields).decode()


def as_python(fields: dict[str, Any], model: str, has_index: bool) -> str:
    """Return Python code that recovers a question with the model of the server."""
    name = "" if model == BUNDLED else f"{model!r}, "
    index = ', corpus="INDEX"' if has_index else ""
    if len(as_json(fields)) > MOST_INLINE:
        imports, question = "import json\n", f'json.load(open("{FILE}", encoding="utf-8"))'
    else:
        imports, question = "", pformat(fields, width=110, sort_dicts=False)
    return (
        f"{imports}from rechain import Recoverer\n\n"
        f"question = {question}\n"
        f"recovered = Recoverer.from_pretrained({name}top=5{index}).recover(question)\n"
        "print(recovered)\n"
    )


def as_curl(fields: dict[str, Any], address: str, needs_token: bool) -> str:
    """Return a shell command that asks a server at an address; its text is read as it stands, whatever it holds."""
    token = ' -H "Authorization: Bearer $RECHAIN_TOKEN"' if needs_token else ""
    command = f"curl -s '{address}recover?top=5'{token} -H 'Content-Type: application/json' --data-binary"
    text = as_json(fields)  # of one line, so that none of its lines ends the text early
    return f"{command} @{FILE}\n" if len(text) > MOST_INLINE else f"{command} @- <<'JSON'\n{text}\nJSON\n"


_NO_PASSAGES = "the question has no passages; paste some, or let the server find them: rechain serve --corpus INDEX."
_GONE = f"this result is gone: a server keeps the latest {MOST_RESULTS:,} until it stops; try the question again."

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
        entry = await run_in_threadpool(form.entry, site.collection)
        if isinstance(entry.content, QuestionError):
            raise entry.content
        if site.corpus is None and not entry.content.passages:
            raise QuestionError("too_few_passages", _NO_PASSAGES)
        ((entry, recovered),) = await ask_for(request, site, [entry], EVERYTHING)
    except (QuestionError, BusyError) as error:
        status = 422 if isinstance(error, QuestionError) else error.status
        return await run_in_threadpool(_form, site, form, str(error), status)
    assert isinstance(entry.content, Question)  # what could not be read was refused above
    key = await run_in_threadpool(
        site.results.add, Result(form=form, question=entry.content, own=entry.own, recovered=recovered)
    )
    return RedirectResponse(f"/try/{key}", 303)


class ResultQuery(PageQuery):
    """Which of the candidates is shown."""

    number: PageNumber = Field(default=1, alias="chain")


@router.get("/try/{key}")
def result_page(request: Request, site: AtSite, key: str, query: Annotated[ResultQuery, Query()]) -> HTMLResponse:
    """Show the chain of a question that somebody has tried."""
    result = _result(site, key)
    question, recovered = result.question, result.recovered
    own = None if result.own is None else OwnPassages(result.own, "pasted here")
    view = question_view(site.chain_list(question, recovered.chains), recovered, query.number - 1, None, own)
    fields = fields_of(question, result.own)
    return page(
        "try_result.html",
        here="try",
        site=site,
        key=key,
        form=result.form,
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
    result = _result(site, key)
    headers = {"Content-Disposition": f'attachment; filename="{FILE}"'}
    return Response(as_json(fields_of(result.question, result.own)), media_type="application/json", headers=headers)


def _result(site: Site, key: str) -> Result:
    result = site.results.get(key)
    if result is None:
        raise NotThereError(_GONE)
    return result


def _form(site: Site, form: PastedQuestion, problem: str | None = None, status: int = 200) -> HTMLResponse:
    return page("try.html", status, here="try", site=site, form=form, problem=problem, examples=EXAMPLE_NAMES)
