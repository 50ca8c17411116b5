"""rechain serve: chains in the browser, and the same by REST."""

from collections.abc import Iterable, Iterator
from functools import partial
from importlib.resources import as_file, files
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe
from socket import SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, gethostname, socket
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from typer import Argument, Option

from rechain.cli.options import (
    STDIN,
    CandidateOptions,
    Corpus,
    Device,
    Found,
    GoldFile,
    Map,
    Only,
    Passages,
    QuestionsInput,
    grouped,
    open_corpus,
)
from rechain.cli.progress import working
from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.system.stores import path_of
from rechain.system.terminal import note
from rechain.version import __version__

if TYPE_CHECKING:
    from uvicorn import Server

    from rechain.candidates import CandidateSettings
    from rechain.datasets import Entry
    from rechain.recovery import Recoverer
    from rechain.retrieval.index import Index
    from rechain.schema import Gold, Recovered
    from rechain.web import corpus as web_corpus
    from rechain.web.site import Site

_SHORTEST_TOKEN = 8
# After SIGTERM or Ctrl+C requests have so long to end; a container is killed after ten seconds.
_CLOSING_S = 5


@grouped
def serve(
    *,
    questions: Annotated[
        Path | None,
        Argument(
            metavar="[QUESTIONS]",
            parser=path_of,
            help="Questions, in any known format; without, the examples, or with --corpus none.",
        ),
    ] = None,
    chains: Annotated[
        list[Path] | None,
        Option(metavar="FILE", parser=path_of, help="Chains that were recovered; may be repeated, to compare."),
    ] = None,
    model: Annotated[
        list[str] | None, Option(help="A model that recovers them now; may be repeated, to compare. (default)")
    ] = None,
    gold: GoldFile = None,
    labels: Annotated[
        Path | None, Option(metavar="FILE", help="Where labels are kept; QUESTIONS.labels.sqlite here.")
    ] = None,
    overlap: Annotated[float, Option(min=0, max=1, help="The share of questions that every annotator gets.")] = 0.1,
    guidelines: Annotated[Path | None, Option(metavar="FILE", help="Guidelines for annotators, as plain text.")] = None,
    host: Annotated[str, Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0: any that is free.")] = 8000,
    token: Annotated[
        str | None,
        Option(
            envvar="RECHAIN_TOKEN", help="What everybody has to know, 8 characters or more; made up for other hosts."
        ),
    ] = None,
    max_body: Annotated[int, Option(min=1, metavar="MB", help="The largest request, in megabytes.")] = 10,
    time_limit: Annotated[float, Option(min=0.1, metavar="SECONDS", help="The longest a request may take.")] = 60.0,
    passages: Passages = None,
    corpus: Corpus = None,
    found: Found = None,
    only: Only = None,
    mapping: Map = None,
    device: Device = None,
    candidates: CandidateOptions,
) -> None:
    """Explore, compare and label chains in the browser, and recover them by REST.

    Example: rechain serve questions.jsonl --chains chains.jsonl --gold gold.jsonl

    With an index (rechain index) questions need no passages, and its documents are searched and shown.
    """
    try:
        import uvicorn

        from rechain.recovery import Recoverer
        from rechain.system.processes import usable_cores
        from rechain.web.app import create_app
        from rechain.web.connections import Connection
        from rechain.web.guard import Limits
    except ImportError as error:
        raise MissingExtraError("rechain serve", "web") from error
    token, listening = _token(host, token), _listen(host, port)
    settings, index = candidates.settings(), open_corpus(corpus, passages)
    with as_file(files("rechain").joinpath("data")) as data:
        if questions is None and index is None:
            questions, gold = data / "demo.jsonl", gold or data / "demo.gold.jsonl"
        site = _site(questions or corpus or STDIN, labels, overlap, guidelines, settings)
        site.corpus = _corpus(index, found)
        if questions is not None:
            _add_questions(site, QuestionsInput(questions, passages, only, mapping, corpus, found), gold, index)
        _add_files(site, chains or [], questions)
        _add_models(site, model or [], partial(Recoverer, settings=settings, device=device, corpus=index, found=found))
    limits = Limits(body=max_body * 1_000_000, seconds=time_limit)
    cores = usable_cores()
    app = create_app(site, token=token, limits=limits, processes=cores if cores > 1 else 0)
    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_S,
    )
    _run(uvicorn.Server(config), listening, token, site.labels.path)


def _token(host: str, token: str | None) -> str | None:
    """Return the token that requests need: that of the user, else a random one where others can reach the server."""
    from rechain.web.guard import is_local

    # It travels in headers, cookies and addresses, which hold printable ASCII alone.
    if token is not None and not (token.isascii() and token.isprintable() and len(token) >= _SHORTEST_TOKEN):
        raise RechainError(f"a token has at least {_SHORTEST_TOKEN} characters, all of which are printable ASCII.")
    return token or (None if is_local(host) else token_urlsafe(24))


def _listen(host: str, port: int) -> socket:
    """Open the port first, so that one that is taken is reported before anything that takes time."""
    try:
        family, kind, protocol, _, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        listening = socket(family, kind, protocol)
        listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()  # who connects early waits, and no other server can take the port meanwhile
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "this is no name of a host"
        raise RechainError(
            f"{host}, port {port}, cannot be listened at: {why}; name another --host or --port."
        ) from error
    return listening


def _site(
    questions: Path, labels: Path | None, overlap: float, guidelines: Path | None, settings: "CandidateSettings"
) -> "Site":
    from rechain.labels.queue import Queue
    from rechain.labels.store import LabelStore
    from rechain.web.index import Index
    from rechain.web.site import Site

    guidelines = guidelines or Path(str(files("rechain").joinpath("data/guidelines.txt")))
    try:
        text = guidelines.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{guidelines} cannot be read as text: {error}.") from error
    name = "questions" if questions == STDIN else questions.name
    store = LabelStore(labels or Path(f"{name}.labels.sqlite"))
    return Site(Index(), settings, labels=store, queue=Queue(store, overlap), guidelines=text)


def _corpus(index: "Index | None", found: int | None) -> "web_corpus.Corpus | None":
    """Return what the server finds passages with; one without an index does not load the search engine."""
    if index is None:
        return None
    from rechain.web.corpus import Corpus

    return Corpus(index, found)


def _add_questions(site: "Site", questions: QuestionsInput, gold: Path | None, index: "Index | None") -> None:
    golds = questions.gold(gold)

    def with_gold() -> "Iterator[tuple[Entry, Gold | None]]":
        for entry in questions.entries("Reading", collection=index):
            right = golds.get(entry.id or "")
            site.has_gold |= right is not None
            yield entry, right

    site.index.add(with_gold())
    if gold is not None and not site.has_gold:
        raise RechainError(f"{gold} holds gold of none of these questions.")
    site.same = questions.same_chain


def _add_files(site: "Site", chains: list[Path], questions: Path | None) -> None:
    from rechain.datasets.records import read_with_id
    from rechain.schema import Recovered
    from rechain.system.provenance import read_provenance
    from rechain.web.contents import Origin

    for path in chains:
        with working(f"Reading {path}"):
            origin, misfits = None, list[str]()
            if provenance := read_provenance(path):
                misfits = provenance.misfits(questions)
                told = [_without_folders(text, path, questions) for text in (provenance.summary(), *misfits)]
                origin = Origin(told[0], told[1:], provenance.made_by, provenance.end)
            stamps = set[str | None]()
            unknown = site.add_file(path.name, _noting(read_with_id(path, Recovered), stamps), origin)
        for misfit in misfits:
            note(f"warning: {misfit}")
        if site.corpus is not None and stamps - {None, site.corpus.index.stamp}:
            note(f"warning: {path} was recovered from another collection than the index; its passages may be missing.")
        if unknown:
            note(f"{path}: {unknown} of its questions are not among those that are served.")
        if site.index.count_found(len(site.sources) - 1) == 0:
            raise RechainError(f"{path} holds the chains of none of these questions.")


def _without_folders(text: str, *paths: Path | None) -> str:
    """Return a text that names files without their folders, which are nobody's business who only reads pages."""
    for path in paths:
        text = text if path is None else text.replace(str(path), path.name)
    return text


def _noting(rows: "Iterable[tuple[str, Recovered]]", stamps: set[str | None]) -> "Iterator[Recovered]":
    """Yield the chains of questions, and note of which collections they are."""
    for _, recovered in rows:
        stamps.add(recovered.collection)
        yield recovered


def _add_models(site: "Site", names: list[str], load: "partial[Recoverer]") -> None:
    """Add models as sources, the default one where there is no other source; the first takes what people send."""
    from rechain.recovery import model_facts
    from rechain.scoring.model import BUNDLED
    from rechain.web.contents import Origin
    from rechain.web.model_process import ProcessRecoverer
    from rechain.web.service import RecoveryService

    for name in names or ([] if site.sources else [BUNDLED]):
        make = partial(load, name)
        with working("Loading the model"):
            facts = model_facts(make)
            origin = Origin(f"{name}: recovered now by rechain {__version__}", made_by={"model": facts})
            service = site.add_model(name, partial(ProcessRecoverer, make, site.preload), origin)
            _ = service.recoverer  # now, so that a model that is not there is reported before the first request
    services = [one for source in site.sources if (one := site.service_of(source))]
    site.recovery = (
        services[0] if services else RecoveryService(partial(ProcessRecoverer, partial(load, BUNDLED), site.preload))
    )


def _run(server: "Server", listening: socket, token: str | None, labels: Path) -> None:
    from rechain.system.processes import relax_collector

    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = gethostname()
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    note(f"Labels are kept in {labels.absolute()}.")
    note(f"Serving at {address}{f'?token={quote(token)}' if token else ''} until Ctrl+C.")
    relax_collector(full=50)  # a page makes thousands of objects that are gone when it is sent
    server.run(sockets=[listening])
