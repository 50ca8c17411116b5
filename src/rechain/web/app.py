"""The application: pages, REST and labels behind one guard."""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rechain.errors import InputError, MissingExtraError, RechainError, ResumableError
from rechain.formats.datasets.formats import describe_detail
from rechain.labels.database import FullDiskError, is_full
from rechain.recoverer import NoConfidenceError
from rechain.version import __version__
from rechain.web import api, desk, document_pages, label_api, metrics, pages, try_pages
from rechain.web.filters import PageQuery
from rechain.web.forms import read_form
from rechain.web.guard import Access, Guard, Limits, host_of, signed_in
from rechain.web.responses import allowed_methods, load_templates, refusal, run_long
from rechain.web.service import BusyError, TooSlowError
from rechain.web.site import ConflictError, ForbiddenError, GoneError, NotThereError, Site

_STATUS: dict[type[Exception], tuple[int, str]] = {
    NotThereError: (404, "not_there"),
    ConflictError: (409, "conflict"),
    ForbiddenError: (403, "no_administrator"),
    NoConfidenceError: (409, "no_confidence"),
    TooSlowError: (503, "time_limit"),
    FullDiskError: (507, "full_disk"),
    InputError: (500, "bad_file"),  # all files are the server's own: a label file that was moved, a damaged index
    ResumableError: (500, "failed"),
    MissingExtraError: (500, "failed"),
    RechainError: (422, "bad_request"),
}
"""the answers to errors, the first that fits"""
_NO_FIELDS = ("constrained-", "function-")
"""beginnings of the names that pydantic gives to the forms of a field; they say nothing to users"""
_THREADS = 3
"""threads for pages, while the event loop reads requests, sends answers and waits for models"""
_TURN_S = 0.001
"""seconds after which a thread lets another run, a fifth of Python's default"""
_log = logging.getLogger("rechain.web")


class SignIn(PageQuery):
    """The token, and the page that was refused without it."""

    token: str | None = None
    wanted: str = "/"


def create_app(
    site: Site, *, token: str | None = None, limits: Limits | None = None, administrator: str | None = None
) -> FastAPI:
    """Return the application that serves a site; with a token, only to those who have it, or the administrator's."""
    app = FastAPI(
        title="rechain",
        version=__version__,
        summary="Recover reasoning chains, look at them, label them.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(site),
    )
    app.state.site, app.state.metrics = site, metrics.Metrics(site)
    app.state.needs_token = token is not None
    for part in (pages, try_pages, desk, metrics, label_api, api, document_pages):
        app.include_router(part.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    access = None if token is None else Access(token, administrator=administrator)
    _add_sign_in(app, access)
    _add_errors(app)
    if site.corpus is None:
        _require_passages(app)
    app.add_middleware(Guard, access=access, limits=limits or Limits())
    app.add_middleware(metrics.Meter, metrics=app.state.metrics)
    return app


def _require_passages(app: FastAPI) -> None:
    """Describe passages as a required field in openapi.json: a server without an index cannot find them."""
    describe = app.openapi

    def with_passages() -> dict[str, Any]:
        if app.openapi_schema is None:  # FastAPI builds it at the first request and keeps it
            describe()["components"]["schemas"]["QuestionFields"]["required"].append("passages")
        return describe()

    app.openapi = with_passages  # type: ignore[method-assign]


def _lifespan(site: Site) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        # What reads a database or draws runs in a few threads: Python runs one at a time, each would wait for its turn.
        current_default_thread_limiter().total_tokens = _THREADS
        sys.setswitchinterval(_TURN_S)
        load_templates()
        site.start()
        preparation = asyncio.create_task(_prepare(site))
        yield
        preparation.cancel()
        with suppress(asyncio.CancelledError):
            await preparation
        site.close()

    return live


async def _prepare(site: Site) -> None:
    """Load what is slow to load while the first requests are answered."""
    try:
        await run_long(site.warm_up)
    except Exception:
        _log.exception("the server goes on without what it would have prepared")


def _add_sign_in(app: FastAPI, access: Access | None) -> None:
    @app.post("/sign-in", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        form = await read_form(request, SignIn)
        if access is None or (form.token and await access.knows(host_of(request.scope), form.token)):
            wanted = "/" if form.wanted.startswith("/sign-in") else form.wanted
            return signed_in(wanted, access.session_of(form.token or "") if access else "", request.scope)
        return refusal(request.scope, 401, "no_token", "this is not the access token.", wanted=form.wanted)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RechainError)
    async def mistaken(request: Request, error: RechainError) -> Response:
        status, code = next(answer for kind, answer in _STATUS.items() if isinstance(error, kind))
        return refusal(request.scope, status, code, request.app.state.site.without_folders(str(error)))

    @app.exception_handler(sqlite3.OperationalError)
    async def unwritten(request: Request, error: sqlite3.OperationalError) -> Response:
        if not is_full(error):
            raise error
        return refusal(request.scope, 507, "full_disk", "the disk for the server's temporary files is full.")

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return refusal(request.scope, 422, *_described(request, error.errors()[0]))

    @app.exception_handler(BusyError)
    async def busy(request: Request, error: BusyError) -> Response:
        return refusal(request.scope, error.status, error.code, str(error), {"Retry-After": str(error.retry_after)})

    @app.exception_handler(GoneError)
    async def gone(request: Request, _: GoneError) -> Response:  # nobody reads it, but the counts of requests do
        return refusal(request.scope, 499, "gone", "the connection was closed before the answer was ready.")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # FastAPI's status for a body that it cannot read
            if isinstance(error.__cause__, RecursionError):
                return refusal(request.scope, 422, "too_deep", "the body is nested too deeply.")
            return refusal(request.scope, 422, "bad_json", "the body is not valid JSON.")
        message = {404: "there is no such page.", 405: "this method is not allowed here."}.get(
            error.status_code, error.detail
        )
        headers = dict(error.headers or {}) | (allowed_methods(request.scope) if error.status_code == 405 else {})
        return refusal(request.scope, error.status_code, "refused", message, headers)


def _described(request: Request, first: ErrorDetails) -> tuple[str, str]:
    """Return the code of what is wrong with a request, and one sentence that names the field."""
    place, *fields = first["loc"]
    if first["type"] == "json_invalid":
        return "bad_json", f"the body is not valid JSON: {first['ctx']['error']}."
    if place == "body" and not _is_json(request.headers.get("content-type", "")):
        return "bad_json", "the body should be JSON, with the header Content-Type: application/json."
    if first["type"] == api.MISSING_PASSAGES:
        message = _described(request, {**first, "type": "missing"})[1].removesuffix(".")
        return "missing_field", f"{message}; a server with an index finds them: rechain serve --corpus INDEX."
    loc = tuple(part for part in fields if part not in api.TAGS and not str(part).startswith(_NO_FIELDS))
    code, message = describe_detail({**first, "loc": loc or ("the body",)})
    return code, f"{message}.".replace("the field the body", "the body")


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
