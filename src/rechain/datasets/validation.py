"""Sentences about data that does not fit the schema."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rechain.errors import QuestionError
from rechain.schema import NOT_BLANK

# Checks that `schema` adds to pydantic's, whose messages begin with the field, and the codes of their errors.
_OWN_CHECKS = {"bad_span": "bad_field", "link_types": "bad_field", "repeated_id": "duplicate_passage"}
# pydantic's names of what is longer than the schema allows, and what it consists of.
_TOO_LARGE = {"too_long": "items", "string_too_long": "characters"}


def bad_record(where: str, error: ValidationError) -> QuestionError:
    """Return an error that says in one sentence which field of a record is wrong, and how."""
    code, message = describe(error)
    return QuestionError(code, f"{where}: {message}.")


def describe(error: ValidationError) -> tuple[str, str]:
    """Return the code and a description of the first thing that is wrong."""
    return describe_detail(error.errors(include_url=False)[0])


def describe_detail(first: ErrorDetails) -> tuple[str, str]:
    """Return the code and a description of one thing that is wrong."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]]
    field = "".join(parts).removeprefix(".")
    if first["type"] == "missing":
        return "missing_field", f"the field {field} is missing"
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
