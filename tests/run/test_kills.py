"""kill -9 at any moment, of the command or of one of its workers: the same bytes in the end, and true provenance."""

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from rechain.recoverer import BATCH_SIZE
from rechain.schema import Question
from rechain.system.provenance import read_lines, read_provenance, sidecar_of

Towns = Callable[..., list[Question]]
RECOVER = [sys.executable, "-c", "from rechain.cli.main import main; main()", "recover", "--model", "lexical"]
KILLS = 20
WORKER_KILLS = 5

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc"),
]


@pytest.fixture(scope="module")
def questions(towns: Towns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions of HotpotQA where they are, else so many invented ones that they take about as long."""
    real = Path(__file__).parents[3] / "shared" / "data" / "hotpotqa" / "open.json.gz"
    if real.exists():
        return real
    path = tmp_path_factory.mktemp("questions") / "towns.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for question in towns(1000) * 20:
            file.write(question.model_dump_json(exclude_none=True) + "\n")
    return path


def begin(questions: Path, out: Path, *options: str) -> "subprocess.Popen[str]":
    """Start the command in a session of its own, by which all its processes are known."""
    command = [*RECOVER, str(questions), "--out", str(out), "--workers", "2", *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.fixture(scope="module")
def undisturbed(questions: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, float]:
    """What a run writes that nobody disturbs, and how long it takes once it has begun to write."""
    out = tmp_path_factory.mktemp("undisturbed") / "chains.jsonl"
    process = begin(questions, out)
    wait_for_lines(process, out, 1)
    start = time.monotonic()
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return out.read_bytes(), time.monotonic() - start


def wait_for_lines(process: "subprocess.Popen[str]", out: Path, size: int) -> None:
    """Wait until the file has so many bytes, or the process has ended."""
    while process.poll() is None and not (out.exists() and out.stat().st_size >= size):
        time.sleep(0.005)


def running(session: int) -> dict[int, int]:
    """Return the processes of a session that run, each with its parent."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if its_session == str(session) and state != "Z":
            found[int(stat.parent.name)] = int(parent)
    return found


def are_gone(session: int, seconds: float = 300.0) -> bool:
    limit = time.monotonic() + seconds
    while running(session) and time.monotonic() < limit:
        time.sleep(0.02)
    return not running(session)


def test_a_run_that_is_killed_twenty_times_ends_with_the_same_bytes(
    questions: Path, tmp_path: Path, undisturbed: tuple[bytes, float]
) -> None:
    expected, usual = undisturbed
    random, out, kills = Random(0), tmp_path / "chains.jsonl", 0
    while kills < KILLS:
        before = out.read_bytes() if out.exists() else b""
        assert expected.startswith(before)
        process = begin(questions, out, "--resume")
        if kills % 4:  # every fourth is killed at any moment of its start
            wait_for_lines(process, out, len(before) + 1)
            time.sleep(random.uniform(0, 1.5 * usual / KILLS))
        else:
            time.sleep(random.uniform(0.1, 2))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        _, said = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), said
        assert are_gone(process.pid)
        if process.returncode == 0:  # it was finished before all kills were used: the rest hit another run
            assert out.read_bytes() == expected
            out = tmp_path / f"chains{kills}.jsonl"
        else:
            assert_covers(out)
    last = begin(questions, out, "--resume")
    _, said = last.communicate(timeout=600)
    assert last.returncode == 0, said
    assert out.read_bytes() == expected
    for path in tmp_path.glob("*.jsonl"):
        assert_tells_all(path, expected)


def assert_covers(out: Path) -> None:
    """Assert that no more than the last two chunks are in an output and in no checkpoint."""
    if out.exists() and out.stat().st_size:
        covered = max((line["size"] for line in read_lines(sidecar_of(out)) if "records" in line), default=0)
        assert out.read_bytes()[covered:].count(b"\n") <= 2 * BATCH_SIZE


def assert_tells_all(out: Path, expected: bytes) -> None:
    provenance = read_provenance(out)
    assert provenance and provenance.end and not provenance.misfits()
    lines = expected.count(b"\n")
    assert lines == provenance.end["questions"]
    assert lines == provenance.end["with_chain"] + sum(provenance.end["errors"].values())


def workers_of(session: int) -> list[int]:
    """Return the processes that the command's own child has started: its workers."""
    parents = running(session)
    return sorted(process for process, parent in parents.items() if parents.get(parent) == session)


def test_a_run_whose_workers_are_killed_ends_with_the_same_bytes(
    questions: Path, tmp_path: Path, undisturbed: tuple[bytes, float]
) -> None:
    """Nobody needs to go on with it."""
    expected, _ = undisturbed
    random, out = Random(1), tmp_path / "chains.jsonl"
    process = begin(questions, out)
    killed = []
    for kill in range(WORKER_KILLS):
        wait_for_lines(process, out, len(expected) * (kill + 1) // (WORKER_KILLS + 2))
        time.sleep(random.uniform(0, 0.1))
        killed.append(random.choice(workers_of(process.pid)))
        os.kill(killed[-1], signal.SIGKILL)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert len(set(killed)) == WORKER_KILLS
    assert out.read_bytes() == expected
    assert len([line for line in said.splitlines() if " recover " not in line]) == 1  # the report, beside a log
    assert are_gone(process.pid)
    assert_tells_all(out, expected)
