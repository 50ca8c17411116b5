"""The labelling desk: who labels, what comes next, what is asked, and where annotators differ."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from rechain.errors import QuestionError
from rechain.schema import Question
from rechain.web.desk import ANNOTATOR_COOKIE
from rechain.web.site import Site

Make = Callable[..., Any]


def start(client: TestClient, name: str, mode: str = "pairs") -> Any:
    return client.post("/label/start", data={"annotator": name, "mode": mode}, follow_redirects=False)


def units(page: Any) -> list[dict[str, Any]]:
    shown = [attributes for tag, attributes in page.elements if tag == "article" and "data-passages" in attributes]
    return [
        {
            "question": one["data-question"],
            "passages": json.loads(one["data-passages"]),
            "entities": json.loads(one["data-entities"]),
        }
        for one in shown
    ]


@pytest.mark.parametrize(
    "name", ["anna", "Ännä ☃", "a;b,c=d", '"quoted" \\', "50% / half", "<b>", "=?utf-8?q?=", "x" * 80]
)
def test_odd_names_are_kept_in_the_cookie(client: TestClient, seen: Make, name: str) -> None:
    answer = start(client, f" {name} ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/label/next?mode=pairs")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert name in seen(client.get("/label").text).attributes("input", "value")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 81, "\u202eanna", "nul\0"])
def test_what_is_no_name_is_refused(client: TestClient, name: str) -> None:
    answer = start(client, name)
    assert (answer.status_code, "set-cookie" in answer.headers) == (422, False)
    assert answer.json()["error"]["message"].startswith("an annotator's name has 1 to 80 characters")


@pytest.mark.parametrize("cookie", ["%00", "%ffa%0ab", "%E2%80%AEx", quote("x" * 81), ""])
def test_a_cookie_that_holds_no_name_is_nobody(client: TestClient, cookie: str) -> None:
    answer = client.get("/label/next", headers={"cookie": f"{ANNOTATOR_COOKIE}={cookie}"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/label")


def test_who_has_no_name_is_asked_for_it(client: TestClient) -> None:
    answer = client.get("/label/question?id=town-1", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/label")


@pytest.mark.parametrize("mode", ["pairs", "chains"])
def test_all_is_labelled_question_by_question(client: TestClient, seen: Make, mode: str) -> None:
    start(client, "anna", mode)
    questions = []
    for _ in range(20):
        answer = client.get(f"/label/next?mode={mode}")
        if "All done" in answer.text:
            break
        given = units(seen(answer.text))
        assert given
        questions.append(given[0]["question"])
        labels = [unit | {"annotator": "anna", "value": "yes"} for unit in given]
        assert client.post("/labels", json=labels).json() == len(given)
    assert questions == [f"town-{number}" for number in range(6)]
    assert "nothing left to label for anna" in seen(client.get(f"/label/next?mode={mode}").text).text


def test_the_desk_shows_what_is_asked_the_guidelines_and_what_was_said(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    page = seen(client.get("/label/question?id=town-1").text)
    assert "Does this passage describe the relation between" in page.text
    assert "Say yes." in page.text
    assert "Or <b>no</b>." in page.text
    first = units(page)[0]
    client.post(
        "/labels", json=[first | {"annotator": "anna", "value": "unsure"}, first | {"annotator": "bob", "value": "no"}]
    )
    again = seen(client.get("/label/question?id=town-1").text)
    assert again.attributes("article", "data-value")[0] == "unsure"
    assert again.attributes("button", "aria-pressed").count("true") == 1
    assert (
        "Does this chain lead from the question to its answer"
        in client.get("/label/question?id=town-1&mode=chains").text
    )


def test_progress_agreement_and_disagreements_are_shown_and_settled(client: TestClient, seen: Make) -> None:
    assert "Nobody has labelled anything yet." in client.get("/label").text
    start(client, "anna")
    one, two = units(seen(client.get("/label/question?id=town-1").text))[:2]
    labels = [unit | {"annotator": "anna", "value": "yes", "note": "so <it> is"} for unit in (one, two)]
    labels += [one | {"annotator": "bob", "value": "no"}, two | {"annotator": "bob", "value": "yes"}]
    client.post("/labels", json=labels)
    overview = seen(client.get("/label").text)
    assert "anna, bob pairs 2 50 %" in overview.text
    assert "1 of 1 disagreement to settle" in overview.text
    differing = seen(client.get("/label/disagreements").text)
    assert units(differing) == [one]
    assert "anna: yes — so <it> is" in differing.text
    client.post("/labels", json=[one | {"annotator": "anna", "value": "no", "settles": True}])
    assert "0 of 1 disagreement to settle" in seen(client.get("/label").text).text


def test_questions_that_were_not_begun_are_given_back(client: TestClient, town_site: Site) -> None:
    start(client, "anna")
    town_site.labels.claim("town-5", "anna")
    assert client.post("/label/release", follow_redirects=False).headers["location"] == "/label"
    assert town_site.labels.claims() == {}


def test_mistakes_at_the_desk(make_site: Make, connect: Make, bridge_question: Question) -> None:
    unlinked = bridge_question.model_copy(update={"answer": "Nowhere"})
    client = connect(make_site([unlinked, QuestionError("bad_field", "hops is odd.")]))
    start(client, "anna")
    assert "there is nothing to label" in client.get("/label/question?id=q1").text
    assert "All done" in client.get("/label/next").text
    for path, status, message in (
        ("/label/question?id=none", 404, "there is no question 'none'."),
        ("/label/question?id=bad-1", 404, "the question 'bad-1' cannot be read: hops is odd."),
        ("/label/question?id=q1&mode=x", 422, "mode should be one of pairs, chains, not 'x'."),
        ("/label/next?mode=x", 422, "mode should be one of pairs, chains, not 'x'."),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)
