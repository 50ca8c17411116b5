"""Lines that texts share."""

from rechain.text.lines import blank_lines, find_lines


def test_lines_are_alike_but_for_their_numbers() -> None:
    assert list(find_lines("Page 3 of 12\n  Some text.\n\nPage 4")) == ["Page 0 of 0", "Some text.", "Page 0"]


def test_prose_and_a_text_of_one_line_have_none() -> None:
    assert list(find_lines("A text of one line.")) == []
    assert list(find_lines("word " * 40 + "\nshort")) == ["short"]


def test_lines_are_blanked_in_place() -> None:
    assert blank_lines("Page 3\nText", {"Page 0"}.__contains__) == "      \nText"
