"""Plain text and Markdown."""

import pytest

from rechain.formats.documents.plain_text import read_markdown, read_plain

PROSE = "It was a long day, and nobody knew what was to come of it.\n\n"


def headings(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.words) for heading in read_plain(text).headings]


def test_headings_that_cannot_be_mistaken() -> None:
    text = f"THE HARBOUR\n\n{PROSE}Chapter 2 Pilots\n\n{PROSE}3.1 The pier\n\n{PROSE}Notes\n-----\n{PROSE}"
    assert headings(text) == [(1, "THE HARBOUR"), (1, "Chapter 2 Pilots"), (2, "3.1 The pier"), (2, "Notes")]


def test_lists_and_prose_are_no_headings() -> None:
    assert headings(f"1. Open the door\n\n2. Go in\n\n3. Sit down\n\n{PROSE}A short line\n\nNASA.\n\n{PROSE}") == []


def test_what_repeats_on_the_pages_of_a_text_is_dropped() -> None:
    pages = [f"ACME Handbook\n\nPage text {word}.\n\n- {n} -\n" for n, word in enumerate(("one", "two", "three"), 1)]
    text = read_plain("\f".join(pages)).text
    assert text.split() == "Page text one. Page text two. Page text three.".split()  # noqa: SIM905


def markdown_headings(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.words) for heading in read_markdown(text).headings]


def test_both_styles_of_headings() -> None:
    assert markdown_headings("# A #\n\nB\n===\ntext\n\nC\n---\n###### D") == [(1, "A"), (1, "B"), (2, "C"), (6, "D")]


def test_what_only_looks_like_a_heading() -> None:
    assert markdown_headings("#tag\n####### seven\n    # code\n\n---\n\n- item\n---\n\n| a |\n---\n#\n") == []


def test_code_has_no_headings() -> None:
    text = "```sh\n# comment\n~~~\n# more\n```\n# A\n~~~~\n# x\n~~~\n# y\n~~~~\n# B"
    assert markdown_headings(text) == [(1, "A"), (1, "B")]


def test_marks_within_headings_are_left_out() -> None:
    assert markdown_headings("# The *new* `rechain` [site](http://x.y) {#anchor}\n## snake_case <a id='x'></a>") == [
        (1, "The new rechain site"),
        (2, "snake_case"),
    ]


def test_front_matter_gives_the_title_and_is_no_text() -> None:
    document = read_markdown('---\ntitle: "My page"\ntags: [a]\n---\nText.\n')
    assert (document.title, document.text) == ("My page", "Text.\n")


def test_a_rule_at_the_start_is_no_front_matter() -> None:
    assert read_markdown("---\nText\n---\n").text == "---\nText\n---\n"


def test_offsets_are_those_of_the_text() -> None:
    document = read_markdown("intro\n\nB\n===\n## C\n")
    assert [document.text[h.start : h.end] for h in document.headings] == ["B\n===", "## C"]


@pytest.mark.parametrize(
    ("text", "title", "headings"),
    [
        ("---\ntitle: 'A" + " " * 60_000 + "b'\n---\nx", "A b", 0),
        ('---\ntitle: "A"  \n---\nx', "A", 0),
        (("# A ##" + " " * 900 + "\n") * 1000, "", 1000),
        (("# " + "# " * 490 + "x\n") * 1000, "", 1000),
    ],
)
def test_blanks_and_signs_of_markdown_are_read_in_linear_time(text: str, title: str, headings: int) -> None:
    document = read_markdown(text)
    assert (document.title, len(document.headings)) == (title, headings)
