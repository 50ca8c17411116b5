"""Where sentences begin and end."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.text.sentences import blank_lines, find_lines, find_sentences


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in find_sentences(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!  Three?\nFour", ["One.", "Two!", "Three?", "Four"]),
        ("It cost 3.5 pounds. (Or more.) [Yes.]", ["It cost 3.5 pounds.", "(Or more.) [Yes.]"]),
        ("He met e.g. a man. and left.", ["He met e.g. a man. and left."]),
        (
            "Cities, e.g. Rome. It closed at 5 p.m. They left.",
            ["Cities, e.g. Rome.", "It closed at 5 p.m.", "They left."],
        ),
        (
            'He said "Go." Then "Stay" was said. "No," he said.',
            ['He said "Go."', 'Then "Stay" was said.', '"No," he said.'],
        ),
        ('William E. "Bill" Myers and "J.B." Bard met.', ['William E. "Bill" Myers and "J.B." Bard met.']),
        ("**Note.** Keep it dry. _Never_ wash it.", ["**Note.**", "Keep it dry.", "_Never_ wash it."]),
        ("One. ", ["One. "]),
        ("", [""]),
    ],
)
def test_sentences_of_prose_end_before_a_capital_a_bracket_or_a_quote(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Es ist so. Übrigens nicht.", ["Es ist so.", "Übrigens nicht."]),
        ("C'est tout. École fermée.", ["C'est tout.", "École fermée."]),
        ("Он ушёл. Она осталась.", ["Он ушёл.", "Она осталась."]),
        ("Sie beginnt am 14. Mai 2023 in z. B. Hotels, d.h. Unterkünften.", None),
        ("他来了。她走了！真的？是；好", ["他来了。", "她走了！", "真的？", "是；", "好"]),
        ("他说：“走吧。”她走了。\n", ["他说：“走吧。”", "她走了。\n"]),
        ("هل جاء؟ نعم جاء. ذهب", ["هل جاء؟", "نعم جاء.", "ذهب"]),
        ("वह आया। वह गया।", ["वह आया।", "वह गया।"]),
    ],
)
def test_sentences_of_other_languages(text: str, sentences: list[str] | None) -> None:
    assert cut(text) == (sentences or [text])


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# Travel\nWho travels\n\nAsk first", ["# Travel", "Who travels", "Ask first"]),
        ("You need:\n- a card\n  * a pin\n+ a form", ["You need:", "- a card", "* a pin", "+ a form"]),
        (
            "1. Open it.\n2. Press Start.\n   1. Wait.\n10. Close",
            ["1. Open it.", "2. Press Start.", "1. Wait.", "10. Close"],
        ),
        ("| City | Rate |\n|---|---|\n| Rome | 90 |", ["| City | Rate |", "|---|---|", "| Rome | 90 |"]),
        ("Phone: 030 12\nFax: 030 13", ["Phone: 030 12", "Fax: 030 13"]),
        ("第一章 概述\n本手册介绍", ["第一章 概述", "本手册介绍"]),
    ],
)
def test_headings_items_rows_and_short_lines_are_sentences_of_their_own(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences


def test_prose_that_is_wrapped_by_hand_stays_whole() -> None:
    text = "Employees who travel abroad on behalf of the company ask their\nManager for approval, and\nfile a report."
    assert cut(text) == [text]


def test_block_tags_of_html_end_a_sentence_and_cells_do_not() -> None:
    text = "<h2>Rates</h2><p>See below</p>\n<tr><td>Rome</td><td>90</td></tr><tr><td>Bonn<br/>Wien</td></tr>"
    assert cut(text) == [
        "<h2>Rates</h2>",
        "<p>See below</p>",
        "<tr><td>Rome</td><td>90</td></tr>",
        "<tr><td>Bonn<br/>",
        "Wien</td></tr>",
    ]


@given(st.text('aA1.!?。” \n-#|<br>()"', max_size=40))
def test_sentences_follow_one_another_and_leave_out_nothing_but_blanks(text: str) -> None:
    spans = find_sentences(text)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (start, end), (after, _) in pairwise(spans):
        assert start < end <= after
        assert not text[end:after].strip()


@pytest.mark.parametrize(
    "text", ["." + " " * 100_000, "a" + " \n" * 50_000, "<br>" * 50_000, '."' * 50_000, "\n" * 100_000]
)
def test_no_text_takes_more_than_its_length(text: str) -> None:
    """Were any expression quadratic, this would take minutes."""
    assert find_sentences(text)


def test_rows_without_a_mark_before_the_first_cell_are_sentences_of_their_own() -> None:
    rows = [
        "Merrow, Station Yard 1, near the harbour | 9:00-19:00 | Amara Lofthouse | South",
        "lower desk   10:00   none",
    ]
    assert cut("\n".join((*rows, "closed rooms"))) == [*rows, "closed rooms"]


def test_lines_are_alike_but_for_their_numbers() -> None:
    assert list(find_lines("Page 3 of 12\n  Some text.\n\nPage 4")) == ["Page 0 of 0", "Some text.", "Page 0"]


def test_prose_and_a_text_of_one_line_have_none() -> None:
    assert list(find_lines("A text of one line.")) == []
    assert list(find_lines("word " * 40 + "\nshort")) == ["short"]


def test_lines_are_blanked_in_place() -> None:
    assert blank_lines("Page 3\nText", {"Page 0"}.__contains__) == "      \nText"
