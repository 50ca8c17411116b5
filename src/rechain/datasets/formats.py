"""What every format module offers, and how a record that does not fit is described."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from rechain.errors import QuestionError
from rechain.schema import Gold, Passage, Question

# Checks of the schema's own, whose message begins with the field, and the codes of their errors.
_OWN_CHECKS = {"bad_span": "bad_field", "link_types": "bad_field", "repeated_id": "duplicate_passage"}


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


def make_passages(field: str, passages: Iterable[Mapping[str, str]]) -> list[Passage]:
    """Make passages of the items of a field, which an error names.

    A passage that stands there twice, word for word, as some do in 2WikiMultihopQA, is taken once.
    """
    made: dict[tuple[str, str], Passage] = {}
    for number, fields in enumerate(passages):
        try:
            passage = Passage.model_validate(fields)
        except ValidationError as error:
            code, message = _describe(error)
            raise QuestionError(code, f"{field}[{number}].{message}") from error
        made.setdefault((passage.id, passage.text), passage)
    return list(made.values())


def join_sentences(sentences: Iterable[str]) -> str:
    """Join a passage's sentences as FORMATS.md says: stripped, one blank between."""
    return " ".join(filter(None, (sentence.strip() for sentence in sentences)))


def bad_record(where: str, error: ValidationError) -> QuestionError:
    """Say in one sentence which field of a record is wrong, and how."""
    code, message = _describe(error)
    return QuestionError(code, f"{where}: {message}.")


def _describe(error: ValidationError) -> tuple[str, str]:
    first = error.errors(include_url=False)[0]
    field = _field(first["loc"])
    if first["type"] == "missing":
        return "missing_field", f"the field {field} is missing"
    if first["type"] == "string_pattern_mismatch":
        return "empty_field", f"{field} is empty"
    if first["type"] in _OWN_CHECKS:
        return _OWN_CHECKS[first["type"]], f"{field}.{first['msg']}".removeprefix(".")
    return "bad_field", f"{field}: {_lower_first(first['msg'])}"


def _field(location: tuple[int | str, ...]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def _lower_first(message: str) -> str:
    return message[:1].lower() + message[1:]
