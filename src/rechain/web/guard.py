"""What every request passes: connections, access by token, limits, and what browsers may do with the answer."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from math import ceil
from secrets import token_urlsafe
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rechain.web.responses import allowed_methods, refusal

PATIENCE_S = 20.0
"""seconds in which the head of the next request has to come: browsers open connections some seconds ahead"""
MOST_CONNECTIONS = 900
"""within the 1,024 files that a process may usually open"""
MOST_HEAD = 64 * 1024
"""bytes of a request's address and headers"""
_LET_IN = "rechain.let_in"
"""in the scope of a request that was let in, to a path that is not open to all"""


_ADMINISTRATOR = "rechain.administrator"
"""in the scope of a request to a server with a token: whether it is an administrator's"""


class Connection(HttpToolsProtocol):
    """A connection that waits so long for a request and no longer."""

    patience = PATIENCE_S
    most = MOST_CONNECTIONS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.due = 0.0
        """when the head of the next request has to be whole, by the clock of the event loop"""
        self._received = self._parsed = 0
        """bytes of a head that is not whole, and those of a head that the parser has named so far"""
        self._is_known = False

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def address(self) -> str | None:
        """Where it comes from; a proxy's, if there is one."""
        return self.client and self.client[0]

    @property
    def standing(self) -> tuple[bool, bool]:
        """Whether a request of it was let in, and whether one that is whole is being answered."""
        return self._is_known or _LET_IN in (self.scope or {}), not self.is_idle and not self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; if there are too many connections, close one."""
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) > self.most:
            self._close_some()

    def _close_some(self) -> None:
        """Close connections that wait: strangers', of the address that has most, those that have waited longest.

        What is not sent yet is dropped: a client that does not read its answer would keep the connection for ever.
        """
        others = [one for one in self.connections if isinstance(one, Connection) and one.standing != (True, True)]
        of_address = Counter(one.address for one in others)
        others.sort(key=lambda one: (one.standing, -of_address[one.address], one.due))
        for one in others[: self.most // 20 + 1]:  # several, as to look through all for each new one would take long
            one.transport.abort()  # also this one, if all others are at work
            self.connections.discard(one)

    def data_received(self, data: bytes) -> None:
        """Go on to wait while the head of a request is not whole, but not beyond when it is due."""
        super().data_received(data)
        if self.is_idle and not self.transport.is_closing():
            self._received += len(data)
            self._close_when_due()
            if self._received > MOST_HEAD:
                self.send_400_response(_TOO_LONG)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or one whose head is too long."""
        super().send_400_response(_TOO_LONG if self._parsed > MOST_HEAD else msg)

    def on_message_begin(self) -> None:
        """Begin to measure the head of the next request."""
        super().on_message_begin()
        self._parsed = 0

    def on_url(self, url: bytes) -> None:
        """Measure the address, which comes in pieces."""
        super().on_url(url)
        self._measure(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Measure a header."""
        super().on_header(name, value)
        self._measure(len(name) + len(value) + len(": \r\n"))

    def _measure(self, size: int) -> None:
        self._parsed += size
        if self._parsed > MOST_HEAD:
            raise ValueError(_TOO_LONG)  # for the parser, which stops: a head that comes at once is not answered either

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._is_known, _ = self.standing
        super().on_response_complete()
        if self.is_idle:  # no other request had come already
            self._expect_request()

    def _expect_request(self) -> None:
        self.due, self._received = self.loop.time() + self.patience, 0
        self._close_when_due()

    def _close_when_due(self) -> None:
        self._unset_keepalive_if_required()  # uvicorn's timer, which it stops when anything comes
        self.timeout_keep_alive_task = self.loop.call_at(self.due, self.timeout_keep_alive_handler)


_TOO_LONG = "The address or the headers are too long."
_FREE = 10
"""wrong tokens that are answered at once: people mistype, and programs try a few times"""
_SECONDS_EACH = 0.2
"""then tokens are compared one after another, five a second: a million common words take more than two days"""
_LONGEST_WAIT = 5.0
"""seconds for which a token may wait to be compared; with five a second no more than 25 connections ever wait"""
_REMEMBERED = 1000
"""hosts that have shown the token, and wrong tokens, that are remembered"""


class TooManyGuessesError(Exception):
    """So many wrong tokens were sent that this one is not looked at."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many wrong tokens were sent; try again in {retry_after} s.")
        self.retry_after = retry_after


class Access:
    """Decides who is let in."""

    def __init__(self, token: str, clock: Callable[[], float] = monotonic, administrator: str | None = None) -> None:
        """Take the token of annotators, and that of administrators, if there is one."""
        self._token, self._administrator = token, administrator
        self._clock = clock
        self.session, self._administrators_session = token_urlsafe(32), token_urlsafe(32)
        """what browsers hold that have signed in: nobody can guess it, so that it is compared at once"""
        self._free_from = clock() - _FREE * _SECONDS_EACH
        """when the next token may be compared; it lies in the past as long as few were wrong"""
        self._known: dict[str, None] = {}
        self._wrong: dict[bytes, None] = {}

    def is_session(self, cookie: str | None) -> bool:
        """Return whether a browser has signed in since the server was started."""
        return cookie is not None and (_are_equal(cookie, self.session) or self.is_administrator(cookie))

    def is_administrator(self, claim: str) -> bool:
        """Return whether a session, or a token that was let in, is an administrator's."""
        secrets = (self._administrators_session, self._administrator)
        return any(secret is not None and _are_equal(claim, secret) for secret in secrets)

    def session_of(self, token: str) -> str:
        """Return the session of a token that was let in."""
        return self._administrators_session if self.is_administrator(token) else self.session

    def _is_right(self, claim: str) -> bool:
        return _are_equal(claim, self._token) or self.is_administrator(claim)

    async def knows(self, host: str, claim: str) -> bool:
        """Return whether a claim is the token, after its turn; raises TooManyGuessesError where that would take long.

        A host that has shown the token is not kept waiting, until a wrong one comes from there.
        """
        digest = sha256(claim.encode()).digest()
        if digest in self._wrong:  # a program with an old token may repeat it for ever: that guesses nothing
            return False
        is_known = host in self._known
        self._known.pop(host, None)
        if not is_known or not self._is_right(claim):
            await asyncio.sleep(self._take_turn())
            if not self._is_right(claim):
                _remember(self._wrong, digest)
                return False
            self._free_from -= _SECONDS_EACH  # a right token is no guess
        _remember(self._known, host)
        return True

    def _take_turn(self) -> float:
        """Return the seconds until a token may be compared."""
        now = self._clock()
        turn = max(self._free_from, now - _FREE * _SECONDS_EACH)
        if turn - now > _LONGEST_WAIT:
            raise TooManyGuessesError(ceil(turn - now))
        self._free_from = turn + _SECONDS_EACH
        return max(turn - now, 0.0)


def _remember(memory: dict[Any, None], key: Any) -> None:
    memory[key] = None
    if len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]


def _are_equal(claim: str, secret: str) -> bool:
    """Return whether two texts are equal; how long that takes does not betray how much of them is."""
    return compare_digest(claim.encode(), secret.encode())


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


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take."""

    body: int = 10_000_000
    """bytes"""
    seconds: float = 60.0
    strangers_body: int = 4096
    """bytes, of those who need no token"""
    strangers_seconds: float = 5.0
    """in which their body has to come"""


class Guard:
    """Lets through what is allowed."""

    def __init__(self, app: ASGIApp, access: Access | None, limits: Limits) -> None:
        """Without `access` every user is let in, but only requests to this machine's own names are answered."""
        self._app, self._access, self._limits = app, access, limits

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
            return refusal(scope, 429, "too_many_guesses", str(error), {"Retry-After": str(error.retry_after)})
        if isinstance(error, asyncio.CancelledError):  # by the server that stops, after it has waited for a while
            return refusal(scope, 503, "stopping", "the server is being stopped.")
        if isinstance(error, TimeoutError):
            message = f"this took longer than the {self._limits.seconds:g} seconds that are allowed."
            return refusal(scope, 503, "time_limit", message)
        _log.error("%s %s has failed", scope["method"], quote(scope["path"]), exc_info=error)
        return refusal(scope, 500, "failed", "server error; the log has the reason.")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = await self._refusal(scope)
        if refused is None:
            if not _is_open(scope):
                scope[_LET_IN] = True
            body = await self._body(scope, receive)
            if isinstance(body, bytes):
                await self._pass_on(scope, _replay(body, receive), send)
                return
            refused = body
        await refused(scope, receive, send)

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
            return refusal(scope, 421, "other_host", "this server answers to 127.0.0.1 and localhost alone.")
        origin = headers.get("origin")  # None: the request comes from no page at all
        is_own = origin is None or origin.partition("://")[2] == headers.get("host")
        if scope["method"] not in _SAFE_METHODS and not is_own:
            return refusal(scope, 403, "other_origin", "requests of other sites' pages are not taken.")
        return None if self._access is None else await self._demand_token(scope, headers, self._access)

    async def _demand_token(self, scope: Scope, headers: Headers, access: Access) -> Response | None:
        cookie = cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE)
        if _is_open(scope) or (cookie is not None and access.is_session(cookie)):
            scope[_ADMINISTRATOR] = cookie is not None and access.is_administrator(cookie)
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        in_address = query.pop("token", None) if scope["method"] == "GET" else None
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if in_address and await access.knows(host_of(scope), in_address):
            page = quote(scope["path"]) + (f"?{urlencode(query)}" if query else "")
            return signed_in(page, access.session_of(in_address), scope)
        if kind.lower() == "bearer" and bearer and await access.knows(host_of(scope), bearer):
            scope[_ADMINISTRATOR] = access.is_administrator(bearer)
            return None
        return refusal(scope, 401, "no_token", "this server demands its token.")

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """Read the body whole, or refuse it; strangers have less time for it."""
        headers = Headers(scope=scope)
        told = headers.get("content-length", "")
        declared = int(told[:19]) if told.isdecimal() else 0
        if scope["method"] in _SAFE_METHODS and (declared or "transfer-encoding" in headers):
            allowed = allowed_methods(scope)
            if allowed and "GET" not in allowed["Allow"]:
                return refusal(scope, 405, "refused", "this cannot be done here.", allowed)
            return refusal(scope, 400, "no_body", f"a request with the method {scope['method']} has no body.")
        if not _is_open(scope):
            return await self._read_body(scope, receive, declared, self._limits.body)
        seconds = self._limits.strangers_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._read_body(scope, receive, declared, self._limits.strangers_body)
        except TimeoutError:
            return refusal(scope, 408, "slow_body", f"the body did not come within {seconds:g} seconds.")

    async def _read_body(self, scope: Scope, receive: Receive, declared: int, most: int) -> bytes | Response:
        """Read the body; one that is too large is read on a little, so that who sends it hears."""
        parts: list[bytes] = []
        size, is_more = 0, declared <= most + READ_ON
        while is_more and size <= most + READ_ON:
            message = await receive()
            if message["type"] == "http.disconnect":
                return refusal(scope, 400, "cut_off", "the request was cut off.")
            part = message.get("body", b"")
            size += len(part)
            is_more = message.get("more_body", False)
            if size <= most:
                parts.append(part)
        if max(size, declared) > most:
            return refusal(scope, 413, "too_large", f"the request is larger than the {most:,} bytes allowed.")
        return b"".join(parts)


class _Sender:
    """Sends an answer with the headers that every answer has, each part of it within the time that is allowed."""

    def __init__(self, scope: Scope, send: Send, limit: asyncio.Timeout, seconds: float) -> None:
        self._send, self._limit, self._seconds = send, limit, seconds
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


def signed_in(path: str, session: str, scope: Scope) -> Response:
    """Lead on to a page of this site, with the session in a cookie that no script can read."""
    answer = RedirectResponse("/" + path.lstrip("/\\"), status_code=303)
    answer.set_cookie(SESSION_COOKIE, session, httponly=True, samesite="lax", secure=is_encrypted(scope))
    return answer


def is_encrypted(scope: Scope) -> bool:
    """Return whether a browser speaks TLS, with a proxy if there is one: its cookies must not go out without.

    Any proxy is believed, as a wrong header only harms who sends it.
    """
    return "https" in (scope.get("scheme"), Headers(scope=scope).get("x-forwarded-proto", "").partition(",")[0].strip())


def may_administrate(scope: Scope) -> bool:
    """Return whether a request may change annotators: an administrator's or, on a server without token, any."""
    return bool(scope.get(_ADMINISTRATOR, True))


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
