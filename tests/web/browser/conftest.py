"""A real browser and real servers; whatever pages do that they should not do fails the test that opened them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, expect, sync_playwright

RECHAIN = [sys.executable, "-c", "from rechain.cli.main import main; main()"]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP rechain.test 127.0.0.1",
]
WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)


def rechain(*arguments: str | Path, folder: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [*RECHAIN, *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


class Served:
    """A server that runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.errors = ""
        self.address = self._address()
        self.port = int(self.address.rpartition(":")[2])

    def _address(self) -> str:
        for line in self.process.stderr or ():
            if found := re.search(r"Serving at http://[^/]+:(\d+)/\S* until Ctrl\+C\.", line):
                return f"http://127.0.0.1:{found[1]}"
            self.errors += line
        raise AssertionError(f"the server did not start: {self.errors}")

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.process.kill()
        self._end()

    def stop(self) -> None:
        self.process.terminate()
        self._end()

    def _end(self) -> None:
        if not (self.process.stderr and self.process.stderr.closed):
            self.errors += self.process.communicate(timeout=30)[1]

    def wait_for_chains(self) -> None:
        """Wait until the first source has looked at all questions."""
        for _ in range(2400):  # two minutes, only to keep a test from hanging
            if all(row["chain"] is not row["error"] for row in self.get("/questions")["questions"]):
                return
            sleep(0.05)
        pytest.fail("the chains are not recovered")

    def get(self, path: str) -> Any:
        with urlopen(self.address + path, timeout=30) as answer:
            return json.load(answer)

    def post(self, path: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        request = Request(self.address + path, json.dumps(body).encode(), headers)
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start servers: `serve("questions.jsonl", "--model", "lexical")`; none may have stumbled by the end."""
    folder, started = tmp_path_factory.mktemp("served"), list[Served]()

    def start(*arguments: str | Path, port: int = 0) -> Served:
        labels = [] if "--labels" in arguments else ["--labels", folder / f"{len(started)}.sqlite"]
        started.append(Served(rechain("serve", *arguments, *labels, "--port", str(port), folder=folder)))
        return started[-1]

    yield start
    for served in started:
        served.stop()
    assert "Traceback" not in "".join(served.errors for served in started)


class Watch:
    """Notes every request of a browser window, and everything that must not happen in it."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.origin = origin
        self.requests: list[str] = []
        self.bad: list[str] = []
        context.on("request", lambda request: self._note_request(request.url))
        context.on("console", self._note_console)
        context.on("weberror", lambda error: self.bad.append(f"error: {error.error}"))
        context.on("dialog", self._note_dialog)

    def _note_request(self, address: str) -> None:
        self.requests.append(address)
        if not address.startswith(f"{self.origin}/"):
            self.bad.append(f"request: {address[:200]}")

    def _note_console(self, message: ConsoleMessage) -> None:
        is_refused = re.search("Content Security Policy|Refused to|violates", message.text)
        if is_refused or message.text.startswith("Uncaught"):
            self.bad.append(f"console: {message.text[:300]}")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.bad.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium; install it, or name one in CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


class Windows:
    """Browser windows that know nothing of each other."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.watches: list[Watch] = []

    def __call__(self, served: Served, path: str = "/", **options: Any) -> Page:
        """Open a page in a new window."""
        context = self._browser.new_context(**options)
        context.set_default_timeout(WAIT_MS)
        self.watches.append(Watch(context, served.address))
        page = context.new_page()
        page.goto(served.address + path)
        return page


@pytest.fixture
def visit(browser: Browser) -> Iterator[Windows]:
    """Open pages; at the end nothing bad may have happened in any of them."""
    windows = Windows(browser)
    yield windows
    for context in browser.contexts:
        context.close()
    assert [bad for watch in windows.watches for bad in watch.bad] == []


Command = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run `rechain …` to its end and return what it printed."""

    def run(*arguments: str | Path) -> str:
        process = rechain(*arguments, folder=tmp_path)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out

    return run


@pytest.fixture(scope="session")
def open_details() -> Callable[[Page], None]:
    """Open what a page of a question keeps closed: the score, the graph, the candidates."""

    def unfold(page: Page) -> None:
        details = page.locator("details.more")
        expect(details).not_to_have_attribute("open", "")
        details.locator(":scope > summary").click()
        expect(details).to_have_attribute("open", "")

    return unfold


class Keyboard:
    """What somebody does who has no mouse."""

    def tab_to(self, page: Page, selector: str) -> None:
        """Press Tab until something has the focus."""
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    def start(self, page: Page, name: str) -> None:
        """From the overview to the first question."""
        self.tab_to(page, "input[name=annotator]")
        page.keyboard.press("Control+a")
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        self.ready(page)

    def ready(self, page: Page, question: str = "") -> None:
        """Wait until the desk takes keys, of a question if one is named."""
        page.locator(f".desk[data-ready]{f'[data-question={question!r}]' if question else ''}").wait_for()

    def label(self, page: Page, keys: str) -> None:
        """Label the answer by some keys, and wait for the next page."""
        with page.expect_navigation():
            page.keyboard.type(keys)


@pytest.fixture(scope="session")
def keyboard() -> Keyboard:
    return Keyboard()


DEMO = Path(__file__).parents[3] / "src" / "rechain" / "data" / "demo.jsonl"


@pytest.fixture(scope="session")
def demo() -> Path:
    """The file of the examples."""
    return DEMO


# ---- a server with an index

DOCUMENTS = {
    "leave.md": "# Leave\n\n## Parental leave\n\nParental leave is approved by the Kinship Bureau.\n",
    "rooms/bureau.md": "# Kinship Bureau\n\nThe Kinship Bureau is led by Anton Quillfeather, who was born in Prague.\n",
    "chronicle.txt": "\n\n".join(
        [f"In year {number} nothing of note was written down by the clerks of the town." for number in range(2_000)]
        + ["In the end the Zorilla clock was sold by Kasimir Underbrook."]
        + [f"In year {number} nobody remembered any of it, and the clerks slept." for number in range(2_000, 3_000)]
    ),
}
ASKED = {"question": "Where was the head of the bureau that approves parental leave born?", "answer": "Prague"}


@pytest.fixture(scope="module")
def indexed(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A server with an index of three documents, one of them long, and two questions, one with a passage of its own."""
    folder = tmp_path_factory.mktemp("indexed")
    for name, text in DOCUMENTS.items():
        (folder / "documents" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "documents" / name).write_text(text)
    built = rechain("index", "documents", "--out", "index", folder=folder)
    assert built.communicate(timeout=120) and built.returncode == 0
    own = {"id": "note", "title": "A note", "text": "The Kinship Bureau has moved to Prague."}
    rows = [{"id": "bare", **ASKED}, {"id": "noted", **ASKED, "passages": [own]}]
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    served = serve(folder / "log.jsonl", "--corpus", folder / "index", "--model", "lexical")
    served.wait_for_chains()
    return served


# ---- the page of an audit

EVIL = "<img src=x onerror=alert(1)> \u05e9\u05dc\u05d5\u05dd"
PASSAGES = [
    {"id": "rates", "title": f"City rates {EVIL}", "text": "Zurich EUR 180. Oslo EUR 210."},
    {"id": "travel", "title": "Travel", "text": "City rates say what a hotel may cost."},
]
LINK = {"entity": "City rates", "kind": "title", "weight": 9.0, "mentions": [[0, 10], None]}
HELD = {"match": "phrase", "passage": "rates", "span": [7, 14]}
CHAIN = {"passages": ["travel", "rates"], "links": [LINK], "answer": HELD, "score": 1.0, "confidence": 0.83}
PARALLEL = CHAIN | {"shape": "parallel", "links": []}
CLAIMS = [
    {"text": "EUR 180.", "verdict": "supported", "passage": "rates", "span": [0, 15]},
    {"text": "Taxis are free.", "verdict": "unsupported"},
]
FOUND: list[dict[str, Any]] = [
    {"verdict": "supported", "verdict_probability": 0.99, "chains": [CHAIN]},
    {"verdict": "partly", "verdict_probability": 0.6, "claims": CLAIMS, "chains": [PARALLEL]},
    {"verdict": "unsupported", "verdict_probability": 0.8, "claims": CLAIMS[1:], "chains": []},
    {"verdict": "no_answer", "verdict_probability": 0.9, "chains": []},
]


@pytest.fixture
def report(command: Command, tmp_path: Path) -> Path:
    """The page of four answers of a log."""
    question = {"question": f"What may a hotel in Zurich cost? {EVIL}", "answer": "EUR 180. Taxis are free."}
    log = [
        {"id": str(number), **question, "passages": PASSAGES, "tag": f"tag {number % 2}", "day": f"2026-05-1{number}"}
        for number in range(4)
    ]
    chains = [{"id": str(number), **found} for number, found in enumerate(FOUND)]
    for name, rows in (("log", log), ("chains", chains)):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    out = tmp_path / "report.html"
    command("audit", tmp_path / "log", "--chains", tmp_path / "chains", "--out", out)
    return out


@pytest.fixture
def open_report(browser: Browser, report: Path) -> Iterator[Callable[..., Page]]:
    """Open the page of an audit in a new window; `bad` takes what must not happen in it."""

    def open_page(bad: list[str], **options: Any) -> Page:
        context = browser.new_context(**options)
        context.on("request", lambda one: bad.append(one.url) if one.url != report.as_uri() else None)
        context.on("console", lambda message: bad.append(message.text))
        context.on("weberror", lambda error: bad.append(str(error.error)))
        page = context.new_page()
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in browser.contexts:
        context.close()


# ---- questions that are hard to show

STUDY = "Nothing of note was seen in the animals of the first group, whose diet had been left as it was before. "


def _abstract(name: str, title: str, sentence: str, entities: dict[str, str]) -> dict[str, Any]:
    """Return a passage as abstracts are: its title is a sentence, its text is long, its entities are identifiers."""
    text = f"{title} {STUDY * 5}{sentence} {STUDY * 5}"
    mentions = [
        {"entity": entity, "start": text.index(word), "end": text.index(word) + len(word)}
        for word, entity in entities.items()
    ]
    return {"id": name, "title": title, "text": text, "mentions": mentions}


LONG = {
    "id": "long",
    "question": "interacts_with amlodipine?",
    "question_entities": ["drug:DB00381"],
    "answer": "Ca(v)1.3",
    "answer_entity": "gene:CACNA1D",
    "hops": 3,
    "link_types": ["gene", "drug"],
    "passages": [
        _abstract(
            "15880143",
            "Effect of serum withdrawal on the contribution of channels to chemotaxis in muscle cells.",
            "The rise was unaffected by the Ca(v)1.2 antagonist amlodipine.",
            {"Ca(v)1.2": "gene:CACNA1C", "amlodipine": "drug:DB00381"},
        ),
        _abstract(
            "21262851",
            "Inhibition of recombinant channels by positive allosteric modulators of certain receptors.",
            "They were less sensitive than Ca(v)1.2 channels, similar to dihydropyridine.",
            {"Ca(v)1.2": "gene:CACNA1C", "dihydropyridine": "drug:dhp"},
        ),
        _abstract(
            "19029287",
            "Expression and binding properties of the isoforms of a channel in the brain of the mouse.",
            "The isoform Ca(v)1.3 has a similar affinity for dihydropyridine.",
            {"Ca(v)1.3": "gene:CACNA1D", "dihydropyridine": "drug:dhp"},
        ),
        _abstract(
            "30000001",
            "Another study of the isoforms of a channel, in which something else was found.",
            "The isoform Ca(v)1.3 was closed by dihydropyridine, too.",
            {"Ca(v)1.3": "gene:CACNA1D", "dihydropyridine": "drug:dhp"},
        ),
        *(
            _abstract(f"{n}", f"A study of nothing, number {n}, as there are many.", "It rained.", {})
            for n in range(20)
        ),
    ],
}
APART = {
    "id": "apart",
    "question": "Where was the composer of the Zorilla opera born?",
    "answer": "Prague",
    "hops": 2,
    "passages": [
        {"id": "opera", "title": "Zorilla", "text": "Zorilla is an opera by Anton Quillfeather."},
        {"id": "city", "title": "Prague", "text": "Prague lies on a river and has many bridges."},
    ],
}


@pytest.fixture(scope="module")
def hard(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A server of long abstracts with gold and of a question without a chain; its second source has the first alone."""
    folder = tmp_path_factory.mktemp("hard")
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in (LONG, APART)))
    gold = {"passages": ["15880143", "21262851", "19029287"], "links": ["gene:CACNA1C", "drug:dhp"]}
    (folder / "gold.jsonl").write_text(
        "".join(f"{json.dumps({'id': name, 'chains': [gold][:n]})}\n" for name, n in (("long", 1), ("apart", 0)))
    )
    for name, rows in (("all", (LONG, APART)), ("some", (LONG,))):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
        found = rechain("recover", f"{name}.jsonl", "--model", "lexical", "--out", f"{name}.chains", folder=folder)
        assert found.communicate(timeout=120) and found.returncode in (0, 1)
    chains = [argument for name in ("all", "some") for argument in ("--chains", folder / f"{name}.chains")]
    return serve(folder / "questions.jsonl", "--gold", folder / "gold.jsonl", *chains)
