"""The labelling desk: who labels, what comes next, what is asked, and where annotators differ."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from rechain.errors import QuestionError
from rechain.labels.store import Label
from rechain.schema import Mention, Question
from rechain.text.label_units import Unit
from rechain.text.passage_views import find_identifiers
from rechain.web.desk import ANNOTATOR_COOKIE
from rechain.web.question_index import PAGE_SIZE
from rechain.web.site import Site

Make = Callable[..., Any]


def start(client: TestClient, name: str, mode: str = "answers") -> Any:
    return client.post("/label/start", data={"annotator": name, "mode": mode}, follow_redirects=False)


def answer(question: str, annotator: str, value: str, *passages: str, **others: Any) -> dict[str, Any]:
    evidence = [{"shape": "chain" if len(passages) > 1 else "single", "passages": list(passages)}] if passages else []
    return {"annotator": annotator, "question": question, "value": value, "evidence": evidence, **others}


def desk(page: Any) -> dict[str, str]:
    return next(attributes for _, attributes in page.elements if attributes.get("class") == "desk")


@pytest.mark.parametrize(
    "name", ["anna", "Ännä ☃", "a;b,c=d", '"quoted" \\', "50% / half", "<b>", "=?utf-8?q?=", "x" * 80]
)
def test_odd_names_are_kept_in_the_cookie(client: TestClient, seen: Make, name: str) -> None:
    answer = start(client, f" {name} ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/label/next")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert name in seen(client.get("/label").text).attributes("input", "value")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 81, "\u202eanna", "nul\0"])
def test_what_is_no_name_is_refused(client: TestClient, name: str) -> None:
    answer = start(client, name)
    assert (answer.status_code, "set-cookie" in answer.headers) == (422, False)
    assert answer.json()["error"]["message"].startswith("an annotator's name has 1 to 80 visible characters")


@pytest.mark.parametrize(
    "cookie", ["%00", "%ffa%0ab", "%E2%80%AEx", quote("x" * 81), "", "foo&99999999999999999999999", "foo&x"]
)
def test_a_cookie_that_holds_no_name_is_nobody(client: TestClient, cookie: str) -> None:
    answer = client.get("/label/next", headers={"cookie": f"{ANNOTATOR_COOKIE}={cookie}"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/label")


def test_who_has_no_name_is_asked_for_it(client: TestClient) -> None:
    answer = client.get("/label/question?id=town-1", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/label?question=town-1")


def test_who_says_a_name_comes_to_the_question_that_was_asked_for(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/label/question?id=town-3").text)
    fields = [attributes for tag, attributes in page.elements if tag == "input"]
    assert [one["value"] for one in fields if one.get("name") == "question"] == ["town-3"]
    form = {"annotator": "anna", "question": "town-3"}
    answer = client.post("/label/start", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/label/question?id=town-3"


@pytest.mark.parametrize(
    ("after", "found"), [("town-1", "town-2"), ("town-5", "town-0"), ("town-4", "town-5"), ("none", "town-0")]
)
def test_what_comes_next_is_behind_what_was_skipped(client: TestClient, after: str, found: str) -> None:
    start(client, "anna")
    answer = client.get(f"/label/next?after={after}", follow_redirects=False)
    assert answer.headers["location"] == f"/label/question?id={found}"


def test_all_is_labelled_question_by_question(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    questions = []
    for _ in range(20):
        page = client.get("/label/next")
        if "All done" in page.text:
            break
        questions.append(desk(seen(page.text))["data-question"])
        client.post("/labels", json=[answer(questions[-1], "anna", "supported", "maker")])
    assert questions == [f"town-{number}" for number in range(6)]
    assert "nothing left to label for anna" in seen(client.get("/label/next").text).text


def test_without_questions_nothing_is_done(make_site: Make, connect: Make) -> None:
    client = connect(make_site([]))
    start(client, "anna")
    assert "No questions" in client.get("/label/next").text and "All done" not in client.get("/label/next").text


def test_the_desk_shows_the_passages_the_guidelines_and_what_was_picked(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    page = seen(client.get("/label/question?id=town-1").text)
    assert set(page.attributes("button", "data-passage")) >= {"work", "maker"}
    assert "Say yes." in page.text
    assert "Or <b>no</b>." in page.text
    assert "data-picked" not in desk(page)
    given = answer("town-1", "anna", "partly", "maker", "work", note="<why>")
    client.post("/labels", json=[given, answer("town-1", "bob", "supported", "work")])
    again = seen(client.get("/label/question?id=town-1").text)
    assert (desk(again)["data-picked"], desk(again)["data-shape"]) == ('["maker", "work"]', "chain")
    assert "<why>" in again.text
    pressed = [one for tag, one in again.elements if tag == "button" and one.get("aria-pressed") == "true"]
    assert [one.get("data-value") for one in pressed] == ["partly"]


def test_progress_agreement_and_disagreements_are_shown_and_resolved(client: TestClient, seen: Make) -> None:
    assert "No labels yet." in client.get("/label").text
    assert "Resolve disagreements" not in client.get("/label").text
    start(client, "anna")
    client.post(
        "/labels",
        json=[
            answer("town-1", "anna", "supported", "work", "maker", note="so <it> is"),
            answer("town-1", "bob", "supported", "work"),
            answer("town-2", "anna", "partly", "work"),
            answer("town-2", "bob", "partly", "work"),
        ],
    )
    overview = seen(client.get("/label").text)
    assert "anna, bob answers 2 75 % 100 %" in overview.text
    assert "Resolve disagreements: 1 of 1 left" in overview.text
    differing = seen(client.get("/label/disagreements").text)
    assert "anna: supported" in differing.text and "so <it> is" in differing.text
    unit = differing.attributes("input", "value")[0]
    accepted = client.post("/label/accept", data={"unit": unit, "annotator": "bob"}, follow_redirects=False)
    assert accepted.headers["location"] == "/label/disagreements"
    assert "Resolve disagreements: 0 of 1 left" in seen(client.get("/label").text).text
    assert "Resolved by anna: supported" in seen(client.get("/label/disagreements").text).text
    assert [(one["annotator"], one["settles"]) for one in client.get("/labels?question=town-1").json()][-1] == (
        "anna",
        True,
    )
    progress = seen(client.get("/label").text).text
    assert "anna 1 1 0 0 1 2" in progress  # supported, partly, unsupported, cannot tell, resolved, questions
    client.post("/label/undo")
    assert "1 of 1 to resolve" in client.get("/label/disagreements").text


@pytest.mark.parametrize(
    ("form", "status"),
    [({"unit": "x", "annotator": "bob"}, 404), ({"unit": '{"question": "town-1"}', "annotator": "eve"}, 404)],
)
def test_only_a_label_that_exists_is_accepted(client: TestClient, form: dict[str, str], status: int) -> None:
    assert client.post("/label/accept", data=form).status_code == 422  # nobody has entered a name
    start(client, "anna")
    assert client.post("/label/accept", data=form).status_code == status


def test_what_one_alone_cannot_tell_is_resolved_by_a_label_of_its_own(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    client.post("/labels", json=[answer("town-1", "anna", "unsure", note="who <knows>")])
    page = seen(client.get("/label/disagreements").text)
    assert "1 of 1 to resolve" in page.text and "Accept" not in page.text
    assert "/label/question?id=town-1&settles=yes" in page.links
    opened = desk(seen(client.get("/label/question?id=town-1&settles=yes").text))
    assert (opened["data-next"], "data-settles" in opened) == ("/label/disagreements", True)
    client.post("/labels", json=[answer("town-1", "anna", "unsupported", settles=True, note="mine")])
    assert "0 of 1 to resolve" in client.get("/label/disagreements").text
    assert "who <knows>" in seen(client.get("/label/question?id=town-1").text).text
    assert client.get("/label/disagreements").text.count("mine") == 1


def test_labels_of_questions_that_are_not_served_do_not_count(client: TestClient, town_site: Site, seen: Make) -> None:
    given = [
        (name, f"gone-{n}", value) for n in range(120) for name, value in (("anna", "unsupported"), ("bob", "unsure"))
    ]
    town_site.labels.add(
        [Label.model_validate({"annotator": a, "unit": {"question": q}, "value": v}) for a, q, v in given]
    )
    start(client, "anna")
    client.post("/labels", json=[answer("town-1", "a", "unsupported"), answer("town-1", "b", "partly", "work")])
    assert client.get("/label/disagreements").text.count('<article class="unit"') == 1
    overview = seen(client.get("/label").text)
    assert "Resolve disagreements: 1 of 1 left" in overview.text
    assert "a, b answers 1 0 % 0 %" in overview.text
    assert "anna, bob" not in overview.text


def ranked_site(make_site: Make, towns: Make) -> Site:
    """Three questions whose chains a second reading of lexical's file ranks the other way round, with confidence."""
    site: Site = make_site(towns(3))
    for number, confidence in enumerate((0.9, 0.2, 0.5)):
        stored = site.index.at(number)
        recovered = site.index.recovered(0, number)
        assert recovered is not None
        chains = [
            chain.model_copy(update={"confidence": confidence / place})
            for place, chain in enumerate(reversed(recovered.chains), start=1)
        ]
        site.index.store(0, [(stored, recovered.model_copy(update={"chains": chains}))])
    return site


def test_the_model_says_what_it_found_only_when_asked(make_site: Make, connect: Make, towns: Make, seen: Make) -> None:
    site = ranked_site(make_site, towns)
    client, recovered = connect(site), site.index.recovered(0, 1)
    start(client, "anna")
    assert recovered is not None
    assert "The model:" not in client.get("/label/question?id=town-1").text
    shown = seen(client.get("/label/question?id=town-1&suggestion=shown").text)
    assert "The model:" in shown.text
    assert "The model’s evidence in one line" in shown.attributes("ol", "aria-label")


@pytest.mark.parametrize(
    ("order", "first"), [("", "town-1"), ("&order=least+confident", "town-1"), ("&order=file", "town-0")]
)
def test_the_least_confident_question_comes_first_unless_the_file_decides(
    make_site: Make, connect: Make, towns: Make, order: str, first: str
) -> None:
    client = connect(ranked_site(make_site, towns))
    start(client, "anna")
    assert "least confident first" in client.get("/label").text
    kept = "&order=file" if "file" in order else ""
    answer = client.get(f"/label/next?{order}", follow_redirects=False)
    assert answer.headers["location"] == f"/label/question?id={first}{kept}"


def test_no_order_by_confidence_is_offered_where_there_is_none(client: TestClient) -> None:
    assert "least confident" not in client.get("/label").text


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
    start(client, "anna", "pairs")
    assert (
        client.get("/label/next?mode=pairs", follow_redirects=False).headers["location"].endswith("id=MH_1&mode=pairs")
    )
    page = seen("".join(client.get(f"/label/question?id=MH_1&mode=pairs&pair={n}").text for n in (1, 2, 3, 99)))
    relation = "Does this passage describe the relation between Aspirin and P12345?"
    assert relation in page.text
    assert "Does this passage give DB00002 as the answer, by way of Q23456?" in page.text


def test_the_overview_tells_where_labels_are_and_what_the_guidelines_say(
    client: TestClient, town_site: Site, seen: Make
) -> None:
    start(client, "anna")
    page = seen(client.get("/label").text)
    path = town_site.labels.path
    assert f"Labels are saved in {path.name}." in page.text
    assert str(path.parent) not in page.text  # which is nobody's business but that of whoever runs the server
    assert "Or <b>no</b>." in page.text


def test_questions_that_were_not_begun_are_given_back(client: TestClient, town_site: Site) -> None:
    start(client, "anna")
    assert "Release my reserved questions" not in client.get("/label").text
    town_site.labels.claim("town-5", "anna")
    assert "Release my reserved questions" in client.get("/label").text
    assert client.post("/label/release", follow_redirects=False).headers["location"] == "/label"
    assert town_site.labels.claims() == {}


def test_mistakes_at_the_desk(make_site: Make, connect: Make, bridge_question: Question) -> None:
    client = connect(make_site([bridge_question, QuestionError("bad_field", "hops is odd.")]))
    start(client, "anna")
    assert "has no pairs of entities" not in client.get("/label/question?id=q1").text
    assert "pairs of entities" not in client.get("/label").text  # the data names none
    assert "All done" in client.get("/label/next?mode=pairs").text
    client.post("/labels", json=[answer("q1", "anna", "unsupported")])
    assert "bad-1" in client.get("/label/questions").text
    assert "All done" in client.get("/label/next").text
    for path, status, message in (
        ("/label/question?id=none", 404, "there is no question 'none'."),
        ("/label/question?id=bad-1", 404, "the question 'bad-1' cannot be read: hops is odd."),
        ("/label/question?id=q1&mode=x", 422, "mode: input should be 'answers' or 'pairs'."),
        ("/label/next?mode=x", 422, "mode: input should be 'answers' or 'pairs'."),
    ):
        refused = client.get(path)
        assert (refused.status_code, refused.json()["error"]["message"]) == (status, message)


def give(client: TestClient, name: str, count: int) -> None:
    client.post("/labels", json=[answer(f"town-{number}", name, "unsupported") for number in range(1, count + 1)])


def test_an_annotator_is_renamed_in_the_browser_which_goes_on_under_the_name(client: TestClient, seen: Make) -> None:
    start(client, "ana")
    give(client, "ana", 2)
    assert "/label/annotator?annotator=ana" in seen(client.get("/label").text).links
    page = seen(client.get("/label/annotator?annotator=ana").text)
    assert "2 labels of 2 questions." in page.text
    page = seen(client.post("/label/annotator/rename", data={"annotator": "ana", "name": " Anna "}).text)
    assert "2 labels of 2 questions." in page.text
    assert "ana was renamed Anna, with 2 labels of the log" in page.text
    assert "Anna" in seen(client.get("/label").text).attributes("input", "value")
    gone = seen(client.get("/label/annotator?annotator=ana").text)
    assert "This annotator has no labels." in gone.text and "was renamed Anna" in gone.text


def test_an_annotator_is_removed_only_by_who_is_sure(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    give(client, "eve", 1)
    answer = client.post("/label/annotator/remove", data={"annotator": "eve"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        422,
        "nobody was removed: tick the box to confirm.",
    )
    page = seen(client.post("/label/annotator/remove", data={"annotator": "eve", "sure": "yes"}).text)
    assert "eve was removed, with 1 label of the log" in page.text
    assert client.get("/labels?question=town-1").json() == []


def test_a_message_about_the_file_of_labels_does_not_name_its_folder(client: TestClient, town_site: Site) -> None:
    town_site.labels.add([Label(annotator="anna", unit=Unit(question="town-1"), value="unsupported")])
    path = town_site.labels.path
    path.rename(path.with_suffix(".elsewhere"))
    for page in ("/label", "/labels/export"):
        answer = client.get(page)
        assert answer.status_code == 500
        assert path.name in answer.text
        assert str(path.parent) not in answer.text


def test_questions_are_listed_by_their_labels_and_by_who_gave_them(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    give(client, "anna", 2)
    client.post("/labels", json=[answer("town-1", "bob", "partly", "work")])
    assert "2 of 6 questions labelled; 50 % of 2 labels undisputed" in seen(client.get("/label").text).text
    for query, count, told in (
        ("", 6, "anna 1, bob 1"),
        ("state=labelled", 2, "1 to resolve"),
        ("state=not+labelled", 4, "not labelled"),
        ("state=in+doubt", 1, "anna 1, bob 1"),
        ("state=without+doubt", 1, "1 question"),
        ("annotator=bob", 1, "anna 1, bob 1"),
        ("annotator=bob&state=not+labelled", 5, "not labelled"),
        ("annotator=eve", 0, "0 questions"),
        ("page=99", 6, "6 questions"),
    ):
        page = seen(client.get(f"/label/questions?{query}").text)
        assert len([link for link in page.links if link.startswith("/label/question?id=")]) == count, query
        assert told in page.text, query
    assert client.get("/label/questions?state=odd").status_code == 422


def test_the_list_of_labels_has_pages_that_keep_its_filter(
    make_site: Make, connect: Make, towns: Make, seen: Make
) -> None:
    client = connect(make_site(towns(PAGE_SIZE + 1)))
    page = seen(client.get("/label/questions?state=not+labelled").text)
    assert "page 1 of 2" in page.text and "/label/questions?page=2&state=not+labelled" in page.links


def test_a_browser_left_open_goes_on_under_the_new_name(client: TestClient, town_site: Site) -> None:
    """Its cookie and its page are older than the change; whoever takes the old name afterwards is somebody else."""
    client.post("/label/start", data={"annotator": "anna"}, follow_redirects=False)
    opened = client.get("/label/question?id=town-0").text
    assert 'data-annotator="anna" data-changes="0"' in opened
    given = {"question": "town-0", "value": "unsupported"}
    client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given}])
    town_site.labels.rename("anna", "berta")
    assert (
        client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given, "value": "unsure"}]).status_code
        == 200
    )
    assert [(one.annotator, one.value) for one in town_site.labels.of_question("town-0")] == [("berta", "unsure")]
    assert 'data-annotator="berta" data-changes="1"' in client.get("/label/question?id=town-0").text
    assert client.post("/labels/undo", json={"annotator": "anna", "changes": 0}).json()["annotator"] == "berta"
    assert client.post("/labels", json=[{"annotator": "anna", "changes": 1, **given}]).status_code == 200
    assert town_site.labels.annotators() == ["anna", "berta"]
    client.post("/label/start", data={"annotator": "anna"}, follow_redirects=False)
    assert 'data-annotator="anna" data-changes="1"' in client.get("/label/question?id=town-0").text


def test_a_browser_left_open_by_somebody_who_was_removed_saves_nothing(client: TestClient, town_site: Site) -> None:
    client.post("/label/start", data={"annotator": "anna"}, follow_redirects=False)
    given = {"question": "town-0", "value": "unsupported"}
    client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given}])
    town_site.labels.remove("anna")
    answer = client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given}])
    assert (answer.status_code, "was removed" in answer.json()["error"]["message"]) == (409, True)
    assert town_site.labels.of_question("town-0") == []
    answer = client.get("/label/question?id=town-0", follow_redirects=False)
    assert answer.status_code == 303, "the page asks who labels"
