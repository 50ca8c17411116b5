"""What the server serves: questions, where their chains come from, and the labels people give."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from rechain.datasets import Entry
from rechain.errors import RechainError
from rechain.labels.agreement import agreements
from rechain.labels.queue import Queue
from rechain.labels.store import LabelStore
from rechain.recovery import Options
from rechain.schema import Problem, Recovered, Same
from rechain.scoring.model import BUNDLED
from rechain.web.bounded import BoundedCache
from rechain.web.contents import MOST_SHOWN, Contents, GoneError, Origin, Source
from rechain.web.drawing import Drawers
from rechain.web.index import Index, Stored
from rechain.web.results import Results
from rechain.web.service import BusyError, Recovers, RecoverTogether, RecoveryService

_AT_ONCE = 4
"""questions that a model recovers at a time when nobody asks: a request that comes meanwhile waits for these only"""
_CROWD = 32
"""from so many waiting questions on a page does not add its own, which would be shown too late anyway"""
_MOST_HTML = 8_000_000
"""bytes of pages that are kept, some hundred pages"""
_GRACE_S = 0.01
"""seconds beyond those for which a question may wait, so that it is late by then"""
_log = logging.getLogger("rechain.web")
EVERYTHING = Options(top=MOST_SHOWN, explain=True)
"""what a question's page needs of its chains"""


class ConflictError(RechainError):
    """Rows that contradict one another."""


class Answered(NamedTuple):
    """A question that somebody sent, with all passages among which its chain was sought, and its chains."""

    entry: Entry
    recovered: Recovered


@dataclass
class Site(Contents):
    """What the server serves: contents, models that recover chains, and the labels people give."""

    index: Index
    labels: LabelStore = field(kw_only=True)
    queue: Queue = field(kw_only=True)
    guidelines: str = field(kw_only=True)
    recovery: RecoveryService = field(init=False)
    """recovers questions that are not in the file"""
    same: Same = "links"
    """what counts as the same chain of these questions"""
    results: Results = field(default_factory=Results)
    """what people tried"""
    drawers: Drawers = field(init=False)
    """what draws pages of the explorer"""
    lists: BoundedCache[bytes] = field(default_factory=lambda: BoundedCache(_MOST_HTML, len))
    """pages of the list that were drawn since the index last changed, as many people look at the same"""
    _finding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _lookups: dict[tuple[int, int], asyncio.Task[Recovered]] = field(default_factory=dict)
    _models: dict[int, RecoveryService] = field(default_factory=dict)
    """what recovers the chains of the sources that are models, by their numbers"""

    def __post_init__(self) -> None:
        self.drawers = Drawers(self)

    def add_file(self, name: str, rows: Iterable[Recovered], origin: Origin | None = None) -> int:
        """Add the chains of a file as a source; return how many are of other questions."""
        source = Source(len(self.sources), self._unused(name), origin=origin)
        self.sources.append(source)
        unknown = 0

        def served() -> Iterable[tuple[Stored, Recovered]]:
            nonlocal unknown
            for recovered in rows:
                stored = self.index.named(recovered.id or "")
                if stored is None:
                    unknown += 1
                else:
                    yield stored, recovered

        self.index.store(source.number, served())
        return unknown

    def add_model(self, name: str, make: Callable[[], Recovers], origin: Origin | None = None) -> RecoveryService:
        """Add a model as a source; when it has nothing else to do it goes through all questions."""
        number = len(self.sources)
        service = RecoveryService(make, idle=_Filler(self.index, number))
        self.sources.append(Source(number, self._unused(name), is_model=True, origin=origin))
        self._models[number] = service
        return service

    def _unused(self, name: str) -> str:
        """Return the name of a new source: one that is taken gets its number, as files of two folders may have one."""
        is_taken = any(source.name == name for source in self.sources)
        return f"{name} ({len(self.sources) + 1})" if is_taken else name

    async def chains_of(self, source: Source, stored: Stored, patience: float | None = None) -> Recovered | None:
        """Return the chains of a question from a source; a model recovers them now if it has not yet.

        None: the source has none, or none yet after `patience` seconds. The model then goes on, unless so many
        questions wait for it that this one was not added.
        """
        recovered = await run_in_threadpool(self.index.recovered, source.number, stored.position)
        service = self.service_of(source)
        if recovered is not None or service is None:
            return recovered
        place = source.number, stored.position
        if place not in self._lookups:
            if patience is not None and service.waiting >= _CROWD:
                return None
            self._lookups[place] = asyncio.create_task(self._look(service, source.number, stored))
            self._lookups[place].add_done_callback(_note_failure)
        lookup = self._lookups[place]
        done, _ = await asyncio.wait([lookup], timeout=patience)
        is_refused = done and patience is not None and isinstance(lookup.exception(), BusyError)
        return lookup.result() if done and not is_refused else None

    async def _look(self, service: RecoveryService, source: int, stored: Stored) -> Recovered:
        try:
            (recovered,) = await ask(service, [_entry(stored)], EVERYTHING)
            await run_in_threadpool(self.index.store, source, [(stored, recovered)])
            return recovered
        finally:
            del self._lookups[source, stored.position]

    def without_folders(self, text: str) -> str:
        """Return a message without the folders of the server's files, which are nobody's business who asks."""
        path = self.labels.path
        return text.replace(str(path.absolute()), path.name).replace(str(path), path.name)

    async def find(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return questions with the passages that the index has for them, where there is one.

        One caller's at a time and a few together: the search takes the processor from the model, and what is left of a
        request that is given up is not looked for.
        """
        if self.corpus is None:
            return list(entries)
        filled: list[Entry] = []
        async with self._finding:
            self.recovery.check_room(entries)
            for first in range(0, len(entries), _AT_ONCE):
                filled += await run_in_threadpool(self.corpus.fill, entries[first : first + _AT_ONCE])
        return filled

    def warm_up(self) -> None:
        """Load what takes a while, and count the labels, which may be many, before somebody waits for it."""
        super().warm_up()
        with suppress(RechainError):  # whoever asks for them is told
            agreements(self.labels.common())

    def start(self) -> None:
        """Let the models that are sources begin to recover."""
        for service in self._models.values():
            service.start()

    @property
    def services(self) -> set[RecoveryService]:
        """All that recover questions."""
        return {self.recovery, *self._models.values()}

    def service_of(self, source: Source) -> RecoveryService | None:
        """Return what recovers the chains of a source; None: they come from a file."""
        return self._models.get(source.number)

    @property
    def model_name(self) -> str:
        """The name of the model that recovers what people send."""
        return next((source.name for source in self.sources if self.service_of(source) is self.recovery), BUNDLED)

    def close(self) -> None:
        """Stop all work and remove what is temporary; labels are written already."""
        self.drawers.close()
        for service in self.services:
            service.close()
        self.labels.close()
        self.index.close()
        self.results.close()


async def _site_of(request: Request) -> Site:  # a coroutine, as FastAPI sends plain functions to another thread
    site: Site = request.app.state.site
    return site


AtSite = Annotated[Site, Depends(_site_of)]
"""the site, as a parameter of a request handler"""


async def ask(service: RecoveryService, entries: Sequence[Entry], options: Options) -> list[Recovered]:
    """Return what a service recovers; a caller that is cancelled takes its questions back."""
    answer = asyncio.wrap_future(service.ask(entries, options))
    late = asyncio.get_running_loop().call_later(service.most_seconds + _GRACE_S, service.refuse_late)
    try:
        return await answer
    finally:
        late.cancel()


async def ask_for(request: Request, site: Site, entries: Sequence[Entry], options: Options) -> list[Answered]:
    """Return what a site recovers for somebody; whoever closes the connection takes the questions back."""
    answer, gone = asyncio.ensure_future(_answer(site, entries, options)), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise GoneError
    finally:
        answer.cancel()
        gone.cancel()


async def _answer(site: Site, entries: Sequence[Entry], options: Options) -> list[Answered]:
    filled = await site.find(entries)
    recovered = await ask(site.recovery, filled, options)
    return [Answered(*pair) for pair in zip(filled, recovered, strict=True)]


async def _gone(request: Request) -> None:
    """Wait until whoever asked, and whose request was read whole, closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _Filler:
    """Goes through the questions of which a source has no chains yet, a few at a time."""

    def __init__(self, index: Index, source: int) -> None:
        self._index = index
        self._source = source
        self._next = 0

    def __call__(self, recover: RecoverTogether) -> bool:
        places = self._index.missing(self._source, self._next, _AT_ONCE)
        questions = [self._index.at(place) for place in places]
        try:
            recovered = recover([(_entry(stored), EVERYTHING) for stored in questions])
        except Exception:  # of one of them: each alone, so that the others have their chains
            recovered = [_recovered_alone(recover, stored) for stored in questions]
        self._index.store(self._source, zip(questions, recovered, strict=True))
        self._next = places[-1] + 1 if places else self._next
        return bool(places)


def _recovered_alone(recover: RecoverTogether, stored: Stored) -> Recovered:
    """Return the chains of a question, or that the server failed over it."""
    try:
        return recover([(_entry(stored), EVERYTHING)])[0]
    except Exception:
        _log.exception("the question '%s' could not be recovered", stored.id[:80])
        problem = Problem(code="failed", message="something went wrong in the server; its log tells what.")
        return Recovered(id=stored.id, chains=[], error=problem)


def _note_failure(task: asyncio.Task[Recovered]) -> None:
    """Log an error that nobody may be waiting for any more; a caller that waits gets it as well."""
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, BusyError):
        _log.warning("a question could not be looked up: %s", error)


def _entry(stored: Stored) -> Entry:
    return Entry("", stored.id, stored.content, own=stored.own)
