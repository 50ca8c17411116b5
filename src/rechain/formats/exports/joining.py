"""Chains joined with their questions, both streamed in the same order, and the two kinds of exports made of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson

from rechain.errors import InputError, QuestionError
from rechain.formats.datasets.questions import Entry, read_sentences
from rechain.schema import Chain, Passage, Question, Recovered
from rechain.system.provenance import Facts
from rechain.text.words import Span

Row = TypeVar("Row")
Sentences = Mapping[str, Sequence[str]]  # the sentences of passages by passage id, where the questions file gives them
Complete = Callable[[Question, Recovered], Question]
"""adds to a question the passages that its chains name and it lacks"""
ChainPassage = tuple[Passage, Sequence[Span]]
"""a passage of a chain, and the spans in its text of its links to others"""


class Joined(NamedTuple):
    """A question and its recovered chains."""

    question: Question
    recovered: Recovered
    sentences: Sentences

    @property
    def best(self) -> Chain:
        """The best chain."""
        return self.recovered.chains[0]

    @property
    def confidence(self) -> dict[str, float]:
        """The confidence of the best chain as a field of a record; none where the model tells none."""
        return {} if self.best.confidence is None else {"confidence": self.best.confidence}

    @property
    def passages(self) -> list[ChainPassage]:
        """The passages of the best chain, in order."""
        by_id = {passage.id: passage for passage in self.question.passages}
        links: list[list[Span]] = [[] for _ in self.best.passages]
        for ends, link in zip(self.best.between, self.best.joining_links, strict=True):
            for place, span in zip(ends, link.mentions, strict=True):
                links[place] += [] if span is None else [span]
        return [(by_id[name], spans) for name, spans in zip(self.best.passages, links, strict=True)]

    @property
    def evidence(self) -> list[tuple[str, Span | None]]:
        """The passages that contain the answer or one of its claims, by the record, and where."""
        answers = [(chain.answer.passage, chain.answer.span) for chain in self.recovered.chains if chain.answer]
        claims = [(claim.passage, claim.span) for claim in self.recovered.claims if claim.passage is not None]
        return [*answers, *claims]


@dataclass
class Selection:
    """Selects the questions that are exported, and counts them and the reasons why others are not."""

    min_confidence: float | None = None
    """questions whose best chain has less are left out"""
    exported: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def keeps(self, where: str, recovered: Recovered) -> bool:
        """Return whether a question has a chain of enough confidence; if not, count the reason."""
        if recovered.error or not recovered.chains:
            self.left_out[recovered.error.code if recovered.error else "no_chain"] += 1
            return False
        if self.min_confidence is None:
            return True
        if (confidence := recovered.chains[0].confidence) is None:
            raise InputError(
                f"{where}: the model that recovered this chain tells no confidence, so none can be demanded of it."
            )
        if confidence < self.min_confidence:
            self.left_out["low_confidence"] += 1
            return False
        return True

    def rows(self, joined: Iterable[Joined], rows_of: Callable[[Joined], Sequence[Row]]) -> Iterator[Row]:
        """Yield the rows of every question; one for which QuestionError is raised is left out."""
        for question in joined:
            try:
                rows = rows_of(question)
            except QuestionError as error:
                self.left_out[error.code] += 1
            else:
                self.exported += 1
                yield from rows

    def chains(self, located: Iterable[tuple[str, Recovered]]) -> Iterator[Recovered]:
        """Yield all chains, also errors of questions without any, or those of enough confidence."""
        for where, recovered in located:
            if self.min_confidence is None or self.keeps(where, recovered):
                self.exported += 1
                yield recovered


@dataclass(frozen=True)
class LineExport:
    """An export of JSON lines, for which chains are joined with their questions."""

    rows: Callable[..., Sequence[Any]]
    """makes the rows of a Joined, with `options` as keywords; a question that it cannot export raises QuestionError"""
    options: tuple[str, ...] = ()
    """options of the command line that it takes"""
    needs_sentences: bool = False
    """whether `Joined.sentences` is filled, for which the questions are read twice"""
    gather: Callable[[Iterable[Any]], object] | None = None
    """makes the one object that is written of all rows; by default each row is a line"""

    def lines(
        self,
        located: Iterable[tuple[str, Recovered]],
        entries: Iterable[Entry],
        path: Path | None,
        selection: Selection,
        options: Mapping[str, Any],
        complete: Complete | None = None,
    ) -> Iterator[str]:
        """Yield the lines of located chains and of the entries of a questions file, which may give sentences.

        `complete` adds to a question the passages that its chains name and it lacks, where an index has them.
        """
        without: Iterator[tuple[Entry, Sentences]] = ((entry, {}) for entry in entries)
        questions = with_sentences(entries, path) if self.needs_sentences and path else without
        rows = selection.rows(join(located, questions, selection, complete), partial(self.rows, **options))
        for row in [self.gather(rows)] if self.gather else rows:
            yield orjson.dumps(row).decode()


@dataclass(frozen=True)
class FileExport:
    """An export of chains without their questions into a file that is no text."""

    title: str
    write: Callable[[Path, Iterable[Recovered], Facts], None]
    """writes chains; the last argument is what made them, for the file's own metadata"""
    options: tuple[str, ...] = ()


def with_sentences(entries: Iterable[Entry], path: str | Path) -> Iterator[tuple[Entry, Sentences]]:
    """Yield every question that has an id with the sentences of its file, which is read a second time for them."""
    sentences = (by_passage for name, by_passage in read_sentences(path) if name is not None)
    return zip((entry for entry in entries if entry.id is not None), sentences, strict=False)


def join(
    located: Iterable[tuple[str, Recovered]],
    questions: Iterable[tuple[Entry, Sentences]],
    selection: Selection,
    complete: Complete | None = None,
) -> Iterator[Joined]:
    """Yield the selected chains, which come with their places, with their questions."""
    remaining = iter(questions)
    for where, recovered in located:
        match = None if recovered.id is None else next_of(where, recovered.id, remaining)
        if not selection.keeps(where, recovered):
            continue
        if match is None:
            raise InputError(f"{where}: the chains have no id, so nobody can tell whose they are.")
        entry, sentences = match
        if isinstance(entry.content, QuestionError):
            raise InputError(f"{where} has the chains of a question that cannot be read: {entry.content}")
        question = complete(entry.content, recovered) if complete else entry.content
        joined = Joined(question, recovered, sentences)
        _check(where, entry, joined)
        yield joined


def next_of(where: str, name: str, questions: Iterator[tuple[Entry, Sentences]]) -> tuple[Entry, Sentences]:
    """Return the next question of an id, which may be that of its record or that of the question made of it."""
    for entry, sentences in questions:
        if name in (entry.id, getattr(entry.content, "id", None)):
            return entry, sentences
    raise InputError(
        f"{where}: the question '{name}' does not come next among the questions, or not at all; "
        "give the questions from which the chains were recovered, and both in the same order."
    )


def _check(where: str, entry: Entry, joined: Joined) -> None:
    """Raise InputError if chains name a passage, or a span in one, that the question lacks."""
    advice = "give the questions from which the chains were recovered"
    passages = {passage.id: passage for passage in joined.question.passages}
    names = [name for chain in joined.recovered.chains for name in chain.passages]
    for name in (*names, *(name for name, _ in joined.evidence)):
        if name not in passages:
            raise InputError(
                f"{where}: a chain names the passage '{name}', which the question ({entry.where}) lacks; {advice}."
            )
    links = [("a link", passage, span) for passage, spans in joined.passages for span in spans]
    answers = [("the answer", passages[name], span) for name, span in joined.evidence if span]
    for what, passage, (start, end) in (*links, *answers):
        if not 0 <= start < end <= len(passage.text):
            raise InputError(
                f"{where}: {what} stands at {start} to {end} of the passage '{passage.id}', which is no stretch "
                f"of its {len(passage.text)} characters ({entry.where}); {advice}."
            )
