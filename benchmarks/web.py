"""How quick the pages of `rechain serve` are when fifty people explore, and that its memory does not grow.

    python benchmarks/web.py ../shared/data

Fifty users load pages of HotpotQA open (5,894 questions) for a while: the list, filtered lists, questions, and another
candidate of each. Once they think for a second between two pages, as people do; once they do not think at all, which
is the most that fifty can ask. Each is done twice with chains from a file, and with the default model recovering in
the background meanwhile. Then clients post a question each to /recover at the same moment. Server and users share
the machine's cores, so the server alone would be quicker. Last: how long annotators wait for their next question.
"""

import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from common import data_folder, family, memory_of, print_heading, print_rows

from rechain.candidates.units import Unit
from rechain.datasets import read_questions
from rechain.evaluation.statistics import kappa_with_interval
from rechain.labels.queue import Queue
from rechain.labels.store import Label, LabelStore
from rechain.schema import Question

USERS = 50
SECONDS = 20
THOUGHTS = (1.0, 0.0)
CLIENTS = 200
SEED = 0


class Server(NamedTuple):
    """A running server."""

    port: int
    process: int

    def memory(self) -> float:
        """Return its resident memory in megabytes."""
        return memory_of([self.process]).rss

    def cpu(self) -> float:
        """Return the seconds of computing that it has done so far."""
        return family(self.process)[self.process].cpu


@contextmanager
def serving(*arguments: object) -> Iterator[Server]:
    """Run `rechain serve` while something is done."""
    command = [sys.executable, "-m", "rechain.cli.main", "serve", *map(str, arguments), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("Serving"))
        yield Server(int(re.findall(r":(\d+)/", line)[0]), process.pid)
        process.terminate()


class Connection:
    """A connection that is kept, as browsers keep theirs."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, float]:
        """Send a request; return the status and the seconds until the answer was whole."""
        start = time.perf_counter()
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._server.port)
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
        return int(head[9:12]), time.perf_counter() - start


def get(path: str) -> bytes:
    """Return a request for a page."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    """Return a request that sends JSON."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def pages(draw: random.Random, questions: Sequence[Question]) -> Iterator[str]:
    """Yield the paths that a user goes along."""
    while True:
        question = draw.choice(questions)
        word = draw.choice(question.question.split())
        yield draw.choice(
            ["/", f"/?page={draw.randint(1, 100)}", "/?judgement=wrong", "/?kind=name&order=least+confident"]
        )
        yield "/?" + urlencode({"text": word})
        yield f"/question?id={quote(question.id)}"
        yield f"/question?id={quote(question.id)}&chain={draw.randint(2, 4)}"


async def explore(server: Server, user: int, questions: Sequence[Question], thought: float) -> list[float]:
    """Load pages for a while; return how long each took."""
    draw, connection = random.Random(SEED + user), Connection(server)
    took, end = [], time.perf_counter() + SECONDS
    await asyncio.sleep(draw.random() * thought)
    for path in pages(draw, questions):
        if time.perf_counter() >= end:
            break
        status, seconds = await connection.ask(get(path))
        assert status == 200, (status, path)
        took.append(seconds)
        await asyncio.sleep(draw.uniform(0, 2 * thought))
    return took


async def explored(server: Server, questions: Sequence[Question], thought: float) -> list[float]:
    """Let all users explore at once."""
    users = [explore(server, user, questions, thought) for user in range(USERS)]
    return [seconds for took in await asyncio.gather(*users) for seconds in took]


def row(what: str, thought: float, server: Server, questions: Sequence[Question]) -> Sequence[object]:
    """Measure one way of exploring."""
    before, computed = server.memory(), server.cpu()
    took = sorted(asyncio.run(explored(server, questions, thought)))
    at = statistics.quantiles(took, n=100)
    in_ms = (f"{1000 * value:.0f}" for value in (at[49], at[94], at[98]))
    rate = f"{len(took) / SECONDS:.0f}"
    each = f"{1000 * (server.cpu() - computed) / len(took):.1f}"
    return what, thought, len(took), rate, *in_ms, each, f"{before:.0f} → {server.memory():.0f}"


async def posted(server: Server, questions: Sequence[Question]) -> list[tuple[int, float]]:
    """Let all clients post one question each at the same moment."""
    bodies = [json.dumps(question.model_dump(exclude_defaults=True)).encode() for question in questions]
    return await asyncio.gather(*(Connection(server).ask(post("/recover", body)) for body in bodies))


def print_posts(server: Server, questions: Sequence[Question]) -> None:
    """Post in bursts and count the answers."""
    rows = []
    for number in range(3):
        burst = questions[number * 2 * CLIENTS : (number * 2 + 2) * CLIENTS]
        for clients, burst_part in ((CLIENTS, burst[:CLIENTS]), (2 * CLIENTS, burst)):
            start = time.perf_counter()
            answers = asyncio.run(posted(server, burst_part))
            seconds = time.perf_counter() - start
            counts = Counter(status for status, _ in answers)
            rows.append((clients, counts[200], counts[429], f"{counts[200] / seconds:.1f}", f"{server.memory():.0f}"))
    print_rows(("clients at once", "answered 200", "answered 429", "questions/s", "memory, MB"), rows)


def print_labelling(folder: Path, questions: Sequence[Question]) -> None:
    """Measure what the desk waits for: the next of many questions, and kappa with its interval."""
    store = LabelStore(folder / "queue")
    queue = Queue(store, overlap=0.2)
    ids = [question.id for question in questions]
    units = {name: Unit(question=name, passages=("1",), entities=("a", "b")) for name in ids}
    store.add([Label(annotator="anna", unit=units[name], value="yes") for name in ids[: len(ids) // 2]])

    def next_question() -> None:
        queue.next_question("anna", "pairs", ids, lambda name, values: [u for u in (units[name],) if u not in values])

    one, two = ["yes", "no", "unsure"] * len(ids), ["yes", "no", "no"] * len(ids)
    places = [name for name in ids for _ in range(3)]
    timed: dict[str, Callable[[], object]] = {
        "the next question, at first": next_question,
        "the next question, again": next_question,
        "kappa with its interval": lambda: kappa_with_interval(one, two, places),
    }
    rows = []
    for what, work in timed.items():
        start = time.perf_counter()
        work()
        rows.append((what, len(ids), f"{1000 * (time.perf_counter() - start):.0f}"))
    print_rows(("labelling", "questions", "ms"), rows)


def main() -> None:
    """Print all figures."""
    path = data_folder() / "hotpotqa" / "open.json.gz"
    questions = list(read_questions(path))
    print_heading()
    header = (
        "chains from",
        "seconds of thought",
        "pages",
        "pages/s",
        "median ms",
        "95 % ms",
        "99 % ms",
        "CPU ms a page",
        "memory, MB",
    )
    with tempfile.TemporaryDirectory() as folder:
        chains = Path(folder) / "chains.jsonl"
        command = ["recover", path, "--model", "lexical", "--top", "20", "--explain", "--out", chains]
        subprocess.run([sys.executable, "-m", "rechain.cli.main", *map(str, command)], check=True, capture_output=True)
        labels = ("--labels", Path(folder) / "labels")
        rows = []
        with serving(path, "--chains", chains, *labels) as server:
            rows += [row("a file", thought, server, questions) for thought in (*THOUGHTS, *THOUGHTS)]
        with serving(path, *labels) as server:
            rows += [
                row("the default model, meanwhile", thought, server, questions) for thought in (*THOUGHTS, *THOUGHTS)
            ]
            print_rows(header, rows)
            print_posts(server, questions)
        print_labelling(Path(folder), questions)


if __name__ == "__main__":
    main()
