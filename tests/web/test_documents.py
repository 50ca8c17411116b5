"""A server with an index: passages are found, shown in their place, and searched, by REST and in pages."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from rechain.schema import Recovered
from rechain.version import __version__
from rechain.web.corpus import Corpus
from rechain.web.site import Site

HTML = {"accept": "text/html,*/*"}
Make = Callable[..., Any]
ASKED = {"question": "Where was the head of the bureau that approves parental leave born?", "answer": "Prague"}
NO_INDEX = "this server has no index of documents; start it with rechain serve --corpus INDEX."
EVIL = "odd <b>&amp;.txt"


@pytest.fixture
def indexed(handbook_site: Site, connect: Make) -> TestClient:
    """A client of the handbook."""
    client: TestClient = connect(handbook_site)
    return client


def test_a_question_without_passages_is_answered_from_the_index(indexed: TestClient, corpus: Corpus) -> None:
    answer = indexed.post("/recover", json=ASKED).json()
    (chain,) = answer["chains"]
    assert answer["collection"] == corpus.index.stamp
    assert chain["passages"] == ["leave.md#2", "rooms/bureau.md#1"]
    assert "own" not in chain
    found = {one["id"]: one for one in answer["passages"]}
    assert sorted(found) == sorted(chain["passages"])
    for one in found.values():
        place = one["place"]
        path = f"/documents/{place['source']}?start={place['start']}&end={place['end']}"
        assert indexed.get(path).json()["text"] == one["text"]
        assert (corpus.index[one["id"]].text, place["page"]) == (one["text"], None)


def test_passages_of_the_request_are_looked_at_too_and_named_as_its_own(indexed: TestClient) -> None:
    note = {"id": "note", "title": "Kinship Bureau", "text": "The head of the Kinship Bureau was born in Prague."}
    one, many = indexed.post("/recover?top=50", json=[ASKED | {"passages": [note]}, ASKED | {"passages": []}]).json()
    with_note = [chain for chain in one["chains"] if "note" in chain["passages"]]
    assert with_note and all(chain["own"] == ["note"] for chain in with_note)
    assert "note" not in {passage["id"] for passage in one["passages"]}
    assert many["chains"] and all("own" not in chain for chain in many["chains"])


def test_a_question_that_cannot_be_read_has_its_error_here_too(indexed: TestClient) -> None:
    wrong = indexed.post("/recover", json=ASKED | {"hops": 3, "link_types": ["a"]}).json()
    assert (wrong["error"]["code"], wrong["passages"]) == ("bad_field", [])


@pytest.mark.parametrize(
    ("body", "field"), [(ASKED, "passages"), ([ASKED | {"passages": ["x"]}, ASKED], "[1].passages")]
)
def test_without_an_index_passages_are_demanded(client: TestClient, body: Any, field: str) -> None:
    answer = client.post("/recover", json=body)
    hint = "a server with an index finds them: rechain serve --corpus INDEX."
    error = {"code": "missing_field", "message": f"the field {field} is missing; {hint}"}
    assert (answer.status_code, answer.json()) == (422, {"error": error})


def test_past_the_limit_nothing_is_looked_for(make_site: Make, connect: Make, corpus: Corpus) -> None:
    site = make_site([], corpus=corpus, most_waiting=1)
    answer = connect(site).post("/recover", json=[ASKED, ASKED])
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_request")
    site.recovery.close()
    assert connect(site).post("/recover", json=ASKED).status_code == 429


def test_the_index_is_searched(indexed: TestClient, corpus: Corpus) -> None:
    results = indexed.get("/search?q=Kinship+Bureau&k=1").json()
    assert results["collection"] == corpus.index.stamp
    (hit,) = results["passages"]
    assert (hit["id"], hit["title"]) == ("rooms/bureau.md#1", "Kinship Bureau")
    assert hit["score"] > 0 and "Kinship Bureau" in hit["snippet"]
    assert hit["place"].keys() == {"source", "start", "end", "page"}
    assert indexed.get("/search?q=hotel").json()["passages"][0]["place"] is None
    assert indexed.get("/search?q=").json()["passages"] == []


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [("", 0, None), ("?start=2&end=7", 2, 7), ("?start=7&end=2", 7, 7), ("?start=999999&end=3", None, None)],
)
def test_a_stretch_of_a_document(
    indexed: TestClient, corpus: Corpus, query: str, start: int | None, end: int | None
) -> None:
    document = corpus.document("leave.md")
    assert document is not None
    length = len(document.text)
    start, end = length if start is None else start, length if end is None else end
    assert indexed.get(f"/documents/leave.md{query}").json() == {
        "name": "leave.md",
        "kind": "markdown",
        "length": length,
        "start": start,
        "end": end,
        "text": document.text[start:end],
    }


@pytest.mark.parametrize("path", ["/search?q=x", "/documents/leave.md", "/find?q=x", "/document?name=leave.md"])
def test_without_an_index_there_are_no_documents(client: TestClient, seen: Make, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, NO_INDEX)
    assert NO_INDEX in seen(client.get(path, headers=HTML).text).text


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/documents/none.md", 404, "there is no document 'none.md' in the index."),
        ("/documents/", 404, "there is no document '' in the index."),
        ("/documents/rows.jsonl", 404, "there is no document 'rows.jsonl' in the index."),
        ("/document?name=../../etc/passwd", 404, "there is no document '../../etc/passwd' in the index."),
        ("/search", 422, "the field q is missing."),
        ("/search?q=x&k=101", 422, "k: input should be less than or equal to 100."),
        ("/document?name=leave.md&start=-1", 422, "start: input should be greater than or equal to 0."),
    ],
)
def test_mistakes_are_one_sentence(indexed: TestClient, path: str, status: int, message: str) -> None:
    answer = indexed.get(path)
    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


def test_a_question_shows_where_its_passages_stand(indexed: TestClient, seen: Make) -> None:
    page = seen(indexed.get("/question?id=bare&passages=all").text)
    assert "leave.md › Leave › Parental leave, characters " in page.text
    assert "from the log" not in page.text
    links = [link for link in page.links if link.startswith("/document?name=leave.md")]
    shown = seen(indexed.get(links[0].removesuffix("#passage")).text)
    assert "passage" in shown.attributes("mark", "id")
    assert "Parental leave lasts up to fourteen weeks" in shown.text


def test_passages_of_the_log_are_marked(indexed: TestClient, seen: Make, handbook_site: Site) -> None:
    page = seen(indexed.get("/question?id=noted&passages=all").text)
    assert page.text.count("from the log") == 1
    assert "A note from the log The Kinship Bureau has moved to Prague." in page.text
    stored = handbook_site.question("noted")
    assert stored.own == frozenset(["note"])
    assert handbook_site.question("bare").own == frozenset()


def test_chains_of_a_file_show_passages_that_were_not_found(handbook_site: Site, connect: Make, seen: Make) -> None:
    chain = {"shape": "parallel", "passages": ["trains", "leave.md#1"], "links": [], "score": 1.0}
    row = Recovered.model_validate({"id": "bare", "chains": [chain]})
    handbook_site.add_file("more.jsonl", [row])
    client = connect(handbook_site)
    for path in ("/question?id=bare&source=2", "/compare/question?id=bare"):
        assert "Trains to Ghent leave at noon." in seen(client.get(path).text).text


def test_the_one_search_box_also_searches_the_documents(indexed: TestClient, client: TestClient, seen: Make) -> None:
    assert "documents" in seen(indexed.get("/").text).attributes("option", "value")
    assert "documents" not in seen(client.get("/").text).attributes("option", "value")
    answer = indexed.get("/?text=fourteen+weeks&scope=documents", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/find?q=fourteen+weeks")


def test_results_lead_to_the_documents(indexed: TestClient, seen: Make) -> None:
    page = seen(indexed.get("/find?q=fourteen+weeks").text)
    assert "1 passage." in page.text and "leave.md › Leave › Parental leave" in page.text
    assert any(link.startswith("/document?name=leave.md&start=") for link in page.links)
    assert "No matching passages." in seen(indexed.get("/find?q=xylograph").text).text
    assert "rates, score" in seen(indexed.get("/find?q=oslo").text).text
    assert indexed.get("/find").status_code == 200


def test_documents_are_shown_as_text(indexed: TestClient, seen: Make) -> None:
    hit = indexed.get("/search?q=zorilla").json()["passages"][0]
    assert hit["place"]["source"] == EVIL
    answers = [
        indexed.get("/find", params={"q": "zorilla <script>alert(2)</script>"}),
        indexed.get("/document", params={"name": EVIL, "start": 4, "end": 60}),
        indexed.get("/document", params={"name": f"{EVIL}x"}, headers=HTML),
    ]
    for answer in answers:
        page = seen(answer.text)
        assert EVIL in page.text
        assert "b" not in {tag for tag, _ in page.elements}
        assert page.attributes("script", "src") == [f"/static/keys.js?v={__version__}"]
        assert "content-security-policy" in answer.headers
    assert "<script>alert(1)</script> It never struck." in seen(answers[1].text).text


def test_a_question_can_be_tried_without_passages(indexed: TestClient, client: TestClient, seen: Make) -> None:
    assert "Passages (optional)" in seen(indexed.get("/try").text).text
    assert "(optional)" not in seen(client.get("/try").text).text
    page = seen(indexed.post("/try", data=ASKED).text)
    assert "leave.md › Leave › Parental leave, characters " in page.text and "pasted here" not in page.text
    pasted = seen(indexed.post("/try", data=ASKED | {"passages": "# Note\nPrague has a Kinship Bureau."}).text)
    assert "pasted here" in pasted.text
    by_id = '{"question": "Who leads it?", "answer": "Anton Quillfeather", "passage_ids": ["rooms/bureau.md#1"]}'
    named = seen(indexed.post("/try", data={"question": by_id}).text)
    assert "rooms/bureau.md › Kinship Bureau, characters" in named.text


def test_a_server_without_questions_of_its_own(make_site: Make, connect: Make, seen: Make, corpus: Corpus) -> None:
    client = connect(make_site([], corpus=corpus))
    page = seen(client.get("/").text)
    assert "This server has an index and no questions" in page.text
    assert {"/try"} < set(page.links)
    assert {client.get(path).status_code for path in ("/try", "/label", "/openapi.json", "/metrics")} == {200}
    assert client.get("/version").json()["collection"] == corpus.index.stamp
    assert f"rechain_passages_indexed {len(corpus.index)}.0" in client.get("/metrics").text


def test_the_description_says_whether_passages_are_needed(indexed: TestClient, client: TestClient) -> None:
    for one, required in ((indexed, ["question", "answer"]), (client, ["question", "answer", "passages"])):
        assert one.get("/openapi.json").json()["components"]["schemas"]["QuestionFields"]["required"] == required


def test_rest_seeks_among_the_passages_that_are_named_by_id(indexed: TestClient, corpus: Corpus) -> None:
    asked = {"question": "When do trains to Ghent leave?", "answer": "at noon", "passage_ids": ["rates", "trains"]}
    record = indexed.post("/recover", json=asked).json()
    assert record["collection"] == corpus.index.stamp
    assert {name for chain in record["chains"] for name in chain["passages"]} <= {"rates", "trains"}
    unknown = indexed.post("/recover", json={**asked, "passage_ids": ["nowhere"]}).json()
    assert unknown["error"]["code"] == "unknown_passage"
