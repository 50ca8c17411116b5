"""Snippets: the words that somebody looks for are marked, and the stretch with most of them is shown."""

from hypothesis import given
from hypothesis import strategies as st

from rechain.web.snippets import beginnings, marked, snippet, whole_words


def test_a_snippet_of_a_long_text_is_short_and_shows_the_words() -> None:
    text = f"{'Nothing here. ' * 200}The Zorilla clock struck{' and more' * 200}"
    pieces = snippet(text, whole_words(text, ["clock", "zorilla"]))
    shown = "".join(piece.text for piece in pieces)
    assert shown.startswith("… ") and shown.endswith(" …")
    assert len(shown) <= 310
    assert [piece.text for piece in pieces if piece.roles] == ["Zorilla", "clock"]


def test_a_short_text_is_shown_whole() -> None:
    text = "短い 東京都の話"
    assert "".join(piece.text for piece in snippet(text, whole_words(text, ["東京"]))) == text


def test_words_that_begin_so_are_marked_whole() -> None:
    text = "Dvořák’s dances, danced by C++ dvorakians"
    pieces = marked(text, beginnings(text, ["dvorak", "dance", "c++"]))
    assert [piece.text for piece in pieces if piece.roles] == ["Dvořák", "dances", "danced", "C++", "dvorakians"]


@given(st.text(max_size=60), st.lists(st.text("abcé漢 ", min_size=1, max_size=3), max_size=4))
def test_marking_leaves_the_text_as_it_is(text: str, words: list[str]) -> None:
    assert "".join(piece.text for piece in marked(text, beginnings(text, words))) == text
