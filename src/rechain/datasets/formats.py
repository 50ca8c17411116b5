"""What every format module offers, and how a record that does not fit is described."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from pydantic import ValidationError

from rechain.errors import QuestionError
from rechain.schema import Gold, Passage, Question


class Format(ABC):
    """One published format. `question` never looks at gold evidence; `gold` reads nothing else."""

    name: ClassVar[str]

    @abstractmethod
    def recognises(self, record: dict[str, Any]) -> bool:
        """Tell whether a record is of this format, by its fields."""

    @abstractmethod
    def question(self, record: dict[str, Any]) -> Question:
        """Turn a record into a question."""

    @abstractmethod
    def gold(self, record: dict[str, Any]) -> Gold | None:
        """Turn a record into its gold chains, where it has any."""


def without_repeats(passages: Iterable[Passage]) -> list[Passage]:
    """Drop passages that stand there twice, word for word, as they do in 2WikiMultihopQA."""
    kept: dict[tuple[str, str], Passage] = {}
    for passage in passages:
        kept.setdefault((passage.id, passage.text), passage)
    return list(kept.values())


def join_sentences(sentences: Iterable[str]) -> str:
    """Join a passage's sentences as FORMATS.md says: stripped, one blank between."""
    return " ".join(filter(None, (sentence.strip() for sentence in sentences)))


def bad_record(where: str, error: ValidationError) -> QuestionError:
    """Say in one sentence which field of a record is wrong, and how."""
    first = error.errors(include_url=False)[0]
    field = _field(first["loc"])
    if first["type"] == "missing":
        return QuestionError("missing_field", f"{where}: the field {field} is missing.")
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        code = "duplicate_passage" if "repeats the id" in message else "bad_field"
        return QuestionError(code, f"{where}: {f'{field}.' if field else ''}{message}.")
    if first["type"] == "string_pattern_mismatch":
        return QuestionError("empty_field", f"{where}: {field} is empty.")
    return QuestionError("bad_field", f"{where}: {field}: {_lower_first(first['msg'])}.")


def _field(location: tuple[int | str, ...]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def _lower_first(message: str) -> str:
    return message[:1].lower() + message[1:]
