"""Prepared chains, cut into batches."""

from collections.abc import Callable

import numpy as np

from rechain.reader.data import JudgeData, ReaderData
from rechain.system.tensors import Array


def test_a_batch_has_the_chains_of_its_questions(toy_arrays: Callable[..., dict[str, Array]]) -> None:
    arrays = toy_arrays(3)
    arrays["chain_start"] = np.array([0, 1, 4, 6])  # one chain, three, two
    data = ReaderData(arrays, "cpu")
    assert (len(data), data.chains) == (3, 6)
    batch = data.batch(np.array([2, 0, 1]))
    assert batch.is_chain.tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert batch.chains.tolist() == [[4, 5, 4], [0, 0, 0], [1, 2, 3]]
    np.testing.assert_array_equal(batch.features[2], arrays["features"][1:4])
    assert batch.made.tolist() == arrays["made"].astype(bool)[batch.chains].tolist()


def test_answers_of_questions_are_gathered_in_their_order(toy_cases: Callable[..., dict[str, Array]]) -> None:
    arrays = toy_cases(5)
    starts = arrays["case_start"].tolist()
    batch = JudgeData(arrays, "cpu").batch(np.array([3, 0]))
    assert batch.texts.tolist() == [*range(starts[3], starts[4]), *range(starts[1])]
    assert batch.is_case.sum(1).tolist() == [starts[4] - starts[3], starts[1]]
