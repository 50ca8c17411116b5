"""The test sets over documents of Debian packages are well formed, and every quote occurs in its document."""

import importlib.util
import json
import os
import sys
from collections import Counter
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

import pytest

DEBIAN = Path(__file__).parents[2] / "benchmarks" / "debian"
LABELS = ("supported", "unsupported", "partly")
KINDS = ("one", "two", "table", "list", "paraphrase")


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("debian_get", DEBIAN / "get.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


get = _load()
PACKAGES = {package.name: package for package in get.PACKAGES}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEBIAN / name).read_text(encoding="utf-8").splitlines()]


QUESTIONS, ANSWERS = rows("questions.jsonl"), rows("answers.jsonl")


def test_rows_are_well_formed() -> None:
    for row in (*QUESTIONS, *ANSWERS):
        assert {"id", "question", "answer", "kind", "evidence"} <= set(row), row
        assert set(row) <= {"id", "question", "answer", "kind", "evidence", "label", "wrong"}, row
        assert all(text.strip() == text != "" for field, text in row.items() if field != "evidence"), row
        assert row["evidence"], row
        for piece in row["evidence"]:
            assert set(piece) == {"file", "quote"}, row
            assert piece["file"].split("/")[0] in PACKAGES, row
            assert len(piece["quote"]) < 300 and piece["quote"] == " ".join(piece["quote"].split()) != "", row


def test_ids_and_questions_are_unique() -> None:
    ids = [row["id"] for row in (*QUESTIONS, *ANSWERS)]
    assert len(set(ids)) == len(ids)
    assert len({row["question"] for row in QUESTIONS}) == len(QUESTIONS)


def test_questions_need_one_passage_or_two() -> None:
    assert {row["kind"] for row in QUESTIONS} <= set(KINDS)
    assert all((row["kind"] == "two") == (len(row["evidence"]) > 1) for row in QUESTIONS)


def test_only_wrong_answers_say_what_is_wrong() -> None:
    assert {row["label"] for row in ANSWERS} <= set(LABELS)
    assert all((row["label"] != "supported") == bool(row.get("wrong")) for row in ANSWERS)


def test_sizes() -> None:
    kinds = Counter(row["kind"] for row in QUESTIONS)
    assert len(QUESTIONS) == 100 and kinds["two"] >= 25 and kinds["paraphrase"] >= 33
    assert Counter(row["label"] == "supported" for row in ANSWERS) == {True: 150, False: 150}


def test_right_and_wrong_answers_look_alike() -> None:
    right, wrong = (
        [row["answer"] for row in ANSWERS if (row["label"] == "supported") == is_right] for is_right in (1, 0)
    )
    assert abs(mean(map(len, right)) - mean(map(len, wrong))) < 3
    for word in ("Yes", "No"):
        assert abs(sum(text.startswith(word) for text in right) - sum(text.startswith(word) for text in wrong)) <= 10


def _text(package: Any, file: str, tmp_path: Path) -> str | None:
    """Return the text of a document: of a folder that get.py filled, else of an installed package."""
    folder = os.environ.get("RECHAIN_DEBIAN")
    if folder:
        return get.text_of(Path(folder) / file)
    for path, name in get.documents(package, get.installed_files(package.name), Path("/")):
        if name == file:
            (tmp_path / Path(name).name).write_bytes(get.read_document(path))
            return get.text_of(tmp_path / Path(name).name)
    return None


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_quotes_occur_in_their_documents(name: str, tmp_path: Path) -> None:
    evidence = (piece for row in (*QUESTIONS, *ANSWERS) for piece in row["evidence"])
    quotes = [piece for piece in evidence if piece["file"].startswith(f"{name}/")]
    texts = {file: _text(PACKAGES[name], file, tmp_path) for file in {piece["file"] for piece in quotes}}
    if None in texts.values():
        pytest.skip(
            f"documents of {name} are not installed: apt-get install {name}, or fill a folder with "
            "benchmarks/debian/get.py --download and set RECHAIN_DEBIAN to it"
        )
    missing = [piece for piece in quotes if piece["quote"] not in texts[piece["file"]]]
    assert not missing


def test_absent_package_is_skipped_with_a_sentence(tmp_path: Path) -> None:
    absent = get.Package("rechain-no-such-package", "1.0")
    assert "skipped, it is not installed" in get.get(absent, tmp_path, may_download=False)


def test_text_of_a_page_is_what_a_browser_shows(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<title>No</title><p>Waits <code>5</code>&nbsp;s,\n then<b>n</b>.</p><td>a</td><td>b</td><script>x</script>"
    )
    assert get.text_of(page) == "Waits 5 s, thenn. a b"


def test_manual_page_is_printed_without_hyphens_at_line_ends(tmp_path: Path) -> None:
    if get.shutil.which("groff") is None:
        pytest.skip("groff is not installed: apt-get install groff-base")
    page = tmp_path / "long.1.gz"
    page.write_bytes(get.gzip.compress(b".TH LONG 1\n.SH NAME\n" + b"incomprehensibilities " * 30))
    assert "\u2010" not in get.read_document(page).decode()
    page.write_bytes(get.gzip.compress(b".so man1/other.1\n"))
    assert get.read_document(page) == b""
