"""What the server counts is what has happened, and nobody can make it count without end."""

import re
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from rechain.schema import Passage, Question
from rechain.web.site import Site

Make = Any


def counts_of(client: TestClient, **headers: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values of every metric, by its labels' values."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    counts: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            counts.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return counts


def test_requests_are_counted_by_route_and_status(client: TestClient) -> None:
    for path in ("/questions/town-1", "/questions/town-2", "/questions/nowhere", "/static/style.css", "/static/none"):
        client.get(path)
    client.head("/metrics")
    client.head("/questions/town-1")
    client.post("/recover", content="{")
    counts = counts_of(client)
    requests = counts["rechain_requests_total"]
    assert requests["GET", "/questions/{id:anything}", "200"] == 2
    assert requests["GET", "/questions/{id:anything}", "404"] == 1
    assert requests["GET", "/static", "200"] == requests["GET", "/static", "404"] == 1
    assert requests["HEAD", "/metrics", "200"] == requests["HEAD", "/questions/{id:anything}", "200"] == 1
    assert requests["POST", "/recover", "422"] == 1
    assert counts["rechain_request_seconds_count"]["GET", "/questions/{id:anything}"] == 3
    assert counts["process_resident_memory_bytes"][()] > 1_000_000


def test_what_does_not_exist_adds_no_label(client: TestClient) -> None:
    for number in range(30):
        client.get(f"/nowhere/{number}")
        client.request(f"METHOD{number}", "/questions")
    routes = {labels[:2] for labels in counts_of(client)["rechain_requests_total"]}
    assert routes <= {("GET", "other"), ("other", "other"), ("other", "/questions")}


def test_questions_and_labels_are_counted(
    client: TestClient, town_site: Site, towns: Make, bridge_question: Question
) -> None:
    lost = bridge_question.model_copy(update={"passages": [Passage(id="x", text="Nothing is here.")]})
    body = [one.model_dump(mode="json", exclude_none=True) for one in (*towns(2), lost)]
    assert client.post("/recover", json=body).status_code == 200
    label = {"annotator": "anna", "value": "unsupported", "question": "town-1"}
    assert client.post("/labels", json=[label]).status_code == 200
    counts = counts_of(client)
    assert counts["rechain_questions_recovered_total"][()] == 3
    assert sum(counts["rechain_question_errors_total"].values()) == 1
    assert counts["rechain_questions_waiting"][()] == 0
    assert counts["rechain_questions_served"][()] == 6
    assert counts["rechain_labels_written_total"][()] == 1


def test_every_site_counts_by_itself_and_shows_it_to_those_who_know_the_token(
    town_site: Site, make_site: Make, towns: Make, connect: Make
) -> None:
    guarded, other = connect(town_site, token="a secret"), connect(make_site(towns(2)))
    assert guarded.get("/metrics").status_code == 401
    counts = counts_of(guarded, Authorization="Bearer a secret")
    assert counts["rechain_requests_total"]["GET", "other", "401"] == 1
    assert not any(re.search("40", status) for _, _, status in counts_of(other).get("rechain_requests_total", {}))
