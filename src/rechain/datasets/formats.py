"""What every format module offers, and what several of them need. The list of formats is `reading.FORMATS`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from rechain.schema import Gold, Question, Same


class Format(ABC):
    """One published format. `question` never reads gold evidence; `gold` reads little else."""

    name: ClassVar[str]
    same: ClassVar[Same] = "passages"
    """what counts as the same chain in this data set"""
    gold_tail_holds_answer: ClassVar[bool] = False
    """whether evaluation orders the gold passages by which of them holds the answer, as the data gives no order"""

    @abstractmethod
    def recognises(self, record: dict[str, Any]) -> bool:
        """Return whether a record is of this format, by its fields."""

    @abstractmethod
    def question(self, record: dict[str, Any]) -> Question:
        """Turn a record into a question."""

    def without_passages(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Return a record that has all but a field for passages with an empty one; None for any other.

        So a record is read where a collection finds the passages.
        """
        return None

    def gold(self, record: dict[str, Any]) -> Gold | None:
        """Turn a record into its gold chains, where it has any."""
        return None

    def sentences(self, record: dict[str, Any]) -> Mapping[str, Sequence[str]]:
        """Return the sentences of the passages, by passage id, where the record gives them."""
        return {}


def join_sentences(sentences: Iterable[str]) -> str:
    """Join a passage's sentences as docs/formats.md says: stripped, one blank between."""
    return " ".join(filter(None, (sentence.strip() for sentence in sentences)))
