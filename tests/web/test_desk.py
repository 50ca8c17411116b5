"""The labelling desk: who labels, what comes next, what is asked, and where annotators differ."""

import json
from collections.abc import Callable
from itertools import groupby
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from rechain.candidates.units import Unit
from rechain.errors import QuestionError
from rechain.labels.store import Label
from rechain.schema import Mention, Question
from rechain.text.identifiers import find_identifiers
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
    assert (answer.status_code, answer.headers["location"]) == (303, "/label?question=town-1&mode=pairs")


def test_who_says_a_name_comes_to_the_question_that_was_asked_for(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/label/question?id=town-3&mode=chains").text)
    fields = [attributes for tag, attributes in page.elements if tag == "input"]
    assert [one["value"] for one in fields if "checked" in one] == ["chains"]
    assert [one["value"] for one in fields if one.get("name") == "question"] == ["town-3"]
    form = {"annotator": "anna", "mode": "chains", "question": "town-3"}
    answer = client.post("/label/start", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/label/question?id=town-3&mode=chains"


@pytest.mark.parametrize(
    ("after", "found"), [("town-1", "town-2"), ("town-5", "town-0"), ("town-4", "town-5"), ("none", "town-0")]
)
def test_what_comes_next_is_behind_what_was_skipped(client: TestClient, after: str, found: str) -> None:
    start(client, "anna")
    answer = client.get(f"/label/next?mode=pairs&after={after}", follow_redirects=False)
    assert answer.headers["location"] == f"/label/question?id={found}&mode=pairs"


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
    assert "Does this passage lead from the question to" in page.text
    assert "as the answer, by way of" in page.text
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
    assert "too few questions for an interval" in overview.text
    assert "To settle, where annotators differ or are unsure: 1 of 1" in overview.text
    differing = seen(client.get("/label/disagreements").text)
    assert units(differing) == [one]
    assert "anna: yes — so <it> is" in differing.text
    client.post("/labels", json=[one | {"annotator": "anna", "value": "no", "settles": True}])
    assert "differ or are unsure: 0 of 1" in seen(client.get("/label").text).text
    assert "settled by anna: no" in seen(client.get("/label/disagreements").text).text


def test_what_one_alone_is_unsure_of_is_settled(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    one = units(seen(client.get("/label/question?id=town-1").text))[0]
    for said, told in (("unsure", "1 of 1"), ("yes", "0 of 1")):
        client.post("/labels", json=[one | {"annotator": "anna", "value": "unsure", "note": "who <knows>"}])
        client.post("/labels", json=[one | {"annotator": "bob", "value": said, "settles": True, "note": "mine"}])
        page = seen(client.get("/label/disagreements").text)
        assert f"{told} wait to be settled." in page.text
        assert units(page) == [one]
        assert page.attributes("article", "data-value") == [said]
    assert "who <knows>" in seen(client.get("/label/question?id=town-1").text).text
    assert client.get("/label/disagreements").text.count("mine") == 1  # said of all, but no note of anna's own


def test_labels_of_questions_that_are_not_served_do_not_count(client: TestClient, town_site: Site, seen: Make) -> None:
    others = [Unit(question=f"gone-{n}", passages=("1",), entities=("a", "b")) for n in range(120)]
    given = [(name, unit, value) for unit in others for name, value in (("anna", "yes"), ("bob", "no"))]
    town_site.labels.add([Label.model_validate({"annotator": a, "unit": u, "value": v}) for a, u, v in given])
    start(client, "anna")
    one = units(seen(client.get("/label/question?id=town-1").text))[0]
    client.post(
        "/labels", json=[one | {"annotator": name, "value": value} for name, value in (("a", "yes"), ("b", "no"))]
    )
    assert units(seen(client.get("/label/disagreements").text)) == [one]
    overview = seen(client.get("/label").text)
    assert "differ or are unsure: 1 of 1" in overview.text
    assert "a, b pairs 1 0 %" in overview.text
    assert "anna, bob" not in overview.text


def test_the_units_of_a_passage_stand_together_and_tell_their_chains(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    page = seen(client.get("/label/question?id=town-0").text)
    passages = [unit["passages"][0] for unit in units(page)]
    assert len(passages) > len(set(passages)) > 1
    assert [name for name, _ in groupby(passages)] == list(dict.fromkeys(passages))
    chains = [json.loads(told or "") for told in page.attributes("article", "data-chains")]
    assert len(chains) == len(passages)
    assert all(chains)


def places(text: str) -> list[tuple[str, int, int]]:
    """Return where database identifiers stand in a text."""
    return [(entity, start, end) for entity, spans in find_identifiers(text).items() for start, end in spans]


def test_entities_of_the_data_are_shown_as_they_stand_in_the_passage(
    make_site: Make, connect: Make, seen: Make, medhop: Question
) -> None:
    passages = [
        one.model_copy(update={"mentions": [Mention(entity=e, start=s, end=t) for e, s, t in places(one.text)]})
        for one in medhop.passages
    ]
    first = passages[0].model_copy(update={"text": passages[0].text.replace("DB00001", "Aspirin")})
    client = connect(make_site([medhop.model_copy(update={"passages": [first, *passages[1:]]})]))
    start(client, "anna")
    page = seen(client.get("/label/question?id=MH_1").text)
    relation = "Does this passage describe the relation between Aspirin (drug:DB00001) and protein:P12345?"
    assert f"Passage 0: {relation}" in page.text
    assert "Does this passage give drug:DB00002 as the answer, by way of protein:Q23456?" in page.text


def test_the_overview_tells_where_labels_are_and_what_the_guidelines_say(
    client: TestClient, town_site: Site, seen: Make
) -> None:
    start(client, "anna")
    page = seen(client.get("/label").text)
    path = town_site.labels.path
    assert f"Labels are kept in {path.name};" in page.text
    assert str(path.parent) not in page.text  # which is nobody's business but that of whoever runs the server
    assert "Or <b>no</b>." in page.text


def test_questions_that_were_not_begun_are_given_back(client: TestClient, town_site: Site) -> None:
    start(client, "anna")
    assert "Give back" not in client.get("/label").text
    town_site.labels.claim("town-5", "anna")
    assert "Give back" in client.get("/label").text
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
        ("/label/question?id=q1&mode=x", 422, "mode: input should be 'pairs' or 'chains'."),
        ("/label/next?mode=x", 422, "mode: input should be 'pairs' or 'chains'."),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


def test_a_message_about_the_file_of_labels_does_not_name_its_folder(client: TestClient, town_site: Site) -> None:
    (unit, *_) = town_site.units(town_site.readable(town_site.question("town-1"))).pairs
    town_site.labels.add([Label(annotator="anna", unit=unit, value="yes")])
    path = town_site.labels.path
    path.rename(path.with_suffix(".elsewhere"))
    for page in ("/label", "/labels/export"):
        answer = client.get(page)
        assert answer.status_code == 422
        assert path.name in answer.text
        assert str(path.parent) not in answer.text
