"""Guessing the token is slow, whoever guesses and however; those who have shown it do not wait."""

import asyncio
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from starlette.testclient import TestClient

from rechain.web import guard as access_module
from rechain.web.app import create_app
from rechain.web.guard import Access, TooManyGuessesError
from rechain.web.site import Site

TOKEN = "the right one"


class Clock:
    """Time that passes when somebody sleeps, and at no other time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with patch.object(access_module.asyncio, "sleep", clock.sleep):
        yield clock


def knows(access: Access, claim: str, host: str = "10.0.0.1") -> bool:
    return asyncio.run(access.knows(host, claim))


def test_a_dictionary_that_holds_the_token_takes_long(clock: Clock) -> None:
    access = Access(TOKEN, clock)
    words = [*(f"word {number}" for number in range(1000)), TOKEN]
    assert [knows(access, word) for word in words] == [False] * 1000 + [True]
    assert clock.now == pytest.approx(0.2 * 990, abs=0.3)


def test_many_connections_at_once_guess_no_faster(clock: Clock) -> None:
    access = Access(TOKEN, clock)

    async def flood() -> list[bool | BaseException]:
        async def stand_still(seconds: float) -> None: ...

        with patch.object(access_module.asyncio, "sleep", stand_still):
            claims = [access.knows("10.0.0.1", f"word {number}") for number in range(2000)]
            return await asyncio.gather(*claims, access.knows("10.0.0.2", TOKEN), return_exceptions=True)

    answers = asyncio.run(flood())
    assert sum(answer is False for answer in answers) <= 10 + 26  # at once, and within five seconds
    assert isinstance(answers[-1], TooManyGuessesError)
    assert answers[-1].retry_after in (5, 6)
    clock.now += 6
    assert knows(access, TOKEN)


def test_who_has_shown_the_token_does_not_wait(clock: Clock) -> None:
    access = Access(TOKEN, clock)
    assert knows(access, TOKEN, "10.0.0.9")
    for number in range(50):
        knows(access, f"word {number}")
        began = clock.now
        assert knows(access, TOKEN, "10.0.0.9")
        assert clock.now == began
    assert access.is_session(access.session)
    assert not access.is_session(TOKEN)
    assert not access.is_session(None)


def test_a_known_host_is_no_way_to_guess_faster(clock: Clock) -> None:
    access = Access(TOKEN, clock)
    assert knows(access, TOKEN, "proxy")
    for number in range(110):
        assert not knows(access, f"word {number}", "proxy")
    assert clock.now == pytest.approx(0.2 * 100, abs=0.3)


def test_an_old_token_sent_again_and_again_keeps_nobody_waiting(clock: Clock) -> None:
    access = Access(TOKEN, clock)
    assert not any(knows(access, "the old one") for _ in range(1000))
    assert knows(access, TOKEN, "10.0.0.2")
    assert clock.now == 0


def test_what_is_remembered_is_bounded(clock: Clock) -> None:
    access = Access(TOKEN, clock)
    for number in range(3000):
        clock.now += 1
        knows(access, TOKEN, f"host {number}")
        knows(access, f"word {number}", f"host {number}")
    assert max(len(value) for value in vars(access).values() if isinstance(value, dict)) == 1000


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client, word: client.post("/sign-in", data={"token": word}),
        lambda client, word: client.get("/", params={"token": word}),
        lambda client, word: client.get("/questions", headers={"Authorization": f"Bearer {word}"}),
    ],
    ids=["form", "address", "bearer"],
)
def test_every_way_in_is_as_slow(request_of, town_site: Site, connect, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(access_module, "_LONGEST_WAIT", 0.0)
    client: TestClient = connect(town_site, token=TOKEN)
    signed_in: TestClient = connect(town_site, token=TOKEN)
    signed_in.app = client.app
    assert signed_in.post("/sign-in", data={"token": TOKEN, "wanted": "/questions"}).status_code == 200
    answers = [request_of(client, f"word {number}") for number in range(40)]
    assert {answer.status_code for answer in answers} == {401, 429}
    assert answers[0].status_code == 401
    refused = [answer for answer in answers if answer.status_code == 429]
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert refused[0].json()["error"]["code"] == "too_many_guesses"
    assert signed_in.get("/questions").status_code == 200


PAGES = {
    "/question?id=a+b&chain=2": "/question?id=a+b&chain=2",
    "/questions/50%25%20of%20%C3%BC": "/questions/50%25%20of%20%C3%BC",
    "/?text=x&token=wrong-token": "/?text=x",
    "//evil.example/x": "/evil.example/x",
}
"""pages that somebody wants, and where one comes by signing in"""


@pytest.mark.parametrize(("wanted", "comes_to"), PAGES.items())
def test_after_a_wrong_token_the_right_one_leads_to_the_page_that_was_wanted(
    town_site: Site, connect: Any, seen: Any, wanted: str, comes_to: str
) -> None:
    client: TestClient = connect(town_site, token=TOKEN, headers={"accept": "text/html"}, follow_redirects=False)
    page = client.get(f"http://127.0.0.1:8000{wanted}")
    for token in ("wrong", "wrong again", TOKEN):
        assert page.status_code == 401
        fields = dict(zip(*(seen(page.text).attributes("input", name) for name in ("name", "value")), strict=False))
        page = client.post("/sign-in", data={"wanted": fields["wanted"], "token": token})
    assert (page.status_code, page.headers["location"]) == (303, comes_to)


def test_what_was_sent_without_a_token_is_not_led_to(town_site: Site, connect: Any, seen: Any) -> None:
    client: TestClient = connect(town_site, token=TOKEN)
    page = client.post("/label/release", headers={"accept": "text/html"})
    assert "/" in seen(page.text).attributes("input", "value")


def test_annotators_are_renamed_and_removed_with_the_administrators_token_alone(town_site: Site) -> None:
    app = create_app(town_site, token=TOKEN, administrator="the other one")
    for token, status in ((TOKEN, 403), ("the other one", 303)):
        town_site.labels.claim("town-0", "eve")
        browser = TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False)
        assert browser.post("/sign-in", data={"token": token}).status_code == 303
        assert browser.get("/questions").status_code == 200
        program = TestClient(app, base_url="http://127.0.0.1:8000", headers={"Authorization": f"Bearer {token}"})
        for client in (browser, program):
            renamed = client.post("/label/annotator/rename", data={"annotator": "eve", "name": "Eve"})
            assert renamed.status_code == status or renamed.history[0].status_code == status
            removed = client.post("/label/annotator/remove", data={"annotator": "Eve", "sure": "yes"})
            assert removed.status_code == status or removed.history[0].status_code == status
            town_site.labels.claim("town-0", "eve")
