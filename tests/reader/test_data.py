"""Prepared chains, cut into batches."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rechain.models.chain_reader import TextBatch
from rechain.reader.data import ReaderData, Texts
from rechain.system.tensors import Array

Arrays = Callable[..., dict[str, Array]]

LENGTHS = [3, 1, 4, 1, 5, 2]


def texts(dtype: type = np.uint16) -> Texts:
    """The tokens of text n are 10 n + 1, 10 n + 2, …"""
    ids = [10 * number + place for number, length in enumerate(LENGTHS) for place in range(1, length + 1)]
    arrays = {
        "ids": np.array(ids, dtype=dtype),
        "marks": np.array([token % 2 for token in ids], dtype=np.uint8),
        "slots": np.array([token // 10 for token in ids], dtype=np.uint8),
        "text_start": np.cumsum([0, *LENGTHS], dtype=np.int64),
    }
    return Texts(arrays, "cpu")


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_a_batch_is_as_long_as_its_longest_text_and_padded_with_zeros(dtype: type) -> None:
    batch = texts(dtype).batch(torch.tensor([5, 0]))
    assert batch.ids.tolist() == [[51, 52, 0], [1, 2, 3]]
    assert batch.marks.tolist() == [[1, 0, 0], [1, 0, 1]]
    assert batch.slots.tolist() == [[5, 5, 0], [0, 0, 0]]
    assert batch.lengths.tolist() == [2, 3]


@given(numbers=st.lists(st.integers(0, 5), min_size=1, max_size=12), most=st.integers(1, 20))
def test_what_is_said_comes_in_order_and_no_more_is_read_at_once_than_allowed(numbers: list[int], most: int) -> None:
    read: list[TextBatch] = []

    def head(batch: TextBatch) -> torch.Tensor:
        read.append(batch)
        return batch.ids.sum(1)

    said = texts().read(torch.tensor(numbers), head, most)
    sums = [sum(10 * number + place for place in range(1, length + 1)) for number, length in enumerate(LENGTHS)]
    assert said.tolist() == [sums[number] for number in numbers]
    assert all(batch.ids.numel() <= most or len(batch.ids) == 1 for batch in read)
    assert sum(len(batch.ids) for batch in read) == len(numbers)


def test_a_step_has_the_chains_of_its_questions(toy_arrays: Arrays) -> None:
    arrays = toy_arrays(3)
    arrays["chain_start"] = np.array([0, 1, 4, 6])  # one chain, three, two
    data = ReaderData(arrays, "cpu")
    assert (len(data), data.chains) == (3, 6)
    step = data.step(np.array([2, 0, 1]))
    assert step.is_chain.tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert step.chains.tolist() == [[4, 5, 4], [0, 0, 0], [1, 2, 3]]
    np.testing.assert_array_equal(step.features[2], arrays["features"][1:4])
    assert step.made.tolist() == arrays["made"].astype(bool)[step.chains].tolist()
