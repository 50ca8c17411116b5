"""The description of the REST interface: its page, and that a fuzzer finds no request that contradicts it."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from threading import Thread
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from rechain.version import __version__
from rechain.web.app import create_app
from rechain.web.openapi import kind_of
from rechain.web.site import Site

Make = Callable[..., Any]
PATHS = {
    "/recover": ["post"],
    "/questions": ["get"],
    "/questions/{id}": ["get"],
    "/health": ["get"],
    "/sources": ["get"],
    "/version": ["get"],
    "/labels": ["get", "post"],
    "/labels/undo": ["post"],
    "/labels/agreement": ["get"],
    "/labels/export": ["get"],
    "/labels/import": ["post"],
    "/search": ["get"],
    "/documents/{name}": ["get"],
}


def test_all_that_programs_may_ask_is_described_and_no_page(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert {path: sorted(methods) for path, methods in described["paths"].items()} == PATHS
    refusals = described["paths"]["/recover"]["post"]["responses"]
    assert {"200", "401", "403", "409", "413", "422", "429", "503"} == set(refusals)
    assert refusals["422"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Refused"}


def test_the_page_shows_every_operation_and_schema(client: TestClient, seen: Make) -> None:
    page = seen(client.get("/docs").text)
    described = client.get("/openapi.json").json()
    for path, methods in PATHS.items():
        for method in methods:
            assert f"{method.upper()} {path}" in page.text
    for name in described["components"]["schemas"]:
        assert f"schema-{name}" in page.attributes("details", "id")
    assert page.attributes("script", "src") == [f"/static/keys.js?v={__version__}"]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"$ref": "#/components/schemas/Gold"}, "Gold"),
        ({"enum": ["a", 1]}, '"a" | 1'),
        ({"const": "ok"}, '"ok"'),
        ({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]}, "number from 0 to 1 or null"),
        ({"type": "array", "items": {"oneOf": [{"type": "string"}, {}]}}, "list of string or anything"),
    ],
)
def test_schemas_in_a_few_words(schema: dict[str, Any], kind: str) -> None:
    assert kind_of(schema) == kind


@contextmanager
def served(site: Site) -> Iterator[str]:
    """Serve a site at a free port."""
    listening = create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(site), log_level="error"))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["town_site", "handbook_site"])
def test_schemathesis_finds_nothing(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    fuzzer = Path(sys.executable).parent / "schemathesis"
    options = ["--max-examples=40", "--seed=1", "--continue-on-failure", "--no-color"]
    with served(request.getfixturevalue(name)) as address:
        command = [str(fuzzer), "run", f"{address}/openapi.json", *options]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1200)
    assert ended.returncode == 0, ended.stdout
    assert "failed" not in ended.stdout


def test_the_example_names_the_address_at_which_the_page_was_asked_for(town_site: Site) -> None:
    client = TestClient(create_app(town_site), base_url="http://localhost:8123")
    assert "curl http://localhost:8123/recover" in client.get("/docs").text
