"""Lines of a text as they are compared: what pages, parts and documents share is a header, a footer or a menu."""

import re
from collections.abc import Callable, Iterator

_LONGEST = 160
"""characters: a longer line is prose"""
_NUMBER = re.compile(r"\d+")
_LINE = re.compile(r"[^\n]+")


def find_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that may be repeated elsewhere, with all numbers alike; one line alone is a text."""
    if "\n" in text:
        yield from (_normal(match.group()) for match in _LINE.finditer(text) if len(match.group()) <= _LONGEST)


def blank_lines(text: str, is_blanked: Callable[[str], bool]) -> str:
    """Return a text with blanks in place of some lines, so that offsets stay the same."""
    return _LINE.sub(lambda match: " " * len(match[0]) if is_blanked(_normal(match[0])) else match[0], text)


def _normal(line: str) -> str:
    return _NUMBER.sub("0", line.strip())
