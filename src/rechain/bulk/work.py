"""What a worker does, wherever it runs: from a chunk of raw records to the lines of their chains."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from rechain.datasets.reading import Chunk, PassageSource, QuestionReader
from rechain.errors import QuestionError
from rechain.recovery import Recoverer, model_stamp
from rechain.schema import Recovered


@dataclass
class Tally:
    """What came of some questions."""

    questions: int = 0
    with_chain: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    """how many have an error, by its code"""
    confidence: float = 0.0
    """the sum of the best chains' confidences"""
    confident: int = 0
    """how many chains tell one"""

    def count(self, recovered: Recovered) -> None:
        """Take a question into account."""
        self.questions += 1
        if recovered.error:
            self.problems[recovered.error.code] += 1
        if recovered.chains:
            self.with_chain += 1
            if (confidence := recovered.chains[0].confidence) is not None:
                self.confident += 1
                self.confidence += confidence

    def add(self, other: "Tally") -> None:
        """Take the questions of another tally into account."""
        self.questions += other.questions
        self.with_chain += other.with_chain
        self.problems += other.problems
        self.confidence += other.confidence
        self.confident += other.confident

    @property
    def mean_confidence(self) -> float | None:
        """The mean confidence of the best chains, where they tell one."""
        return self.confidence / self.confident if self.confident else None


class Done(NamedTuple):
    """What a worker has made of a chunk."""

    lines: bytes
    """a line for every question"""
    tally: Tally
    share: float | None
    """what share of the input was read by then"""
    stopped_by: QuestionError | None = None
    """the error at which it stopped, where it should"""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done with every chunk; it can be sent to other processes."""

    make_recoverer: partial[Recoverer]
    passages: PassageSource = None
    only: tuple[str, ...] = ()
    strict: bool = False
    """stop at the first question that has an error"""

    def reader(self) -> QuestionReader:
        """Return what turns the records of a chunk into questions."""
        return QuestionReader(self.passages, self.only)

    def described(self) -> dict[str, Any]:
        """Return all that results depend on, but for the questions and rounding."""
        make = self.make_recoverer
        options = {name: value for name, value in make.keywords.items() if name != "device"}
        model = {"model": make.args, "files of the model": model_stamp(make), **options}
        return {**model, "passages": self.passages, "only": self.only}

    def line_counter(self) -> Callable[[Chunk], int]:
        """Return what tells how many lines will be made of a chunk."""
        if not self.only:
            return lambda chunk: len(chunk.records)
        reader = self.reader()
        return lambda chunk: sum(1 for _ in reader.entries(chunk))


class Worker:
    """Does the work on one chunk after another."""

    def __init__(self, work: Work) -> None:
        """Load the model and the passages."""
        self._recoverer = work.make_recoverer()
        self._reader = work.reader()
        self._strict = work.strict

    def __call__(self, chunk: Chunk) -> Done:
        """Recover the chains of a chunk's questions; they are scored together if the model can."""
        tally, lines, stopped_by = Tally(), [], None
        try:
            for recovered in self.recovered(chunk):
                tally.count(recovered)
                lines.append(recovered.to_json() + "\n")
        except QuestionError as error:
            stopped_by = error
        return Done("".join(lines).encode(), tally, chunk.records[-1].share, stopped_by)

    def recovered(self, chunk: Chunk) -> Iterator[Recovered]:
        """Yield the chains of a chunk's questions; raises QuestionError where an error should stop the work."""
        for recovered in self._recoverer.recover_entries(self._reader.entries(chunk)):
            if self._strict and recovered.error:
                raise QuestionError(recovered.error.code, recovered.error.message)
            yield recovered
