"""What is served: chains of files and of models, which look when they are asked and when nobody asks."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient
from starlette.types import Message
from tests.web.models import HANG_S, Held

from rechain.errors import QuestionError
from rechain.formats.datasets import Entry, read_entries
from rechain.recoverer import Recoverer
from rechain.schema import Question, Recovered
from rechain.scoring.results import Options
from rechain.web.app import create_app
from rechain.web.guard import Limits
from rechain.web.site import Site

Make = Callable[..., Any]


def test_chains_of_questions_that_are_not_there_are_counted(town_site: Site) -> None:
    found = [Recovered(id=name, chains=[]) for name in ("town-1", "none", None)]
    assert town_site.add_file("other.jsonl", found) == 2
    assert town_site.index.count_found(1) == 1
    assert [source.name for source in town_site.sources] == ["lexical.jsonl", "other.jsonl"]


def test_a_model_looks_when_it_is_asked_and_remembers(town_site: Site, batch_fake: Any) -> None:
    model = batch_fake()
    service = town_site.add_model("fake", lambda: Recoverer(model))
    service._idle = None  # nothing but what is asked for
    source, stored = town_site.source(2), town_site.question("town-3")
    for _ in range(2):
        recovered = asyncio.run(town_site.chains_of(source, stored))
        assert recovered is not None
        assert recovered.id == "town-3"
        assert len(recovered) > 1
        assert recovered.chains[0].why == {"place": 0.0}
    assert model.batches == [["town-3"]]


def test_a_file_does_not_look(town_site: Site) -> None:
    town_site.add_file("empty.jsonl", [])
    assert asyncio.run(town_site.chains_of(town_site.source(2), town_site.question("town-3"))) is None


def test_a_model_goes_through_all_questions_by_itself(make_site: Make, towns: Make, batch_fake: Any) -> None:
    model = batch_fake(refuses=["town-4"])
    site = make_site([*towns(20), QuestionError("bad_field", "odd.")])
    done = Event()
    site.add_model("fake", lambda: Recoverer(model))
    filler = site.service_of(site.source(2))._idle

    def watched(recoverer: Recoverer) -> bool:
        is_more: bool = filler(recoverer)
        if not is_more:
            done.set()
        return is_more

    site.service_of(site.source(2))._idle = watched
    site.start()
    assert done.wait(HANG_S)
    assert site.index.count_found(1) == 21
    assert site.index.recovered(1, 4).error.message == "the model refuses town-4"
    assert site.index.recovered(1, 20).error.message == "odd."
    assert site.index.missing(1, 0, 9) == []


def test_a_question_over_which_a_model_breaks_leaves_the_others_their_chains(
    make_site: Make, towns: Make, caplog: pytest.LogCaptureFixture
) -> None:
    site = make_site(towns(20))
    service = site.add_model("broken", lambda: Recoverer(Held(breaks_over=["town-4"], may_go_on=True)))
    while service._idle(service.recover_together):
        pass
    assert [place for place in range(20) if site.index.recovered(1, place).error] == [4]
    assert site.index.recovered(1, 4).error.code == "failed"
    assert "'town-4' could not be recovered" in caplog.text


@pytest.mark.parametrize("path", ["/recover", "/try"])
@pytest.mark.parametrize("is_patient", [True, False])
def test_what_was_given_up_is_not_recovered(make_site: Make, towns: Make, path: str, is_patient: bool) -> None:
    """A patient client meets the time limit; another closes the connection."""
    model = Held()
    site, (first, second, third) = make_site(towns(3), model=model), towns(3)
    app = create_app(site, limits=Limits(seconds=0.2 if is_patient else 30))

    async def post(question: Question) -> int:
        """Ask, wait until the question is taken, and go away."""
        text = json.dumps(question.model_dump(mode="json", exclude_none=True))
        body = text.encode() if path == "/recover" else urlencode({"question": text}).encode()
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        scope |= {"raw_path": path.encode(), "root_path": "", "client": ("x", 1), "server": ("localhost", 1)}
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Message] = []

        async def receive() -> Message:
            if messages:
                return messages.pop()
            while is_patient or site.recovery.waiting < 2:
                await asyncio.sleep(0.001)
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return int(sent[0]["status"])

    held = site.recovery.ask([Entry("", first.id, first)], Options())
    assert model.has_begun.wait(HANG_S)
    assert asyncio.run(post(second)) == (503 if is_patient else 499)
    assert site.recovery.waiting == 1
    model.may_go_on.set()
    site.recovery.ask([Entry("", third.id, third)], Options()).result(HANG_S)
    assert held.done()
    assert model.batches == [["town-0"], ["town-2"]]


def test_many_who_ask_at_once_are_all_answered(make_site: Make, connect: Make, towns: Make) -> None:
    client: TestClient = connect(make_site(towns(4), most_waiting=6))
    asked = [question.model_dump(mode="json", exclude_none=True) for question in towns(3)]

    def ask(number: int) -> int:
        if number % 3:
            return client.post("/recover", json=asked[: 1 + number % 2]).status_code
        return client.get(("/", "/question?id=town-2", "/label", "/labels/export")[number % 4]).status_code

    with ThreadPoolExecutor(16) as users:
        codes = list(users.map(ask, range(90)))
    assert set(codes) <= {200, 429}
    assert codes.count(200) > 30
    assert client.post("/recover", json=asked[0]).status_code == 200


def test_a_file_with_what_is_nested_deeply_is_served_and_filled_to_its_end(
    make_site: Make, towns: Make, tmp_path: Path, connect: Make
) -> None:
    lines = [question.model_dump_json(exclude_none=True) for question in towns(12)]
    for place, depth in ((1, 90), (2, 240), (3, 300), (4, 600), (5, 5_000), (6, 100_000)):
        lines[place] = f'{lines[place][:-1]}, "extra": {"[" * depth}{"]" * depth}}}'
    (tmp_path / "nested.jsonl").write_text("\n".join(lines))
    site = make_site([])
    site.index.add((entry, None) for entry in read_entries(tmp_path / "nested.jsonl"))
    service = site.add_model("lexical", lambda: Recoverer("lexical"))
    while service._idle(service.recover_together):
        pass
    errors = [site.index.recovered(1, place).error for place in range(12)]
    assert [place for place, error in enumerate(errors) if error] == [2, 3, 4, 5, 6]
    client = connect(site)
    assert {client.get("/question", params={"id": name}).status_code for name in site.index.ids()} == {200}
    assert "nested" in client.get("/?source=2").text
