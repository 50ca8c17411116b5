"""REST: the same questions in and the same chains out as in files, and refusals that name the field."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from starlette.testclient import TestClient
from tests.web.models import HANG_S, Held
from typer.testing import CliRunner

from rechain.cli.main import app as command
from rechain.errors import QuestionError
from rechain.schema import Question
from rechain.version import __version__
from rechain.web.api import MOST_CHAINS
from rechain.web.question_index import PAGE_SIZE
from rechain.web.service import MOST_WAITING, RecoveryService
from rechain.web.site import Site

Make = Callable[..., Any]
JSON = {"Content-Type": "application/json"}
UNICODE = "input should be a valid string, unable to parse raw data as a unicode string."
OBJECT = "input should be a valid dictionary or object to extract fields from."
ASKED: dict[str, Any] = {
    "question": "Where was the composer of Zorilla born?",
    "answer": "Prague",
    "passages": [
        {"title": "Zorilla", "text": "Zorilla is an opera by Anton Quillfeather."},
        {"title": "Anton Quillfeather", "text": "Anton Quillfeather was born in Prague."},
    ],
}


@pytest.mark.parametrize("options", [{}, {"top": "3"}, {"top": "3", "explain": "true"}])
def test_answers_are_the_lines_that_rechain_recover_writes(
    client: TestClient, town_file: Path, options: dict[str, str]
) -> None:
    flags = [f"--{name}" if value == "true" else f"--{name}={value}" for name, value in options.items()]
    written = CliRunner().invoke(command, ["recover", str(town_file), "--model", "lexical", *flags])
    lines = written.stdout.splitlines()
    questions = [json.loads(line) for line in town_file.read_text().splitlines()]
    assert client.post("/recover", params=options, json=questions).text == f"[{','.join(lines)}]"
    assert client.post("/recover", params=options, json=questions[3]).text == lines[3]


def test_ids_may_be_left_out_and_passages_may_be_texts(client: TestClient) -> None:
    texts = [passage["text"] for passage in ASKED["passages"]]
    one, two = client.post("/recover", json=[ASKED, ASKED | {"id": "x", "passages": texts}]).json()
    assert (one["id"], one["chains"][0]["passages"]) == ("0", ["Zorilla", "Anton Quillfeather"])
    assert (two["id"], two["chains"][0]["passages"]) == ("x", ["0", "1"])


def test_fields_that_nobody_knows_do_no_harm(client: TestClient) -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    odd = {"type": 5, "context": deep, "supporting_facts": "x", "_id": None, "query": {}, "half": "\ud800"}
    plain = client.post("/recover", json=ASKED)
    assert client.post("/recover", content=json.dumps(ASKED | odd), headers=JSON).text == plain.text


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"answer": None}, "no_answer", "the answer is empty, or says that there is none"),
        ({"answer": " "}, "no_answer", "the answer is empty, or says that there is none"),
        ({"answer": "Nowhere"}, "no_tail", "no tail: no passage holds the answer 'Nowhere', nor what it says"),
        ({"passages": []}, "too_few_passages", "the question has no passages"),
        ({"passages": [{"id": "a", "text": "x"}] * 2}, "duplicate_passage", "passages[1].id repeats the id 'a'."),
        (
            {"passages": [{"text": "abc", "mentions": [{"entity": "e", "start": 1, "end": 4}]}]},
            "bad_field",
            "passages[0].mentions[0] (1 to 4) is not a stretch of the 3 characters of text.",
        ),
        ({"hops": 3, "link_types": ["a"]}, "bad_field", "link_types names 1 links, but a chain of 3 passages has 2."),
        (
            {"passages": [{"title": "\ud800", "text": "x"}]},
            "bad_field",
            "unable to parse raw data as a unicode string.",
        ),
    ],
)
def test_what_only_reading_the_question_shows_is_told_in_its_place(
    client: TestClient, change: dict[str, Any], code: str, message: str
) -> None:
    answer = client.post("/recover", content=json.dumps([ASKED, ASKED | change, ASKED]), headers=JSON)
    assert answer.status_code == 200
    well, wrong, again = answer.json()
    assert well["chains"] == again["chains"] != []
    assert (wrong["chains"], wrong["error"]["code"]) == ([], code)
    assert wrong["error"]["message"].endswith(message)


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("", "missing_field", "the body is missing."),
        ("{", "bad_json", "the body is not valid JSON: Expecting property name enclosed in double quotes."),
        (b"\xff\xfe\xff", "bad_json", "the body is not valid JSON."),
        ("[" * 100_000, "too_deep", "the body is nested too deeply."),
        (f'{{"x": {"[" * 1_100}{"]" * 1_100}}}', "too_deep", "the body is nested too deeply."),
        ('{"x": ' + "9" * 5000 + "}", "bad_json", "the body is not valid JSON."),
        ("null", "bad_field", f"the body: {OBJECT}"),
        ("[]", "bad_field", "the body: list should have at least 1 item after validation, not 0."),
        ("{}", "missing_field", "the field question is missing."),
        ([ASKED, {}], "missing_field", "the field [1].question is missing."),
        (
            [ASKED] * (MOST_WAITING + 1),
            "too_large",
            "the body has 257 items; the most are 256.",
        ),
        (ASKED | {"question": " \n"}, "empty_field", "question is empty."),
        (ASKED | {"answer": [5]}, "bad_field", "answer: input should be a valid string."),
        (ASKED | {"answer": "\ud800"}, "bad_field", f"answer: {UNICODE}"),
        (ASKED | {"hops": 9}, "bad_field", "hops: input should be less than or equal to 8."),
        (ASKED | {"hops": "2"}, "bad_field", "hops: input should be a valid integer."),
        (ASKED | {"hops": True}, "bad_field", "hops: input should be a valid integer."),
        (ASKED | {"hops": float("nan")}, "bad_field", "hops: input should be a valid integer."),
        (ASKED | {"hops": 10**400}, "bad_field", "hops: input should be less than or equal to 8."),
        (
            json.dumps(ASKED | {"hops": "DEEP"}).replace('"DEEP"', "[" * 600 + "]" * 600),
            "bad_field",
            "hops: input should be a valid integer.",
        ),
        (ASKED | {"passages": ["a", ""]}, "empty_field", "passages[1] is empty."),
        (ASKED | {"passages": ["a", {"title": "t"}]}, "missing_field", "the field passages[1].text is missing."),
        (ASKED | {"passages": ["a", 5]}, "bad_field", f"passages[1]: {OBJECT}"),
        (
            ASKED | {"passages": [{"text": "a", "mentions": [{"entity": "e", "start": -1, "end": 1}]}]},
            "bad_field",
            "passages[0].mentions[0].start: input should be greater than or equal to 0.",
        ),
    ],
)
def test_what_is_no_question_at_all_is_refused_by_field(client: TestClient, body: Any, code: str, message: str) -> None:
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    answer = client.post("/recover", content=content, headers=JSON)
    assert answer.status_code == 422
    assert answer.json() == {"error": {"code": code, "message": message}}


def test_whole_numbers_may_be_written_with_a_point(client: TestClient) -> None:
    assert (
        client.post("/recover", json=ASKED | {"hops": 2.0}).text
        == client.post("/recover", json=ASKED | {"hops": 2}).text
    )


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_a_body_of_another_kind_is_told_to_be_json(client: TestClient, kind: str) -> None:
    answer = client.post("/recover", content=json.dumps(ASKED), headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert "Content-Type: application/json" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("top=0", "top: input should be greater than or equal to 1."),
        (f"top={MOST_CHAINS + 1}", "top: input should be less than or equal to 1000."),
        ("min_confidence=1.1", "min_confidence: input should be less than or equal to 1."),
        ("min_confidence=nan", "min_confidence: input should be less than or equal to 1."),
        ("explain=perhaps", "explain: input should be a valid boolean, unable to interpret input."),
    ],
)
def test_parameters_are_checked(client: TestClient, query: str, message: str) -> None:
    answer = client.post(f"/recover?{query}", json=ASKED)
    assert (answer.status_code, answer.json()["error"]["message"]) == (422, message)


def test_confidence_that_a_model_does_not_tell_cannot_be_demanded(client: TestClient) -> None:
    answer = client.post("/recover?min_confidence=0.5", json=ASKED)
    assert answer.status_code == 409
    assert (
        answer.json()["error"]["message"]
        == "the model 'lexical' tells no confidence, so none can be demanded of its chains."
    )


def test_past_the_limit_the_answer_is_429_and_when_to_ask_again(make_site: Make, connect: Make, towns: Make) -> None:
    model = Held()
    client = connect(make_site(towns(1), model=model, most_waiting=1))
    codes: list[int] = []
    first = Thread(target=lambda: codes.append(client.post("/recover", json=ASKED).status_code))
    first.start()
    assert model.has_begun.wait(HANG_S)
    refused = client.post("/recover", json=ASKED)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json()["error"]["code"] == "busy"
    model.may_go_on.set()
    first.join(10)
    assert codes == [200]


def test_questions_are_listed_as_on_the_page(client: TestClient, towns: Make) -> None:
    listing = client.get("/questions").json()
    assert {name: listing[name] for name in ("total", "page", "page_size")} == {
        "total": 6,
        "page": 1,
        "page_size": PAGE_SIZE,
    }
    assert [one["id"] for one in listing["questions"]] == [question.id for question in towns(6)]
    first = listing["questions"][0]
    assert first.keys() == {"id", "question", "answer", "confidence", "judgement", "verdict", "shape", "error", "chain"}
    wrong = client.get("/questions?judgement=wrong").json()
    right = client.get("/questions?judgement=right").json()
    assert wrong["total"] + right["total"] == 6
    assert client.get("/questions?text=town-3&chain=true&kind=title&order=most confident").json()["total"] == 1
    assert client.get("/questions?page=2").json()["questions"] == []


ODD_IDS = ["a/b", "a b", "50%", "ü ☃\u202e", "?x=1&y#z", "/slash/", "ends/", "nul\0", "a\nb/c", "'\"<b>"]


def test_a_question_is_found_whatever_its_id(make_site: Make, connect: Make, bridge_question: Question) -> None:
    client = connect(make_site([bridge_question.model_copy(update={"id": name}) for name in ODD_IDS]))
    for name in ODD_IDS:
        known = client.get(f"/questions/{quote(name, safe='')}").json()
        assert known["question"]["id"] == known["recovered"]["id"] == name
        assert Question.model_validate(known["question"]).passages == bridge_question.passages
        assert known["gold"] is None
        assert client.get("/question", params={"id": name}).status_code == 200


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/questions/none", "there is no question 'none'."),
        ("/questions/", "there is no question ''."),
        ("/questions/%ff", "there is no question '\ufffd'."),
        ("/questions/bad-1", "the question 'bad-1' cannot be read: hops is odd."),
        ("/questions/town-0?source=9", "there is no source 9; there are 1."),
        ("/questions?source=9", "there is no source 9; there are 1."),
    ],
)
def test_what_is_not_there(make_site: Make, connect: Make, towns: Make, path: str, message: str) -> None:
    client = connect(make_site([*towns(1), QuestionError("bad_field", "hops is odd.")]))
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"error": {"code": "not_there", "message": message}})


def test_health_names_the_part_that_has_failed_or_is_starting(
    handbook_site: Site, connect: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: TestClient = connect(handbook_site)
    monkeypatch.setattr(RecoveryService, "state", "starting")
    answer = client.get("/health")
    parts = {"models": "starting", "index": "ok", "labels": "ok", "generation": "generation-1"}
    assert (answer.status_code, answer.json()) == (200, {"status": "starting", **parts})
    labels = handbook_site.labels
    labels.claim("bare", "anna")
    labels.path.rename(labels.path.with_suffix(".moved"))
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "failed", **parts, "labels": "failed"})


def test_health_and_version(client: TestClient) -> None:
    parts = {"models": "unused", "index": "unused", "labels": "ok", "generation": None}
    assert client.get("/health").json() == {"status": "ok", **parts}
    served = {"version": __version__, "questions": 6, "sources": ["lexical.jsonl"], "collection": None}
    assert client.get("/version").json() == served


@pytest.mark.parametrize("path", ["/", "/question?id=town-0", "/questions", "/health", "/static/style.css", "/nowhere"])
def test_head_is_answered_as_get_without_the_body(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.headers, head.content) == (get.status_code, get.headers, b"")
    assert get.content


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/labels", "GET, HEAD, POST"),
        ("GET", "/recover", "POST"),
        ("HEAD", "/recover", "POST"),
        ("TRACE", "/health", "GET, HEAD"),
        ("OPTIONS", "/try", "GET, HEAD, POST"),
        ("DELETE", "/questions/x/y", "GET, HEAD"),
        ("POST", "/static/style.css", "GET, HEAD"),
    ],
)
def test_other_methods_are_refused_and_told_which_there_are(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert method == "HEAD" or answer.json()["error"]["message"] == "this method is not allowed here."


def test_a_method_that_a_path_has_not_is_refused_even_with_a_body(client: TestClient) -> None:
    answer = client.request("GET", "/recover", content=b"{}")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert client.request("GET", "/health", content=b"{}").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/style.css%00",
        "/static/",
        "/static/" + "a" * 5000,
    ],
)
def test_no_path_leads_out_of_what_is_served(town_site: Site, connect: Make, path: str) -> None:
    client = connect(town_site)
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\").replace("%00", "\0"),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(client.app(scope, receive, send))  # as it stands, while clients tidy paths up
    assert sent[0]["status"] == 404
    assert client.get(path).status_code == 404


def test_a_question_that_is_too_large_has_that_as_its_error(client: TestClient) -> None:
    question = {"question": "Who?", "answer": "Anna", "passages": ["Anna " * 500_000, "Anna"]}
    answer = client.post("/recover", json=question)
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == "too_large"


NESTED = [("[", "]", depth) for depth in (240, 600, 5_000, 100_000)] + [('{"a":', "}", depth) for depth in (300, 5_000)]


@pytest.mark.parametrize(("before", "after", "depth"), NESTED)
def test_whatever_is_nested_deeply_is_left_or_refused(
    client: TestClient, towns: Any, before: str, after: str, depth: int
) -> None:
    nested = f"{before * depth}1{after * depth}"
    fields = towns(1)[0].model_dump_json(exclude_none=True)[:-1]
    bodies = [f'{fields}, "extra": {nested}}}', f'{fields}, "answer_aliases": {nested}}}', nested]
    rows = [f'{{"id": "q", "support": 0, "a": "x", "b": "y", "interacts": true, "extra": {nested}}}']
    rows += [f'{{"id": "q", "chains": [], "extra": {nested}}}', f'{{"id": "q", "chains": {nested}}}']
    answers = [client.post("/recover", content=body, headers=JSON) for body in (*bodies, f"[{bodies[0]}]")]
    answers += [client.post("/try", content=urlencode({"question": body})) for body in bodies[:2]]
    answers += [client.post("/labels/import?annotator=a", content=f"[{row}]", headers=JSON) for row in rows]
    for answer in answers:
        assert answer.status_code == 422 or (answer.status_code == 200 and depth <= 600)
        assert "went wrong" not in answer.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("answer_aliases", ["a"] * 100_000),
        ("question_entities", ["a"] * 100_000),
        ("link_types", ["a"] * 100_000),
        ("answer", "a " * 100_000),
        ("question", "a " * 100_000),
        ("passages", [{"text": "Prague", "mentions": [{"entity": "e", "start": 0, "end": 1}] * 10_001}]),
        ("passages", ["a"] * 2_001),
    ],
)
def test_a_question_that_would_keep_others_waiting_is_refused(client: TestClient, field: str, value: Any) -> None:
    answer = client.post("/recover", json=ASKED | {field: value})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(field)


def test_ids_and_titles_may_be_numbers(client: TestClient) -> None:
    texts = [passage if isinstance(passage, str) else passage["text"] for passage in ASKED["passages"]]
    passages = [{"id": number, "title": 2023, "text": text} for number, text in enumerate(texts)]
    recovered = client.post("/recover", json=ASKED | {"id": 7, "passages": passages}).json()
    assert (recovered["id"], recovered["chains"][0]["passages"]) == ("7", ["0", "1"])
