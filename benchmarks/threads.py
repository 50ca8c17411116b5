"""How `Recoverer().recover_many` should use threads: seconds for some questions, on idle cores and beside busy loops.

    python benchmarks/threads.py DATA_FOLDER
    python benchmarks/threads.py DATA_FOLDER --questions 64 --rounds 3 --busy 2

Every way runs in a process of its own; a round is all ways, one after another, first beside no other program, then
beside busy loops, `--busy` a core. Figures are the seconds of the median round and, in brackets, of the fastest and the
slowest; the ratio is that of the medians to one thread's. All ways must write the same chains. For the idle figures
nothing else may run on the machine.
"""

import argparse
import hashlib
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from common import parser, print_heading, print_rows

WAYS = {
    "torch's threads": {},
    "torch's threads, OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
    "one thread (OMP_NUM_THREADS=1)": {"OMP_NUM_THREADS": "1"},
    "one thread (set_num_threads around the network)": {},
    "threads of our own, each computes alone (chosen)": {},
    "workers=2": {},
}
ONE_THREAD = "one thread (OMP_NUM_THREADS=1)"


def recover(way: str, data: Path, questions: int) -> None:
    """Print the seconds that one way takes, without the first batch, and a digest of the chains."""
    import torch

    import rechain.reader.model
    from rechain.datasets import read_entries
    from rechain.recovery import Recoverer

    ways: dict[str, object] = vars(rechain.reader.model)
    if way.startswith("torch's threads"):
        ways["in_threads"] = map
        ways["tokens_a_thread"] = lambda tokens: tokens + 1
    elif "set_num_threads" in way:
        ways["in_threads"] = _on_one_thread
    entries = list(islice(read_entries(data / "hotpotqa" / "open.json.gz"), questions + 32))
    workers = 2 if way.startswith("workers") else 0
    recovered = Recoverer().recover_many(entries, workers=workers)
    digest = hashlib.sha256()
    for each in islice(recovered, 32):
        digest.update(each.to_json().encode())
    start, threads = time.perf_counter(), torch.get_num_threads()
    for each in recovered:
        digest.update(each.to_json().encode())
    assert torch.get_num_threads() == threads
    print(time.perf_counter() - start, digest.hexdigest()[:12])


def _on_one_thread(work, items):  # type: ignore[no-untyped-def]
    """Compute with one thread, and let torch have those that it had."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return list(map(work, items))
    finally:
        torch.set_num_threads(threads)


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep other processes busy."""
    loops = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for loop in loops:
        loop.start()
    yield
    for loop in loops:
        loop.kill()
        loop.join()


def measure(way: str, options: argparse.Namespace) -> tuple[float, str]:
    """Run one way in a process of its own."""
    command = [sys.executable, __file__, str(options.data), "--questions", str(options.questions), "--way", way]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")} | WAYS[way]
    seconds, digest = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    return float(seconds), digest


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=64)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--busy", type=int, default=2, help="busy loops a core")
    options.add_argument("--way", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.way:
        recover(chosen.way, chosen.data, chosen.questions)
        return
    print_heading()
    seconds: dict[tuple[str, int], list[float]] = {}
    digests = set()
    for _ in range(chosen.rounds):
        for loops in (0, chosen.busy * (os.cpu_count() or 1)):
            for way in WAYS:
                with busy_loops(loops):
                    took, digest = measure(way, chosen)
                seconds.setdefault((way, loops), []).append(took)
                digests.add(digest)
    assert len(digests) == 1, digests
    rows = []
    for (way, loops), all_rounds in sorted(seconds.items(), key=lambda item: item[0][1]):
        median, one = statistics.median(all_rounds), statistics.median(seconds[ONE_THREAD, loops])
        spread = f"{median:.1f} ({min(all_rounds):.1f} to {max(all_rounds):.1f})"
        rows.append((way, loops, spread, f"{median / one:.2f}"))
    print_rows(("way", "busy loops", "seconds", "to one thread"), rows)


if __name__ == "__main__":
    main()
