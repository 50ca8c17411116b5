"""Bulk recovery on this machine: the same lines, however many processes work."""

import multiprocessing
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rechain.bulk.local import recover_chunks
from rechain.bulk.work import Done, Work
from rechain.datasets.reading import Chunk, read_chunks
from rechain.errors import InputError
from rechain.recovery import Recoverer

LEXICAL = partial(Recoverer, "lexical")


def lines(done: list[Done]) -> bytes:
    return b"".join(each.lines for each in done)


def test_neither_workers_nor_the_size_of_chunks_changes_the_lines(town_file: Path) -> None:
    work = Work(LEXICAL)
    expected = lines(list(recover_chunks(work, read_chunks(town_file, 12), 12, 0)))
    assert expected.count(b"\n") == 12
    for size, workers in ((1, 2), (5, 3), (4, 0), (99, 2), (5, 1)):
        done = list(recover_chunks(work, read_chunks(town_file, size), size, workers))
        assert lines(done) == expected
        assert [each.tally.questions for each in done] == [size] * (12 // size) + [12 % size] * (12 % size > 0)


@pytest.mark.parametrize(("size", "workers", "is_alone"), [(4, 0, True), (13, 2, True), (12, 2, False), (4, 2, False)])
def test_one_short_chunk_needs_no_other_process(town_file: Path, size: int, workers: int, is_alone: bool) -> None:
    done = recover_chunks(Work(LEXICAL), read_chunks(town_file, size), size, workers)
    next(done)
    assert bool(multiprocessing.active_children()) is not is_alone
    done.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_chunks_before_an_error_are_recovered_before_it_is_raised(town_file: Path, workers: int) -> None:
    error = InputError("f is damaged.")

    def chunks() -> Iterator[Chunk]:
        yield from list(read_chunks(town_file, 5))[:2]
        raise error

    done = []
    with pytest.raises(InputError) as failure:
        for each in recover_chunks(Work(LEXICAL), chunks(), 5, workers):
            done.append(each)
    assert failure.value is error
    assert [each.tally.questions for each in done] == [5, 5]
