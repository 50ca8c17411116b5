"""The index behind a server: what is found by words, and how documents are cut into parts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.index.index import Document
from rechain.web.corpus import Corpus, cut_part


def test_passages_are_found_by_words_with_the_stretch_that_holds_them(corpus: Corpus) -> None:
    first, *_ = corpus.search("parental leave, fourteen", 5)
    assert first.place is not None
    assert (first.place.source, first.passage.title) == ("leave.md", "Leave > Parental leave")
    assert first.snippet.startswith("Parental leave lasts")
    marked = [piece.text for piece in first.pieces if piece.roles]
    assert marked[:3] == ["Parental", "leave", "fourteen"]
    document = corpus.document("leave.md")
    assert document is not None
    assert document.text[first.place.start : first.place.end] == first.passage.text


def test_words_that_are_nowhere_find_nothing(corpus: Corpus) -> None:
    assert corpus.search("xylograph", 5) == corpus.search("", 5) == corpus.search("?!", 5) == []


LONG = "".join(f"Line {number} of a long document.\n" for number in range(5_000))


def part(start: int, end: int, number: int | None = None, text: str = LONG) -> str:
    shown = cut_part(Document("a.txt", "text", text), start, end, number)
    whole = shown.before + shown.passage + shown.after
    assert text[shown.start : shown.start + len(whole)] == whole
    return shown.passage


def test_the_parts_of_a_document_follow_one_another() -> None:
    document = Document("a.txt", "text", LONG)
    parts = [cut_part(document, 0, 0, number) for number in range(1, cut_part(document, 0, 0, 1).parts + 1)]
    assert len(parts) > 5
    assert "".join(one.before + one.passage + one.after for one in parts) == LONG
    assert all(one.before.endswith("\n") for one in parts)
    assert all(one.start < two.start for one, two in pairwise(parts))


@given(st.integers(0, len(LONG) - 1), st.integers(1, 5_000))
def test_a_passage_is_shown_whole_wherever_it_stands(start: int, length: int) -> None:
    end = min(start + length, len(LONG))
    assert part(start, end) == LONG[start:end]


@pytest.mark.parametrize(
    ("start", "end", "number", "text"),
    [(0, 0, None, "abc"), (5, 9, None, "abc"), (2, 1, None, "abc"), (0, 2, 9, "abc"), (0, 9, 1, ""), (0, 1, 3, LONG)],
)
def test_stretches_that_are_not_in_the_part(start: int, end: int, number: int | None, text: str) -> None:
    assert part(start, end, number, text) == (text[start:end] if text == "abc" and start < end <= 3 else "")


def test_a_stretch_without_end_does_not_bring_the_whole_document() -> None:
    assert len(part(0, 10**9)) <= 40_000


def test_text_without_lines_is_cut_too() -> None:
    assert part(50_000, 50_010, text="x" * 100_000) == "x" * 10
