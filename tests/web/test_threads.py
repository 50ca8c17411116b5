"""What one request may take from others: nothing but its turn."""

import asyncio
from collections.abc import Callable, Iterator
from functools import wraps
from threading import Event
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient, Response
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from tests.web.models import HANG_S

from rechain.schema import Recovered
from rechain.web import responses
from rechain.web.app import create_app
from rechain.web.responses import iterate_long, run_long
from rechain.web.site import Site

PATHS = (
    "/",
    "/?text=opera",
    "/question?id=town-0",
    "/question?id=town-0&chain=2",
    "/try",
    "/compare",
    "/compare/question?id=town-0",
    "/label",
    "/label?question=town-0",
    "/label/question?id=town-0",
    "/label/next",
    "/label/disagreements",
    "/questions",
    "/questions/town-0",
    "/labels?question=town-0",
    "/labels/export",
    "/labels/agreement",
)
"""pages and records that read a database or draw"""
PASTED = {
    "question": "Where was Anna born?",
    "answer": "Prague",
    "passages": "Anna is here.\n\nAnna was born in Prague.",
}


def in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def before(action: Callable[[], object], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does something first."""

    @wraps(function)
    def both(*args: object, **options: object) -> Any:
        action()
        return function(*args, **options)

    return both


def watch(site: Site, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Do something before every query and before every page is drawn."""
    database = site.labels._database
    for place, name in ((site.index, "_read"), (site.index, "_transaction"), (database, "rows")):
        monkeypatch.setattr(place, name, before(action, getattr(place, name)))
    monkeypatch.setattr(responses, "_templates", before(action, responses._templates))


@pytest.fixture
def compared_site(town_site: Site) -> Site:
    """A site with a second source, which has found nothing."""
    town_site.add_file("none.jsonl", [Recovered(id=name, chains=[]) for name in town_site.index.ids()])
    return town_site


def test_nothing_is_read_or_drawn_in_the_event_loop(compared_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    in_loop = list[bool]()
    watch(compared_site, monkeypatch, lambda: in_loop.append(in_event_loop()))
    client = TestClient(create_app(compared_site), base_url="http://127.0.0.1:8000")
    client.cookies.set("rechain_annotator", "anna")
    for path in PATHS:
        in_loop.clear()
        assert client.get(path, headers={"accept": "text/html"}).status_code == 200, path
        assert in_loop, f"{path} reads and draws nothing"
        assert not any(in_loop), path
    in_loop.clear()
    assert client.post("/try", data=PASTED).status_code == 200
    assert in_loop and not any(in_loop)


def client_of(app: ASGIApp) -> AsyncClient:
    return AsyncClient(transport=ASGITransport(app=app), base_url="http://127.0.0.1:8000")


@pytest.mark.parametrize(
    "path", ["/", "/question?id=town-0", "/questions", "/questions/town-0", "/label", "/labels/export"]
)
def test_health_is_answered_while_others_hang(town_site: Site, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    has_begun, may_end = Event(), Event()

    def hang() -> None:
        has_begun.set()
        assert may_end.wait(HANG_S)

    watch(town_site, monkeypatch, hang)

    async def ask() -> list[int]:
        async with client_of(create_app(town_site)) as client:
            others = [asyncio.create_task(client.get(path)) for _ in range(20)]
            assert await asyncio.to_thread(has_begun.wait, HANG_S)
            health = await client.get("/health")
            may_end.set()
            answers: list[Response] = await asyncio.gather(*others)
            return [health.status_code, *(answer.status_code for answer in answers)]

    assert asyncio.run(ask()) == [200] * 21


def test_pages_do_not_wait_for_long_work(town_site: Site) -> None:
    has_begun, may_end = Event(), Event()

    def export() -> str:
        has_begun.set()
        assert may_end.wait(HANG_S)
        return "done"

    async def ask() -> tuple[int, str]:
        async with client_of(create_app(town_site)) as client:
            exports = [asyncio.create_task(run_long(export)) for _ in range(100)]
            assert await asyncio.to_thread(has_begun.wait, HANG_S)
            page = await client.get("/")
            may_end.set()
            return page.status_code, (await asyncio.gather(*exports))[-1]

    assert asyncio.run(ask()) == (200, "done")


def test_long_answers_come_in_parts_none_of_which_is_made_in_the_loop() -> None:
    def parts() -> Iterator[bytes]:
        for number in range(3):
            assert not in_event_loop()
            yield str(number).encode()

    async def read() -> list[bytes]:
        return [part async for part in iterate_long(parts())]

    assert asyncio.run(read()) == [b"0", b"1", b"2"]
