"""Items gathered by their position, and when an error among them is raised."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.system.processes import DeferredErrors, batches

ITEMS = st.lists(st.integers(), max_size=40)
SIZES = st.integers(1, 12)


def failing_after(items: list[int], error: BaseException) -> Iterator[int]:
    yield from items
    raise error


@given(ITEMS, SIZES)
def test_batches_are_the_items_in_their_order_and_all_but_the_last_are_full(items: list[int], size: int) -> None:
    gathered = list(batches(items, size))
    assert [item for batch in gathered for item in batch] == items
    assert all(len(batch) == size for batch in gathered[:-1])
    assert all(1 <= len(batch) <= size for batch in gathered[-1:])


@given(st.lists(st.integers(0, 9), max_size=40), SIZES, st.integers(1, 20))
def test_a_batch_ends_with_the_item_that_makes_it_too_heavy(items: list[int], size: int, heaviest: int) -> None:
    gathered = list(batches(items, size, int, heaviest))
    assert [item for batch in gathered for item in batch] == items
    assert all(len(batch) == size or sum(batch) >= heaviest for batch in gathered[:-1])
    assert all(len(batch) <= size and sum(batch[:-1]) < heaviest for batch in gathered)


@given(ITEMS, SIZES)
def test_what_was_read_before_an_error_is_given_out_before_it_is_raised(items: list[int], size: int) -> None:
    gathered, error = [], ValueError("damaged")
    with pytest.raises(ValueError) as failure:
        for batch in batches(failing_after(items, error), size):
            gathered.append(batch)
    assert failure.value is error
    assert gathered == list(batches(items, size))


def test_no_more_is_read_than_the_batch_needs() -> None:
    source = iter(range(10))
    assert next(batches(source, 3)) == [0, 1, 2]
    assert next(source) == 3


def test_an_error_ends_the_items_and_is_kept() -> None:
    error = ValueError("damaged")
    items = DeferredErrors(failing_after([1, 2], error))
    assert items.error is None
    assert list(items) == [1, 2]
    assert items.error is error


@given(ITEMS)
def test_where_nothing_fails_no_error_is_kept(numbers: list[int]) -> None:
    items = DeferredErrors(numbers)
    assert list(items) == numbers
    assert items.error is None


def test_an_interrupt_is_not_deferred() -> None:
    items = iter(DeferredErrors(failing_after([1], KeyboardInterrupt())))
    assert next(items) == 1
    with pytest.raises(KeyboardInterrupt):
        next(items)
