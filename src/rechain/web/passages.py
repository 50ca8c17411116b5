"""What is shown of a passage: its place in a document, the sentences that matter, the words that were searched."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from rechain.schema import Passage
from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Mark, Piece, cut, link_role
from rechain.text.passage_views import HEADINGS, PassageView, stretches
from rechain.text.words import Span, Text, phrase

_STEP = " › "
"""between a document and the headings above a passage, for people"""


class Place(BaseModel):
    """A stretch of a document's text."""

    model_config = ConfigDict(frozen=True)

    source: str
    """the document, by its name in the index"""
    start: int
    end: int
    page: int | None = None
    """of a PDF, from 1"""

    def path(self, title: str) -> str:
        """Return the document and the headings above a passage in one line; a title may be the document's own name."""
        headings = [] if title == PurePosixPath(self.source).stem else title.split(HEADINGS)
        return _STEP.join(part for part in (self.source, *headings) if part)

    @property
    def words(self) -> str:
        """The page, where it is known, and the characters, in words."""
        page = "" if self.page is None else f"page {self.page}, "
        return f"{page}characters {self.start:,}–{self.end:,}"


def place_of(passage: Passage) -> Place | None:
    """Return where a passage of an index stands in its document; None for one of a collection, which has no document.

    Rows of a collection may have fields of the same names that mean anything, so that all must fit together.
    """
    fields = passage.model_extra or {}
    source, start, end, page = (fields.get(name) for name in ("source", "start", "end", "page"))
    if not (isinstance(source, str) and type(start) is int and type(end) is int):
        return None
    if start < 0 or end - start != len(passage.text) or not passage.id.startswith(f"{source}#"):
        return None
    return Place(source=source, start=start, end=end, page=page if type(page) is int else None)


_SHORT = 320
"""characters that are read at a glance: a shorter text is shown whole"""
_PART = 300
"""characters from which a sentence, or a part of one that is very long, is cut around what matters"""
_AROUND = 110
"""characters that are left on each side of what matters in a long sentence"""


def roles_of_step(place: int, passages: int, links: int) -> list[str]:
    """Return what matters in a passage of a chain, by its place: what leads to it, what leads on, and claims.

    A chain has fewer links than steps between its passages where they stand side by side, or where a file leaves some
    out; then question and answer are what matters.
    """
    before = link_role(place - 1) if 0 < place <= links else QUESTION
    after = link_role(place) if place < min(links, passages - 1) else ANSWER
    return [before, after, CLAIM]


def excerpt(view: PassageView, marks: Sequence[Mark], roles: Sequence[str]) -> list[list[Piece]] | None:
    """Return the sentences that matter, cut where something is highlighted; None where the whole text is short."""
    text = view.passage.text
    if len(text) <= _SHORT:
        return None
    spans = list[Span]()
    for sentence in telling_sentences(view, marks, roles):
        start, end = _without_edges(text, sentence, marks, roles)
        if spans and start <= spans[-1][1] + 1:  # sentences that follow or overlap one another are one
            start, end = spans[-1][0], max(spans.pop()[1], end)
        spans.append((start, end))
    return None if spans == [(0, len(text))] else [_cut(text, span, marks) for span in spans]


def telling_sentences(view: PassageView, marks: Sequence[Mark], roles: Sequence[str]) -> list[Span]:
    """Return few sentences that together hold all roles that the text has; the first one where it has none."""
    spans = list(stretches(view))
    held = [[mark.role for mark in marks if mark.role in roles and _overlap(mark, span)] for span in spans]
    missing, chosen = {role for found in held for role in found}, list[Span]()
    while missing:
        # the one that holds most of what is missing; then the one that says it most often, then the first
        best = max(range(len(spans)), key=lambda n: (len(missing.intersection(held[n])), len(held[n]), -n))
        missing.difference_update(held[best])
        chosen.append(spans[best])
    return sorted(chosen) or spans[:1]


def _overlap(mark: Mark, span: Span) -> bool:
    return mark.start < span[1] and span[0] < mark.end


def _without_edges(text: str, span: Span, marks: Sequence[Mark], roles: Sequence[str]) -> Span:
    """Return a sentence without what stands far from anything that matters, where it is long."""
    start, end = span
    inside = [mark for mark in marks if mark.role in roles and mark.role != CLAIM and _overlap(mark, span)]
    if end - start < _PART or not inside:
        return span
    first, last = min(mark.start for mark in inside), max(mark.end for mark in inside)
    start, end = max(start, first - _AROUND), min(end, last + _AROUND)
    if start < first and _is_inside_word(text, start):
        start = text.find(" ", start, first) + 1 or start
    if last < end and _is_inside_word(text, end) and " " in text[last:end]:
        end = text.rfind(" ", last, end)
    return start, end


def _is_inside_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and not text[place - 1].isspace() and not text[place].isspace()


def _cut(text: str, span: Span, marks: Sequence[Mark]) -> list[Piece]:
    start, end = span
    inside = [Mark(max(m.start - start, 0), min(m.end, end) - start, m.role) for m in marks if _overlap(m, span)]
    return cut(text[start:end], inside)


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
