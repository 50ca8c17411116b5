"""Pages drawn in other processes: the same pages, of what is there now, and still pages when a process dies."""

import asyncio
import os
import signal
from collections.abc import Callable
from multiprocessing import active_children
from typing import Any
from urllib.parse import urlencode

import pytest

from rechain.schema import Recovered
from rechain.web.contents import GoneError, NotThereError
from rechain.web.explorer import (
    ComparisonQuery,
    ListQuery,
    QuestionQuery,
    draw_compared_question,
    draw_comparison,
    draw_list,
    draw_question,
)
from rechain.web.index import Index
from rechain.web.site import Site

Make = Callable[..., Any]
_PATIENCE_S = 100
"""seconds that only keep a test from hanging: a busy machine may take long"""
PAGES: list[tuple[Callable[..., str | None], Any]] = [
    (draw_list, ListQuery()),
    (draw_list, ListQuery(text="opera", order="question")),
    (draw_question, QuestionQuery(id="town-0")),
    (draw_question, QuestionQuery(id="town-0", number=2, passages="all")),
    (draw_comparison, ComparisonQuery()),
    (draw_compared_question, ComparisonQuery(id="town-0")),
]


@pytest.fixture
def compared_site(town_site: Site) -> Site:
    town_site.add_file("again.jsonl", [town_site.index.recovered(0, place) for place in range(3)])
    return town_site


def with_processes(site: Site, work: Callable[[], Any], number: int = 1) -> Any:
    """Do something while processes draw the pages of a site."""

    async def run() -> Any:
        await site.drawers.start(number)
        try:
            return await asyncio.wait_for(work(), _PATIENCE_S)
        finally:
            site.drawers.close()
            await asyncio.gather(*site.drawers._starting)  # which end what they started

    try:
        return asyncio.run(run())
    finally:
        for process in drawing():
            process.join()


def test_pages_of_a_process_are_those_of_this_one(compared_site: Site) -> None:
    async def draw_all() -> list[bytes]:
        return [await compared_site.drawers.draw("", draw, query) for draw, query in PAGES]

    here = [(draw(compared_site, query) or "").encode() for draw, query in PAGES]
    assert asyncio.run(draw_all()) == here  # in threads, as no process is started
    assert with_processes(compared_site, draw_all) == here


def test_many_are_drawn_at_once_and_each_gets_its_own(town_site: Site) -> None:
    names = [f"town-{number % 6}" for number in range(60)]

    async def draw_all() -> list[bytes]:
        return await asyncio.gather(
            *(town_site.drawers.draw(name, draw_question, QuestionQuery(id=name)) for name in names)
        )

    pages = with_processes(town_site, draw_all, number=2)
    assert pages == [(draw_question(town_site, QuestionQuery(id=name)) or "").encode() for name in names]


def test_what_was_stored_a_moment_ago_is_shown(town_site: Site) -> None:
    town_site.add_file("later.jsonl", [])
    wanted = ListQuery(source=2, has_chain=True)

    async def draw_twice() -> tuple[bytes, bytes]:
        before = await town_site.drawers.draw("", draw_list, wanted)
        recovered = town_site.index.recovered(0, 4)
        assert isinstance(recovered, Recovered)
        town_site.index.store(1, [(town_site.index.at(4), recovered)])
        return before, await town_site.drawers.draw("", draw_list, wanted)

    before, after = with_processes(town_site, draw_twice)
    address = urlencode({"id": "town-4"}).encode()
    assert address not in before
    assert address in after


def test_errors_come_back_as_they_are(town_site: Site) -> None:
    async def draw() -> None:
        with pytest.raises(NotThereError, match="no question 'none'"):
            await town_site.drawers.draw("town-1", draw_question, QuestionQuery(id="none"))
        assert b"town-0" in await town_site.drawers.draw("town-1", draw_question, QuestionQuery(id="town-0"))

    with_processes(town_site, draw)


def test_who_goes_away_takes_no_line_with_him(town_site: Site) -> None:
    async def leave_early() -> list[bytes]:
        wanted = [QuestionQuery(id=f"town-{number % 6}") for number in range(40)]
        all_of_them = [asyncio.ensure_future(town_site.drawers.draw(one.id, draw_question, one)) for one in wanted]
        for leaver in all_of_them[::2]:
            await asyncio.sleep(0.001)
            leaver.cancel()
        await asyncio.gather(*all_of_them, return_exceptions=True)
        assert len(town_site.drawers._idle) == len(town_site.drawers._lines)
        return [one.result() for one in all_of_them[1::2]]

    pages = with_processes(town_site, leave_early)
    assert all(f"town-{number % 6}".encode() in page for number, page in zip(range(1, 40, 2), pages, strict=True))


def test_nobody_is_passed_over_for_ever(town_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose subject the free process knows come first, but not always."""
    order, drawers = list[int](), town_site.drawers
    ask = drawers._ask

    def watched(line: Any, request: Any) -> Any:
        order.append(request[2][0].number - 1)
        return ask(line, request)

    monkeypatch.setattr(drawers, "_ask", watched)

    async def draw_all() -> None:
        wanted = [QuestionQuery(id=f"town-{number % 6}", number=number + 1) for number in range(300)]
        await asyncio.gather(*(drawers.draw(one.id, draw_question, one) for one in wanted))

    with_processes(town_site, draw_all, number=2)
    assert sorted(order) == list(range(300))
    assert max(turn - place for turn, place in enumerate(order)) <= 8


def test_pages_are_drawn_here_when_all_processes_have_died(town_site: Site, caplog: pytest.LogCaptureFixture) -> None:
    async def kill_and_draw() -> list[bytes]:
        (process,) = drawing()
        process.kill()
        wanted = (QuestionQuery(id=f"town-{number}") for number in range(6))
        return await asyncio.gather(*(town_site.drawers.draw(query.id, draw_question, query) for query in wanted))

    pages = with_processes(town_site, kill_and_draw)
    assert [f"town-{number}".encode() in page for number, page in enumerate(pages)] == [True] * 6
    assert "has died" in caplog.text


def drawing() -> list[Any]:
    return [one for one in active_children() if one.name == "drawing"]


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="holds a process by a signal")
def test_who_goes_away_as_a_process_dies_is_not_waited_for(town_site: Site) -> None:
    async def leave_and_kill() -> list[Any]:
        (process,) = drawing()
        os.kill(process.pid, signal.SIGSTOP)
        wanted = (QuestionQuery(id=f"town-{number}") for number in range(4))
        tasks = [asyncio.ensure_future(town_site.drawers.draw(one.id, draw_question, one)) for one in wanted]
        await asyncio.sleep(0)
        leaver, stayer = town_site.drawers._waiting
        leaver.line.cancel()
        process.kill()
        pages = await asyncio.gather(*tasks, return_exceptions=True)
        assert stayer.line.done()
        return pages

    *pages, leaver, stayer = with_processes(town_site, leave_and_kill)
    assert isinstance(leaver, asyncio.CancelledError)
    assert all(isinstance(page, bytes) for page in (*pages, stayer))


def test_a_process_that_died_is_replaced_three_times_at_most(town_site: Site, caplog: pytest.LogCaptureFixture) -> None:
    query, drawers = QuestionQuery(id="town-0"), town_site.drawers

    async def kill_often() -> list[int]:
        lines = []
        for _ in range(4):
            for process in drawing():
                process.kill()
            await asyncio.gather(*(drawers.draw(query.id, draw_question, query) for _ in range(3)))
            await asyncio.gather(*drawers._starting)
            lines.append(len(drawers._lines))
        return lines

    assert with_processes(town_site, kill_often) == [2, 2, 2, 0]
    assert caplog.text.count("has died") == 4


class Fatal:
    """Ends the process in which it is unpickled."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


def test_a_page_over_which_two_processes_died_is_an_error(town_site: Site) -> None:
    async def draw() -> bytes:
        with pytest.raises(RuntimeError, match="2 processes have died over the same page"):
            await town_site.drawers.draw("", draw_question, Fatal())  # type: ignore[arg-type]
        query = QuestionQuery(id="town-0")
        return await town_site.drawers.draw(query.id, draw_question, query)

    assert b"town-0" in with_processes(town_site, draw, number=2)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="holds a process by a signal")
def test_who_waits_when_the_server_ends_gets_no_page(town_site: Site, caplog: pytest.LogCaptureFixture) -> None:
    async def close() -> list[Any]:
        (process,) = drawing()
        os.kill(process.pid, signal.SIGSTOP)
        wanted = (QuestionQuery(id=f"town-{number}") for number in range(4))
        tasks = [asyncio.ensure_future(town_site.drawers.draw(one.id, draw_question, one)) for one in wanted]
        await asyncio.sleep(0.01)
        town_site.drawers.close()
        process.kill()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(one) for one in with_processes(town_site, close)] == [GoneError] * 4
    assert "has died" not in caplog.text


def test_a_question_that_a_model_has_yet_to_look_at_is_waited_for(
    make_site: Make, towns: Make, batch_fake: Any
) -> None:
    site = make_site(towns(2))
    site.add_model("fake", batch_fake)
    query = QuestionQuery(id="town-0", source=2)
    assert draw_question(site, query, waits=True) is None
    assert "The model is looking for the chain" in (draw_question(site, query) or "")


def test_a_reader_in_another_process_does_not_remove_the_database() -> None:
    index = Index()
    function, arguments = index.__reduce__()
    reader = function(*arguments)
    assert len(reader) == 0
    del reader
    assert len(index) == 0
