"""Word vectors: every format of the same vectors, what is kept, and files that are not what they should be."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import InputError, RechainError
from rechain.paper.vectors import read_vectors

WORDS = ["the", "Škoda", "1998", "naïve"]
MATRIX = np.array([[0.1, -2.5, 3e-3], [1, 0, 0.5], [-0.25, 7, 1e-5], [4, 5, 6.125]], dtype=np.float32)


def text(words: list[str], matrix: Any, end: str = "\n") -> bytes:
    rows = zip(words, matrix, strict=True)
    return "".join(f"{word} {' '.join(str(number) for number in row)}{end}" for word, row in rows).encode()


def header(words: list[str], matrix: Any) -> bytes:
    return f"{len(words)} {matrix.shape[1]}\n".encode()


def binary(words: list[str], matrix: Any, end: bytes = b"") -> bytes:
    rows = zip(words, matrix, strict=True)
    return header(words, matrix) + b"".join(w.encode() + b" " + row.astype("<f4").tobytes() + end for w, row in rows)


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


FORMATS: dict[str, Callable[[list[str], Any], bytes]] = {
    "GloVe": text,
    "GloVe with CRLF": lambda words, matrix: text(words, matrix, "\r\n"),
    "word2vec text": lambda words, matrix: header(words, matrix) + text(words, matrix),
    "word2vec binary": binary,
    "word2vec binary with newlines": lambda words, matrix: binary(words, matrix, b"\n"),
    "npz": lambda words, matrix: npz(words="\n".join(words), vectors=matrix),
}


def write(folder: Path, content: bytes) -> Path:
    path = folder / "vectors"
    path.write_bytes(content)
    return path


def message(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_vectors(path, **options)
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_every_format_gives_the_same(tmp_path: Path, layout: str, pack: Callable[[bytes], bytes]) -> None:
    if layout == "npz" and pack is gzip.compress:
        pytest.skip("npz is compressed already")
    path = write(tmp_path, pack(FORMATS[layout](WORDS, MATRIX)))
    vectors = read_vectors(path, width=3)
    assert vectors.words == WORDS
    assert vectors.matrix.dtype == np.float16
    np.testing.assert_array_equal(vectors.matrix, MATRIX.astype(np.float16))
    assert read_vectors(path, limit=2).words == ["the", "Škoda"]
    assert vectors.table.shape == (5, 3)
    assert not vectors.table[0].any()


# 16-bit numbers, as 32-bit ones, have bytes that are zero: that they are binary shows even if vectors are short.
numbers = st.floats(-60000, 60000, width=16)
words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters=" \n\r\t"), min_size=1), min_size=1)


@given(st.data())
def test_text_and_binary_agree(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    names = data.draw(words)
    width = data.draw(st.integers(2, 5))
    rows = st.lists(numbers, min_size=width, max_size=width)
    matrix = np.array(data.draw(st.lists(rows, min_size=len(names), max_size=len(names))), dtype=np.float32)
    folder = tmp_path_factory.mktemp("agree")
    from_text = read_vectors(write(folder, header(names, matrix) + text(names, matrix)))
    from_binary = read_vectors(write(folder, binary(names, matrix)))
    assert from_text.words == from_binary.words == list(dict.fromkeys(names))
    np.testing.assert_array_equal(from_text.matrix, from_binary.matrix)


@pytest.mark.parametrize("layout", FORMATS)
def test_the_first_occurrence_counts(tmp_path: Path, layout: str) -> None:
    path = write(tmp_path, FORMATS[layout](["a", "b", "a", "b", "c"], np.arange(15, dtype=np.float32).reshape(5, 3)))
    assert read_vectors(path).words == ["a", "b", "c"]
    assert read_vectors(path).matrix[:, 0].tolist() == [0, 3, 12]


def test_stops_when_it_has_all_that_it_needs(tmp_path: Path) -> None:
    assert read_vectors(write(tmp_path, b"a 1 2\nb 3 4\nc oops\n"), limit=2).words == ["a", "b"]


def test_words_may_contain_blanks(tmp_path: Path) -> None:
    names = [",", ". . .", "at name@domain.com", "a\u00a0b", "at"]
    assert read_vectors(write(tmp_path, text(names, np.arange(10).reshape(5, 2) / 8))).words == names


def test_words_that_are_not_utf8_are_read(tmp_path: Path) -> None:
    assert read_vectors(write(tmp_path, b"a 1 2\n\xc5 3 4\n")).words == ["a", "\ufffd"]


def test_another_width_than_needed(tmp_path: Path) -> None:
    path = write(tmp_path, text(WORDS, MATRIX))
    with pytest.raises(RechainError, match="has vectors of 3 numbers, but 100 are needed"):
        read_vectors(path, width=100)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert message(tmp_path / "absent") == "FILE cannot be read: No such file or directory."
    assert message(tmp_path) == "FILE cannot be read: Is a directory."
    assert message(write(tmp_path, b"")) == "FILE is empty."
    assert message(write(tmp_path, gzip.compress(b""))) == "FILE is empty."
    assert message(write(tmp_path, b"0 3\n")) == "FILE has no words."


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a 1 2\nb 1\n", "FILE, line 2: 'b' should be followed by 2 numbers, not 1."),
        (b"a 1 2\nb x 2\n", "FILE, line 2: b'x' is not a number."),
        (b"a 1 2\nb nan 2\n", "FILE, line 2: nan is not a finite number of at most 65504."),
        (b"a 1 70000\n", "FILE, line 1: 70000.0 is not a finite number of at most 65504."),
        (b"a\n", "FILE, line 1: 'a' is neither a word with its vector nor a header."),
        (b"5 0\n", "FILE, line 1: '5 0' is neither a word with its vector nor a header."),
    ],
)
def test_mistakes_in_text(tmp_path: Path, content: bytes, expected: str) -> None:
    assert message(write(tmp_path, content)) == expected


def test_mistakes_in_binary(tmp_path: Path) -> None:
    content = binary(WORDS, MATRIX)
    assert message(write(tmp_path, content[:-1])) == "FILE is cut off: it ends in vector 4 of 4."
    no_blank = b"9 2\na " + bytes(8) + b"x" * 100_000
    assert message(write(tmp_path, no_blank)) == "FILE, word 2: no blank after the word within 65536 bytes."
    matrix = np.where(np.arange(12).reshape(4, 3) == 7, np.nan, MATRIX)
    assert message(write(tmp_path, binary(WORDS, matrix))).startswith("FILE, word 3: nan is not a finite number")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"words": "a\nb"}, "FILE is not an npz file with words and vectors"),
        ({"words": "a\nb\nc", "vectors": np.ones((2, 3))}, "FILE should have a word on each line"),
        ({"words": "a", "vectors": np.ones(3)}, "FILE should have a word on each line"),
        ({"words": np.array(["a"], dtype=object), "vectors": np.ones((1, 3))}, "FILE is not an npz file with words"),
        ({"words": "a\nb", "vectors": np.array([[1.0], [np.inf]])}, "FILE, row 2: inf is not a finite number"),
    ],
)
def test_mistakes_in_npz(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    assert message(write(tmp_path, npz(**arrays))).startswith(expected)


def test_damaged_files(tmp_path: Path) -> None:
    packed = gzip.compress(text(WORDS, MATRIX))
    assert message(write(tmp_path, packed[:-9])).startswith("FILE is damaged: ")
    assert message(write(tmp_path, packed[:-8] + bytes(8))).startswith("FILE is damaged: CRC check failed")
    assert message(write(tmp_path, npz(words="a", vectors=np.ones((1, 2)))[:-30])).startswith("FILE is damaged: ")


def test_real_vectors(real_data: Path) -> None:
    path = real_data / "vectors" / "glove.6B.100d.subset.npz"
    vectors = read_vectors(path, limit=1000, width=100)
    assert vectors.words[:3] == ["a", "'s", "''"]
    with np.load(path, allow_pickle=False) as stored:
        np.testing.assert_array_equal(vectors.matrix, stored["vectors"][:1000])
    assert read_vectors(real_data / "vectors" / "bio.100d.npz").matrix.shape == (57771, 100)
