"""Sentences about data that does not fit the schema."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rechain.errors import QuestionError
from rechain.schema import NOT_BLANK

# Checks that `schema` adds to pydantic's, whose messages begin with the field, and the codes of their errors.
_OWN_CHECKS = {"bad_span": "bad_field", "link_types": "bad_field", "repeated_id": "duplicate_passage"}
# pydantic's names of values that are longer than the schema allows, and their units.
_TOO_LARGE = {"too_long": "items", "string_too_long": "characters"}
# Number and length of the names of fields that an error lists, as it is one sentence.
_MOST_NAMES, _LONGEST_NAME = 20, 40


def bad_record(where: str, error: ValidationError, record: Any = None) -> QuestionError:
    """Return an error that says in one sentence which field of a record is wrong, and how."""
    code, message = describe(error)
    is_of_record = code == "missing_field" and isinstance(record, Mapping) and len(_missing(error)[0]["loc"]) == 1
    return QuestionError(code, f"{where}: {message}{fields_of(record) if is_of_record else ''}.")


class MissingFieldsError(QuestionError):
    """A record lacks fields; all of them are named."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("missing_field", _are_missing(names))


def listed(names: Iterable[Any]) -> str:
    """Return names as people list them: "a, b and c"; few and short ones, however many or long they are."""
    short = [str(name)[:_LONGEST_NAME] for name in islice(names, _MOST_NAMES)]
    return " and ".join(filter(None, [", ".join(short[:-1]), *short[-1:]]))


def _are_missing(names: Sequence[str]) -> str:
    return f"the field{'s' * (len(names) > 1)} {listed(names)} {'are' if len(names) > 1 else 'is'} missing"


def fields_of(record: Mapping[str, Any]) -> str:
    """Return which fields a record has, and how to map them, as the end of a sentence on the fields that it lacks."""
    if not record:
        return "; the record is empty"
    return f"; the record has {listed(record)}: name the right ones with --map (mapping in Python)"


def _missing(error: ValidationError) -> list[ErrorDetails]:
    return [one for one in error.errors(include_url=False) if one["type"] == "missing"]


def describe(error: ValidationError, place: tuple[str | int, ...] = ()) -> tuple[str, str]:
    """Return the code and a description of all that is missing or else of the first thing that is wrong.

    `place` is where in the record the data stands.
    """
    if missing := _missing(error):
        return "missing_field", _are_missing([_field((*place, *one["loc"])) for one in missing])
    first = error.errors(include_url=False)[0]
    return describe_detail({**first, "loc": (*place, *first["loc"])})


def _field(place: Iterable[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def describe_detail(first: ErrorDetails) -> tuple[str, str]:
    """Return the code and a description of one thing that is wrong."""
    field = _field(first["loc"])
    if first["type"] == "missing":
        return "missing_field", _are_missing([field])
    if first["type"] == "string_pattern_mismatch":
        if first["ctx"]["pattern"] != NOT_BLANK:
            return "bad_field", f"{field} holds characters that it should not"
        return "empty_field", f"{field} is empty"
    if first["type"] in _TOO_LARGE:
        length, unit = len(first["input"]), _TOO_LARGE[first["type"]]
        return "too_large", f"{field} has {length:,} {unit}; the most are {first['ctx']['max_length']:,}"
    if first["type"] == "too_deep":
        return "too_deep", f"{field} {first['msg']}"
    if first["type"] in _OWN_CHECKS:
        return _OWN_CHECKS[first["type"]], f"{field}.{first['msg']}".removeprefix(".")
    return "bad_field", f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}"
