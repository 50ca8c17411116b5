"""Markdown in texts becomes blocks, marks stay, and nothing becomes HTML."""

import pytest

from rechain.text.highlights import Piece
from rechain.web.markup import blocks, plain


def drawn(text: str) -> list[tuple[str, list[list[str]]]]:
    found = blocks([Piece(text, ())]) or []
    return [(one.kind, [["".join(p.text for p in cell) for cell in line] for line in one.lines]) for one in found]


def test_a_table_a_list_and_emphasis_are_blocks() -> None:
    text = "# Fees\nA fee of **€38.50** is due.\n| Ticket | Price |\n|---|---:|\n| Standard | `£12` |\n\n- one\n* two\n"
    assert drawn(text) == [
        ("heading", [["Fees"]]),
        ("text", [["A fee of €38.50 is due."]]),
        ("row", [[" Ticket ", " Price "], [" Standard ", " £12 "]]),
        ("item", [["one"], ["two"]]),
    ]
    assert plain(text) == "Fees · A fee of €38.50 is due. · Ticket · Price · Standard · £12 · one · two"


@pytest.mark.parametrize("text", ["Plain text.", "2 * 3 * 4", "a | b", "", "C# is a language", "<b>not</b> bold"])
def test_plain_text_stays(text: str) -> None:
    assert blocks([Piece(text, ())]) is None
    assert plain(text) == text


def test_marks_stay_where_they_are_and_an_unpaired_sign_too() -> None:
    (block,) = blocks([Piece("- 2 ** 3", ())]) or []
    assert block.lines == [[[Piece("2 ", ()), Piece("**", ()), Piece(" 3", ())]]]
    (block,) = blocks([Piece("A **fee of ", ()), Piece("€38", ("answer",)), Piece("** due", ())]) or []
    assert block.lines == [
        [[Piece("A ", ()), Piece("fee of ", ("strong",)), Piece("€38", ("answer", "strong")), Piece(" due", ())]]
    ]
