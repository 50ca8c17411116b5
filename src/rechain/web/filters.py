"""Which questions are listed, as the address of a page says it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from rechain.errors import RechainError
from rechain.schema import LinkKind
from rechain.web.index import Filter, Order, Verdict

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "verdict": get_args(Verdict),
    "kind": get_args(LinkKind),
    "order": get_args(Order),
    "found": ("yes", "no"),
}


def read_filter(query: Mapping[str, str]) -> Filter:
    """Read a filter; what is absent or empty does not count."""
    told: dict[str, Any] = {"text": query.get("text", "").strip()}
    for name in ("min_confidence", "max_confidence"):
        if value := query.get(name, "").strip():
            told[name] = _share(name, value)
    for name, choices in _CHOICES.items():
        if value := query.get(name, ""):
            told[name] = _one_of(name, value, choices)
    if "found" in told:
        told["chain"] = told.pop("found") == "yes"
    return Filter(**told)


def read_number(query: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    """Read a number that counts something."""
    value = query.get(name, "").strip()
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) >= least):
        raise RechainError(f"{name} should be a number from {least} on, not '{value[:20]}'.")
    return int(value)


def filter_query(wanted: Filter) -> dict[str, Any]:
    """Return the query of a page's address that asks for a filter; it leaves out what does not count."""
    told = asdict(wanted) | {"order": None if wanted.order == "file" else wanted.order}
    chain = told.pop("chain")
    told["found"] = None if chain is None else "yes" if chain else "no"
    return {name: value for name, value in told.items() if value not in (None, "")}


def _share(name: str, value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise RechainError(f"{name} should be a number from 0 to 1, not '{value[:20]}'.")
    return share


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise RechainError(f"{name} should be one of {', '.join(choices)}, not '{value[:20]}'.")
    return value
