"""Bulk recovery in worker processes of this machine."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path

from rechain.bulk.work import Done, Work, Worker
from rechain.datasets.reading import Chunk
from rechain.scoring import BASELINES
from rechain.system.batches import HeldBack
from rechain.system.processes import in_order, usable_cores

_MOST_A_GPU = 16
"""workers that share a GPU: each takes about a gigabyte of its memory"""


def default_workers(model: str, device: str | None) -> int:
    """Return how many worker processes are worth starting: one a core, but not so many that they fill a GPU."""
    shares_gpu = model not in BASELINES and device != "cpu" and Path("/dev/nvidia0").exists()
    return min(usable_cores(), _MOST_A_GPU) if shares_gpu else usable_cores()


def recover_chunks(work: Work, chunks: Iterable[Chunk], size: int, workers: int) -> Iterator[Done]:
    """Recover the chains of chunks, of so many records if they are full, in so many worker processes.

    With 0 workers, or where there is but one chunk, this process does it.
    """
    source = HeldBack(chunks)
    remaining = iter(source)
    begun = list(islice(remaining, 1))
    is_short = all(len(chunk.records) < size for chunk in begun)
    begun += islice(remaining, 1) if is_short else ()  # a chunk that is not full may be the only one
    tasks = chain(begun, remaining)
    if workers == 0 or (is_short and len(begun) < 2):
        yield from _here(work, tasks)
    else:
        yield from in_order(partial(Worker, work), tasks, workers, lambda chunk: chunk.where)
    source.check()


def _here(work: Work, chunks: Iterable[Chunk]) -> Iterator[Done]:
    worker: Worker | None = None
    for chunk in chunks:
        worker = worker or Worker(work)
        yield worker(chunk)
