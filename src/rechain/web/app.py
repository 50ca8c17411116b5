"""The application: pages, REST and labels behind one guard."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hmac import compare_digest
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rechain.errors import RechainError
from rechain.validation import describe_detail
from rechain.version import __version__
from rechain.web import api, desk, label_api, openapi, pages
from rechain.web.answers import refusal
from rechain.web.guard import Guard, Limits, signed_in
from rechain.web.service import BusyError
from rechain.web.site import ConflictError, NotThereError, Site

_STATUS: dict[type[Exception], tuple[int, str]] = {
    NotThereError: (404, "not_there"),
    ConflictError: (409, "conflict"),
    RechainError: (422, "bad_request"),
}
_OUTER = ("body", "query", "path", "one", "many", "pair", "chains")
"""parts of a place that say nothing to who asked"""


def create_app(site: Site, *, token: str | None = None, limits: Limits | None = None) -> FastAPI:
    """Make the application that serves a site; with a token, only to those who have it."""
    app = FastAPI(
        title="rechain",
        version=__version__,
        summary="Recover reasoning chains, look at them, label them.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(site),
    )
    app.state.site = site
    for part in (pages, desk, openapi, label_api, api):
        app.include_router(part.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    _add_sign_in(app, token)
    _add_errors(app)
    app.add_middleware(Guard, token=token, limits=limits or Limits(), refuse=refusal)
    return app


def _lifespan(site: Site) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        site.start()
        yield
        site.close()

    return live


def _add_sign_in(app: FastAPI, token: str | None) -> None:
    @app.post("/sign-in", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        told = (await pages.read_form(request)).get("token", "")
        if token is None or compare_digest(told.encode(), token.encode()):
            return signed_in("/", token or "")
        return refusal(request.scope, 401, "no_token", "this is not the token.")


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RechainError)
    async def mistaken(request: Request, error: RechainError) -> Response:
        status, code = next(told for kind, told in _STATUS.items() if isinstance(error, kind))
        return refusal(request.scope, status, code, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first: ErrorDetails = error.errors()[0].copy()
        first["loc"] = tuple(part for part in first["loc"] if part not in _OUTER)
        code, message = describe_detail(first)
        return refusal(request.scope, 422, code, f"{message}.".removeprefix(": "))

    @app.exception_handler(BusyError)
    async def busy(request: Request, error: BusyError) -> Response:
        return refusal(request.scope, 429, "busy", str(error), {"Retry-After": str(error.retry_after)})

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        message = {404: "there is no such page.", 405: "this cannot be done here."}.get(error.status_code, error.detail)
        return refusal(request.scope, error.status_code, "refused", message, dict(error.headers or {}))
