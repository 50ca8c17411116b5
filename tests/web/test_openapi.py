"""The description of the REST interface: complete, and a fuzzer finds no request that contradicts it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from threading import Thread
from typing import Annotated, Any

import pytest
import uvicorn
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from rechain.web import api, desk, document_pages, label_api, pages
from rechain.web.app import create_app
from rechain.web.site import Site

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


def lists_in(schema: object) -> Iterator[dict[str, Any]]:
    """Yield the lists in one of pydantic's schemas."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list | tuple) else ()
    if isinstance(schema, dict) and schema.get("type") in ("list", "tuple", "set", "dict"):
        yield schema
    for one in inner:
        yield from lists_in(one)


def test_every_list_of_a_request_is_bounded_and_fails_at_its_first_error() -> None:
    bodies = [
        body
        for part in (api, label_api, document_pages, pages, desk)
        for route in part.router.routes
        if isinstance(route, APIRoute) and (body := route.body_field)
    ]
    kinds = [Annotated[body.field_info.annotation, body.field_info] for body in bodies]
    found = [one for kind in kinds for one in lists_in(TypeAdapter(kind).core_schema)]
    assert len(found) > 10
    assert [one for one in found if not one.get("max_length") or not one.get("fail_fast")] == []


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
