"""What the server serves: questions, where their chains come from, and the labels people give."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rechain.candidates import CandidateSettings
from rechain.candidates.units import Units, find_units
from rechain.datasets import Entry
from rechain.errors import QuestionError, RechainError
from rechain.labels.queue import Queue
from rechain.labels.store import LabelStore
from rechain.recovery import Options, Recoverer
from rechain.schema import Question, Recovered, Same
from rechain.web.index import Index, Stored
from rechain.web.service import BusyError, RecoveryService

MOST_SHOWN = 200
"""so many chains of a question are kept for its page"""
_AT_ONCE = 8
_CROWD = 32
_log = logging.getLogger("rechain.web")
EVERYTHING = Options(top=MOST_SHOWN, explain=True)
"""what a question's page shows of its chains"""


class NotThereError(RechainError):
    """What is asked for does not exist."""


class ConflictError(RechainError):
    """What is given contradicts itself."""


@dataclass(frozen=True)
class Source:
    """Where chains come from: a file, or a model that recovers them."""

    number: int
    name: str
    service: RecoveryService | None = None


@dataclass
class Site:
    """All that is behind the pages."""

    index: Index
    labels: LabelStore
    queue: Queue
    guidelines: str
    settings: CandidateSettings = field(default_factory=CandidateSettings)
    sources: list[Source] = field(default_factory=list)
    recovery: RecoveryService = field(init=False)
    """what recovers questions that are not in the file"""
    has_gold: bool = False
    same: Same = "links"
    """what counts as the same chain of these questions"""
    _looking: dict[tuple[int, int], asyncio.Task[Recovered]] = field(default_factory=dict)

    def add_file(self, name: str, found: Iterable[Recovered]) -> int:
        """Add the chains of a file as a source; return how many are of questions that are not there."""
        source = Source(len(self.sources), name)
        self.sources.append(source)
        unknown = 0

        def known() -> Iterable[tuple[Stored, Recovered]]:
            nonlocal unknown
            for recovered in found:
                stored = self.index.named(recovered.id or "")
                if stored is None:
                    unknown += 1
                else:
                    yield stored, recovered

        self.index.store(source.number, known())
        return unknown

    def add_model(self, name: str, make: Callable[[], Recoverer]) -> RecoveryService:
        """Add a model as a source; when nobody asks for anything it goes through all questions."""
        number = len(self.sources)
        service = RecoveryService(make, idle=_Filler(self.index, number))
        self.sources.append(Source(number, name, service))
        return service

    async def found(self, source: Source, stored: Stored, patience: float | None = None) -> Recovered | None:
        """Return what a source has found for a question; a model looks now if it has not yet.

        None: there is nothing, or nothing yet after so many seconds of patience; then the model goes on looking, unless
        so many wait for it that who has no patience should ask again.
        """
        known = self.index.recovered(source.number, stored.position)
        if known is not None or source.service is None:
            return known
        place = source.number, stored.position
        if place not in self._looking:
            if patience is not None and source.service.waiting >= _CROWD:
                return None
            self._looking[place] = asyncio.create_task(self._look(source.service, source.number, stored))
            self._looking[place].add_done_callback(_note_failure)
        done, _ = await asyncio.wait([self._looking[place]], timeout=patience)
        return done.pop().result() if done else None

    async def _look(self, service: RecoveryService, source: int, stored: Stored) -> Recovered:
        try:
            (recovered,) = await ask(service, [_entry(stored)], EVERYTHING)
            self.index.store(source, [(stored, recovered)])
            return recovered
        finally:
            del self._looking[source, stored.position]

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

    def units(self, stored: Stored) -> Units | None:
        """Return what people label of a question, or None where it cannot be read."""
        return None if isinstance(stored.content, QuestionError) else find_units(stored.content, self.settings)

    def start(self) -> None:
        """Let the models that are sources begin to look."""
        for source in self.sources:
            if source.service is not None:
                source.service.start()

    def close(self) -> None:
        """Stop all work; labels are written already."""
        for service in {self.recovery, *(source.service for source in self.sources)}:
            if service is not None:
                service.close()
        self.labels.close()


async def ask(service: RecoveryService, entries: Sequence[Entry], wanted: Options) -> list[Recovered]:
    """Wait for what a service recovers; who gives up waiting takes the questions back."""
    return await asyncio.wrap_future(service.ask(entries, wanted))


class _Filler:
    """Goes through the questions for which a source has not looked yet, a few at a time."""

    def __init__(self, index: Index, source: int) -> None:
        self._index = index
        self._source = source
        self._next = 0

    def __call__(self, recoverer: Recoverer) -> bool:
        places = self._index.missing(self._source, self._next, _AT_ONCE)
        questions = [self._index.at(place) for place in places]
        found = recoverer.recover_together([(_entry(stored), EVERYTHING) for stored in questions])
        self._index.store(self._source, zip(questions, found, strict=True))
        self._next = places[-1] + 1 if places else self._next
        return bool(places)


def _note_failure(task: asyncio.Task[Recovered]) -> None:
    """Say what went wrong where nobody waits for it any more; who waits gets the error as well."""
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, BusyError):
        _log.warning("a question could not be looked up: %s", error)


def _entry(stored: Stored) -> Entry:
    return Entry("", stored.id, stored.content)
