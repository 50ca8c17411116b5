"""What the server serves: questions, where their chains come from, and the labels people give."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets import Entry
from rechain.labels.agreement import agreements
from rechain.labels.queue import Queue
from rechain.labels.store import LabelStore
from rechain.schema import Chain, Problem, Question, Recovered, Same
from rechain.scoring.interface import BUNDLED
from rechain.scoring.results import Options
from rechain.system.caches import BoundedCache
from rechain.system.provenance import Facts
from rechain.text.candidates import CandidateSettings
from rechain.text.label_units import Units
from rechain.text.languages import read_segmenter
from rechain.web.chains import ChainList, recent_units
from rechain.web.forms import Results
from rechain.web.question_index import Index
from rechain.web.question_rows import Stored
from rechain.web.service import BusyError, Recovers, RecoverTogether, RecoveryService, State

if TYPE_CHECKING:
    from rechain.index import Index as DocumentIndex
    from rechain.web.corpus import Corpus  # it loads the search engine, which a server without an index does not need

MOST_SHOWN = 200
"""chains of a question that are kept for its page: more than anybody looks through, and the database stays small"""
_AT_ONCE = 4
"""questions that a model recovers at a time when nobody asks: a request that comes meanwhile waits for these only"""
_CROWD = 32
"""from so many waiting questions on a page does not add its own, which would be shown too late anyway"""
_MOST_HTML = 8_000_000
"""bytes of pages that are kept, some hundred pages"""
_WORST_FIRST: tuple[State, ...] = ("failed", "starting", "ok", "unused")
_GRACE_S = 0.01
"""seconds beyond those for which a question may wait, so that it is late by then"""
_log = logging.getLogger("rechain.web")
EVERYTHING = Options(top=MOST_SHOWN, explain=True)
"""what a question's page needs of its chains"""


class NotThereError(RechainError):
    """A question, source or unit that does not exist."""


class ForbiddenError(RechainError):
    """What only an administrator may do."""


class GoneError(Exception):
    """Whoever asked has closed the connection, or the server ends."""


@dataclass(frozen=True)
class Origin:
    """What made the chains of a source."""

    summary: str | None
    warnings: Sequence[str] = ()
    """why they may not be what one takes them for, a sentence each"""
    made_by: Facts | None = None
    end: Facts | None = None
    """how the run that made them ended"""


@dataclass(frozen=True)
class Source:
    """Where chains come from: a file, or a model that recovers them."""

    number: int
    name: str
    is_model: bool = False
    origin: Origin | None = None
    """None where nothing says what made them"""


class ConflictError(RechainError):
    """Rows that contradict one another."""


Answered = tuple[Entry, Recovered]
"""a question that a user sent, with all passages among which its chain was sought, and its chains"""


@dataclass
class Site:
    """What the server serves: questions, sources of chains, documents, and the labels people give."""

    index: Index
    settings: CandidateSettings = field(default_factory=CandidateSettings)
    sources: list[Source] = field(default_factory=list)
    has_gold: bool = False
    corpus: "Corpus | None" = None
    """the index in which passages are found, if there is one"""
    labels: LabelStore = field(kw_only=True)
    queue: Queue = field(kw_only=True)
    guidelines: str = field(kw_only=True)
    recovery: RecoveryService = field(init=False)
    """recovers questions that are not in the file"""
    same: Same = "links"
    """what counts as the same chain of these questions"""
    results: Results = field(default_factory=Results)
    """what people tried"""
    lists: BoundedCache[bytes] = field(default_factory=lambda: BoundedCache(_MOST_HTML, len))
    """pages of the list that were drawn since the index last changed, as many people look at the same"""
    _finding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _lookups: dict[tuple[int, int], asyncio.Task[Recovered]] = field(default_factory=dict)
    _models: dict[int, RecoveryService] = field(default_factory=dict)
    """what recovers the chains of the sources that are models, by their numbers"""

    def source(self, number: int) -> Source:
        """Return a source by its number, from 1."""
        if not 1 <= number <= len(self.sources):
            raise NotThereError(f"there is no source {number}; there are {len(self.sources)}.")
        return self.sources[number - 1]

    def question(self, name: str) -> Stored:
        """Return a question by its id."""
        stored = self.index.named(name)
        if stored is None:
            raise NotThereError(f"there is no question '{name[:80]}'.")
        return stored

    def readable(self, stored: Stored) -> Question:
        """Return a question that can be read."""
        if isinstance(stored.content, QuestionError):
            raise NotThereError(f"the question '{stored.id[:80]}' cannot be read: {stored.content}")
        return stored.content

    @property
    def documents(self) -> "Corpus":
        """The index; raises NotThereError if there is none."""
        if self.corpus is None:
            raise NotThereError("this server has no index of documents; start it with rechain serve --corpus INDEX.")
        return self.corpus

    @property
    def collection(self) -> "DocumentIndex | None":
        """The index, if there is one."""
        return None if self.corpus is None else self.corpus.index

    def with_chains(self, question: Question, recovered: Recovered | None) -> Question:
        """Return a question with all passages of its chains: a file's may come from more than were found here."""
        if self.corpus is None or recovered is None:
            return question
        return self.corpus.with_chains(question, recovered)

    def units(self, question: Question) -> Units:
        """Return what people label of a question."""
        return recent_units(question, self.settings, self.collection)

    def chain_list(self, question: Question, scored: Sequence[Chain]) -> ChainList:
        """Return all chains of a question: those that a source has scored, then the other candidates."""
        return ChainList(question, scored, self.settings, self.collection)

    def add_file(self, name: str, rows: Iterable[Recovered], origin: Origin | None = None) -> int:
        """Add the chains of a file as a source; return how many are of other questions."""
        source, unknown = Source(len(self.sources), self._unused(name), origin=origin), Counter[bool]()
        self.sources.append(source)

        def served() -> Iterable[tuple[Stored, Recovered]]:
            for recovered in rows:
                stored = self.index.named(recovered.id or "")
                unknown[stored is None] += 1
                if stored is not None:
                    yield stored, recovered

        self.index.store(source.number, served())
        return unknown[True]

    def add_model(self, name: str, make: Callable[[], Recovers], origin: Origin | None = None) -> RecoveryService:
        """Add a model as a source; when it has nothing else to do it goes through all questions."""
        number = len(self.sources)
        service = RecoveryService(make, idle=_filler(self.index, number))
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
            (recovered,) = await ask(service, [stored.entry], EVERYTHING)
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
        self.recovery.check_room(entries)
        for first in range(0, len(entries), _AT_ONCE):
            async with self._finding:  # who asks for many waits in between for others' turns
                filled += await run_in_threadpool(self.corpus.fill, entries[first : first + _AT_ONCE])
        return filled

    def warm_up(self) -> None:
        """Load what takes a while, and count the labels, which may be many, before somebody waits for it."""
        if self.index.has_chinese:
            read_segmenter()
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

    @property
    def states(self) -> dict[str, State]:
        """The states of its parts, without waiting for any of them."""
        models = {service.state for service in self.services}
        return {
            "models": next(state for state in _WORST_FIRST if state in models),
            "index": self.corpus.state if self.corpus else "unused",
            "labels": "ok" if self.labels.is_in_place else "failed",
        }

    def service_of(self, source: Source) -> RecoveryService | None:
        """Return what recovers the chains of a source; None: they come from a file."""
        return self._models.get(source.number)

    @property
    def model_name(self) -> str:
        """The name of the model that recovers what people send."""
        return next((source.name for source in self.sources if self.service_of(source) is self.recovery), BUNDLED)

    def close(self) -> None:
        """Stop all work and remove what is temporary; labels are written already."""
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
    return list(zip(filled, recovered, strict=True))


async def _gone(request: Request) -> None:
    """Wait until whoever asked, and whose request was read whole, closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _filler(index: Index, source: int) -> Callable[[RecoverTogether], bool]:
    """Return what goes through the questions that a source has no chains of yet, a few at each call, until False."""
    first = 0

    def fill(recover: RecoverTogether) -> bool:
        nonlocal first
        questions = [index.at(place) for place in index.missing(source, first, _AT_ONCE)]
        try:
            recovered = recover([(stored.entry, EVERYTHING) for stored in questions])
        except Exception:  # of one of them: each alone, so that the others have their chains
            recovered = [_recovered_alone(recover, stored) for stored in questions]
        index.store(source, zip(questions, recovered, strict=True))
        first = questions[-1].position + 1 if questions else first
        return bool(questions)

    return fill


def _recovered_alone(recover: RecoverTogether, stored: Stored) -> Recovered:
    """Return the chains of a question, or that the server failed over it."""
    try:
        return recover([(stored.entry, EVERYTHING)])[0]
    except Exception:
        _log.exception("the question '%s' could not be recovered", stored.id[:80])
        problem = Problem(code="failed", message="server error; the log has the reason.")
        return Recovered(id=stored.id, chains=[], error=problem)


def _note_failure(task: asyncio.Task[Recovered]) -> None:
    """Log an error that nobody may be waiting for any more; a caller that waits gets it as well."""
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, BusyError):
        _log.warning("a question could not be looked up: %s", error)
