"""Files in a store: moto's server speaks S3 on this machine, and every command reads from it."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from rechain.errors import RechainError
from rechain.formats.datasets import read_questions
from rechain.system.files import path_of, without_keys

KEYS = {"AWS_ACCESS_KEY_ID": "AKIATESTKEY", "AWS_SECRET_ACCESS_KEY": "secretsecret", "AWS_DEFAULT_REGION": "us-east-1"}
PASSAGES = [
    {"id": "a", "title": "Zorilla", "text": "Zorilla is an opera by Anton Quillfeather."},
    {"id": "b", "title": "Anton Quillfeather", "text": "Anton Quillfeather was born in Prague."},
]
ASKED = {"question": "Where was the composer of Zorilla born?", "answer": "Prague", "type": "bridge"}
QUESTIONS = [ASKED | {"id": f"q{number}", "passages": PASSAGES} for number in range(3)]


def lines(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Serve a bucket of questions, and give the environment in which it is found."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = KEYS | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    table = tmp_path_factory.mktemp("tables") / "q.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(QUESTIONS), table)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        bucket = boto3.resource("s3").create_bucket(Bucket="bucket")
        for name, content in {
            "q.jsonl": lines(*QUESTIONS),
            "q.jsonl.gz": gzip.compress(lines(*QUESTIONS)),
            "q.parquet": table.read_bytes(),
            "folder/1.jsonl": lines(QUESTIONS[0]),
            "folder/2.jsonl.gz": gzip.compress(lines(*QUESTIONS[1:])),
            "folder/_hidden.jsonl": b"7\n",
            "named.jsonl": lines(*(ASKED | {"id": f"q{number}", "passage_ids": ["a", "b"]} for number in range(3))),
            "passages.jsonl": lines(*PASSAGES),
            "gold.jsonl": lines(*({"id": f"q{n}", "chains": [{"passages": ["a", "b"]}]} for n in range(3))),
        }.items():
            bucket.put_object(Key=name, Body=content)
        yield environment
    server.stop()


def run(environment: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    command = [sys.executable, "-m", "rechain.cli.main", *map(str, arguments)]
    return subprocess.run(command, env=others | environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["q.jsonl", "q.jsonl.gz", "q.parquet", "folder"])
def test_questions_are_read_from_a_store_as_from_a_disk(store: dict[str, str], name: str) -> None:
    assert [question.id for question in read_questions(f"s3://bucket/{name}")] == ["q0", "q1", "q2"]


@pytest.mark.slow
def test_passages_are_read_from_a_store(store: dict[str, str]) -> None:
    questions = list(read_questions("s3://bucket/named.jsonl", passages="s3://bucket/passages.jsonl"))
    assert [passage.id for passage in questions[2].passages] == ["a", "b"]


@pytest.mark.slow
def test_every_command_reads_from_a_store(store: dict[str, str], tmp_path: Path) -> None:
    chains, here = tmp_path / "chains.jsonl", tmp_path / "q.jsonl"
    here.write_bytes(lines(*QUESTIONS))
    options = ("--model", "lexical", "--workers", "2", "--batch-size", "1")
    named = ("recover", "s3://bucket/named.jsonl", "--passages", "s3://bucket/passages.jsonl", *options)
    done = run(store, *named, "--out", chains)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in chains.read_text().splitlines()]
    assert {len(record.pop("collection")) for record in records} == {16}  # the file of passages is a collection
    assert records == [json.loads(line) for line in run({}, "recover", here, *options).stdout.splitlines()]
    assert run(store, *named, "--out", chains, "--resume").stderr.startswith("Nothing was left to do")
    gold = ("--gold", "s3://bucket/gold.jsonl")
    assert run(store, "candidates", "s3://bucket/q.parquet", *gold).returncode == 0
    done = run(store, "evaluate", chains, "s3://bucket/q.jsonl.gz", *gold)
    assert (done.returncode, "100.0 %" in done.stdout) == (0, True), done.stderr
    done = run(store, "export", chains, "--to", "paths", "--questions", "s3://bucket/folder")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done.stderr


@pytest.mark.parametrize(
    ("address", "change", "message"),
    [
        ("s3://bucket/none.jsonl", {}, "s3://bucket/none.jsonl cannot be read: there is no such file or bucket."),
        ("s3://nobody/q.jsonl", {}, "s3://nobody/q.jsonl cannot be read: there is no such file or bucket."),
        ("s3://bucket/q.jsonl", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "the store does not answer"),
        ("s3://bucket/q.jsonl", dict.fromkeys(KEYS, ""), "there are no keys; set AWS_ACCESS_KEY_ID"),
        ("s3://AKIATESTKEY:secretsecret@bucket/q.jsonl", {}, "an address should hold no keys"),
        ("nostore://bucket/q.jsonl", {}, "no address of a known kind of store"),
    ],
    ids=["no file", "no bucket", "no server", "no keys", "keys in the address", "no store"],
)
@pytest.mark.slow
def test_what_is_wrong_with_a_store_is_one_sentence(
    store: dict[str, str], address: str, change: dict[str, str], message: str
) -> None:
    done = run(store | change | {"AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nowhere"}, "candidates", address)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert "secretsecret" not in done.stderr and "AKIATESTKEY" not in done.stderr


@pytest.mark.slow
def test_output_into_a_store_is_for_ray(store: dict[str, str]) -> None:
    done = run(store, "recover", "s3://bucket/q.jsonl", "--out", "s3://bucket/chains.jsonl")
    assert (done.returncode, "--engine ray" in done.stderr) == (2, True)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(RechainError, match=r"pip install 'rechain\[stores\]'"):
        path_of("s3://bucket/q.jsonl")


@pytest.mark.parametrize(
    "address",
    [
        "s3://KEY:hidden@bucket/x",
        "s3://KEY:SEC/hidden@bucket/x",
        "s3://hidden@bucket",
        "simplecache::s3://KEY:hidden@bucket/x",
        "s3://bucket/x.zip::s3://KEY:hidden@bucket/x",
        "https://bucket/x?Signature=hidden",
    ],
)
def test_an_address_with_keys_is_refused_without_showing_them(address: str) -> None:
    with pytest.raises(RechainError) as failure:
        path_of(address)
    assert "hidden" not in str(failure.value)


@pytest.mark.parametrize("address", ["s3://[x", "gs://bucket/x", "memory://x", "file:///x", "://x"])
def test_an_address_that_cannot_be_read_is_one_sentence(address: str) -> None:
    with pytest.raises(RechainError) as failure:
        path_of(address)
    assert str(failure.value).count("\n") == 0


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://KEY:hidden@bucket/a@b?region=x", "s3://bucket/a@b"),
        ("s3://KEY:SEC/RET@bucket/a", "s3://bucket/a"),
        ("s3://KEY@bucket/a", "s3://bucket/a"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("s3://[x", "s3://[x"),
        ("hdfs://host:80/a", "hdfs://host:80/a"),
        ("a@b?c", "a@b?c"),
    ],
)
def test_an_address_is_shown_without_its_keys(address: str, shown: str) -> None:
    assert without_keys(address) == shown


def test_a_local_path_stays_one(tmp_path: Path) -> None:
    assert path_of(str(tmp_path)) == tmp_path
    assert path_of(tmp_path) is tmp_path


@pytest.mark.parametrize("address", ["s3://", "s3:///", "s3:///q.jsonl"])
def test_an_address_without_a_bucket_says_so(address: str) -> None:
    with pytest.raises(RechainError, match=f"^{address} names no bucket; an address of a file is such as "):
        path_of(address)
