"""Database identifiers that stand in the text itself: DrugBank, UniProt, QAngaroo's masks."""

import re

from rechain.text.words import Span

_FORMS = {
    "drug": r"DB\d{5}",
    "protein": r"(?:[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2})",
    "mask": r"___MASK\d+___",
}
_IDENTIFIER = re.compile(r"(?<!\w)(?:" + "|".join(f"(?P<{kind}>{form})" for kind, form in _FORMS.items()) + r")(?!\w)")


def identifier(text: str) -> str | None:
    """Return the entity id of a text that is one identifier ("drug:DB00072"), else None."""
    match = _IDENTIFIER.fullmatch(text.strip())
    return f"{match.lastgroup}:{match.group()}" if match else None


def find_identifiers(text: str) -> dict[str, list[Span]]:
    """Return the entity ids of all identifiers in a text, and where they stand."""
    spans: dict[str, list[Span]] = {}
    for match in _IDENTIFIER.finditer(text):
        spans.setdefault(f"{match.lastgroup}:{match.group()}", []).append(match.span())
    return spans
