"""Questions a second of bulk recovery for some models, devices and numbers of workers; made for machines with a GPU.

    python benchmarks/rate.py hotpotqa/open.json.gz default:cuda:16:128:24000 lexical:cpu:16:32:60000

A setting is model, device, workers, questions in a chunk, and questions in all: those of the file, over and over. It
needs no more than the package itself. The first quarter of a run, with the start of the workers, is left out of the
second column of questions a second.
"""

import argparse
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain, count, islice
from pathlib import Path

from common import gpu, print_heading, print_rows

from rechain.bulk.work import Work, recover_chunks
from rechain.datasets.reading import Chunk, read_chunks
from rechain.recovery import Recoverer


def over_and_over(questions: Path, batch_size: int, number: int) -> Iterator[Chunk]:
    """Yield chunks of a file, time after time, until they have `number` questions."""
    chunks = chain.from_iterable(read_chunks(questions, batch_size) for _ in count())
    return islice(chunks, number // batch_size)


def measure(questions: Path, setting: str) -> tuple[object, ...]:
    """Run one setting, and return a row of the table."""
    model, device, workers, batch_size, number = setting.split(":")
    work = Work(partial(Recoverer, model, device=None if model == "lexical" else device))
    chunks = over_and_over(questions, int(batch_size), int(number))
    start, done = time.perf_counter(), 0
    marks: list[tuple[float, int]] = []
    memory = ""
    for each in recover_chunks(work, chunks, int(batch_size), int(workers)):
        done += each.tally.questions
        marks.append((time.perf_counter() - start, done))
        if len(marks) == int(number) // int(batch_size) // 2:
            memory = gpu("memory.used").partition(",")[0]
    first, (end, _) = marks[len(marks) // 4], marks[-1]
    steady = (done - first[1]) / (end - first[0])
    return model, device, workers, batch_size, done, f"{marks[0][0]:.1f}", f"{done / end:.0f}", f"{steady:.0f}", memory


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("questions", type=Path)
    options.add_argument("settings", nargs="+", metavar="MODEL:DEVICE:WORKERS:BATCH:QUESTIONS")
    chosen = options.parse_args()
    print_heading()
    columns = ("model", "device", "workers", "in a chunk", "questions", "first result after, s")
    header = (*columns, "questions/s", "without the first quarter", "GPU memory, MB")
    print_rows(header, [measure(chosen.questions, setting) for setting in chosen.settings])


if __name__ == "__main__":
    main()
