from pathlib import Path

import pytest
from tests.formats.documents.reading import extract_of, refusal_of

from rechain.formats.documents.html import declared_encoding, read_html

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
