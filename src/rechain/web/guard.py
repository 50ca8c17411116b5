"""What stands before every request: who may ask, how much and how long; and what browsers may do with the answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rechain.web.access import Access, TooManyGuessesError

SESSION_COOKIE = "rechain_session"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_STATIC = "/static/"
_OPEN_PATHS = (_STATIC, "/health", "/sign-in")
READ_ON = 20_000_000
_log = logging.getLogger("rechain.web")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Refusal(Protocol):
    """Makes an answer of a status, a code and a message that fits who asks: a page or JSON."""

    def __call__(
        self, scope: Scope, status: int, code: str, message: str, headers: dict[str, str] | None = None
    ) -> Response: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take."""

    body: int = 10_000_000
    """bytes"""
    seconds: float = 60.0
    strangers_body: int = 4096
    """bytes, of those who need no token"""


class Guard:
    """Lets through what is allowed."""

    def __init__(self, app: ASGIApp, access: Access | None, limits: Limits, refuse: Refusal) -> None:
        """Take what decides who is let in; None: everybody, but only this machine's own names are answered to."""
        self._app = app
        self._access = access
        self._limits = limits
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(None) as limit:
                sender = _Sender(scope, send, limit, self._limits.seconds)
                await self._answer(scope, receive, sender)
        except (Exception, asyncio.CancelledError) as error:
            if sender.has_begun:
                raise
            await self._failed(scope, error)(scope, receive, sender)

    def _failed(self, scope: Scope, error: BaseException) -> Response:
        """Say that tokens are guessed, a request took too long, or the server is at fault: its log tells more."""
        if isinstance(error, TooManyGuessesError):  # by the guard, or by the form to sign in
            return self._refuse(scope, 429, "too_many_guesses", str(error), {"Retry-After": str(error.retry_after)})
        if isinstance(error, asyncio.CancelledError):  # by the server that stops, after it has waited for a while
            return self._refuse(scope, 503, "stopping", "the server is being stopped.")
        if isinstance(error, TimeoutError):
            message = f"this took longer than the {self._limits.seconds:g} seconds that are allowed."
            return self._refuse(scope, 503, "time_limit", message)
        _log.error("%s %s has failed", scope["method"], quote(scope["path"]), exc_info=error)
        return self._refuse(scope, 500, "failed", "something went wrong in the server; its log tells what.")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await self._refusal(scope)
        if refusal is None:
            body = await self._body(scope, receive)
            if isinstance(body, bytes):
                await self._pass_on(scope, _replay(body, receive), send)
                return
            refusal = body
        await refusal(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer; HEAD as it would GET, of which the sender sends the head alone."""
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            await self._app(inner, receive, send)
        finally:
            scope.update({name: inner[name] for name in ("route", "endpoint") if name in inner})  # the meter reads them

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self._access is None and not is_local(_host(headers.get("host", ""))):
            return self._refuse(scope, 421, "other_host", "this server answers to 127.0.0.1 and localhost alone.")
        if scope["method"] not in _SAFE_METHODS and not _is_own(headers):
            return self._refuse(scope, 403, "other_origin", "requests of other sites' pages are not taken.")
        return None if self._access is None else await self._demand_token(scope, headers, self._access)

    async def _demand_token(self, scope: Scope, headers: Headers, access: Access) -> Response | None:
        if _is_open(scope) or access.is_session(_cookie(headers)):
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        in_address = query.pop("token", None) if scope["method"] == "GET" else None
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if in_address and await access.knows(host_of(scope), in_address):
            return signed_in(quote(scope["path"]) + (f"?{urlencode(query)}" if query else ""), access.session)
        if kind.lower() == "bearer" and bearer and await access.knows(host_of(scope), bearer):
            return None
        return self._refuse(scope, 401, "no_token", "this server demands its token.")

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """Read the body whole, or refuse it: one that is too large is read on a little, so that who sends it hears."""
        most = self._limits.strangers_body if _is_open(scope) else self._limits.body
        told = Headers(scope=scope).get("content-length", "")
        declared = int(told[:19]) if told.isdecimal() else 0
        parts: list[bytes] = []
        size, is_more = 0, declared <= most + READ_ON
        while is_more and size <= most + READ_ON:
            message = await receive()
            if message["type"] == "http.disconnect":
                return self._refuse(scope, 400, "cut_off", "the request was cut off.")
            part = message.get("body", b"")
            size += len(part)
            is_more = message.get("more_body", False)
            if size <= most:
                parts.append(part)
        if max(size, declared) > most:
            return self._refuse(scope, 413, "too_large", f"the request is larger than the {most:,} bytes allowed.")
        return b"".join(parts)


class _Sender:
    """Sends an answer with the headers that every answer has, each part of it within the time that is allowed."""

    def __init__(self, scope: Scope, send: Send, limit: asyncio.Timeout, seconds: float) -> None:
        self._send = send
        self._limit = limit
        self._seconds = seconds
        self._allow_time()
        self._is_head = scope["method"] == "HEAD"
        self._kept = "no-cache" if scope["path"].startswith(_STATIC) else "no-store"
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", self._kept)
        elif self._is_head:
            message = {**message, "body": b""}
        await self._send(message)
        if message.get("more_body"):  # a long answer may take longer than one that comes at once
            self._allow_time()

    def _allow_time(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time() + self._seconds)


def signed_in(path: str, session: str) -> Response:
    """Lead on to a page of this site, with the session in a cookie that no script can read."""
    answer = RedirectResponse("/" + path.lstrip("/\\"), status_code=303)
    answer.set_cookie(SESSION_COOKIE, session, httponly=True, samesite="lax")
    return answer


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Give out a body that was read, and then whatever comes."""
    waiting: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return waiting.pop() if waiting else await receive()

    return give


def _is_open(scope: Scope) -> bool:
    """Return whether a path needs no token."""
    return bool(scope["path"].startswith(_OPEN_PATHS))


def host_of(scope: Scope) -> str:
    """Return where a request comes from; a proxy on this machine names whom it asks for, and uvicorn believes it."""
    return str((scope.get("client") or ("",))[0])


def _cookie(headers: Headers) -> str | None:
    return cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE)


def _host(authority: str) -> str:
    """Return the host without its port."""
    host, _, port = authority.rpartition(":")
    return (host if host and port.isdecimal() else authority).lower()


def is_local(host: str) -> bool:
    """Return whether a name is this machine's own, which no other site can take."""
    try:
        return host == "localhost" or ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _is_own(headers: Headers) -> bool:
    """Return whether a request comes from this site's own pages, or from no page at all."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")
