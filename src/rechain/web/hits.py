"""What was found by words: which of a question's texts hold them, with the words marked."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rechain.text.highlights import Piece
from rechain.text.words import Text
from rechain.web.index import IndexReader, Row
from rechain.web.queries import Filters
from rechain.web.selection import match
from rechain.web.snippets import beginnings, marked, snippet


class Hit(NamedTuple):
    """The texts of a question in a list, cut where the words stand, and a passage that holds those not in them."""

    question: Sequence[Piece]
    answer: Sequence[Piece]
    title: Sequence[Piece] = ()
    text: Sequence[Piece] = ()
    """empty where the title alone holds them"""


def find_hits(index: IndexReader, filters: Filters, rows: Sequence[Row]) -> Mapping[int, Hit]:
    """Return the hits of questions that pass a filter, by their positions; none where no words are looked for."""
    words = list(dict.fromkeys(Text(filters.text).words))
    if not words:
        return {}
    places: Mapping[int, int] = {}
    if filters.scope == "passages":
        places = index.passages_with(match(filters.text), [row.position for row in rows])
    return {row.position: _hit(index, row, words, places.get(row.position)) for row in rows}


def _hit(index: IndexReader, row: Row, words: Sequence[str], place: int | None) -> Hit:
    in_question, in_answer = beginnings(row.question, words), beginnings(row.answer, words)
    hit = Hit(marked(row.question, in_question), marked(row.answer, in_answer))
    missing = set(words) - {word for _, word in (*in_question, *in_answer)}
    if missing:
        missing -= {word for _, word in beginnings(row.id, words)}
    if place is None and not missing:
        return hit
    passages = index.passages(row.position)
    passage = _best_title(passages, sorted(missing)) if place is None else passages[place]
    if passage is None:
        return hit
    title, text = passage
    in_text = beginnings(text, words) if place is not None else []
    return hit._replace(title=marked(title, beginnings(title, words)), text=snippet(text, in_text) if in_text else ())


def _best_title(passages: Sequence[tuple[str, str]], words: Sequence[str]) -> tuple[str, str] | None:
    """Return the passage whose title has most of some words, the first of several; None where no title has any."""
    counts = [len({word for _, word in beginnings(title, words)}) for title, _ in passages]
    return passages[counts.index(max(counts))] if any(counts) else None
