"""What the page shows of one answer: the answer with its claims marked, and the passages that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rechain.audit.answers import AuditedAnswer
from rechain.schema import Chain, Claim, Link, Passage, Question, Shape
from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Highlighter, Mark, Piece, cut
from rechain.text.passages import PassageView
from rechain.text.words import Span

_LONGEST_TEXT = 2_000
"""characters that are shown of a passage or an answer, around what is marked: a page of 1,000 answers stays below some
20 megabytes"""
_BEFORE = 500
"""characters that are shown before the first mark of a long text"""
_MOST_OTHERS = 3
"""passages that hold a claim and are on no chain"""
_ELLIPSIS = Piece("…", ())


@dataclass(frozen=True)
class Step:
    """A passage, cut where something is marked, and the link that leads on from it."""

    title: str
    pieces: Sequence[Piece]
    link: Link | None = None


@dataclass(frozen=True)
class Evidence:
    """The best chain of an answer and the other passages that hold a claim of it."""

    answer: Sequence[Piece]
    """the answer; the roles of its pieces are verdicts"""
    claims: Sequence[Claim]
    shape: Shape | None
    steps: Sequence[Step]
    others: Sequence[Step]
    """passages that hold a claim and are not on the chain"""


def evidence_of(answered: AuditedAnswer) -> Evidence | None:
    """Return what an answer rests on; None where its question could not be read."""
    question, recovered = answered.content, answered.recovered
    if not isinstance(question, Question):
        return None
    best = recovered.chains[0] if recovered.chains else None
    highlighter = Highlighter.of_chain(question, best, recovered.claims)
    on_chain = best.passages if best else []
    held = dict.fromkeys(claim.passage for claim in recovered.claims if claim.passage not in (None, *on_chain))
    passages = {passage.id: passage for passage in question.passages}
    others = [passages[name] for name in held if name in passages]
    return Evidence(
        answer=_marked_answer(question.answer, recovered.claims),
        claims=recovered.claims,
        shape=best.shape if best else None,
        steps=_steps(best, passages, highlighter) if best else [],
        others=[_step(passage, highlighter) for passage in others[:_MOST_OTHERS]],
    )


def _steps(best: Chain, passages: dict[str, Passage], highlighter: Highlighter) -> list[Step]:
    names = [name for name in best.passages if name in passages]
    links = best.links_in_order[: max(len(names) - 1, 0)]  # a passage may be missing
    return [_step(passages[name], highlighter, link) for name, link in zip_longest(names, links)]


def _step(passage: Passage, highlighter: Highlighter, link: Link | None = None) -> Step:
    return Step(passage.title or passage.id, _shortened(passage.text, highlighter.marks(PassageView(passage))), link)


def _marked_answer(answer: str, claims: Sequence[Claim]) -> list[Piece]:
    """Return an answer cut at its claims, where these stand in it as they are; markup may have been taken away."""
    marks, after = [], 0
    for claim in claims:
        start = answer.find(claim.text, after)
        if start >= 0 and claim.text:
            after = start + len(claim.text)
            marks.append(Mark(start, after, claim.verdict))
    return _shortened(answer, marks)


def _shortened(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """Cut a text at its marks; of a long one only what stands around the first of them."""
    start, end = _window(text, marks)
    kept = [
        Mark(max(mark.start, start) - start, min(mark.end, end) - start, mark.role)
        for mark in marks
        if mark.start < end and mark.end > start
    ]
    pieces = cut(text[start:end], kept)
    return [*([_ELLIPSIS] if start else []), *pieces, *([_ELLIPSIS] if end < len(text) else [])]


def _window(text: str, marks: Sequence[Mark]) -> Span:
    """Return which part of a text is shown: what stands around an answer or claim or, without, any link."""
    if len(text) <= _LONGEST_TEXT:
        return 0, len(text)
    telling = [mark for mark in marks if mark.role in (ANSWER, CLAIM)]
    first = next(iter(telling or [mark for mark in marks if mark.role != QUESTION]), None)
    start = max(min(first.start - _BEFORE, len(text) - _LONGEST_TEXT), 0) if first else 0
    return start, start + _LONGEST_TEXT
