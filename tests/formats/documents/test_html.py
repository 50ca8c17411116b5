from pathlib import Path

import pytest
from tests.formats.documents.reading import extract_of, refusal_of

from rechain.formats.documents import SplitSettings
from rechain.formats.documents.html import declared_encoding, read_html
from rechain.formats.documents.splitting import is_navigation, split

pytest.importorskip("lxml")


def test_a_page_without_its_furniture() -> None:
    document = read_html(
        "<html><head><title>Opening hours - City</title><style>p {}</style></head><body><header>Site</header>"
        "<nav><ul><li>Home</ul></nav><main><header><h1>Opening hours<a>¶</a></h1></header><p>The <b>town</b> hall<br>"
        "is open.</p><script>alert(1)</script><aside>A note.</aside></main><p hidden>unseen</p><form>Search</form>"
        "<footer>© City</footer></body></html>"
    )
    assert document.text == "Opening hours\n\nThe town hall\nis open.\n\nA note."
    assert [heading.words for heading in document.headings] == ["Opening hours"]
    assert document.title == "Opening hours - City"


def test_lists_tables_and_code_stay_readable() -> None:
    document = read_html(
        "<ul><li>One<ul><li>Inner</li></ul><li><p>Two</p></ul><ol><li>A<li>B</ol><dl><dt>Term<dd>Meaning</dl>"
        "<table><caption>Fees</caption><tr><th>Name<th>Fee<tr><td>Pass<p>port</p><td>10 €</table>"
        "<pre>def f():\n    return 1</pre>"
    )
    assert document.text == (
        "- One\n  - Inner\n- Two\n\n1. A\n2. B\n\nTerm\n  Meaning\n\nFees\n\nName | Fee\nPass port | 10 €\n\n"
        "def f():\n    return 1"
    )


def test_a_page_that_is_one_form_is_read() -> None:
    assert read_html("<body><form><p>All of it.</p></form></body>").text == "All of it."


def test_headings_within_tables_of_layout_are_headings() -> None:
    document = read_html("<table><tr><td><h2>News</h2><p>It rains.</p></td></tr></table>")
    assert document.text == "News\n\nIt rains."
    assert [heading.words for heading in document.headings] == ["News"]


def test_the_title_is_not_repeated_below_the_heading_that_says_the_same(tmp_path: Path) -> None:
    content = (
        f"<title>Fees - City</title><h1>Fees</h1><p>{'They are low. ' * 30}</p><h2>Cash</h2><p>{'None. ' * 60}</p>"
    )
    extract = extract_of(tmp_path / "a.html", content)
    assert [passage.title for passage in extract.passages] == ["Fees", "Fees > Cash"]


def test_the_encoding_that_a_page_declares(tmp_path: Path) -> None:
    content = "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><p>Москва</p>".encode("koi8-r")
    assert declared_encoding(content) == "koi8-r"
    assert extract_of(tmp_path / "a.html", content).text == "Москва"


def test_references_to_unseen_characters_leave_nothing() -> None:
    assert read_html("<p>Do&shy;nau &amp; M&uuml;nchen&#8203;</p>").text == "Donau & München"


@pytest.mark.parametrize(
    "content",
    [
        "<div>" * 100_000 + "deep",
        "<ul><li>" * 20_000 + "deep",
        "<table><tr><td>" * 20_000 + "deep",
        "<b><p>" * 20_000 + "deep",
    ],
)
def test_deep_nesting(tmp_path: Path, content: str) -> None:
    assert extract_of(tmp_path / "a.html", content).passages[0].text.endswith("deep")


def test_what_never_ends(tmp_path: Path) -> None:
    refusal_of(tmp_path / "a.html", "<a b='" * 100_000)
    refusal_of(tmp_path / "b.html", "<!--" * 100_000)


def test_entities_of_a_document_type_stay_unread(tmp_path: Path) -> None:
    content = '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><p>Name: &x; end</p>'
    assert "root" not in (extract_of(tmp_path / "a.html", content).text or "")


def test_what_stands_around_the_main_part_is_left_out() -> None:
    assert read_html("<div>Skip to content</div><main><p>Text.</p></main><div>Imprint</div>").text == "Text."
    assert read_html("<div>All.</div><main></main>").text == "All."


def test_a_main_part_that_is_hidden_is_none() -> None:
    assert read_html("<p>Shown.</p><main hidden><p>Hidden.</p></main><p>More.</p>").text == "Shown.\n\nMore."
    page = "<p>Menu.</p><main aria-hidden=true>Old.</main><main><p>Text.</p></main>"
    assert read_html(page).text == "Text."


SENTENCE = "Ships land here at high tide. "


def passages(page: str, words: int = 40) -> list[tuple[str, str, object]]:
    document = read_html(page)
    pieces = split(document, "name", SplitSettings(words))
    return [(piece.title, document.text[piece.start : piece.end], is_navigation(document, piece)) for piece in pieces]


def test_a_term_stays_with_its_definition() -> None:
    entries = "".join(f"<dt>term{n}<dd>It is number {n}. {SENTENCE * (n % 4)}" for n in range(30))
    texts = [text for _, text, _ in passages(f"<h1>T</h1><dl>{entries}</dl>")]
    assert len(texts) > 5
    assert all(any(f"term{n}\n  It is number {n}." in text for text in texts) for n in range(30))


def test_later_parts_of_a_long_definition_have_its_term_in_their_title() -> None:
    found = passages(f"<h1>T</h1><dl><dt>wharf_size</dt><dd>It is large. {SENTENCE * 20}</dl>")
    assert [title for title, _, _ in found][:2] == ["T", "T > wharf_size"]


def test_a_long_table_repeats_its_header() -> None:
    rows = "".join(f"<tr><td>berth{n}<td>{SENTENCE}" for n in range(60))
    texts = [text for _, text, _ in passages(f"<table><tr><th>Berth<th>Use</tr>{rows}</table>", 150)]
    assert len(texts) > 2 and all(text.startswith("Berth | Use\n") for text in texts)


def test_code_steps_and_tables_stay_with_the_sentence_before_them() -> None:
    for after in (
        "<pre>make pier\nmake quay</pre>",
        "<ol><li>Open.<li>Close.</ol>",
        "<table><tr><th>A<tr><td>b</table>",
    ):
        texts = [
            text for _, text, _ in passages(f"<p>{SENTENCE * 7}</p><p>Do it like this:</p>{after}<p>{SENTENCE * 7}</p>")
        ]
        assert any("Do it like this:\n\n" in text for text in texts)


def test_empty_cells_stay_but_not_empty_columns() -> None:
    table = "<table><tr><th>Lock<th>Read<th>Write<th><tr><td>A<td><td>X<td><tr><td>B<td>X<td><td></table>"
    assert read_html(table).text == "Lock | Read | Write\nA |  | X\nB | X |"


def test_what_is_above_or_below_the_line_stays_readable() -> None:
    page = "<p>modulo 2<sup>32</sup> and 2<sup>n-1</sup>, H<sub>2</sub>O, x<sub>i</sub>, 1<sup>st</sup>, "
    page += "a note<sup><a href=#f>3</a></sup>"
    assert read_html(page).text == "modulo 2^32 and 2^(n-1), H2O, x_i, 1st, a note3"


def test_a_box_is_part_of_its_section() -> None:
    page = f"<h1>T</h1><h2>Piers</h2><p>{SENTENCE}<div class=note><h3>Note</h3><p>Not at night.</div><p>{SENTENCE * 2}"
    document = read_html(page)
    assert [heading.words for heading in document.headings] == ["T", "Piers"]
    assert "Note:\nNot at night." in document.text


@pytest.mark.parametrize(
    "menu",
    [
        "<div class='navheader'>{}</div>",
        "<div class='toc local'>{}</div>",
        "<ul id=nav>{}</ul>",
        "<div role=navigation>{}</div>",
    ],
)
def test_navigation_is_left_out(menu: str) -> None:
    assert read_html(f"{menu.format('<a href=x>Prev</a> <a href=y>Next</a>')}<p>Text.").text == "Text."


def test_headings_about_menus_stay() -> None:
    assert (
        read_html("<h1 id=navigation class=menu>Menus</h1><section id=toc><p>Text.</section>").text == "Menus\n\nText."
    )


def test_a_passage_of_links_is_navigation() -> None:
    links = "".join(f"<li><a href={n}>Page about topic number {n}</a>" for n in range(20))
    found = passages(f"<h1>T</h1><p>{SENTENCE * 4}<h2>More</h2><ul>{links}</ul>")
    assert {is_menu for title, _, is_menu in found if title == "T > More"} == {True}
    assert {is_menu for title, _, is_menu in found if title == "T"} == {False}


def test_the_anchor_is_that_of_the_heading_or_term_above(tmp_path: Path) -> None:
    page = (
        f"<div id=top><h1>T</h1><p>{SENTENCE * 30}</div><section id=piers><h2>Piers</h2><p>{SENTENCE * 30}</section>"
        f"<h2><a name=old></a>Old</h2><dl><dt id=x>X<dd>{SENTENCE * 30}</dl>"
    )
    extract = extract_of(tmp_path / "a.html", page)
    anchors = [(passage.model_extra or {})["anchor"] for passage in extract.passages]
    assert list(dict.fromkeys(anchors)) == ["top", "piers", "x"]
