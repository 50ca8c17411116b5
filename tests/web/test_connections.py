"""Connections on which nothing comes: they are closed, and keep nobody out."""

import asyncio
from collections.abc import Awaitable, Callable
from socket import socket

import uvicorn
from starlette.responses import PlainTextResponse
from tests.web.models import HANG_S

from rechain.web.guard import MOST_HEAD, PATIENCE_S, Connection

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def serve(talk: Callable[[Callable[[], Awaitable[Streams]]], Awaitable[None]], **settings: float) -> None:
    """Run a server whose connections have some settings, and talk with it."""
    kind = type("Hasty", (Connection,), settings)
    config = uvicorn.Config(PlainTextResponse("well"), http=kind, log_level="critical", lifespan="off")

    async def run() -> None:
        with socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            await talk(lambda: asyncio.open_connection(*listening.getsockname()))
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


def test_an_endless_head_is_refused() -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await connect()
        writer.write(b"GET /" + b"a" * MOST_HEAD)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400") and b"too long" in answer

    serve(talk)
