"""rechain serve: chains in the browser, and the same by REST."""

from collections.abc import Iterator
from dataclasses import asdict, replace
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
    Device,
    GoldFile,
    Only,
    PassageOptions,
    QuestionsInput,
    grouped,
)
from rechain.errors import InputError, MissingExtraError, RechainError
from rechain.system.files import path_of
from rechain.system.log import note, working
from rechain.version import __version__

if TYPE_CHECKING:
    from uvicorn import Server

    from rechain.formats.datasets import Entry
    from rechain.recoverer import RecovererConfig
    from rechain.schema import Gold, Recovered
    from rechain.text.candidates import CandidateSettings
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
            envvar="RECHAIN_TOKEN", help="A token that requests need, 8 characters or more; random for other hosts."
        ),
    ] = None,
    admin_token: Annotated[
        str | None,
        Option(
            envvar="RECHAIN_ADMIN_TOKEN", help="Another token, with which annotators can also be renamed and removed."
        ),
    ] = None,
    max_body: Annotated[int, Option(min=1, metavar="MB", help="The largest request, in megabytes.")] = 10,
    time_limit: Annotated[float, Option(min=0.1, metavar="SECONDS", help="The longest a request may take.")] = 60.0,
    source: PassageOptions,
    only: Only = None,
    device: Device = None,
    candidates: CandidateOptions,
) -> None:
    """Explore, compare and label chains in the browser, and recover them by REST.

    Example: rechain serve questions.jsonl --chains chains.jsonl --gold gold.jsonl

    With an index (rechain index) questions need no passages, and its documents are searched and shown.
    """
    try:
        import uvicorn

        from rechain.recoverer import RecovererConfig
        from rechain.web.app import create_app
        from rechain.web.guard import Connection, Limits
    except ImportError as error:
        raise MissingExtraError("rechain serve", "web") from error
    if admin_token is not None and admin_token == token:
        raise RechainError("--admin-token should differ from --token, which annotators have.")
    token, admin_token = _token(host, token), admin_token and _token(host, admin_token)
    if admin_token and not token:
        raise RechainError("--admin-token needs --token: without one every user of this machine may do anything.")
    listening = _listen(host, port)
    settings, index = candidates.settings(), source.index
    with as_file(files("rechain").joinpath("data")) as data:
        if questions is None and index is None:
            questions, gold = data / "demo.jsonl", gold or data / "demo.gold.jsonl"
        site = _site(questions or source.corpus or STDIN, labels, overlap, guidelines, settings)
        if index is not None:
            from rechain.web.corpus import Corpus  # not at the top: it loads the search engine

            site.corpus = Corpus(index, source.found)
        if questions is not None:
            _add_questions(site, QuestionsInput(path=questions, only=only, **asdict(source)), gold)
        for path in chains or ():
            _add_file(site, path, questions)
        config = RecovererConfig(settings=settings, device=device, corpus=index, found=source.found)
        _add_models(site, model or [], config)
    limits = Limits(body=max_body * 1_000_000, seconds=time_limit)
    app = create_app(site, token=token, limits=limits, administrator=admin_token)
    server = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_S,
    )
    _run(uvicorn.Server(server), listening, token, site.labels.path)


def _token(host: str, token: str | None) -> str | None:
    """Return the token that requests need: the user's, else a random one if other machines can reach the server."""
    from rechain.web.guard import is_local

    # It is sent in headers, cookies and addresses, which are printable ASCII.
    if token is not None and not (token.isascii() and token.isprintable() and len(token) >= _SHORTEST_TOKEN):
        raise RechainError(f"a token has at least {_SHORTEST_TOKEN} characters, all of which are printable ASCII.")
    return token or (None if is_local(host) else token_urlsafe(24))


def _listen(host: str, port: int) -> socket:
    """Open the port first, so that a port in use is reported at once."""
    try:
        family, kind, protocol, _, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        listening = socket(family, kind, protocol)
        listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()  # early clients wait, and no other server can take the port
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
    from rechain.web.question_index import Index
    from rechain.web.site import Site

    guidelines = guidelines or Path(str(files("rechain").joinpath("data/guidelines.txt")))
    try:
        text = guidelines.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{guidelines} cannot be read as text: {error}.") from error
    name = "questions" if questions == STDIN else questions.name
    store = LabelStore(labels or Path(f"{name}.labels.sqlite"))
    return Site(Index(), settings, labels=store, queue=Queue(store, overlap), guidelines=text)


def _add_questions(site: "Site", questions: QuestionsInput, gold: Path | None) -> None:
    golds = questions.gold(gold)

    def with_gold() -> "Iterator[tuple[Entry, Gold | None]]":
        for entry in questions.entries("Reading"):
            right = golds.get(entry.id or "")
            site.has_gold |= right is not None
            yield entry, right

    site.index.add(with_gold())
    if gold is not None and not site.has_gold:
        raise RechainError(f"{gold} has gold for none of these questions.")
    site.same = questions.same_chain


def _add_file(site: "Site", path: Path, questions: Path | None) -> None:
    """Add a file of chains as a source; raises if it has none of the questions."""
    from rechain.formats.datasets.records import read_with_id
    from rechain.schema import Recovered
    from rechain.system.provenance import read_provenance
    from rechain.web.site import Origin

    stamps, origin, misfits = set[str | None](), None, list[str]()

    def chains() -> "Iterator[Recovered]":
        for _, recovered in read_with_id(path, Recovered):
            stamps.add(recovered.collection)
            yield recovered

    with working(f"Reading {path}"):
        if provenance := read_provenance(path):
            misfits = provenance.misfits(questions)
            texts = [provenance.summary(), *misfits]
            for file in (path, questions) if questions else (path,):  # pages should not show folders
                texts = [text.replace(str(file), file.name) for text in texts]
            origin = Origin(texts[0], texts[1:], provenance.made_by, provenance.end)
        unknown = site.add_file(path.name, chains(), origin)
    for misfit in misfits:
        note(f"warning: {misfit}")
    if site.corpus is not None and stamps - {None, site.corpus.index.stamp}:
        note(f"warning: {path} was recovered from another collection than the index; its passages may be missing.")
    if unknown:
        note(f"{path}: {unknown} of its questions are not among those that are served.")
    if site.index.count_found(len(site.sources) - 1) == 0:
        raise RechainError(f"{path} has chains for none of these questions.")


def _add_models(site: "Site", names: list[str], config: "RecovererConfig") -> None:
    """Add models as sources, the default one if there is no other source; the first answers REST requests."""
    from rechain.models import describe_model
    from rechain.scoring.interface import BUNDLED
    from rechain.web.service import ProcessRecoverer, RecoveryService
    from rechain.web.site import Origin

    for name in names or ([] if site.sources else [BUNDLED]):
        named = replace(config, model=name)
        with working("Loading the model"):
            facts = describe_model(name)
            origin = Origin(f"Model: {name} (rechain {__version__}), live", made_by={"model": facts})
            service = site.add_model(name, partial(ProcessRecoverer, named), origin)
            _ = service.recoverer  # loaded now, so that a missing model is reported before the first request
    services = [one for source in site.sources if (one := site.service_of(source))]
    site.recovery = services[0] if services else RecoveryService(partial(ProcessRecoverer, config))


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
