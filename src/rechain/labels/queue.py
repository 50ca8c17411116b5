"""Which question comes next to whom: some come to all annotators, so that they can be compared, the others to one."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from rechain.candidates.units import Mode, Unit, Value
from rechain.errors import RechainError
from rechain.labels.store import LabelStore

Waiting = Callable[[str, Mapping[Unit, Value]], Sequence[Unit]]
"""What is yet to be labelled of a question, after what somebody has said of it."""


@dataclass
class Progress:
    """How far an annotator has come."""

    annotator: str
    labels: Counter[Value] = field(default_factory=Counter)
    """units labelled, by value"""
    begun: int = 0
    """questions with at least one label"""
    claimed: int = 0
    """questions that nobody else gets"""


class Queue:
    """The queues of all annotators, in the order of the questions file."""

    def __init__(self, store: LabelStore, overlap: float) -> None:
        """Share out questions; `overlap` is the share of them that comes to everybody, 0 to 1."""
        if not 0 <= overlap <= 1:
            raise RechainError(f"the overlap is a share from 0 to 1, not {overlap}.")
        self._store = store
        self.overlap = overlap
        self._shared: dict[str, bool] = {}
        self._has_units: dict[tuple[Mode, str], bool] = {}
        self._finished: dict[tuple[str, Mode, str], tuple[int, bool]] = {}
        """whether an annotator has finished a question, and of which of his events that was said"""

    def is_shared(self, question: str) -> bool:
        """Return whether a question comes to all annotators; its id decides, whoever asks and whenever."""
        if question not in self._shared:
            drawn = int.from_bytes(sha256(question.encode()).digest()[:8], "big") / 2**64
            self._shared[question] = drawn < self.overlap
        return self._shared[question]

    def next_question(self, annotator: str, mode: Mode, ids: Sequence[str], waiting: Waiting) -> str | None:
        """Return the first question that an annotator may label and has not finished, and claim it if need be.

        `waiting` returns what is yet to be labelled of a question in this mode; questions of which there is nothing to
        label are passed over. It may be slow: it is asked once whether there is, and again only where the annotator's
        labels changed.
        """
        claims, latest = self._store.claims(), self._store.latest(annotator, mode)
        for question in ids:
            is_free = self.is_shared(question) or claims.get(question, annotator) == annotator
            if not is_free or self._is_finished(annotator, mode, question, latest.get(question), waiting):
                continue
            if self._is_worth_labelling(mode, question, waiting) and self._is_given(question, annotator, claims):
                return question
        return None

    def release(self, annotator: str) -> list[str]:
        """Give back the questions an annotator claimed and has not begun; return their ids."""
        return self._store.release(annotator)

    def progress(self, ids: Iterable[str]) -> list[Progress]:
        """Return how far all annotators have come with some questions, by name."""
        wanted = frozenset(ids)
        found = {name: Progress(name) for name in self._store.annotators()}
        begun: set[tuple[str, str]] = set()
        for tally in self._store.tallies():
            if tally.question in wanted:
                begun.add((tally.annotator, tally.question))
                found.setdefault(tally.annotator, Progress(tally.annotator)).labels[tally.value] += tally.units
        for name, _ in begun:
            found[name].begun += 1
        for question, name in self._store.claims().items():
            if question in wanted:
                found.setdefault(name, Progress(name)).claimed += 1
        return [found[name] for name in sorted(found)]

    def _is_given(self, question: str, annotator: str, claims: dict[str, str]) -> bool:
        if self.is_shared(question) or claims.get(question) == annotator:
            return True
        return self._store.claim(question, annotator) == annotator

    def _is_worth_labelling(self, mode: Mode, question: str, waiting: Waiting) -> bool:
        if (mode, question) not in self._has_units:
            self._has_units[mode, question] = bool(waiting(question, {}))
        return self._has_units[mode, question]

    def _is_finished(self, annotator: str, mode: Mode, question: str, latest: int | None, waiting: Waiting) -> bool:
        """Return whether nothing waits to be labelled; `latest` is the annotator's latest event there, if any."""
        if latest is None:
            return False
        event, is_finished = self._finished.get((annotator, mode, question), (None, False))
        if event != latest:
            labels = self._store.of_question(question)
            said = {label.unit: label.value for label in labels if label.annotator == annotator and not label.settles}
            is_finished = not waiting(question, said)
            self._finished[annotator, mode, question] = latest, is_finished
        return is_finished
