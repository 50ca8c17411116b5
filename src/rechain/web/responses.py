"""Responses: pages for people, JSON for programs, errors in one sentence for either, and what takes long to make."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any, ParamSpec, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match, Mount
from starlette.types import Scope

from rechain.schema import SHAPES, VERDICTS
from rechain.text.highlights import Piece
from rechain.text.linking import KINDS
from rechain.version import __version__
from rechain.web.markup import blocks, plain
from rechain.web.passages import short
from rechain.web.question_index import PAGE_SIZE

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_LABELS: dict[str, str] = {
    "supported": "supported",
    "partly": "partly",
    "unsupported": "unsupported",
    "unsure": "cannot tell",
    "yes": "yes",
    "no": "no",
    "settled": "resolved",
}
"""what annotators can say, and what they resolved, in words for people"""
_LINK_COLOURS = 4
"""colours of style.css that can be told apart, also by people who see fewer; further links begin again"""


@cache
def _templates() -> Environment:
    """Return the templates; every value put into them is text, never HTML."""
    loader = PackageLoader("rechain.web")
    templates = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= {
        "role_class": _role_class,
        "percent": _percent,
        "brief": short,
        "blocks": blocks,
        "plain": plain,
    }
    templates.globals |= {"version": __version__, "link": link, "page_size": PAGE_SIZE, "kinds": KINDS}
    templates.globals |= {"verdicts": VERDICTS, "shapes": SHAPES}
    templates.globals |= {"labels": _LABELS, "piece": Piece}
    return templates


def load_templates() -> None:
    """Compile all templates: that takes a while, in which whoever asks for a first page would hold others."""
    for name in _templates().list_templates(extensions=["html"]):
        _templates().get_template(name)


def page(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(draw(template, **context), status)


def draw(template: str, **context: Any) -> str:
    """Return the HTML of a page."""
    return _templates().get_template(template).render(context)


def link(path: str, **query: object) -> str:
    """Return a link of this site; parameters that are None or empty are left out."""
    present = {name: value for name, value in query.items() if value not in (None, "", ())}
    return f"{path}?{urlencode(present, doseq=True)}" if present else path


def refusal(
    scope: Scope,
    status: int,
    code: str,
    message: str,
    headers: dict[str, str] | None = None,
    wanted: str | None = None,
) -> Response:
    """Return why a request is refused, as a page for browsers and as JSON for programs.

    `wanted` is the page to which one comes by signing in; the one that is refused if it is not given.
    """
    if "text/html" not in Headers(scope=scope).get("accept", ""):
        return JSONResponse({"error": {"code": code, "message": message}}, status, headers)
    wanted = _wanted(scope) if wanted is None else wanted
    known = {"site": scope["app"].state.site} if status != 401 and "app" in scope else {}
    response = page("error.html", status, message=message, status_code=status, wanted=wanted, here=None, **known)
    response.headers.update(headers or {})
    return response


def allowed_methods(scope: Scope) -> dict[str, str]:
    """Return the header with all methods of a path; Starlette names those of the first route that matches only."""
    routes = [route for route in scope["app"].routes if not isinstance(route, Mount)] if "app" in scope else ()
    scopes = {method: {**scope, "method": method} for method in _METHODS}
    allowed = [name for name, one in scopes.items() if any(r.matches(one)[0] is Match.FULL for r in routes)]
    if "GET" in allowed:
        allowed.insert(1, "HEAD")  # which the guard turns into GET
    return {"Allow": ", ".join(allowed)} if allowed else {}


def _wanted(scope: Scope) -> str:
    """Return the page of a request, without a token in its address; what is not read but sent is no page."""
    if scope["method"] not in ("GET", "HEAD"):
        return "/"
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    rest = urlencode([(name, value) for name, value in query if name != "token"])
    return quote(scope["path"]) + (f"?{rest}" if rest else "")


def _role_class(role: str) -> str:
    """Return the CSS class of a mark, "link-1" to "link-4" for links."""
    kind, _, number = role.partition(" ")
    return f"{kind}-{(int(number) - 1) % _LINK_COLOURS + 1}" if number else kind


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share < 0.995 or share == 1 else f"{100 * share:.1f} %"


_long: RunVar[CapacityLimiter] = RunVar("long work")
"""admits one thread at a time; one for each event loop, as tests have several"""
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


async def run_long(work: Callable[Parameters, Result], *args: Parameters.args, **options: Parameters.kwargs) -> Result:
    """Return the result of work that may take long (an export, an import), in a thread that no page waits for."""
    limiter = _long.get(None)
    if limiter is None:
        _long.set(limiter := CapacityLimiter(1))
    return await run_sync(lambda: work(*args, **options), limiter=limiter)


async def iterate_long(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts of an answer that take long to make; other long work runs in between."""
    while (part := await run_long(next, parts, None)) is not None:
        yield part
