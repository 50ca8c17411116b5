"""The description of the REST interface: complete, and a fuzzer finds no request that contradicts it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from threading import Thread

import pytest
import uvicorn
from starlette.testclient import TestClient

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
