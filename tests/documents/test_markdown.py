from rechain.documents.markdown import read_markdown


def headings(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.words) for heading in read_markdown(text).headings]


def test_both_styles_of_headings() -> None:
    assert headings("# A #\n\nB\n===\ntext\n\nC\n---\n###### D") == [(1, "A"), (1, "B"), (2, "C"), (6, "D")]


def test_what_only_looks_like_a_heading() -> None:
    assert headings("#tag\n####### seven\n    # code\n\n---\n\n- item\n---\n\n| a |\n---\n#\n") == []


def test_code_has_no_headings() -> None:
    assert headings("```sh\n# comment\n~~~\n# more\n```\n# A\n~~~~\n# x\n~~~\n# y\n~~~~\n# B") == [(1, "A"), (1, "B")]


def test_marks_within_headings_are_left_out() -> None:
    assert headings("# The *new* `rechain` [site](http://x.y) {#anchor}\n## snake_case <a id='x'></a>") == [
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
