"""rechain serve: mistakes are told at once and in one sentence, and a real server starts, answers and ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from starlette.testclient import TestClient
from tests.cli.common import Command

from rechain.cli.serve import _token
from rechain.errors import RechainError
from rechain.formats.datasets import Entry
from rechain.scoring.results import Options


@pytest.fixture
def serve(rechain: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `rechain serve` where a model that is loaded or a server that starts is an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECHAIN_TOKEN", raising=False)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("this should not be reached")

    monkeypatch.setattr("rechain.reader.pretrained.load", never)
    monkeypatch.setattr("uvicorn.Server.run", never)
    return lambda *arguments: rechain("serve", "--port", "0", *arguments)


def assert_refused(outcome: Any, message: str) -> None:
    assert (outcome.code, outcome.out) == (2, "")
    last = outcome.err.splitlines()[-1]
    assert last.startswith("rechain: ")
    assert message in last
    assert "Traceback" not in outcome.err


def test_a_port_that_is_taken(serve: Command, town_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = serve(town_file, "--port", port)
    assert_refused(outcome, f"127.0.0.1, port {port}, cannot be listened at: Address already in use; name another")


@pytest.mark.parametrize("host", ["256.0.0.1", "no.such.host.invalid", "192.0.2.1", "x" * 64])
def test_a_host_that_is_not_here(serve: Command, town_file: Path, host: str) -> None:
    assert_refused(serve(town_file, "--host", host), f"{host}, port 0, cannot be listened at: ")


@pytest.mark.parametrize("token", ["short", "", "1234567", "ünicode-token", "new\nline-token"])
def test_a_bad_token(serve: Command, town_file: Path, token: str) -> None:
    assert_refused(serve(town_file, "--token", token), "a token has at least 8 characters, all of which are printable")


def test_other_hosts_get_a_token_that_is_made_up() -> None:
    for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost"):
        assert _token(host, None) is None
    made = {_token(host, None) for host in ("0.0.0.0", "::", "192.168.0.1", "example.org")}
    assert len(made) == 4
    assert all(token and len(token) >= 24 for token in made)
    assert _token("0.0.0.0", "my own token") == _token("localhost", "my own token") == "my own token"
    with pytest.raises(RechainError):
        _token("0.0.0.0", "")


def test_files_that_are_not_there(serve: Command, town_file: Path) -> None:
    assert_refused(serve("none.jsonl"), "none.jsonl")
    assert_refused(serve(town_file, "--chains", "none.jsonl"), "none.jsonl")
    assert_refused(serve(town_file, "--gold", "none.jsonl"), "none.jsonl")
    assert_refused(serve(town_file, "--guidelines", "none.txt"), "none.txt cannot be read as text")


def test_guidelines_that_are_no_text(serve: Command, town_file: Path, tmp_path: Path) -> None:
    (tmp_path / "guide.txt").write_bytes(b"\xff\xfe\x00")
    assert_refused(serve(town_file, "--guidelines", "guide.txt"), "guide.txt cannot be read as text")


@pytest.mark.parametrize(
    ("path", "message"),
    [("folder", "is a folder"), ("none/labels.db", "there is no folder"), ("text.db", "is not a file of labels")],
)
def test_labels_that_cannot_be_kept(serve: Command, town_file: Path, tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("this is a text of many words")
    assert_refused(serve(town_file, "--labels", path), message)


def test_chains_of_other_questions(serve: Command, town_file: Path, tmp_path: Path) -> None:
    row = json.dumps({"id": "x", "chains": []})
    (tmp_path / "other.jsonl").write_text(row)
    (tmp_path / "twice.jsonl").write_text(f"{row}\n{row}")
    (tmp_path / "bad.jsonl").write_text('{"id": "x"}')
    assert_refused(serve(town_file, "--chains", "other.jsonl"), "other.jsonl has chains for none of these questions.")
    assert_refused(serve(town_file, "--chains", "twice.jsonl"), "the id 'x' stands there twice.")
    assert_refused(serve(town_file, "--chains", "bad.jsonl"), "the field chains is missing")


def test_gold_of_other_questions(serve: Command, town_file: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text('{"id": "else", "chains": []}\n')
    assert_refused(serve(town_file, "--gold", gold), f"{gold} has gold for none of these questions.")


def test_a_file_without_questions(serve: Command, tmp_path: Path, town_file: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    assert_refused(serve("empty.jsonl"), "empty.jsonl is empty.")
    assert_refused(serve(town_file, "--only", "bridge"), "holds no question of type bridge")


def test_an_extra_that_is_missing(serve: Command, town_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert_refused(serve(town_file), "rechain serve needs an extra that is not installed: pip install 'rechain[web]'.")


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [(signal.SIGINT, 130, "rechain: interrupted."), (signal.SIGTERM, 143, "rechain: stopped by SIGTERM.")],
)
def test_a_server_starts_answers_and_ends_by_a_signal(
    tmp_path: Path, town_file: Path, number: int, code: int, sentence: str
) -> None:
    question = json.loads(town_file.read_text().splitlines()[1])
    (tmp_path / "more.jsonl").write_text(json.dumps(question | {"id": "a%2Fb/ü"}) + "\n" + json.dumps(question))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "RECHAIN_TOKEN": "se+cret &1"}
    command = [sys.executable, "-m", "rechain.cli.main", "serve", "more.jsonl", "--model", "lexical", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            told = next(
                found for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/\?token=(\S+)", line))
            )
            assert told[1] == "se%2Bcret%20%261"
            address = told[0].partition("?")[0]
            with urlopen(f"{address}health") as answer:
                assert json.load(answer)["status"] == "ok"
            known = Request(f"{address}questions/a%252Fb%2F%C3%BC", headers={"Authorization": "Bearer se+cret &1"})
            with urlopen(known) as answer:
                assert json.load(answer)["recovered"]["id"] == "a%2Fb/ü"
            server.send_signal(number)
            assert server.wait(300) == code
            assert server.stderr.read().splitlines() == [sentence]
        finally:
            server.kill()


def test_the_provenance_of_chains_is_shown_and_what_does_not_fit_is_warned_of(
    rechain: Command, tmp_path: Path, town_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rechain.web import app as web

    monkeypatch.chdir(tmp_path)
    clients: list[TestClient] = []
    create_app = web.create_app

    def connect(site: Any, **_: Any) -> Any:
        clients.append(TestClient(create_app(site), base_url="http://127.0.0.1", headers={"Accept": "text/html"}))
        return clients[-1].app

    monkeypatch.setattr("rechain.web.app.create_app", connect)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    assert rechain("recover", town_file, "--model", "lexical", "--out", "chains.jsonl", "--workers", "0").code == 0
    (tmp_path / "fewer.jsonl").write_text("".join(town_file.read_text().splitlines(keepends=True)[:2]))
    for questions, warnings in ((town_file, 0), ("fewer.jsonl", 1)):
        outcome = rechain("serve", questions, "--chains", "chains.jsonl", "--model", "lexical", "--port", "0")
        assert outcome.code == 0, outcome.err
        assert outcome.err.count("warning: chains.jsonl was recovered from other questions") == warnings
        by_file, by_model = clients[-1].get("/sources").json()
        assert (by_file["kind"], by_model["kind"]) == ("file", "model")
        assert by_file["made_by"]["model"] == by_model["made_by"]["model"] == {"name": "lexical"}
        assert len(by_file["warnings"]) == warnings
        for path in ("/", "/question?id=town-1", "/compare", "/compare/question?id=town-1"):
            page = clients[-1].get(path).text
            assert "chains.jsonl: by rechain" in page
            assert page.count("was recovered from other questions") == warnings
        clients[-1].app.state.site.close()


@pytest.fixture
def open_site(rechain: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run `rechain serve` up to the server, and return the site that it would serve."""
    sites: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rechain.web.app.create_app", lambda site, **_: sites.append(site))
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)

    def run(*arguments: Any) -> Any:
        outcome = rechain("serve", *arguments, "--model", "lexical", "--port", "0")
        assert outcome.code == 0, outcome.err
        sites[-1].notes = outcome.err
        return sites[-1]

    yield run
    for site in sites:
        site.close()


def test_sources_are_named_after_their_files_and_the_folders_stay_here(
    open_site: Any, rechain: Command, tmp_path: Path, town_file: Path
) -> None:
    paths = [tmp_path / "private" / name / "chains.jsonl" for name in ("one", "two")]
    for path in paths:
        path.parent.mkdir(parents=True)
        assert rechain("recover", town_file, "--model", "lexical", "--out", path, "--workers", "0").code == 0
    fewer = tmp_path / "private" / "fewer.jsonl"
    fewer.write_text("".join(town_file.read_text().splitlines(keepends=True)[:2]))
    site = open_site(fewer, "--chains", paths[0], "--chains", paths[1])
    assert [source.name for source in site.sources] == ["chains.jsonl", "chains.jsonl (2)", "lexical"]
    for source in site.sources[:2]:
        assert source.origin.warnings
        assert not any("private" in text for text in (source.origin.summary, *source.origin.warnings))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """The folder of an index of two documents."""
    from rechain.index import BuildSettings, build_index

    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "opera.md").write_text("# Zorilla\n\nZorilla is an opera by Anton Quillfeather.\n")
    (documents / "people.md").write_text("# Anton Quillfeather\n\nAnton Quillfeather was born in Prague.\n")
    build_index([documents], tmp_path / "index", BuildSettings(workers=0))
    return tmp_path / "index"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_a_running_server_takes_up_an_index_that_is_built_again(index: Path, tmp_path: Path) -> None:
    """So does the process of the model, whether it lives or died meanwhile."""
    from rechain.index import build_index

    people = tmp_path / "documents" / "people.md"
    question = "Where was the composer of Zorilla born?"

    def get(path: str, body: object = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{address}{path}", content, {"Content-Type": "application/json"}), timeout=60) as answer:
            return json.load(answer)

    command = [sys.executable, "-m", "rechain.cli.main", "serve", "--corpus", str(index), "--model", "lexical"]
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        try:
            assert server.stderr is not None
            address = next(found[1] for line in server.stderr if (found := re.search(r"at (http\S+)", line)))
            for generation, town in enumerate(("Vienna", "Lisbon", "Graz"), start=2):
                people.write_text(f"# Anton Quillfeather\n\nAnton Quillfeather was born in {town}.\n")
                stamp = build_index([people.parent], index).info.stamp
                if generation == 4:
                    for model in model_processes(server.pid):
                        os.kill(model, signal.SIGKILL)
                record = get("recover", {"question": question, "answer": town})
                assert record["collection"] == stamp
                assert any(town in passage["text"] for passage in record["passages"])
                assert get("health")["generation"] == f"generation-{generation}"
        finally:
            server.kill()


def model_processes(server: int) -> list[int]:
    """Return the processes below a server that stand back behind it."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    below = [one for child in map(int, children) for one in (child, *model_processes(child))]
    return [one for one in below if os.getpriority(os.PRIO_PROCESS, one) > os.getpriority(os.PRIO_PROCESS, server)]


def test_questions_without_passages_are_served_with_those_of_an_index(
    open_site: Command, index: Path, tmp_path: Path
) -> None:
    asked = {"question": "Where was the composer of Zorilla born?", "answer": "Prague"}
    own = {"id": "mine", "text": "Prague is a city."}
    rows = [{"id": "a", **asked}, {"id": "b", **asked, "passages": [own]}]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    site = open_site("log.jsonl", "--corpus", index, "--found", "1")
    bare, noted = (site.question(name) for name in "ab")
    assert (len(bare.content.passages), bare.own) == (1, frozenset())
    assert (noted.content.passages[0].id, noted.own) == ("mine", {"mine"})
    entry = Entry("", "a", bare.content, own=bare.own)
    (recovered,) = site.recovery.recover_together([(entry, Options())])
    assert recovered.collection == site.corpus.index.stamp


def test_chains_of_another_collection_are_warned_of(open_site: Command, index: Path, tmp_path: Path) -> None:
    row = {"id": "a", "question": "Where was the composer of Zorilla born?", "answer": "Prague"}
    (tmp_path / "log.jsonl").write_text(json.dumps(row))
    for stamp, warnings in (("0123456789abcdef", 1), (None, 0)):
        (tmp_path / "chains.jsonl").write_text(json.dumps({"id": "a", "collection": stamp, "chains": []}))
        notes = open_site("log.jsonl", "--corpus", index, "--chains", "chains.jsonl").notes
        assert notes.count("warning: chains.jsonl was recovered from another collection than the index") == warnings


def test_an_index_alone_is_served_without_the_examples(open_site: Command, index: Path) -> None:
    site = open_site("--corpus", index)
    assert (len(site.index), len(site.corpus.index), site.has_gold) == (0, 2, False)
