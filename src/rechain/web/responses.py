"""How this server answers: pages for people, JSON for programs, and mistakes in one sentence for either."""

from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Scope

from rechain.version import __version__
from rechain.web.index import PAGE_SIZE

_LINK_COLOURS = 4


@cache
def _templates() -> Environment:
    """The templates; whatever is put into them is text, never HTML."""
    loader = PackageLoader("rechain.web")
    templates = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= {"role_class": _role_class, "percent": _percent}
    templates.globals |= {"version": __version__, "link": link, "page_size": PAGE_SIZE}
    return templates


def page(template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(_templates().get_template(template).render(shown), status)


def link(path: str, **query: object) -> str:
    """Return a link of this site; what is None or empty is left out."""
    told = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(told)}" if told else path


def refusal(scope: Scope, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """Say what is wrong, as a page to a browser and as JSON to a program."""
    if "text/html" not in Headers(scope=scope).get("accept", ""):
        return JSONResponse({"error": {"code": code, "message": message}}, status, headers)
    wanted = scope["path"] + (f"?{query}" if (query := scope["query_string"].decode("latin-1")) else "")
    answer = page("error.html", status, message=message, status_code=status, wanted=wanted, here=None)
    answer.headers.update(headers or {})
    return answer


def _role_class(role: str) -> str:
    """Return the class of a mark: links beyond the fourth take the colours of the first again."""
    kind, _, number = role.partition(" ")
    return f"{kind}-{(int(number) - 1) % _LINK_COLOURS + 1}" if number else kind


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share < 0.995 or share == 1 else f"{100 * share:.1f} %"
