"""What stands before every request: who may ask, how much, how long, and what every answer says to browsers."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from rechain.web.guard import READ_ON, SESSION_COOKIE, Access, Guard, Limits, signed_in

TOKEN = 'se;cret "+&/% 1'
HEADERS = {
    "content-security-policy",
    "x-content-type-options",
    "x-frame-options",
    "referrer-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "cache-control",
}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Tell how long the body is; some paths are slow, broken, or stop half way."""
    request = Request(scope, receive)
    if request.url.path == "/slow":
        await asyncio.sleep(60)
    if request.url.path in ("/stream", "/stuck"):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(10):
            await asyncio.sleep(0.06 if request.url.path == "/stream" else 60)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return
    if request.url.path == "/broken":
        raise RuntimeError("this is <secret>")
    if request.url.path == "/half":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("too late")
    answer = PlainTextResponse(str(len(await request.body())), headers={"Cache-Control": "max-age=9"})
    await answer(scope, receive, send)


def ask(
    path: str = "/",
    *,
    method: str = "GET",
    query: str = "",
    parts: Sequence[bytes] = (b"",),
    is_whole: bool = True,
    never_comes: bool = False,
    token: str | None = None,
    access: Access | None = None,
    limits: Limits | None = None,
    **headers: str,
) -> Answer:
    access = Access(token) if token else access
    told = {"host": "127.0.0.1:8000"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
    }
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = not is_whole
    sent: list[Message] = []

    async def receive() -> Message:
        if never_comes:
            await asyncio.sleep(60)
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Guard(app, access, limits or Limits(body=10))(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    return Answer(sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, body)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.0.1",
        "[",
        "::",
    ],
)
def test_this_machines_own_names_alone_are_answered_so_that_no_site_can_lead_a_browser_here(host: str) -> None:
    assert all(ask(host=own).status == 200 for own in ("127.0.0.1", "127.0.0.2:8000", "LOCALHOST", "[::1]", "[::1]:80"))
    answer = ask(host=host)
    assert answer.status == 421
    assert "answers to 127.0.0.1 and localhost alone" in answer.body
    assert ask(host=host, token=TOKEN, authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8000", 200),
        ("https://127.0.0.1:8000", 200),
        ("http://127.0.0.1:9000", 403),
        ("http://evil.example", 403),
        ("http://127.0.0.1:8000.evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
    ],
)
def test_pages_of_other_sites_may_not_write(origin: str, status: int) -> None:
    assert ask(method="POST", origin=origin).status == status
    assert ask(method="DELETE", origin=origin).status == status
    assert ask(method="GET", origin=origin).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"bearer {TOKEN}"}, 200),
        ({"authorization": TOKEN}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": "Bearer \xff"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"cookie": f"{SESSION_COOKIE}=wrong"}, 401),
        ({"cookie": f"{SESSION_COOKIE}="}, 401),
        ({"cookie": f"{SESSION_COOKIE}={TOKEN}"}, 401),
        ({"cookie": ";;=; \xff"}, 401),
    ],
)
def test_the_token_in_headers(headers: dict[str, str], status: int) -> None:
    assert ask(token=TOKEN, **headers).status == status


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition("; HttpOnly")[0]


def test_the_token_in_the_address_becomes_a_cookie_that_no_script_reads() -> None:
    access = Access(TOKEN)
    answer = ask("/question", query="token=se%3Bcret+%22%2B%26/%25+1&id=a%26b&source=2", access=access)
    assert (answer.status, answer.headers["location"]) == (303, "/question?id=a%26b&source=2")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=lax" in answer.headers["set-cookie"]
    assert ask(access=access, cookie=cookie_of(answer)).status == 200
    assert ask(token=TOKEN, cookie=cookie_of(answer)).status == 401  # another process: sign in again


def test_cookies_of_other_programs_on_this_machine_do_not_sign_one_out() -> None:
    access = Access(TOKEN)
    mine = cookie_of(
        Answer(0, {"set-cookie": signed_in("/", access.session, {"headers": []}).headers["set-cookie"]}, "")
    )
    assert ask(access=access, cookie=f'theirs={{"a": [1, "b"]}}; odd one=x, y; {mine}').status == 200


def test_a_wrong_token_in_the_address_is_refused_and_a_right_one_does_not_write() -> None:
    assert ask(query="token=wrong", token=TOKEN).status == 401
    assert ask(query=f"token={TOKEN}", method="POST", token="12345678").status == 401
    assert ask(query="token=12345678", method="POST", token="12345678").status == 401


@pytest.mark.parametrize("path", ["/static/style.css", "/health", "/sign-in"])
def test_what_is_open_needs_no_token(path: str) -> None:
    assert ask(path, token=TOKEN).status == 200


@given(st.text(max_size=12), st.text(max_size=12))
@example("/evil.example", "")
@example("\\evil.example", "")
@example("\\/evil.example", "")
@example("//", "")
@example("\t/evil.example", "")
def test_wherever_one_signs_in_one_stays(path: str, query: str) -> None:
    asked = query.replace("&", "").replace("=", "").replace("%", "")
    answer = ask(f"/{path}", query=f"x={asked}&token=12345678", token="12345678")
    assert answer.status == 303
    assert _is_here(answer.headers["location"])


def _is_here(location: str) -> bool:
    """Tell whether a browser stays: it takes \\ for / and does not see ends of lines and tabs."""
    seen = location.replace("\\", "/").translate({9: None, 10: None, 13: None})
    return seen.startswith("/") and not seen.startswith("//") and not urlsplit(seen).netloc


def test_the_way_back_names_the_same_page() -> None:
    answer = ask("/questions/50% of ü?", query="token=12345678", token="12345678")
    assert answer.headers["location"] == "/questions/50%25%20of%20%C3%BC%3F"


@pytest.mark.parametrize(
    ("parts", "headers", "status"),
    [
        ([b"x" * 10], {"content_length": "10"}, 200),
        ([b"x" * 11], {"content_length": "11"}, 413),
        ([b"x" * 5, b"x" * 5], {}, 200),
        ([b"x" * 5, b"x" * 6], {}, 413),
        ([b"x"] * 10, {"content_length": "2"}, 200),
        ([b"x"] * 11, {"content_length": "2"}, 413),
        ([b""], {"content_length": "9" * 5000}, 413),
        ([b""], {"content_length": "-1"}, 200),
        ([b""], {"content_length": "\xb2"}, 200),
    ],
)
def test_the_body_limit_holds_whatever_length_is_told(parts: list[bytes], headers: dict[str, str], status: int) -> None:
    answer = ask(method="POST", parts=parts, **headers)
    assert answer.status == status
    assert answer.body == str(sum(map(len, parts))) if status == 200 else "larger than the 10 bytes" in answer.body


def test_what_is_too_large_is_not_read_to_its_end() -> None:
    parts = [b"x" * 11, b"x" * READ_ON]
    assert ask(method="POST", parts=parts, is_whole=False).status == 413  # to ask for more would fail


def test_who_needs_no_token_may_send_little() -> None:
    limits = Limits(body=10_000)
    assert ask("/sign-in", method="POST", parts=[b"x" * 4096], limits=limits).status != 413
    assert ask("/sign-in", method="POST", parts=[b"x" * 4097], limits=limits).status == 413
    assert ask(method="POST", parts=[b"x" * 4097], limits=limits).status == 200


def test_a_strangers_body_comes_soon_or_not_at_all() -> None:
    limits = Limits(strangers_seconds=0.01)
    answer = ask("/sign-in", method="POST", never_comes=True, limits=limits)
    assert (answer.status, "within 0.01 seconds" in answer.body) == (408, True)


@pytest.mark.parametrize("headers", [{"content_length": "1"}, {"transfer_encoding": "chunked"}])
def test_what_only_reads_has_no_body(headers: dict[str, str]) -> None:
    assert ask(method="GET", never_comes=True, **headers).status == 400
    assert ask(method="GET", content_length="0").status == 200


def test_what_takes_too_long_is_given_up() -> None:
    answer = ask("/slow", limits=Limits(seconds=0.01))
    assert answer.status == 503
    assert "longer than the 0.01 seconds" in answer.body
    assert answer.headers.keys() >= HEADERS


@pytest.mark.parametrize(("has_body", "message"), [(False, b"0.01 seconds"), (True, b"being stopped")])
def test_a_body_that_never_comes_and_a_server_that_stops(has_body: bool, message: bytes) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.sleep(0 if has_body else 60)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/slow",
            "query_string": b"",
            "headers": [(b"host", b"[::1]")],
        }
        waiting = asyncio.create_task(Guard(app, None, Limits(seconds=60 if has_body else 0.01))(scope, receive, send))
        await asyncio.sleep(0)
        if has_body:
            waiting.cancel()
        await waiting

    asyncio.run(run())
    assert sent[0]["status"] == 503
    assert message in sent[1]["body"]


def test_a_fault_of_the_server_is_told_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    for accept in ("application/json", "text/html"):
        answer = ask("/broken", accept=accept)
        assert answer.status == 500
        assert "server error" in answer.body
        assert "secret" not in answer.body
        assert answer.headers.keys() >= HEADERS
    assert "this is <secret>" in caplog.text


def test_a_fault_after_the_answer_has_begun_ends_it() -> None:
    with pytest.raises(RuntimeError, match="too late"):
        ask("/half")


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"path": "/broken"},
        {"host": "evil.example"},
        {"method": "POST", "origin": "http://evil.example"},
        {"token": TOKEN},
        {"method": "POST", "content_length": "11"},
    ],
)
def test_every_answer_has_the_headers(asked: dict[str, str]) -> None:
    headers = ask(**asked).headers  # type: ignore[arg-type]
    assert headers.keys() >= HEADERS
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["cache-control"] == ("max-age=9" if asked == {} else "no-store")


def test_what_is_no_request_goes_through() -> None:
    seen: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    asyncio.run(Guard(inner, Access(TOKEN), Limits())({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]


def test_a_long_answer_is_given_time_for_every_part_of_it() -> None:
    assert ask("/stream", limits=Limits(seconds=0.5)).body == "x" * 10
    with pytest.raises(TimeoutError):  # so that uvicorn cuts the connection, as the answer has begun
        ask("/stuck", limits=Limits(seconds=0.1))


def test_the_cookie_goes_out_over_tls_alone_if_it_came_so() -> None:
    def cookie(**headers: str) -> str:
        return ask(query="token=12345678", token="12345678", **headers).headers["set-cookie"]

    assert "Secure" not in cookie()
    assert "Secure" in cookie(x_forwarded_proto="https")
    assert "Secure" in cookie(x_forwarded_proto="https, http")
