"""Chains joined with their questions, both streamed: chains stand in the order of the questions."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from rechain.datasets.reading import Entry, read_sentences
from rechain.errors import InputError, QuestionError
from rechain.schema import Chain, Passage, Question, Recovered
from rechain.text.words import Span

NO_CHAIN, LOW_CONFIDENCE = "no_chain", "low_confidence"
"""why a question is left out, beside the codes of its own error"""

Row = TypeVar("Row")
Sentences = Mapping[str, Sequence[str]]
"""the sentences of which passages consist, by the passages' ids, where the file gives them"""


class Step(NamedTuple):
    """A passage of a chain, and where the links to the passages before and after it stand in its text."""

    passage: Passage
    links: Sequence[Span]


class Joined(NamedTuple):
    """A question and the chains that were recovered for it."""

    question: Question
    recovered: Recovered
    sentences: Sentences

    @property
    def best(self) -> Chain:
        """The best chain."""
        return self.recovered.chains[0]

    @property
    def steps(self) -> list[Step]:
        """The passages of the best chain, in order."""
        passages = {passage.id: passage for passage in self.question.passages}
        spans: list[list[Span]] = [[] for _ in self.best.passages]
        for ends, link in zip(pairwise(spans), self.best.links, strict=False):
            for found, span in zip(ends, link.mentions, strict=True):
                found += [] if span is None else [span]
        return [Step(passages[name], found) for name, found in zip(self.best.passages, spans, strict=True)]


@dataclass
class Selection:
    """Which questions are exported, how many were, and why others were not."""

    min_confidence: float | None = None
    """questions whose best chain has less are left out"""
    exported: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def keeps(self, where: str, recovered: Recovered) -> bool:
        """Return whether a question has a chain of enough confidence, and note why it has not."""
        if recovered.error or not recovered.chains:
            self.left_out[recovered.error.code if recovered.error else NO_CHAIN] += 1
            return False
        if self.min_confidence is not None and _confidence(where, recovered) < self.min_confidence:
            self.left_out[LOW_CONFIDENCE] += 1
            return False
        return True

    def rows(self, joined: Iterable[Joined], rows_of: Callable[[Joined], Sequence[Row]]) -> Iterator[Row]:
        """Yield what a format makes of every question; one that it refuses by a QuestionError is left out."""
        for one in joined:
            try:
                rows = rows_of(one)
            except QuestionError as error:
                self.left_out[error.code] += 1
            else:
                self.exported += 1
                yield from rows


def _confidence(where: str, recovered: Recovered) -> float:
    confidence = recovered.chains[0].confidence
    if confidence is None:
        raise InputError(
            f"{where}: the model that recovered this chain tells no confidence, so none can be demanded of it."
        )
    return confidence


def with_sentences(entries: Iterable[Entry], path: str | Path) -> Iterator[tuple[Entry, Sentences]]:
    """Yield every question of a file that has an id with the file's own sentences, for which it is read once more."""
    told = (sentences for name, sentences in read_sentences(path) if name is not None)
    return zip((entry for entry in entries if entry.id is not None), told, strict=False)


def without_sentences(entries: Iterable[Entry]) -> Iterator[tuple[Entry, Sentences]]:
    """Yield every question alone."""
    return ((entry, {}) for entry in entries)


def join(
    rows: Iterable[tuple[str, Recovered]], asked: Iterable[tuple[Entry, Sentences]], selection: Selection
) -> Iterator[Joined]:
    """Yield the selected chains, of which it is told where they stand, with their questions."""
    questions = iter(asked)
    for where, recovered in rows:
        found = None if recovered.id is None else _next_of(where, recovered.id, questions)
        if not selection.keeps(where, recovered):
            continue
        if found is None:
            raise InputError(f"{where}: the chains have no id, so nobody can tell whose they are.")
        entry, sentences = found
        if isinstance(entry.content, QuestionError):
            raise InputError(f"{where} has the chains of a question that cannot be read: {entry.content}")
        joined = Joined(entry.content, recovered, sentences)
        _check(where, entry, joined)
        yield joined


def _next_of(where: str, name: str, questions: Iterator[tuple[Entry, Sentences]]) -> tuple[Entry, Sentences]:
    """Go on to the question of an id."""
    found = next((pair for pair in questions if name in _names(pair[0])), None)
    if found is None:
        raise InputError(
            f"{where}: the question '{name}' does not come next among the questions, or not at all; "
            "give the questions from which the chains were recovered, and both in the same order."
        )
    return found


def _names(entry: Entry) -> tuple[str | None, ...]:
    """Return the ids under which an error, or chains, of a question are written."""
    return (entry.id,) if isinstance(entry.content, QuestionError) else (entry.id, entry.content.id)


def _check(where: str, entry: Entry, joined: Joined) -> None:
    """Raise an error where chains name a passage, or a place in one, that the question has not."""
    advice = "give the questions from which the chains were recovered"
    known = {passage.id for passage in joined.question.passages}
    for name in (name for chain in joined.recovered.chains for name in chain.passages):
        if name not in known:
            raise InputError(
                f"{where}: a chain names the passage '{name}', which the question ({entry.where}) lacks; {advice}."
            )
    for passage, links in joined.steps:
        for start, end in links:
            if not 0 <= start < end <= len(passage.text):
                raise InputError(
                    f"{where}: a link stands at {start} to {end} of the passage '{passage.id}', which is no stretch "
                    f"of its {len(passage.text)} characters ({entry.where}); {advice}."
                )
