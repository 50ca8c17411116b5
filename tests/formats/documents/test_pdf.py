from pathlib import Path

import pytest
from tests.formats.documents.pdfs import CODE, assemble, make_pdf, show, stream
from tests.formats.documents.reading import extract_of, refusal_of

from rechain.formats.documents import Extract, Refusal, read_source
from rechain.formats.documents.limits import Limited
from rechain.formats.documents.pdf import MOST_PAGES, Bookmark, _find_headings
from rechain.formats.documents.read import convert
from rechain.formats.documents.source_files import Source

pytest.importorskip("pypdfium2")

PROSE = [
    "The harbour was built in 1871 by the engineer Tom Marsh, who came from",
    "the north and stayed for the rest of his life in the town. It was ex-",
    "tended twice, and the second pier bears his name.",
]


def test_lines_become_paragraphs(tmp_path: Path) -> None:
    extract = extract_of(
        tmp_path / "a.pdf",
        make_pdf([[*PROSE, "Ships of any size can enter the harbour at high tide, and many do so."]]),
    )
    assert extract.text == (
        "The harbour was built in 1871 by the engineer Tom Marsh, who came from the north and stayed for the rest of "
        "his life in the town. It was extended twice, and the second pier bears his name.\n\n"
        "Ships of any size can enter the harbour at high tide, and many do so."
    )


def test_headers_and_footers_are_dropped_and_pages_kept(tmp_path: Path) -> None:
    words = ["harbour", "pilot", "pier", "lighthouse"]
    pages = [
        [
            "Harbour Board, Annual Report",
            f"The {word} is old." + f" It is the {word} of the town." * 30,
            "© Board",
            f"Page {n}",
        ]
        for n, word in enumerate(words, 7)
    ]
    extract = extract_of(tmp_path / "report.pdf", make_pdf(pages, "Annual Report"))
    assert extract.text is not None
    assert not any(word in extract.text for word in ("Harbour Board", "©", "Page"))
    pages_of = [(passage.model_extra or {})["page"] for passage in extract.passages]
    assert pages_of == sorted(pages_of) and set(pages_of) == {1, 2, 3, 4}
    assert {passage.title for passage in extract.passages} == {"Annual Report"}


def test_bookmarks_give_the_headings(tmp_path: Path) -> None:
    body = [f"Sentence {n} has some words that fill the line to its end." for n in range(20)]
    pages = [["1 Introduction", *body], ["2 Method", *body]]
    extract = extract_of(
        tmp_path / "a.pdf", make_pdf(pages, "Paper", [("Introduction", 0), ("Method", 1), ("Lost", 1)])
    )
    assert {passage.title for passage in extract.passages} == {"Paper > Introduction", "Paper > Method"}


@pytest.mark.parametrize("title", ["Microsoft Word - draft.doc", "thesis.tex", "untitled", ""])
def test_titles_that_programs_write_are_none(tmp_path: Path, title: str) -> None:
    assert extract_of(tmp_path / "harbour.pdf", make_pdf([["Some text."]], title)).passages[0].title == "harbour"


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4 nothing", make_pdf([["text"]])[:200], b"\x00" * 1000])
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    refusal_of(tmp_path / "a.pdf", content)


def test_pages_without_text_are_named(tmp_path: Path) -> None:
    assert "OCR" in refusal_of(tmp_path / "a.pdf", make_pdf([[]])).message


def test_a_password_is_named(tmp_path: Path) -> None:
    locked = "<< /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <" + "00" * 32 + "> /U <" + "00" * 32 + "> >>"
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: "<< /Type /Pages /Count 0 /Kids [] >>",
        4: "<< >>",
        5: locked,
    }
    trailer = "/Encrypt 5 0 R /ID [<00000000000000000000000000000000> <00000000000000000000000000000000>]"
    assert "password" in refusal_of(tmp_path / "a.pdf", assemble(objects, trailer)).message


def test_too_many_pages_are_refused(tmp_path: Path) -> None:
    kids = "6 0 R " * (MOST_PAGES + 1)
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Count {MOST_PAGES + 1} /Kids [{kids}] >>",
        4: "<< >>",
        6: "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
    }
    assert "split it" in refusal_of(tmp_path / "a.pdf", assemble(objects)).message


def make_bomb(levels: int) -> bytes:
    """Return a PDF whose page draws a form that draws another twice, and so on: 2 ** levels forms."""
    form = "/Type /XObject /Subtype /Form /BBox [0 0 100 100] /Resources << /XObject << /X {} 0 R >> >>"
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: "<< /Type /Pages /Count 1 /Kids [6 0 R] >>",
        4: "<< >>",
        6: "<< /Type /Page /Parent 2 0 R /Resources << /XObject << /X 100 0 R >> >> /Contents 7 0 R >>",
        7: stream("/X Do"),
        100 + levels: stream(show([])),
    }
    return assemble(objects | {100 + n: stream("/X Do /X Do", form.format(101 + n)) for n in range(levels)})


def test_a_trap_costs_one_file_and_the_next_is_read(tmp_path: Path) -> None:
    (tmp_path / "bomb.pdf").write_bytes(make_bomb(30))
    (tmp_path / "good.pdf").write_bytes(make_pdf([["Some text."]]))
    bomb, good = (Source(name, tmp_path / name, "pdf", 0, 0) for name in ("bomb.pdf", "good.pdf"))
    service = Limited(convert, seconds=1, memory=400_000_000)
    [refusal], [extract] = (list(read_source(source, converting=service)) for source in (bomb, good))
    assert isinstance(refusal, Refusal) and "too much work" in refusal.message
    assert isinstance(extract, Extract) and extract.text == "Some text."
    service.close()


def test_bookmarks_part_headings_from_the_lines_around_them(tmp_path: Path) -> None:
    full = "This line is as long as any other line of this page is, and so it goes on"
    lines = [full, full, "A heading that is as long as the lines of this page are, or nearly so", *[full] * 8]
    extract = extract_of(tmp_path / "a.pdf", make_pdf([lines], "T", [(lines[2], 0)]))
    assert [passage.title for passage in extract.passages] == ["T", f"T > {lines[2]}"]


def test_dots_of_a_table_of_contents_are_no_words(tmp_path: Path) -> None:
    lines = ["Costs . . . . . . . . . . 12", "What ships pay for the use of the pier and of the crane."]
    assert (extract_of(tmp_path / "a.pdf", make_pdf([lines])).text or "").startswith("Costs … 12\n")


def test_lines_of_code_stay_lines(tmp_path: Path) -> None:
    code = ["def land(ship, pier, crane, berth, harbour, tide):", "return pier.land(ship) if tide.is_high else None"]
    lines = ["Land a ship at the pier, which takes an hour or two, by this function of", "the harbour:"]
    extract = extract_of(tmp_path / "a.pdf", make_pdf([[*lines, *(CODE + line for line in code), "Then it rests."]]))
    assert extract.text == f"{' '.join(lines)}\n\n{code[0]}\n{code[1]}\n\nThen it rests."


def test_running_heads_of_chapters_are_dropped(tmp_path: Path) -> None:
    words = ["harbour", "pilot", "pier", "lighthouse", "crane", "berth"]
    pages = [
        [f"Chapter {1 + n // 3}: {('Ships', 'Piers')[n // 3]} {n + 1}", f"The {word} is old."]
        for n, word in enumerate(words)
    ]
    pages[0][0], pages[3][0] = "1 Ships", "2 Piers"
    extract = extract_of(tmp_path / "a.pdf", make_pdf(pages, "Town", [("Ships", 0), ("Piers", 3)]))
    assert "Chapter" not in (extract.text or "")
    assert [heading for heading in ("1 Ships", "2 Piers") if heading in (extract.text or "")] == ["1 Ships", "2 Piers"]


def test_bookmarks_of_one_long_page_are_found_in_linear_time(tmp_path: Path) -> None:
    marks = [Bookmark(0, f"Part {'x' * (number % 50)}", 0) for number in range(10_000)]
    text = "\n".join(f"Part {'x' * (number % 50)} and more" for number in range(100_000))
    assert len(list(_find_headings(text, [0], marks))) > 1_000


def test_a_document_without_a_title_has_its_first_line(tmp_path: Path) -> None:
    lines = ["Harbour rules of the town", "They are old, and all who come to the harbour by ship must follow them."]
    assert extract_of(tmp_path / "a.pdf", make_pdf([lines])).passages[0].title == "Harbour rules of the town"
