from rechain.documents.plain import read_plain

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
