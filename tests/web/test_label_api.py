"""Labels by REST: given, taken back, exported, imported both ways, and refused where they are of nothing."""

import errno
import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from rechain.labels import store
from rechain.schema import Passage, Question
from rechain.text.label_units import find_units
from rechain.web.chains import remember
from rechain.web.label_api import _in_parts
from rechain.web.site import Site

Make = Callable[..., Any]
MEDHOP = Question(
    id="MH_1",
    question="interacts_with DB00001?",
    answer="DB00002",
    question_entities=["drug:DB00001"],
    answer_entity="drug:DB00002",
    hops=3,
    link_types=["protein", "protein"],
    passages=[
        Passage(id="0", text="DB00001 binds P12345 ."),
        Passage(id="1", text="P12345 activates Q23456 ."),
        Passage(id="2", text="Q23456 is cut by DB00002 ."),
    ],
)
ROWS = [
    {"id": "MH_1", "support": 0, "a": "DB00001", "b": "P12345", "interacts": True, "evidence": "binds"},
    {"id": "MH_1", "support": 1, "a": "P12345", "b": "Q23456", "interacts": True},
    {"id": "MH_1", "support": 2, "a": "Q23456", "b": "DB00002", "interacts": True},
]
GOLD = {"id": "MH_1", "chains": [{"passages": ["0", "1", "2"], "links": ["protein:P12345", "protein:Q23456"]}]}


@pytest.fixture
def medhop_site(make_site: Make) -> Site:
    site: Site = make_site([MEDHOP, MEDHOP.model_copy(update={"id": "a/b ?"})])
    return site


@pytest.fixture
def medhop(medhop_site: Site, connect: Make) -> TestClient:
    client: TestClient = connect(medhop_site)
    return client


def pair(number: int = 0, annotator: str = "anna", value: str = "yes", **others: Any) -> dict[str, Any]:
    unit = list(find_units(MEDHOP).pairs)[number]
    told = {
        "annotator": annotator,
        "question": "MH_1",
        "passages": list(unit.passages),
        "entities": list(unit.entities),
    }
    return told | {"value": value} | others


def values(client: TestClient, question: str = "MH_1") -> list[tuple[str, str]]:
    return [(one["annotator"], one["value"]) for one in client.get("/labels", params={"question": question}).json()]


def test_labels_are_given_read_and_taken_back(medhop: TestClient) -> None:
    answer = medhop.post("/labels", json=[pair(0, note="why", value="unsure"), pair(1, " anna ", "no")])
    assert (answer.status_code, answer.json()) == (200, 2)
    first = medhop.get("/labels?question=MH_1").json()[0]
    assert (first["annotator"], first["note"], first["settles"]) == ("anna", "why", False)
    assert values(medhop) == [("anna", "unsure"), ("anna", "no")]
    assert medhop.post("/labels/undo", json={"annotator": "anna"}).json()["value"] == "no"
    assert values(medhop) == [("anna", "unsure")]
    medhop.post("/labels/undo", json={"annotator": "anna"})
    assert medhop.post("/labels/undo", json={"annotator": "anna"}).json() is None
    assert values(medhop) == values(medhop, "none") == []


def test_the_entities_of_a_pair_stand_in_any_order(medhop: TestClient) -> None:
    given = pair(1)
    assert medhop.post("/labels", json=[given | {"entities": given["entities"][::-1]}]).json() == 1
    assert medhop.post("/labels", json=[given | {"value": "no"}]).json() == 1
    assert values(medhop) == [("anna", "no")]


def answer_of(question: str = "MH_1", value: str = "supported", *passages: str, **others: Any) -> dict[str, Any]:
    evidence = [{"shape": "chain", "passages": list(passages)}] if passages else []
    return {"annotator": "anna", "question": question, "value": value, "evidence": evidence, **others}


def test_evidence_is_picked_exported_as_gold_and_counted_with_the_verdict(medhop: TestClient) -> None:
    assert (
        medhop.post("/labels", json=[answer_of("MH_1", "partly", "0", "1"), answer_of("a/b ?", "unsupported")]).json()
        == 2
    )
    (label,) = medhop.get("/labels?question=MH_1").json()
    assert (label["value"], label["evidence"][0]["passages"], label["unit"]["passages"]) == ("partly", ["0", "1"], [])
    rows = [json.loads(line) for line in medhop.get("/labels/export").text.splitlines()]
    assert rows == [
        {"id": "MH_1", "chains": [{"shape": "chain", "passages": ["0", "1"]}], "verdict": "partly"},
        {"id": "a/b ?", "chains": [], "verdict": "unsupported"},
    ]


@pytest.mark.parametrize(
    ("label", "status", "message"),
    [
        (answer_of("none", "unsure"), 404, "there is no question 'none'."),
        (answer_of("MH_1", "supported", "0", "9"), 404, "the question 'MH_1' has no passage '9'."),
        (answer_of("MH_1", "supported"), 422, "evidence: 'supported' needs the passages that support the answer."),
        (answer_of("MH_1", "yes", "0"), 422, "evidence: answers are labelled supported or"),
    ],
)
def test_a_verdict_that_does_not_fit_is_refused(
    medhop: TestClient, label: dict[str, Any], status: int, message: str
) -> None:
    answer = medhop.post("/labels", json=[label])
    assert answer.status_code == status
    assert answer.json()["error"]["message"].startswith(message)
    assert values(medhop) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": "none"}, "there is no question 'none'."),
        ({"passages": ["9"]}, "the question 'MH_1' has no such pair to label."),
        ({"entities": ["a", "b"]}, "the question 'MH_1' has no such pair to label."),
        ({"entities": ["\ud800", "x"]}, "the question 'MH_1' has no such pair to label."),
    ],
)
def test_labels_of_what_is_not_there_are_refused_all_together(
    medhop: TestClient, change: dict[str, Any], message: str
) -> None:
    body = json.dumps([pair(), pair(1) | change])
    answer = medhop.post("/labels", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, message)
    assert values(medhop) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"value": "maybe"}, "[0].value"),
        ({"annotator": ""}, "[0].annotator"),
        ({"annotator": "a\nb"}, "[0].annotator"),
        ({"annotator": "x" * 81}, "[0].annotator"),
        ({"annotator": "\u202eanna"}, "[0].annotator"),
        ({"passages": ["0", "1"]}, "[0].passages"),
        ({"passages": []}, "entities: "),
        ({"note": "x" * 2001}, "[0].note"),
        ({"settles": 1}, "[0].settles"),
    ],
)
def test_what_is_no_label_is_refused_by_field(medhop: TestClient, change: dict[str, Any], field: str) -> None:
    answer = medhop.post("/labels", json=[pair() | change])
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(field)


def test_a_thousand_labels_of_a_question_find_its_units_once(
    medhop: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Question] = []

    def counted(question: Question, *others: Any) -> Any:
        calls.append(question)
        return find_units(question, *others)

    monkeypatch.setattr("rechain.web.site.recent_units", remember(counted))
    assert medhop.post("/labels", json=[pair()] * 1000).json() == 1000
    assert len(calls) == 1


def test_agreement(medhop: TestClient) -> None:
    assert medhop.get("/labels/agreement").json() == []
    medhop.post("/labels", json=[pair(0), pair(1, value="no"), pair(0, "bob"), pair(1, "bob", "no")])
    (agreed,) = medhop.get("/labels/agreement").json()
    assert (agreed["annotators"], agreed["units"], agreed["equal"], agreed["mode"]) == (
        ["anna", "bob"],
        2,
        1.0,
        "pairs",
    )
    assert agreed["kappa"]["value"] == 1.0


def test_pairs_go_in_and_come_out_as_pairs_and_as_gold(medhop: TestClient) -> None:
    counts = medhop.post("/labels/import?annotator=paper", json=ROWS).json()
    assert counts == {"labels": 3, "other_questions": 0, "other_pairs": 0}
    exported = medhop.get("/labels/export?to=pairs")
    assert [json.loads(line) for line in exported.text.splitlines()] == ROWS
    assert 'filename="labels.pairs.jsonl"' in exported.headers["content-disposition"]
    gold = medhop.get("/labels/export")
    assert gold.headers["content-type"].startswith("application/x-ndjson")
    (line,) = gold.text.splitlines()
    told = json.loads(line)
    assert (told["id"], [chain["passages"] for chain in told["chains"]]) == ("MH_1", [["0", "1", "2"]])


def test_what_was_imported_of_other_pairs_can_be_settled(medhop: TestClient) -> None:
    other = {"id": "MH_1", "support": 0, "a": "x", "b": "y", "interacts": True}
    for name, says in (("anna", True), ("bob", False)):
        assert (
            medhop.post(f"/labels/import?annotator={name}", json=[other | {"interacts": says}]).json()["other_pairs"]
            == 1
        )
    assert "1 of 1 to resolve" in medhop.get("/label/disagreements").text
    settling = pair() | {"passages": ["0"], "entities": ["x", "y"], "settles": True}
    assert medhop.post("/labels", json=[settling]).status_code == 200
    assert "0 of 1 to resolve" in medhop.get("/label/disagreements").text


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [ROWS[0], ROWS[0] | {"interacts": False}],
            "the rows, line 2: an earlier line says the opposite of this pair; remove one of them.",
        ),
        ([GOLD, GOLD], "the rows, line 2: the id 'MH_1' stands there twice."),
        ([ROWS[0] | {"evidence": "x" * 2001}], "the rows, line 1: note has 2,001 characters; the most are 2,000."),
    ],
)
def test_rows_that_contradict_each_other_are_a_conflict(medhop: TestClient, rows: list[Any], message: str) -> None:
    answer = medhop.post("/labels/import?annotator=anna", json=rows)
    assert (answer.status_code, answer.json()) == (409, {"error": {"code": "conflict", "message": message}})
    assert values(medhop) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the body: list should have at least 1 item"),
        ([5], "[0]: input should be"),
        ([{}], "the field [0].id is missing."),
        ([ROWS[0] | {"interacts": 1}], "[0].interacts: input should be a valid boolean."),
        ([ROWS[0] | {"support": True}], "[0].support: input should be a valid integer."),
        ([ROWS[0] | {"support": 2**60}], "[0].support: input should be less than"),
        ([ROWS[0] | {"a": "\ud800"}], "the rows contain halves of characters"),
        ([GOLD | {"chains": [{"passages": []}]}], "[0].chains[0].passages: list should have at least 1 item"),
        ([GOLD | {"chains": [{"passages": ["0"], "ordered": 0}]}], "[0].chains[0].ordered: input should be"),
        ([GOLD | {"chains": [{"passages": ["0"], "links": ["\udfff"]}]}], "the rows contain halves of characters"),
    ],
)
def test_what_are_no_rows_is_refused_by_field(medhop: TestClient, rows: list[Any], message: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = medhop.post("/labels/import?annotator=anna", content=json.dumps(rows), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(message)


def test_who_imports_is_named(medhop: TestClient) -> None:
    for query in ("", "?annotator=", "?annotator=%0Aa", "?annotator=%20"):
        answer = medhop.post(f"/labels/import{query}", json=ROWS)
        assert (answer.status_code, "annotator" in answer.text) == (422, True)


def test_an_export_is_sent_as_it_is_made() -> None:
    made = list[int]()

    def rows() -> Iterator[dict[str, str]]:
        for number in range(100):
            made.append(number)
            yield {"text": "x" * 1000}

    parts = _in_parts(rows())
    first = next(parts)
    assert len(made) < 20
    assert (first + b"".join(parts)).count(b"\n") == len(made) == 100
    assert list(_in_parts(iter(()))) == [b""]


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, errno.ENOSPC])
def test_a_full_disk_is_a_fault_of_the_server(
    medhop: TestClient, medhop_site: Site, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    error: Exception = OSError(code, "No space left on device")
    if code == sqlite3.SQLITE_FULL:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = code  # type: ignore[attr-defined]

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(store, "_set_current", fail)
    answer = medhop.post("/labels", json=[pair()])
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "full_disk")
    monkeypatch.undo()
    assert medhop.post("/labels", json=[pair()]).status_code == 200
    monkeypatch.setattr(medhop_site.results, "add", fail)
    answer = medhop.post("/try", data={"question": "Who?", "answer": "Ann", "passages": "It is Ann.\n\nAnn is it."})
    assert answer.status_code == (507 if code == sqlite3.SQLITE_FULL else 500)


def test_passages_by_id_without_an_index_are_a_mistake_of_the_request(medhop: TestClient) -> None:
    asked = {"question": "Who?", "answer": "Ann", "passage_ids": ["0"]}
    assert medhop.post("/recover", json=asked).status_code == 422
    assert medhop.post("/recover", json=[asked | {"passages": ["Ann"]}]).status_code == 200
