"""What pages are drawn from, in the server's process or in another: questions, chains of sources, documents."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rechain.candidates import CandidateSettings
from rechain.candidates.units import Units
from rechain.errors import QuestionError, RechainError
from rechain.schema import Question, Recovered
from rechain.system.provenance import Facts
from rechain.text.segments import read_segmenter
from rechain.web.index import IndexReader, Stored
from rechain.web.recent import recent_units

if TYPE_CHECKING:
    from rechain.web.corpus import Corpus  # it loads the search engine, which a server without an index does not need

MOST_SHOWN = 200
"""chains of a question that are kept for its page: more than anybody looks through, and the database stays small"""
_NO_INDEX = "this server has no index of documents; start it with rechain serve --corpus INDEX."


class NotThereError(RechainError):
    """A question, source or unit that does not exist."""


class GoneError(Exception):
    """Whoever asked has closed the connection, or the server ends."""


@dataclass(frozen=True)
class Origin:
    """What made the chains of a source."""

    summary: str
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


@dataclass
class Contents:
    """Questions, the chains of sources, and documents."""

    index: IndexReader
    settings: CandidateSettings = field(default_factory=CandidateSettings)
    sources: list[Source] = field(default_factory=list)
    has_gold: bool = False
    corpus: "Corpus | None" = None
    """the index in which passages are found, if there is one"""

    @property
    def preload(self) -> list[str]:
        """The modules that are imported once for all processes of the server."""
        chinese = ["rechain.web.segmenter"] if self.index.marks.has_chinese else []
        return ["rechain.web.explorer", "rechain.web.drawing", *chinese]

    def warm_up(self) -> None:
        """Load what takes a while before a page needs it."""
        if self.index.marks.has_chinese:
            read_segmenter()

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
        """The index; raises NotThereError where there is none."""
        if self.corpus is None:
            raise NotThereError(_NO_INDEX)
        return self.corpus

    def with_chains(self, question: Question, recovered: Recovered | None) -> Question:
        """Return a question with all passages of its chains: a file's may come from more than were found here."""
        if self.corpus is None or recovered is None:
            return question
        return self.corpus.with_chains(question, recovered)

    def units(self, question: Question) -> Units:
        """Return what people label of a question."""
        return recent_units(question, self.settings, None if self.corpus is None else self.corpus.index)
