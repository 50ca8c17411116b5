"""What reads texts: the same numbers, whoever reads and whatever is read beside them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.reader.model import ChainReaderModel
from rechain.reader.reading import NetworkReader, Reading, joined_texts
from rechain.reader.texts import TokenText, flat_texts
from rechain.system.tensors import Array


def text_of(ids: list[int], slots: list[int] | None = None) -> TokenText:
    kinds = np.array(slots or [0] * len(ids), dtype=np.uint8)
    return TokenText(np.array(ids, dtype=np.uint32), kinds, kinds)


def reading(head: str, *texts: TokenText, entities: int = 0) -> Reading:
    return Reading(head, flat_texts(texts), entities)  # type: ignore[arg-type]


ONE = [text_of([101, 2040, 102, 3000, 4000, 102], [0, 0, 0, 1, 2, 0]), text_of([101, 102], [0, 1])]
OTHER = [text_of([101, 5000, 6000, 7000, 102], [0, 1, 2, 3, 0])]
READINGS = [
    reading("rank", *ONE),
    reading("name_links", *ONE, entities=2),
    reading("embed", *OTHER),
    reading("rank", *OTHER),
    reading("name_links", *OTHER, entities=4),
    reading("judge", *OTHER),
]


@pytest.fixture(scope="module")
def reader(default_model: ChainReaderModel) -> NetworkReader:
    return default_model.reader


def test_readings_together_are_each_by_itself_to_the_last_bit(reader: NetworkReader) -> None:
    alone = [reader(one) for one in READINGS]
    together = reader.read_all(READINGS)
    assert [output.shape for output in together] == [(2,), (2, 2), (1, 384), (1,), (1, 4), (1,)]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert reader.read_all([]) == []


def test_a_reading_can_be_sent(reader: NetworkReader) -> None:
    sent = pickle.loads(pickle.dumps(READINGS[1]))
    np.testing.assert_array_equal(reader(sent), reader(READINGS[1]))


def test_another_reads_for_a_model_once_it_is_told_to(default_model: ChainReaderModel) -> None:
    asked: list[Reading] = []

    def ask(one: Reading) -> Array:
        asked.append(one)
        return default_model.reader(one)

    model = ChainReaderModel(default_model.network, default_model.tokenizer, default_model.settings)
    expected = model.meaning(["a claim"], ["a sentence", "another"])
    model.read_by(ask)
    assert model.meaning(["a claim"], ["a sentence", "another"]) == expected
    assert [one.head for one in asked] == ["embed"]


@given(st.lists(st.lists(st.lists(st.integers(0, 70_000), min_size=1, max_size=4), min_size=1, max_size=3), min_size=1))
def test_joined_texts_are_those_that_were_joined(parts: list[list[list[int]]]) -> None:
    joined = joined_texts([flat_texts([text_of(ids) for ids in part]) for part in parts])
    whole = flat_texts([text_of(ids) for part in parts for ids in part])
    assert joined.keys() == whole.keys()
    for name, column in whole.items():
        np.testing.assert_array_equal(joined[name], column)
