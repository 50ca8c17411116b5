"""Which question an annotator gets next, and how much each has labelled.

Some questions go to all annotators, so that they can be compared, the others to one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from rechain.errors import RechainError
from rechain.labels.store import LabelStore
from rechain.text.label_units import Mode, Unit, Value

Waiting = Callable[[str, Mapping[Unit, Value]], Sequence[Unit]]
"""Returns the units of a question that are yet to be labelled, after the labels that somebody gave."""


@dataclass
class Progress:
    """How much an annotator has labelled."""

    annotator: str
    labels: Counter[Value | Literal["settled"]] = field(default_factory=Counter)
    """units labelled, by value, and disagreements settled"""
    begun: int = 0
    """questions with at least one label"""
    claimed: int = 0
    """questions that only this annotator gets"""


class Queue:
    """The queues of all annotators, in the order of the questions."""

    def __init__(self, store: LabelStore, overlap: float) -> None:
        """Share out questions; `overlap` is the share, 0 to 1, that goes to everybody."""
        if not 0 <= overlap <= 1:
            raise RechainError(f"the overlap is a share from 0 to 1, not {overlap}.")
        self._store = store
        self.overlap = overlap
        self._shared: dict[str, bool] = {}
        self._has_units: dict[tuple[Mode, str], bool] = {}
        self._finished: dict[tuple[str, Mode, str], tuple[int, bool]] = {}
        """whether an annotator has finished a question, and the annotator's latest event when that was found"""
        self._changes = 0
        """how often annotators had been renamed or removed by then, which changes whose labels they are"""

    def is_shared(self, question: str) -> bool:
        """Return whether a question goes to all annotators."""
        if question not in self._shared:
            # By a hash of the id, so that every process and every restart shares the same questions, and a larger
            # overlap only adds to them.
            share = int.from_bytes(sha256(question.encode()).digest()[:8], "big") / 2**64
            self._shared[question] = share < self.overlap
        return self._shared[question]

    def next_question(self, annotator: str, mode: Mode, ids: Sequence[str], waiting: Waiting) -> str | None:
        """Return the first question that an annotator may label and has not finished, and claim it if it is not shared.

        `waiting` returns what is yet to be labelled of a question in this mode; questions with nothing to label are
        passed over. It may be slow, so it is called once per question, and again only where the annotator's labels
        changed.
        """
        if (changes := self._store.count_changes()) != self._changes:
            self._finished, self._changes = {}, changes
        claims, latest = self._store.claims(), self._store.latest(annotator, mode)
        for question in ids:
            is_own = self.is_shared(question) or claims.get(question) == annotator
            if not is_own and question in claims:
                continue
            if self._is_finished(annotator, mode, question, latest.get(question), waiting):
                continue
            # another process may have claimed it since, so the store decides
            if self._has_units_in(mode, question, waiting) and (
                is_own or self._store.claim(question, annotator) == annotator
            ):
                return question
        return None

    def progress(self, ids: Iterable[str]) -> list[Progress]:
        """Return how much every annotator has labelled of some questions, by name."""
        served = frozenset(ids)
        progress = {name: Progress(name) for name in self._store.annotators()}
        begun: set[tuple[str, str]] = set()
        for tally in self._store.tallies():
            if tally.question in served:
                if tally.value != "settled":
                    begun.add((tally.annotator, tally.question))
                progress.setdefault(tally.annotator, Progress(tally.annotator)).labels[tally.value] += tally.units
        for name, _ in begun:
            progress[name].begun += 1
        for question, name in self._store.claims().items():
            if question in served:
                progress.setdefault(name, Progress(name)).claimed += 1
        return [progress[name] for name in sorted(progress)]

    def _has_units_in(self, mode: Mode, question: str, waiting: Waiting) -> bool:
        if (mode, question) not in self._has_units:
            self._has_units[mode, question] = bool(waiting(question, {}))
        return self._has_units[mode, question]

    def _is_finished(self, annotator: str, mode: Mode, question: str, latest: int | None, waiting: Waiting) -> bool:
        """Return whether nothing waits to be labelled; `latest` is the annotator's latest event there, if any."""
        if latest is None:
            return False
        event, is_finished = self._finished.get((annotator, mode, question), (None, False))
        if event != latest:
            own = self._store.of_annotator(question, annotator)
            is_finished = not waiting(question, {unit: label.value for unit, label in own.items()})
            self._finished[annotator, mode, question] = latest, is_finished
        return is_finished
