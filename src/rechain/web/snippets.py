"""Texts in which the words that somebody looks for are marked, cut to where most of them stand."""

from collections.abc import Iterable, Iterator, Sequence

from rechain.text.highlights import Mark, Piece, cut
from rechain.text.words import Span, Text, phrase

MATCH = "match"
"""the role of a word that was searched for"""
_LENGTH, _BEFORE = 300, 60
"""characters of a snippet: about three lines; and of those before its first match"""

Found = tuple[Span, str]
"""where a word stands that was searched for, and the word"""


def whole_words(text: str, words: Iterable[str]) -> list[Found]:
    """Return where some words stand in a text."""
    read = Text(text)
    return sorted((span, word) for word in words for span in read.spans(phrase(word)))


def beginnings(text: str, words: Sequence[str]) -> list[Found]:
    """Return where words stand in a text that begin like some folded words."""
    read = Text(text)
    places = ((number, word) for number, one in enumerate(read.words) for word in words if one.startswith(word))
    return [(read.places[number], word) for number, word in places]


def marked(text: str, spans: Sequence[Found]) -> list[Piece]:
    """Return a whole text, cut where words stand."""
    return cut(text, {Mark(*span, MATCH) for span, _ in spans})


def snippet(text: str, spans: Sequence[Found]) -> list[Piece]:
    """Return the stretch of a text that holds most of some words, cut where they stand."""
    start, end = _stretch(text, spans)
    marks = (Mark(left - start, right - start, MATCH) for (left, right), _ in spans if start <= left and right <= end)
    return [
        *([Piece("… ", ())] if start else []),
        *cut(text[start:end], set(marks)),
        *([Piece(" …", ())] if end < len(text) else []),
    ]


def _stretch(text: str, spans: Sequence[Found]) -> Span:
    """Return the stretch with most different words, the first of several; it begins and ends at blanks."""
    first = max(_counts(spans), key=lambda one: (one[1], -one[0]), default=(0, 0))[0]
    if len(text) <= _LENGTH or first <= _BEFORE:
        start = 0
    else:
        start = first - _BEFORE + text[first - _BEFORE : first].find(" ") + 1
    if len(text) - start <= _LENGTH:
        return start, len(text)
    blank = text.rfind(" ", start + _LENGTH // 2, start + _LENGTH)
    return start, start + _LENGTH if blank < 0 else blank


def _counts(spans: Sequence[Found]) -> Iterator[tuple[int, int]]:
    """Yield every place of a word, with how many different words stand within a snippet from there."""
    for number, ((start, _), _) in enumerate(spans):
        words = set()
        for (_, end), word in spans[number:]:
            if end > start + _LENGTH - _BEFORE:
                break
            words.add(word)
        yield start, len(words)
