"""Candidates of the questions that were looked at last: a page of a question is seldom the only one that is opened.

To find them is most of the work of a question's page, and of every label that is checked.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from rechain.candidates import Candidates, CandidateSettings, find_of_any_shape
from rechain.candidates.units import Units, find_units
from rechain.schema import Question
from rechain.text.collection import Statistics
from rechain.web.bounded import BoundedCache

_MOST = 500_000
"""characters of the passages of all questions that are remembered: some ten megabytes with what was read out of them"""

Result = TypeVar("Result")
Find = Callable[[Question, CandidateSettings, Statistics | None], Result]


class _Asked(NamedTuple):
    """What was asked for; it is kept beside the result, so that no other object has the ids of these."""

    question: Question
    settings: CandidateSettings
    collection: Statistics | None

    @property
    def size(self) -> int:
        return 1000 + sum(len(passage.text) for passage in self.question.passages)


def remember(find: Find[Result], most: int = _MOST) -> Find[Result]:
    """Return a function that keeps what it found for the questions that were asked for last.

    Two questions that are equal but not the same object are two: to compare all passages takes long.
    """
    cache: BoundedCache[tuple[_Asked, Result]] = BoundedCache(most, size=lambda kept: kept[0].size)

    def find_once(question: Question, settings: CandidateSettings, collection: Statistics | None) -> Result:
        asked = _Asked(question, settings, collection)
        return cache.get(tuple(map(id, asked)), lambda: (asked, find(*asked)))[1]

    return find_once


def _candidates(question: Question, settings: CandidateSettings, collection: Statistics | None) -> Candidates:
    return find_of_any_shape(question, settings, collection=collection)


recent_candidates: Find[Candidates] = remember(_candidates)
recent_units: Find[Units] = remember(find_units)
