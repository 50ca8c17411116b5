"""Whatever a file holds, reading it gives passages or one sentence."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.documents.pdfs import make_pdf
from tests.formats.documents.reading import check_extract, check_refusal, sources_of

from rechain.formats.documents import Refusal, read_source

SUFFIXES = ["txt", "md", "html", "pdf", "docx", "jsonl", "json", "json.gz", "parquet", "csv"]
STARTS = [
    b"",
    b"%PDF-1.5\n",
    b"PK\x03\x04",
    b"PAR1",
    b"\x1f\x8b",
    b"\xff\xfe",
    b"{",
    b"<html><p>",
    make_pdf([["text"]])[:400],
]
CONTENTS = st.builds(
    bytes.__add__, st.sampled_from(STARTS), st.binary(max_size=300) | st.text(max_size=200).map(str.encode)
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=60)
@given(content=CONTENTS)
def test_any_bytes_give_passages_or_a_sentence(folder: Path, suffix: str, content: bytes) -> None:
    path = folder / f"a.{suffix}"
    path.write_bytes(content)
    [source] = sources_of(path)
    for outcome in read_source(source):
        if isinstance(outcome, Refusal):
            check_refusal(outcome)
        elif outcome.text is not None:
            check_extract(outcome)
