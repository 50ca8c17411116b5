"""The numbers of words and what is known of each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.paper.lexicon import MAX_NGRAMS, Lexicon, vector_rows
from rechain.paper.settings import NGRAM_BUCKETS
from rechain.text.languages import idf


def test_words_are_numbered_as_they_are_first_seen() -> None:
    lexicon = Lexicon({})
    assert lexicon.numbers(["the", "opera", "the"]) == [1, 2, 1]
    assert lexicon.numbers(iter(["prague", "opera"])) == [3, 2]
    assert lexicon.numbers([]) == []
    assert len(lexicon.arrays()["rarity"]) == 4


def test_case_and_accents_do_not_matter() -> None:
    lexicon = Lexicon({})
    assert lexicon.numbers(["Dvořák", "dvorak", "DVORAK", "Straße", "strasse"]) == [1, 1, 1, 2, 2]
    assert lexicon.numbers(["strasse", "Dvořák"]) == [2, 1]
    assert len(lexicon.arrays()["rarity"]) == 3


def test_arrays_of_known_and_unknown_words() -> None:
    lexicon = Lexicon({"the": 7, "opera": 9})
    lexicon.numbers(["opera", "1998", "the"])
    arrays = lexicon.arrays()
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == {
        "vector_row": (np.int32, (4,)),
        "ngrams": (np.int16, (4, MAX_NGRAMS)),
        "rarity": (np.float16, (4,)),
    }
    assert arrays["vector_row"].tolist() == [0, 9, 0, 7]
    assert arrays["ngrams"].any(axis=1).tolist() == [False, False, True, False]
    assert arrays["rarity"].tolist() == [0, *(float(np.float16(idf(word))) for word in ["opera", "1998", "the"])]


def test_arrays_grow_with_the_words() -> None:
    lexicon = Lexicon({})
    assert [array.shape for array in lexicon.arrays().values()] == [(1,), (1, MAX_NGRAMS), (1,)]
    lexicon.numbers(["a"])
    before = lexicon.arrays()
    lexicon.numbers(["b"])
    for name, array in lexicon.arrays().items():
        np.testing.assert_array_equal(array[:2], before[name])


def ngrams(*words: str) -> list[list[int]]:
    lexicon = Lexicon({})
    lexicon.numbers(words)
    return lexicon.arrays()["ngrams"][1:].tolist()


def test_ngrams_are_the_ends_then_the_inside() -> None:
    long, short, letter = ngrams("quillfeather", "quill", "q")
    assert long[0] == short[0] == letter[0]  # <q
    assert long[2] == short[2]  # <qu
    assert long[3] != short[3]  # er> and ll>
    assert long[6:] == [*short[6:7], long[7]]  # quil
    assert 0 not in long
    assert letter[3:] == [0] * (MAX_NGRAMS - 3)  # <q q> <q>


def test_identifiers_differ_by_ngrams() -> None:
    rows = ngrams(*(f"db{number:05}" for number in range(0, 20000, 7)))
    assert len(set(map(tuple, rows))) > 0.95 * len(rows)


@given(st.lists(st.text()))
def test_any_words(words: list[str]) -> None:
    lexicon = Lexicon({})
    numbers = lexicon.numbers(words)
    buckets = lexicon.arrays()["ngrams"]
    assert all(0 < number < len(buckets) for number in numbers)
    assert lexicon.numbers(words) == numbers
    assert ((buckets >= 0) & (buckets < NGRAM_BUCKETS)).all()
    assert (buckets[1:, 0] > 0).all()


def test_buckets_are_always_the_same() -> None:
    assert ngrams("1998") == [[2789, 1730, 301, 1722, 3089, 2555, 2883, 0]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["the", "Prague", "prague", "The", "x"], {"the": 1, "prague": 2, "x": 5}),
        (["Škoda", "skoda"], {"skoda": 1}),
    ],
)
def test_vector_rows(words: list[str], expected: dict[str, int]) -> None:
    assert vector_rows(words) == expected
