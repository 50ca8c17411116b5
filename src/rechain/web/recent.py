"""Candidates of the questions that were looked at last: a page of a question is seldom the only one that is opened.

To find them is most of the work of a question's page, and of every label that is checked.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

from rechain.candidates import Candidates, CandidateSettings, find_of_any_shape
from rechain.candidates.units import Units, find_units
from rechain.schema import Question
from rechain.text.collection import Statistics

_MOST = 500_000
"""characters of the passages of all questions that are remembered: some ten megabytes with what was read out of them"""

Result = TypeVar("Result")
Find = Callable[[Question, CandidateSettings, Statistics | None], Result]


class Recent(Generic[Result]):
    """Remembers what was found for the questions that were asked for last."""

    def __init__(self, find: Find[Result], most: int = _MOST) -> None:
        self._find = find
        self._most = most
        self._lock = Lock()
        self._entries: OrderedDict[tuple[int, ...], tuple[tuple[Any, ...], Result]] = OrderedDict()
        self._size = 0

    def __call__(self, question: Question, settings: CandidateSettings, collection: Statistics | None) -> Result:
        """Return what is found for a question; two that are equal but not the same object are two questions."""
        # By identity, as to compare all passages takes long; entries hold the objects, so that no other has their ids.
        objects = question, settings, collection
        key = tuple(map(id, objects))
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][1]
        result = self._find(*objects)
        with self._lock:
            if key not in self._entries:
                self._entries[key] = objects, result
                self._size += _size(question)
            while self._size > self._most:
                _, ((oldest, *_), _) = self._entries.popitem(last=False)
                self._size -= _size(oldest)
        return result


def _size(question: Question) -> int:
    return 1000 + sum(len(passage.text) for passage in question.passages)


def _candidates(question: Question, settings: CandidateSettings, collection: Statistics | None) -> Candidates:
    return find_of_any_shape(question, settings, collection=collection)


recent_candidates = Recent[Candidates](_candidates)
recent_units = Recent[Units](find_units)
