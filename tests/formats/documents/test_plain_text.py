"""Plain text and Markdown."""

import pytest

from rechain.formats.documents.plain_text import read_markdown, read_plain, read_restructured

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


def test_headings_of_restructured_text() -> None:
    text = "=====\nTitle\n=====\n\nText.\n\nPart\n----\n\nMore.\n\nPoint\n~~~~~\n\nEnd.\n\n"
    document = read_restructured(f"{text}The :mod:`os` part\n------------------\n")
    assert [(heading.level, heading.words) for heading in document.headings] == [
        (1, "Title"),
        (2, "Part"),
        (3, "Point"),
        (2, "The os part"),
    ]
    assert [document.text[heading.start : heading.end] for heading in document.headings][:2] == [
        "=====\nTitle\n=====",
        "Part\n----",
    ]


def pages(count: int) -> str:
    """Return a document as standards are set: a title in the middle, footers with the number of the page."""
    head = f"Harbour Working Group{'T. Marsh':>50}\nRequest: 12{'June 2001':>60}\n\n\n"
    title = f"{'The Signals of Ships':^72}\n\n\n"
    body = "Overview\n\n   A ship that enters the bay shows a flag, and the flag is blue on Sundays\n"
    text = head + title + body
    rests = ["   and red on all other days of the week.\n\n1.  What do flags mean?\n\n   They mean a lot.\n"]
    rests += [
        f"   {word} ships show {word} lamps.\n\n   They are {word}.\n" for word in ("One", "Two", "All", "No", "Ten")
    ]
    for number, rest in zip(range(1, count + 1), rests, strict=False):
        footer = f"Marsh{'Standards Track':^40}{f'[Page {number}]':>{20 + number % 3}}"
        text += f"\n\n{footer}\n\f\nRFC 12{'Signals':^50}June 2001\n\n\n{rest}"
    return text


def test_a_document_with_a_title_in_the_middle_and_pages() -> None:
    document = read_plain(pages(5))
    assert document.title == "The Signals of Ships"
    assert "[Page" not in document.text and "June 2001\n\n\n   and" not in document.text
    assert "blue on Sundays\n   and red" in document.text
    assert [heading.words for heading in document.headings][:2] == ["Overview", "1. What do flags mean?"]


def test_lines_are_those_of_the_file() -> None:
    text = pages(5)
    document = read_plain(text)
    lines = document.text.split("\n")
    numbers = {
        line: text.replace("\f", "").split("\n")[document.lines[at] - 1] for at, line in enumerate(lines) if line
    }
    assert all(line == of_file for line, of_file in numbers.items())
    assert read_markdown("---\ntitle: A\n---\nText.\n").lines[0] == 4


def test_entries_of_a_table_of_contents_are_navigation() -> None:
    document = read_plain("Contents\n\n  1. Piers . . . . . . . . 3\n  2. Cranes ............. 12\n\nText of it.\n")
    assert [document.text[start:].split("\n")[0].split()[1] for start, _ in document.navigation] == ["Piers", "Cranes"]


@pytest.mark.parametrize(
    "text", ["." * 300_000, " ." * 150_000, "\n" * 300_000, " " * 300_000 + "\nx" * 9, "x:\n " * 90_000]
)
def test_hostile_text_is_read_to_its_end_and_grows_no_longer(text: str) -> None:
    for read in (read_plain, read_restructured, read_markdown):
        assert len(read(text).text) <= len(text)


def units(text: str) -> list[tuple[str, str]]:
    document = read_plain(text)
    return [
        (document.text[unit.start : unit.body].strip(), document.text[unit.body : unit.end].strip())
        for unit in document.units
    ]


def test_terms_lists_and_code_belong_to_what_introduces_them() -> None:
    assert units("pier\n   Where ships land.\n\nberth\n   A place.\n") == [
        ("pier", "Where ships land."),
        ("berth", "A place."),
    ]
    assert ("Do this:", "1. Open it.\n2. Close it.") in units("Do this:\n\n1. Open it.\n2. Close it.\n\nThen rest.\n")
    assert ("Run it:", "make pier") in units("Run it:\n\n    make pier\n\nDone.\n")


def test_a_first_line_that_is_indented_introduces_nothing() -> None:
    assert units("   It was a day\nin June.\n\n   Then came\nJuly.\n") == []
