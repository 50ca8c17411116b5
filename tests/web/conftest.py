"""What the tests of the web application share: small sites, clients without a network, pages as they are read."""

import json
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rechain.errors import QuestionError
from rechain.formats.datasets import Entry
from rechain.index import BuildSettings, build_index
from rechain.index import Index as DocumentIndex
from rechain.labels.queue import Queue
from rechain.labels.store import LabelStore
from rechain.recoverer import Recoverer
from rechain.schema import Gold, GoldChain, Passage, Question
from rechain.scoring.interface import BatchModel, Model
from rechain.web.app import create_app
from rechain.web.corpus import Corpus
from rechain.web.guard import Limits
from rechain.web.question_index import Index
from rechain.web.service import MOST_WAITING, RecoveryService
from rechain.web.site import Site

MakeSite = Callable[..., Site]
Connect = Callable[..., TestClient]
Towns = Callable[..., list[Question]]


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[MakeSite]:
    """Make a site of questions, or of why they cannot be read, whose chains come from a file that lexical wrote."""
    sites: list[Site] = []

    def make(
        contents: Sequence[Question | QuestionError],
        *,
        model: str | Model | BatchModel = "lexical",
        golds: Sequence[Gold] = (),
        most_waiting: int = MOST_WAITING,
        corpus: Corpus | None = None,
    ) -> Site:
        store = LabelStore(tmp_path / f"labels-{len(sites)}.sqlite")
        site = Site(Index(), labels=store, queue=Queue(store, 0.5), guidelines="Say yes.\n\nOr <b>no</b>.")
        known = {gold.id: gold for gold in golds}
        entries = [
            Entry("", one.id, one) if isinstance(one, Question) else Entry("", f"bad-{place}", one)
            for place, one in enumerate(contents)
        ]
        site.corpus, index = corpus, corpus.index if corpus else None
        entries = corpus.fill(entries) if corpus else entries
        site.index.add((entry, known.get(entry.id or "")) for entry in entries)
        site.has_gold = bool(golds)
        site.add_file("lexical.jsonl", Recoverer("lexical", top=20, explain=True, corpus=index).recover_many(entries))
        site.recovery = RecoveryService(lambda: Recoverer(model, corpus=index), most_waiting=most_waiting)
        sites.append(site)
        return site

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def connect() -> Connect:
    """Return a client of a site, which raises what the server did not answer to."""

    def make(site: Site, *, token: str | None = None, limits: Limits | None = None, **options: object) -> TestClient:
        app = create_app(site, token=token, limits=limits)
        return TestClient(app, base_url="http://127.0.0.1:8000", **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def town_site(make_site: MakeSite, towns: Towns) -> Site:
    """Six questions, two of which the lexical rule gets wrong, with their gold chains."""
    golds = [Gold(id=f"town-{n}", chains=[GoldChain(passages=["work", "maker"])], same="passages") for n in range(6)]
    return make_site(towns(6), golds=golds)


@pytest.fixture
def client(town_site: Site, connect: Connect) -> TestClient:
    """A client of those six questions."""
    return connect(town_site)


HANDBOOK = {
    "leave.md": """# Leave

Every employee has thirty days of annual leave, which is asked for in the tool Kalendo.

## Parental leave

Parental leave lasts up to fourteen weeks with full pay. It is approved by the Kinship Bureau, which keeps a list of
who is away and for how long, answers within three days, and says which documents it needs.
""",
    "rooms/bureau.md": """# Kinship Bureau

The Kinship Bureau is led by Anton Quillfeather, who was born in Prague, and sits on the third floor. Its hours are nine
to four, and whoever comes later leaves a letter.
""",
    "odd <b>&amp;.txt": "The Zorilla clock was sold by Kasimir Brook. <script>alert(1)</script> It never struck.\n",
}
"""documents, by their names"""


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """An index of a small handbook, and of a collection of two passages."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, text in HANDBOOK.items():
        path = folder / "handbook" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    rows = [
        {
            "id": "rates",
            "title": "City rates",
            "text": "A hotel in Oslo may cost 210 crowns.",
            "source": 5,
            "start": "x",
        },
        {"id": "trains", "title": "Trains", "text": "Trains to Ghent leave at noon."},
    ]
    (folder / "handbook" / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    build_index([folder / "handbook"], folder / "index", BuildSettings(workers=0))
    return Corpus(DocumentIndex(folder / "index"))


@pytest.fixture
def handbook_site(make_site: MakeSite, corpus: Corpus) -> Site:
    """Two questions over the handbook: one without passages, one with a passage of its own."""
    asked = "Where was the head of the bureau that approves parental leave born?"
    own = Passage(id="note", title="A note", text="The Kinship Bureau has moved to Prague.")
    return make_site(
        [
            Question(id="bare", question=asked, answer="Prague", passages=[]),
            Question(id="noted", question=asked, answer="Prague", passages=[own]),
        ],
        corpus=corpus,
    )


@pytest.fixture
def evil_question() -> Question:
    """A question all of whose texts would be HTML if anything let them."""
    evil = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\u202e</textarea>"
    return Question(
        id=f"1{evil}",
        question=f"Where was the composer of Zorilla born? {evil}",
        answer=f"Prague {evil}",
        passages=[
            Passage(id=f"2{evil}", title=f"Zorilla {evil}", text=f"Zorilla is an opera by Anton Quillfeather. {evil}"),
            Passage(id=f"3{evil}", title="Anton Quillfeather", text=f"Anton Quillfeather was born in Prague {evil}."),
        ],
    )


class Seen(HTMLParser):
    """A page as a browser reads it: its text, its links, its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._texts: list[str] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        """All text, on one line."""
        return " ".join("".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self._texts.append(" ")
        if tag == "a":
            self.links.append(dict(attrs).get("href") or "")

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    def attributes(self, tag: str, name: str) -> list[str | None]:
        """Return an attribute of all elements of a kind that have it."""
        return [attributes[name] for one, attributes in self.elements if one == tag and name in attributes]


@pytest.fixture
def seen() -> type[Seen]:
    """Reads a page."""
    return Seen
