"""The labelling desk: who labels, what comes next, what is asked, and where annotators differ."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from rechain.errors import QuestionError
from rechain.labels.store import Label
from rechain.schema import Mention, Passage, Question
from rechain.text.label_units import Unit
from rechain.text.passage_views import find_identifiers
from rechain.web.desk import ANNOTATOR_COOKIE
from rechain.web.question_index import PAGE_SIZE
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


@pytest.mark.parametrize(
    "cookie", ["%00", "%ffa%0ab", "%E2%80%AEx", quote("x" * 81), "", "foo&99999999999999999999999", "foo&x"]
)
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


def test_pairs_come_chain_by_chain_the_likeliest_first_and_tell_their_chains(
    client: TestClient, town_site: Site, seen: Make
) -> None:
    start(client, "anna")
    page = seen(client.get("/label/question?id=town-0").text)
    recovered = town_site.index.recovered(0, 0)
    assert recovered is not None
    assert [unit["passages"][0] for unit in units(page)[:2]] == recovered[0].passages
    chains = [json.loads(told or "") for told in page.attributes("article", "data-chains")]
    assert len(chains) == len(units(page))
    assert all(chains)


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


def test_chains_come_as_the_model_ranks_them_and_it_says_so_only_when_asked(
    make_site: Make, connect: Make, towns: Make, seen: Make
) -> None:
    site = ranked_site(make_site, towns)
    client, recovered = connect(site), site.index.recovered(0, 1)
    start(client, "anna")
    assert recovered is not None
    hidden = client.get("/label/question?id=town-1&mode=chains")
    assert [unit["passages"] for unit in units(seen(hidden.text))] == [chain.passages for chain in recovered.chains]
    assert "The model:" not in seen(hidden.text).text and "20 %" not in hidden.text
    shown = seen(client.get("/label/question?id=town-1&mode=chains&suggestion=shown").text)
    assert f"The model: this chain is number 1 of {len(recovered.chains)}, 20 % sure" in shown.text
    pairs = seen(client.get("/label/question?id=town-1&suggestion=shown").text)
    assert f"The model: on its chain number 1 of {len(recovered.chains)}, 20 % sure" in pairs.text


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
    answer = client.get(f"/label/next?mode=pairs{order}", follow_redirects=False)
    assert answer.headers["location"] == f"/label/question?id={first}&mode=pairs{kept}"


def test_no_order_by_confidence_is_offered_where_there_is_none(client: TestClient) -> None:
    assert "least confident" not in client.get("/label").text


@pytest.fixture
def wide_question() -> Question:
    """A question with forty chains of two passages."""
    makers = [Passage(id=f"w{n}", title=f"Work {n}", text=f"Work {n} is by Anton Quill.") for n in range(40)]
    last = Passage(id="quill", title="Anton Quill", text="Anton Quill was born in Prague.")
    return Question(
        id="wide", question="Where was the maker of works born?", answer="Prague", hops=2, passages=[*makers, last]
    )


def test_units_come_in_pages_and_the_next_page_follows(
    make_site: Make, connect: Make, seen: Make, wide_question: Question
) -> None:
    client = connect(make_site([wide_question]))
    start(client, "anna", "chains")
    address = "/label/question?id=wide&mode=chains"
    pages = [seen(client.get(f"{address}&page={number}").text) for number in (1, 2, 99)]
    shown = [[unit["passages"][0] for unit in units(page)] for page in pages]
    assert [len(one) for one in shown[:2]] == [20, 20]
    assert len({name for one in shown[:2] for name in one}) == 40
    assert shown[2] == shown[1]  # there are not so many pages
    desk = next(attributes for tag, attributes in pages[0].elements if attributes.get("class") == "desk")
    assert (desk["data-total"], desk["data-done"], desk["data-waiting"]) == ("40", "0", "20")

    labels = [unit | {"annotator": "anna", "value": "no"} for unit in units(pages[0])]
    client.post("/labels", json=labels)
    rest = seen(client.get(address).text)  # where something waits
    assert units(rest) == units(pages[1])
    desk = next(attributes for tag, attributes in rest.elements if attributes.get("class") == "desk")
    assert (desk["data-done"], desk["data-waiting"]) == ("20", "0")
    on = "/label/next?mode=chains&after=wide&stay=yes"
    assert client.get(on, follow_redirects=False).headers["location"] == "/label/question?id=wide&mode=chains"
    client.post("/labels", json=[unit | {"annotator": "anna", "value": "no"} for unit in units(rest)])
    assert "All done" in client.get(on).text


def test_pairs_on_other_pages_make_chains_wrong(
    make_site: Make, connect: Make, seen: Make, wide_question: Question
) -> None:
    client = connect(make_site([wide_question]))
    start(client, "anna")
    first = seen(client.get("/label/question?id=wide&page=1").text)
    client.post("/labels", json=[unit | {"annotator": "anna", "value": "no"} for unit in units(first)[:3]])
    second = seen(client.get("/label/question?id=wide&page=2").text)
    desk = next(attributes for tag, attributes in second.elements if attributes.get("class") == "desk")
    chains = [json.loads(told or "") for told in first.attributes("article", "data-chains")[:3]]
    assert json.loads(desk["data-wrong"] or "") == sorted({number for one in chains for number in one})


def test_the_most_chains_of_a_question_are_a_small_page(
    make_site: Make, connect: Make, wide_question: Question
) -> None:
    links = [Passage(id=f"l{n}", title=f"Link {n}", text="Anton Quill. " * 3 + "Prague " * 40) for n in range(36)]
    question = wide_question.model_copy(update={"passages": [*wide_question.passages, *links]})
    site = make_site([question])
    assert len(site.units(question).chains) == 64
    client = connect(site)
    start(client, "anna", "chains")
    assert len(client.get("/label/question?id=wide&mode=chains").content) < 200_000


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
    relation = "Does this passage describe the relation between Aspirin and P12345?"
    assert relation in page.text
    assert "Does this passage give DB00002 as the answer, by way of Q23456?" in page.text


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
    assert "bad-1" in client.get("/label/questions").text
    assert "All done" in client.get("/label/next").text
    for path, status, message in (
        ("/label/question?id=none", 404, "there is no question 'none'."),
        ("/label/question?id=bad-1", 404, "the question 'bad-1' cannot be read: hops is odd."),
        ("/label/question?id=q1&mode=x", 422, "mode: input should be 'pairs' or 'chains'."),
        ("/label/next?mode=x", 422, "mode: input should be 'pairs' or 'chains'."),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


def give(client: TestClient, seen: Make, name: str, count: int) -> None:
    given = units(seen(client.get("/label/question?id=town-1").text))[:count]
    client.post("/labels", json=[unit | {"annotator": name, "value": "yes"} for unit in given])


def test_an_annotator_is_renamed_in_the_browser_which_goes_on_under_the_name(client: TestClient, seen: Make) -> None:
    start(client, "ana")
    give(client, seen, "ana", 2)
    assert "/label/annotator?annotator=ana" in seen(client.get("/label").text).links
    page = seen(client.get("/label/annotator?annotator=ana").text)
    assert "2 labels of 1 question." in page.text
    page = seen(client.post("/label/annotator/rename", data={"annotator": "ana", "name": " Anna "}).text)
    assert "2 labels of 1 question." in page.text
    assert "ana was renamed Anna, with 2 labels of the log" in page.text
    assert "Anna" in seen(client.get("/label").text).attributes("input", "value")
    gone = seen(client.get("/label/annotator?annotator=ana").text)
    assert "No label of this annotator holds." in gone.text and "was renamed Anna" in gone.text


def test_an_annotator_is_removed_only_by_who_is_sure(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    give(client, seen, "eve", 1)
    answer = client.post("/label/annotator/remove", data={"annotator": "eve"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        422,
        "nobody was removed: say that you are sure.",
    )
    page = seen(client.post("/label/annotator/remove", data={"annotator": "eve", "sure": "yes"}).text)
    assert "eve was removed, with 1 label of the log" in page.text
    assert client.get("/labels?question=town-1").json() == []


def test_a_message_about_the_file_of_labels_does_not_name_its_folder(client: TestClient, town_site: Site) -> None:
    (unit, *_) = town_site.units(town_site.readable(town_site.question("town-1"))).pairs
    town_site.labels.add([Label(annotator="anna", unit=unit, value="yes")])
    path = town_site.labels.path
    path.rename(path.with_suffix(".elsewhere"))
    for page in ("/label", "/labels/export"):
        answer = client.get(page)
        assert answer.status_code == 500
        assert path.name in answer.text
        assert str(path.parent) not in answer.text


def test_questions_are_listed_by_their_labels_and_by_who_gave_them(client: TestClient, seen: Make) -> None:
    start(client, "anna")
    give(client, seen, "anna", 2)
    one = units(seen(client.get("/label/question?id=town-1").text))[0]
    client.post("/labels", json=[one | {"annotator": "bob", "value": "no"}])
    assert "1 of 6 questions labelled; of 2 labelled units 50 % decided" in seen(client.get("/label").text).text
    for query, count, told in (
        ("", 6, "anna 2, bob 1"),
        ("state=labelled", 1, "2 units labelled, 1 in doubt"),
        ("state=not+labelled", 5, "not labelled"),
        ("state=in+doubt", 1, "anna 2, bob 1"),
        ("state=without+doubt", 0, "0 questions"),
        ("annotator=bob", 1, "anna 2, bob 1"),
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
    unit = next(iter(town_site.units(town_site.readable(town_site.question("town-0"))).pairs))
    given = {"question": "town-0", "passages": list(unit.passages), "entities": list(unit.entities), "value": "yes"}
    client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given}])
    town_site.labels.rename("anna", "berta")
    assert client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given, "value": "no"}]).status_code == 200
    assert [(one.annotator, one.value) for one in town_site.labels.of_question("town-0")] == [("berta", "no")]
    assert 'data-annotator="berta" data-changes="1"' in client.get("/label/question?id=town-0").text
    assert client.post("/labels/undo", json={"annotator": "anna", "changes": 0}).json()["annotator"] == "berta"
    assert client.post("/labels", json=[{"annotator": "anna", "changes": 1, **given}]).status_code == 200
    assert town_site.labels.annotators() == ["anna", "berta"]
    client.post("/label/start", data={"annotator": "anna"}, follow_redirects=False)
    assert 'data-annotator="anna" data-changes="1"' in client.get("/label/question?id=town-0").text


def test_a_browser_left_open_by_somebody_who_was_removed_saves_nothing(client: TestClient, town_site: Site) -> None:
    client.post("/label/start", data={"annotator": "anna"}, follow_redirects=False)
    unit = next(iter(town_site.units(town_site.readable(town_site.question("town-0"))).pairs))
    given = {"question": "town-0", "passages": list(unit.passages), "entities": list(unit.entities), "value": "yes"}
    client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given}])
    town_site.labels.remove("anna")
    answer = client.post("/labels", json=[{"annotator": "anna", "changes": 0, **given}])
    assert (answer.status_code, "was removed" in answer.json()["error"]["message"]) == (409, True)
    assert town_site.labels.of_question("town-0") == []
    answer = client.get("/label/question?id=town-0", follow_redirects=False)
    assert answer.status_code == 303, "the page asks who labels"
