import gzip
import os
import sys
from pathlib import Path

import pytest
from tests.formats.documents.reading import extract_of, read_one, refusal_of, sources_of

from rechain.formats.documents import Refusal, read_source
from rechain.formats.documents.limits import Limited
from rechain.formats.documents.read import Fields


def test_a_markdown_file_becomes_passages_with_their_places(tmp_path: Path) -> None:
    text = "# Harbour\n\nShips come in.\n\n## Pilot\n\n" + "A pilot boards every ship that enters the bay. " * 9
    extract = extract_of(tmp_path / "harbour.md", text)
    assert [passage.id for passage in extract.passages] == ["harbour.md#1", "harbour.md#2"]
    assert [passage.title for passage in extract.passages] == ["Harbour", "Harbour > Pilot"]
    first = extract.passages[0].model_extra
    assert first == {"source": "harbour.md", "start": 11, "end": 25, "line": 3}


@pytest.mark.parametrize("kind", ["txt", "md"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_that_mark_themselves(tmp_path: Path, kind: str, encoding: str) -> None:
    extract = extract_of(tmp_path / f"a.{kind}", "Dvořák fuhr über Köln.".encode(encoding))
    assert extract.text == "Dvořák fuhr über Köln."


def test_windows_1252_is_read(tmp_path: Path) -> None:
    text = "Die Straße führt über die Brücke nach Köln – „schön“ ist sie nicht."
    assert extract_of(tmp_path / "a.txt", text.encode("cp1252")).text == text


def test_other_encodings_are_guessed(tmp_path: Path) -> None:
    pytest.importorskip("charset_normalizer")
    text = "Москва является столицей России. Она стоит на реке, которая носит то же имя. " * 5
    assert "столицей" in (extract_of(tmp_path / "a.txt", text.encode("cp1251")).text or "")


def test_a_few_damaged_bytes_do_not_spoil_utf_8(tmp_path: Path) -> None:
    extract = extract_of(tmp_path / "a.txt", "Dvořák fuhr über Köln. ".encode() * 9 + b"\xff end")
    assert (extract.text or "").startswith("Dvořák fuhr über Köln.")


def test_what_nobody_sees_is_left_out(tmp_path: Path) -> None:
    extract = extract_of(tmp_path / "a.txt", "Do\u00adnau\u200b\x07 e\u0301t\u00e9\r\nﬁn\ufeff")
    assert extract.text == "Donau été\nfin"


def test_binary_files_are_refused(tmp_path: Path) -> None:
    assert "binary" in refusal_of(tmp_path / "a.txt", b"\x7fELF\x00\x00\x01").message


@pytest.mark.parametrize("content", ["", " \n\n", "---\n***\n"])
@pytest.mark.parametrize("kind", ["txt", "md"])
def test_files_without_text_are_refused(tmp_path: Path, kind: str, content: str) -> None:
    assert refusal_of(tmp_path / f"a.{kind}", content).message == f"a.{kind} holds no text."


def test_a_text_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.truncate(500_000_000)
    outcome = read_one(path)
    assert isinstance(outcome, Refusal) and "20 MB" in outcome.message and "JSON lines" in outcome.message


def test_a_file_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    path = tmp_path / "docs" / "a.txt"
    path.parent.mkdir()
    path.write_text("public")
    [source] = sources_of(path.parent)
    path.unlink()
    path.symlink_to(secret)
    [outcome] = read_source(source)
    assert isinstance(outcome, Refusal)


def test_a_file_that_vanished_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    [source] = sources_of(tmp_path)
    path.unlink()
    [outcome] = read_source(source)
    assert isinstance(outcome, Refusal) and outcome.message == "a.txt cannot be read: No such file or directory."


@pytest.mark.parametrize(("kind", "module"), [("html", "lxml"), ("pdf", "pypdfium2"), ("docx", "docx")])
def test_a_missing_extra_is_named(tmp_path: Path, kind: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert "pip install 'rechain[documents]'" in refusal_of(tmp_path / f"a.{kind}", "text").message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    outcome = read_one(path)
    assert isinstance(outcome, Refusal) and "Permission denied" in outcome.message


@pytest.mark.parametrize("text", ["Für Führungskräfte gilt: Urlaub.", "Le siège est à côté de l'école."])
def test_short_western_european_texts_are_windows_1252(tmp_path: Path, text: str) -> None:
    assert extract_of(tmp_path / "a.txt", text.encode("cp1252")).passages[0].text == text


@pytest.mark.parametrize("name", ["a.txt.gz", "a.md.gz", "a.rst.gz", "README.gz"])
def test_packed_files_are_read(tmp_path: Path, name: str) -> None:
    assert extract_of(tmp_path / name, gzip.compress("Köln liegt am Rhein.".encode())).text == "Köln liegt am Rhein."


def test_packed_files_have_limits(tmp_path: Path) -> None:
    assert "20 MB" in refusal_of(tmp_path / "a.txt.gz", gzip.compress(bytes(500_000_000))).message
    assert "damaged" in refusal_of(tmp_path / "b.txt.gz", gzip.compress(b"text" * 99)[:20]).message


def test_every_converter_has_limits(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    [source] = sources_of(tmp_path)
    for function, reason in ((_never_end, "over 1 seconds"), (_fill_memory, "too much memory")):
        service = Limited(function, seconds=1)
        [refusal] = read_source(source, converting=service)
        assert isinstance(refusal, Refusal) and reason in refusal.message
        service.close()


def _never_end(task: object) -> tuple[str, list[Fields]]:
    while True:
        pass


def _fill_memory(task: object) -> tuple[str, list[Fields]]:
    return str(bytearray(3_000_000_000)), []
