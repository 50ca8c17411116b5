import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.formats.documents.reading import extract_of, refusal_of

docx = pytest.importorskip("docx")


def packed(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def with_part(content: bytes, name: str, part: bytes) -> bytes:
    """Return a .docx file with another content of one of its parts."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.infolist():
            new.writestr(item.filename, part if item.filename == name else old.read(item))
    return stream.getvalue()


def test_headings_lists_and_tables(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Handbook", 0)
    document.add_paragraph("It applies to all. " * 20)
    document.add_heading("Travel", 1)
    document.add_paragraph("Ask first. " * 40)
    document.add_heading("Costs", 2)
    for item in ("Trains", "Hotels"):
        document.add_paragraph(item, style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(
        (c for row in table.rows for c in row.cells), ("City", "Limit", "Rome", "120 €"), strict=True
    ):
        cell.text = text
    document.add_paragraph("These limits hold. " * 30)
    extract = extract_of(tmp_path / "a.docx", packed(document))
    assert [passage.title for passage in extract.passages] == [
        "Handbook",
        "Handbook > Travel",
        "Handbook > Travel > Costs",
    ]
    assert extract.passages[2].text.startswith("- Trains\n- Hotels\n\nCity | Limit\nRome | 120 €\n\nThese")


@pytest.mark.parametrize(("level", "title"), [("0", "Costs"), ("²", ""), ("9" * 5000, "")], ids=["0", "square", "long"])
def test_levels_of_outlines(tmp_path: Path, level: str, title: str) -> None:
    document = docx.Document()
    properties = document.add_paragraph("Costs")._p.get_or_add_pPr()
    outline = docx.oxml.OxmlElement("w:outlineLvl")
    outline.set(docx.oxml.ns.qn("w:val"), level)
    properties.append(outline)
    document.add_paragraph("These limits hold. " * 30)
    (passage,) = extract_of(tmp_path / "a.docx", packed(document)).passages
    assert passage.title == (title or "a")


def test_a_table_of_one_cell_is_layout(tmp_path: Path) -> None:
    document = docx.Document()
    cell = document.add_table(1, 1).rows[0].cells[0]
    cell.text = "First."
    cell.add_paragraph("Second.")
    assert extract_of(tmp_path / "a.docx", packed(document)).text == "First.\n\nSecond."


def test_the_title_of_the_file(tmp_path: Path) -> None:
    document = docx.Document()
    document.core_properties.title = "Travel rules"
    document.add_paragraph("Ask first.")
    assert extract_of(tmp_path / "a.docx", packed(document)).passages[0].title == "Travel rules"


def test_a_document_without_text_is_refused(tmp_path: Path) -> None:
    assert refusal_of(tmp_path / "a.docx", packed(docx.Document())).message == "a.docx holds no text."


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", packed(docx.Document())[:3000], b"text"])
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    refusal_of(tmp_path / "a.docx", content)


def test_old_and_locked_files_are_named(tmp_path: Path) -> None:
    assert "password" in refusal_of(tmp_path / "a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1").message


def test_a_file_that_grows_when_unpacked_is_refused(tmp_path: Path) -> None:
    bomb = with_part(packed(docx.Document()), "word/document.xml", b"<a>" + b" " * 60_000_000 + b"</a>")
    assert len(bomb) < 200_000
    assert "unpacked" in refusal_of(tmp_path / "a.docx", bomb).message


def with_text(text: str, entities: str) -> bytes:
    """Return a .docx file with one paragraph, and a document type that declares entities."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>"
    part = f"<?xml version='1.0'?><!DOCTYPE x [{entities}]><w:document {space}>{body}</w:document>"
    return with_part(packed(docx.Document()), "word/document.xml", part.encode())


@pytest.mark.parametrize("entity", ['"lol"', 'SYSTEM "file:///etc/passwd"', 'SYSTEM "http://127.0.0.1:9/x"'])
def test_entities_are_not_resolved(tmp_path: Path, entity: str) -> None:
    content = with_text("Start &x; end.", f"<!ENTITY x {entity}>")
    text = extract_of(tmp_path / "a.docx", content).text or ""
    assert text.startswith("Start") and "root" not in text and "lol" not in text


def test_entities_that_grow_are_refused(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 9))
    refusal_of(tmp_path / "a.docx", with_text("&l8;", f'<!ENTITY l0 "lol">{laughs}'))
