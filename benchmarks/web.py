"""How quick the pages of `rechain serve` are when fifty people explore, and that its memory does not grow.

    python benchmarks/web.py ../shared/data                         # everything, about seven minutes
    python benchmarks/web.py ../shared/data --only posts idle       # some parts

Server and users share the machine's cores, so the server alone would be quicker. The parts are:

pages   Fifty users load pages of HotpotQA open (5,894 questions) for a while: the list, filtered lists, questions, and
        another candidate of each. Once they think for a second between two pages, as people do; once they do not think
        at all, which is the most that fifty can ask. Each is done twice with chains from a file.
posts   The same without thought while four clients, and then forty, post one question after another to /recover, which
        the default model answers; a client that gets 429 asks again after a second.
model   The same as `pages` with the default model recovering all questions in the background meanwhile.
bursts  Clients post a question each to /recover at the same moment.
idle    500 connections are opened on which nothing is sent: how long pages take for others, and when all are closed.
held    How long /health takes at most while somebody searches for as many words as a request may have.
labels  How long annotators wait for the overview of 50,000 labels and for their next question.
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
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from common import family, memory_of, parser, print_heading, print_rows

from rechain.evaluation.statistics import kappa_with_interval
from rechain.formats.datasets import read_questions
from rechain.labels.queue import Queue
from rechain.labels.store import Label, LabelStore
from rechain.schema import Question
from rechain.text.label_units import Unit

USERS = 50
SECONDS = 20
THOUGHTS = (1.0, 0.0)
CLIENTS = 200
POSTERS = (4, 40)
IDLE = 500
LABELS = 50_000
SEED = 0
PARTS = ("pages", "posts", "model", "bursts", "idle", "held", "labels")
PAGES_HEADER = (
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


class Server(NamedTuple):
    """A running server."""

    port: int
    process: int

    def memory(self) -> float:
        """Return the memory of all its processes in megabytes, what they share counted once."""
        return memory_of(list(family(self.process))).pss

    def cpu(self) -> float:
        """Return the seconds of computing that its processes have done so far."""
        return sum(member.cpu for member in family(self.process).values())


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


async def keep_posting(server: Server, questions: Sequence[Question], seconds: float) -> list[tuple[int, float]]:
    """Post one question after another for a while; return every status and how long it took."""
    answers, connection, end = [], Connection(server), time.perf_counter() + seconds
    for question in questions:
        if time.perf_counter() >= end:
            break
        body = json.dumps(question.model_dump(exclude_defaults=True)).encode()
        answers.append(await connection.ask(post("/recover", body)))
        if answers[-1][0] == 429:
            await asyncio.sleep(1)
    return answers


def print_posts_meanwhile(server: Server, questions: Sequence[Question]) -> None:
    """Let users explore while clients post."""
    asyncio.run(keep_posting(server, questions[:20], 60))  # so that the model is loaded and its pace is known
    rows = []

    async def both(clients: int) -> tuple[list[float], list[tuple[int, float]]]:
        parts = [questions[number::clients] for number in range(clients)]
        posts = asyncio.gather(*(keep_posting(server, part, SECONDS) for part in parts))
        took, answers = await asyncio.gather(explored(server, questions, 0.0), posts)
        return took, [answer for part in answers for answer in part]

    for clients in POSTERS:
        took, answers = asyncio.run(both(clients))
        counts = Counter(status for status, _ in answers)
        slowest = [max((s for status, s in answers if status == code), default=0.0) for code in (200, 429)]
        in_ms = (f"{1000 * value:.0f}" for value in (statistics.median(took), statistics.quantiles(took, n=100)[94]))
        in_s = (f"{value:.1f}" for value in slowest)
        rows.append((clients, len(took), *in_ms, counts[200], counts[429], *in_s))
    header = ("clients that post", "pages", "median ms", "95 % ms", "200", "429", "slowest 200, s", "slowest 429, s")
    print_rows(header, rows)


def print_idle(server: Server) -> None:
    """Hold many connections on which nothing is sent."""

    async def hold() -> tuple[list[float], float]:
        start = time.perf_counter()
        idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(IDLE)]
        pages = [(await Connection(server).ask(get("/"))) for _ in range(100)]
        assert all(status == 200 for status, _ in pages)
        for reader, _ in idle:
            await reader.read()
        return [seconds for _, seconds in pages], time.perf_counter() - start

    took, closed = asyncio.run(hold())
    at = statistics.quantiles(took, n=100)
    header = ("idle connections", "pages of others", "median ms", "95 % ms", "all closed after, s")
    print_rows(header, [(IDLE, len(took), f"{1000 * at[49]:.0f}", f"{1000 * at[94]:.0f}", f"{closed:.1f}")])


def print_held(server: Server) -> None:
    """Ask for the worst searches, and meanwhile whether the server is well."""
    letters = " ".join("abcdefghijklmnopqrstuvwxyz0123456789" * 4)[:300]
    searches = {"10,000 letters": "a" * 10_000, "300 characters of one-letter words": letters, "one letter": "a"}

    async def measure(text: str) -> tuple[int, float, float]:
        search = asyncio.create_task(Connection(server).ask(get("/?" + urlencode({"text": text}))))
        health, slowest = Connection(server), 0.0
        while not search.done():
            slowest = max(slowest, (await health.ask(get("/health")))[1])
        return *search.result(), slowest

    rows = []
    asyncio.run(Connection(server).ask(get("/")))  # so that the server has started
    for what, text in searches.items():
        status, seconds, slowest = asyncio.run(measure(text))
        rows.append((what, status, f"{1000 * seconds:.0f}", f"{1000 * slowest:.0f}"))
    print_rows(("search for", "status", "ms", "slowest /health meanwhile, ms"), rows)


def write_labels(path: Path, questions: Sequence[Question]) -> None:
    """Write labels of two annotators, who differ on some, ten units a question."""
    draw = random.Random(SEED)
    units = (
        Unit(question=question.id, passages=(str(place),), entities=("a", "b"))
        for question in questions
        for place in range(10)
    )
    with LabelStore(path) as store:
        store.add(
            [
                Label(annotator=name, unit=unit, value=draw.choice(("yes", "no", "yes", "no", "unsure")))
                for unit in islice(units, LABELS // 2)
                for name in ("anna", "ben")
            ]
        )


def print_overview(server: Server) -> None:
    """Open the overview of many labels a few times; the first time nothing is remembered yet."""

    async def measure() -> list[float]:
        answers = [await Connection(server).ask(get("/label")) for _ in range(6)]
        assert all(status == 200 for status, _ in answers)
        return [seconds for _, seconds in answers]

    computed = server.cpu()
    first, *again = asyncio.run(measure())
    each = (server.cpu() - computed) / (1 + len(again))
    row = (f"{LABELS:,}", *(f"{1000 * value:.0f}" for value in (first, statistics.median(again), each)))
    print_rows(("labels", "the first overview, ms", "the next, ms", "CPU ms each"), [row])


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
    """Print the figures of the parts that are wanted."""
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts alone")
    chosen = options.parse_args()
    path = chosen.data / "hotpotqa" / "open.json.gz"
    questions = list(read_questions(path))
    print_heading()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure(chosen.only, path, questions, folder)


def measure(parts: Sequence[str], path: Path, questions: Sequence[Question], folder: Path) -> None:
    """Print the figures of some parts, those with the same server together."""
    chains, labels = folder / "chains.jsonl", ("--labels", folder / "labels")
    thoughts = (*THOUGHTS, *THOUGHTS)
    if {"pages", "posts", "idle", "held", "labels"} & set(parts):
        command = ["recover", path, "--model", "lexical", "--top", "20", "--explain", "--out", chains]
        subprocess.run([sys.executable, "-m", "rechain.cli.main", *map(str, command)], check=True, capture_output=True)
        if "labels" in parts:
            write_labels(folder / "labels", questions)
        with serving(path, "--chains", chains, *labels) as server:
            if "pages" in parts:
                print_rows(PAGES_HEADER, [row("a file", thought, server, questions) for thought in thoughts])
            if "held" in parts:
                print_held(server)
            if "idle" in parts:
                print_idle(server)
            if "labels" in parts:
                print_overview(server)
            if "posts" in parts:
                print_posts_meanwhile(server, questions)
    if {"model", "bursts"} & set(parts):
        with serving(path, *labels) as server:
            if "model" in parts:
                what = "the default model, meanwhile"
                print_rows(PAGES_HEADER, [row(what, thought, server, questions) for thought in thoughts])
            if "bursts" in parts:
                print_posts(server, questions)
    if "labels" in parts:
        print_labelling(folder, questions)


if __name__ == "__main__":
    main()
