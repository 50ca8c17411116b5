"""Connections on which nothing comes: they are closed, and keep nobody out."""

import asyncio
from collections.abc import Awaitable, Callable
from socket import socket

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp
from tests.web.models import HANG_S

from rechain.web.guard import MOST_HEAD, PATIENCE_S, Access, Connection, Guard, Limits

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
WELL = PlainTextResponse("well")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def serve(
    talk: Callable[[Callable[..., Awaitable[Streams]]], Awaitable[None]],
    app: ASGIApp = WELL,
    **settings: float,
) -> None:
    """Run a server whose connections have some settings, and talk with it."""
    kind = type("Hasty", (Connection,), settings)
    config = uvicorn.Config(app, http=kind, log_level="critical", lifespan="off")

    async def run() -> None:
        with socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            await talk(lambda **options: asyncio.open_connection(*listening.getsockname(), **options))
            server.should_exit = True
            await serving

    asyncio.run(asyncio.wait_for(run(), HANG_S))


async def ask(streams: Streams, request: bytes = GET) -> bytes:
    reader, writer = streams
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    return head[9:12] + b" " + await reader.readexactly(4)


def test_idle_connections_are_closed_within_half_a_minute() -> None:
    assert PATIENCE_S <= 30

    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        silent, half, again = [await connect() for _ in range(3)]
        half[1].write(GET[:20])
        assert await ask(again) == b"200 well"
        for reader, _ in (silent, half, again):
            assert await reader.read() == b""

    serve(talk, patience=0.05)


def test_a_head_that_comes_letter_by_letter_is_waited_for_no_longer() -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await connect()
        writer.write(GET[:-2] + b"X: ")
        end = asyncio.create_task(reader.read())
        while not end.done():  # each letter within the patience, for ever
            writer.write(b"a")
            await asyncio.wait([end], timeout=0.01)
        assert isinstance(end.exception(), ConnectionResetError) or end.result() == b""

    serve(talk, patience=0.1)


def test_two_requests_at_once_are_both_answered() -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        streams = await connect()
        assert await ask(streams, GET + GET) == b"200 well"
        assert await ask(streams, b"") == b"200 well"

    serve(talk)


def test_idle_connections_shut_nobody_out() -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        idle = [await connect() for _ in range(20)]
        assert await ask(idle[-1]) == b"200 well"
        for _ in range(10):
            assert await ask(await connect()) == b"200 well"
        assert await idle[0][0].read() == b""  # the one that was idle longest had to go
        assert await ask(idle[-1]) == b"200 well"

    serve(talk, most=20)


@pytest.mark.parametrize(
    "request_",
    [
        GET[:-2] + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /?" + b"a" * 100_000 + GET[5:],
        GET[:-2] + b"X: a\r\n" * 20_000 + b"\r\n",
        GET + GET[:-2] + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
    ],
    ids=["header", "address", "headers", "second"],
)
def test_a_long_head_is_refused_also_if_it_comes_at_once(request_: bytes) -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await connect()
        writer.write(request_)
        answer = await reader.read()
        assert b"HTTP/1.1 400" in answer and b"too long" in answer

    serve(talk)


TOKEN = "a token"
HALF = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nt"
"""what locked everyone out: a stranger's request whose body never comes"""
OWN = b"Host: localhost\r\nAuthorization: Bearer a token\r\n"


def test_strangers_whose_bodies_never_come_shut_out_no_one() -> None:
    async def talk(connect: Callable[..., Awaitable[Streams]]) -> None:
        known, mine = await connect(), await connect()
        assert await ask(known, b"GET / HTTP/1.1\r\n" + OWN + b"\r\n") == b"200 well"
        mine[1].write(b"POST / HTTP/1.1\r\n" + OWN + b"Content-Length: 2\r\n\r\na")
        await asyncio.sleep(0.05)
        strangers = []
        for _ in range(60):
            strangers.append(await connect())
            strangers[-1][1].write(HALF)
        assert await ask(await connect(), b"GET / HTTP/1.1\r\n" + OWN + b"\r\n") == b"200 well"
        assert await ask(mine, b"b") == b"200 well"
        assert await ask(known, b"GET / HTTP/1.1\r\n" + OWN + b"\r\n") == b"200 well"

    serve(talk, Guard(WELL, Access(TOKEN), Limits()), most=20)


def test_the_address_with_most_connections_has_to_close_one() -> None:
    async def talk(connect: Callable[..., Awaitable[Streams]]) -> None:
        mine = await connect(local_addr=("127.0.0.2", 0))
        others = [await connect() for _ in range(60)]
        others[-1][1].write(HALF)
        assert await ask(mine) == b"200 well"

    serve(talk, most=20)


_LONG = 50_000_000
"""bytes, more than the system's buffers hold"""


def test_who_reads_no_answer_keeps_no_connection() -> None:
    async def talk(connect: Callable[..., Awaitable[Streams]]) -> None:
        deaf = [await connect() for _ in range(4)]
        for _, writer in deaf:
            writer.write(GET)
        await asyncio.sleep(0.2)
        others = [await connect() for _ in range(10)]
        others[-1][1].write(GET)
        for reader, _ in deaf:
            assert len(await reader.read()) < _LONG

    serve(talk, PlainTextResponse("a" * _LONG), most=4)


def test_an_endless_head_is_refused() -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await connect()
        writer.write(b"GET /" + b"a" * MOST_HEAD)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400") and b"too long" in answer

    serve(talk)
