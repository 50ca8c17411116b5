"""The sentences of a passage that matter to a chain: those that hold what leads into it and what leads on."""

from collections.abc import Iterator, Sequence

from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Mark, Piece, cut, link_role
from rechain.text.passages import PassageView, stretches
from rechain.text.words import Span

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
    spans = list(_joined(_without_edges(text, span, marks, roles) for span in telling_sentences(view, marks, roles)))
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
    return _after_blank(text, max(start, first - _AROUND), first), _before_blank(text, last, min(end, last + _AROUND))


def _after_blank(text: str, start: int, first: int) -> int:
    """Return where the first whole word begins, from a place before something that matters."""
    is_inside_word = 0 < start < first and not text[start - 1].isspace() and not text[start].isspace()
    return text.find(" ", start, first) + 1 or start if is_inside_word else start


def _before_blank(text: str, last: int, end: int) -> int:
    """Return where the last whole word ends, up to a place after something that matters."""
    is_inside_word = last < end < len(text) and not text[end - 1].isspace() and not text[end].isspace()
    return max(text.rfind(" ", last, end), last) if is_inside_word and " " in text[last:end] else end


def _joined(spans: Iterator[Span]) -> Iterator[Span]:
    """Yield sentences, those that follow or overlap one another as one."""
    open_span: Span | None = None
    for start, end in spans:
        if open_span and start <= open_span[1] + 1:
            open_span = open_span[0], max(open_span[1], end)
        else:
            if open_span:
                yield open_span
            open_span = start, end
    if open_span:
        yield open_span


def _cut(text: str, span: Span, marks: Sequence[Mark]) -> list[Piece]:
    start, end = span
    inside = [Mark(max(m.start - start, 0), min(m.end, end) - start, m.role) for m in marks if _overlap(m, span)]
    return cut(text[start:end], inside)
