"""What an index of many passages costs: to build, to open, and for each question.

    python benchmarks/collection_size.py ../shared/data
    python benchmarks/collection_size.py ../shared/data --sizes 10000 100000 --questions 100 --rounds 1

A collection contains the distinct passages of HotpotQA open and blind, those of the questions first, and then copies of
all of them with names changed. In copy n every word that begins with a capital letter is replaced, unless it is one of
the 2,000 in most passages, by four syllables made from a hash of (n, word): the same word in all of the
copy, in titles and texts, and another in every other copy. So names are as rare as in real text, titles still occur in
the texts that link to them, and common words grow with the collection. The first copy is the real one, in which the
questions have their passages.

The index is built by `rechain index` and read by new processes. CPU time is that of the process, which other programs
on the machine disturb less than the time on the clock. Before a cold opening the system is asked to forget the files.
Takes about half an hour, and 4 GB of disk for a million passages.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, count, islice
from pathlib import Path
from re import Match, compile
from typing import NamedTuple

import orjson
from common import bridge_pairs, parser, print_heading, print_rows, watched

from rechain.formats.datasets import read_questions
from rechain.index import Index, find_passages
from rechain.schema import Gold, Question

Content = tuple[str, str]
"""title and text"""
COMMON = 2_000
"""words that stay in all copies: among them are "The", "American", "New", "John" and the months"""
SYLLABLES = 4
"""a hundred million words, of which two copies hardly ever share one"""
CHANGED = 1_000
"""passages that an update changes, or adds"""
EVERY = 0.5
"""seconds between two looks at the memory, each of which costs some CPU time"""
_WORD = compile(r"[^\W\d_]+")
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvwxyz", "aeiou"


# ---- the collection


def contents(data: Path, first: Iterable[Question]) -> list[Content]:
    """Return the distinct passages of HotpotQA, those of some questions first."""
    files = (read_questions(data / f"hotpotqa/{name}.json.gz") for name in ("open", "blind"))
    questions = chain(first, *files)
    return list(dict.fromkeys((p.title, p.text) for question in questions for p in question.passages))


class Renaming:
    """Changes the names in texts, each copy in its own way."""

    def __init__(self, originals: Sequence[Content]) -> None:
        holders: Counter[str] = Counter()
        for title, text in originals:
            holders.update({word.casefold() for word in _WORD.findall(f"{title} {text}")})
        self._common = {word for word, _ in holders.most_common(COMMON)}
        self._names: dict[str, str] = {}

    def copy(self, number: int, originals: Iterable[Content]) -> Iterator[Content]:
        """Yield a copy of all passages; the first, number 0, is as it was."""
        self._names.clear()

        def rename(match: Match[str]) -> str:
            word = match[0]
            if not word[0].isupper() or (folded := word.casefold()) in self._common:
                return word
            if folded not in self._names:
                self._names[folded] = invented(f"{number} {folded}")
            name = self._names[folded]
            return name.upper() if len(word) > 1 and word.isupper() else name.capitalize()

        for title, text in originals:
            yield (title, text) if number == 0 else (_WORD.sub(rename, title), _WORD.sub(rename, text))


def invented(key: str) -> str:
    """Return a pronounceable word that depends on a key alone."""
    numbers = blake2b(key.encode(), digest_size=2 * SYLLABLES).digest()
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return "".join(_CONSONANTS[one % len(_CONSONANTS)] + _VOWELS[two % len(_VOWELS)] for one, two in pairs)


def write_collection(path: Path, originals: Sequence[Content], passages: int) -> None:
    """Write passages as JSON lines."""
    renaming = Renaming(originals)
    copies = ((number, renaming.copy(number, originals)) for number in count())
    rows = ((number, place, *content) for number, copy in copies for place, content in enumerate(copy))
    with path.open("wb") as file:
        for number, place, title, text in islice(rows, passages):
            file.write(orjson.dumps({"id": f"{number}-{place}", "title": title, "text": text}) + b"\n")


# ---- building


class Building(NamedTuple):
    """What a run of `rechain index` has cost."""

    seconds: float
    cpu: float
    pss: float
    """MB, the most at any moment, of all its processes; what is mapped from files counts too"""
    rss: float
    bytes: int


def build(folder: Path, *sources: Path) -> Building:
    """Build an index, or bring it up to date, as a user does."""
    command = [sys.executable, "-m", "rechain.cli.main", "index", *map(str, sources), "--out", str(folder)]
    start = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process, watched(process.pid, EVERY, True) as seen:
        code = process.wait()
        seconds = time.perf_counter() - start
    if code:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    pss, rss = (max(getattr(one, kind) for one in seen.memory) for kind in ("pss", "rss"))
    building = Building(seconds, seen.cpu(0, 1, 2), pss, rss, size)
    print(building, file=sys.stderr, flush=True)
    return building


def change_rows(path: Path) -> None:
    """Change the texts of some passages of a collection, all over it."""
    rows = path.read_bytes().splitlines(keepends=True)
    for number in range(0, len(rows), max(1, len(rows) // CHANGED)):
        row = orjson.loads(rows[number])
        rows[number] = orjson.dumps({**row, "text": f"{row['text']} It was changed."}) + b"\n"
    path.write_bytes(b"".join(rows))


# ---- finding


class Asked(NamedTuple):
    """What it costs to find the passages of a question."""

    cpu: list[float]
    seconds: list[float]
    """of each round"""
    is_found: bool
    """whether both passages of its chain are among those found"""


def forget(folder: Path) -> None:
    """Ask the system to drop the files of an index from its memory."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def opened(folder: Path) -> dict[str, float]:
    """Return how many ms a new process takes to open an index, and to find the passages of its first question."""
    program = (
        "import sys, time; from rechain.index import Index, find_passages; from rechain.schema import Question\n"
        "asked = [Question(id='q', question='Who directed the film about Mars?', answer='Ada Lovelace', passages=[])]\n"
        "start = time.perf_counter(); index = Index(sys.argv[1]); middle = time.perf_counter()\n"
        "find_passages(index, asked); print(1000 * (middle - start), 1000 * (time.perf_counter() - middle))"
    )
    printed = subprocess.run([sys.executable, "-c", program, folder], check=True, capture_output=True, text=True)
    opening, first = map(float, printed.stdout.split())
    return {"opening": opening, "first": first}


def ask(folder: Path, pairs: Sequence[tuple[Question, Gold]], rounds: int) -> list[Asked]:
    """Find the passages of questions, one at a time; what is found is the same in every round."""
    index = Index(folder)
    searches = []
    for question, gold in pairs:
        (passages,) = find_passages(index, [question])
        by_id = {passage.id: (passage.title, passage.text) for passage in question.passages}
        right_passages = {by_id[name] for name in gold.chains[0].passages}
        searches.append(Asked([], [], right_passages <= {(passage.title, passage.text) for passage in passages}))
    for _ in range(rounds):
        for (question, _), one in zip(pairs, searches, strict=True):
            start, cpu = time.perf_counter(), time.process_time()
            find_passages(index, [question])
            one.cpu.append(1000 * (time.process_time() - cpu))
            one.seconds.append(1000 * (time.perf_counter() - start))
    return searches


def summary(values: Sequence[float]) -> tuple[float, float, float]:
    """Return median, 95th percentile and mean."""
    return statistics.median(values), statistics.quantiles(values, n=20)[-1], statistics.fmean(values)


# ---- the whole


class Measured(NamedTuple):
    """All about a collection of one size."""

    passages: int
    first: Building
    again: Building
    """nothing has changed"""
    more: Building
    """a file with some passages is new"""
    changed: Building
    """some passages of the collection are changed"""
    cold: dict[str, float]
    warm: dict[str, float]
    questions: list[Asked]


def measured(
    originals: Sequence[Content], pairs: Sequence[tuple[Question, Gold]], passages: int, rounds: int, folder: Path
) -> Measured:
    """Build and read an index of `passages` passages."""
    source, index = folder / "collection.jsonl", folder / "index"
    write_collection(source, originals, passages)
    first = build(index, source)
    forget(index)
    cold, warm = opened(index), opened(index)
    questions = ask(index, pairs, rounds)
    again = build(index, source)
    added = folder / "added.jsonl"
    added.write_bytes(
        b"".join(
            orjson.dumps({"id": f"added-{place}", "title": f"{title} again", "text": text}) + b"\n"
            for place, (title, text) in enumerate(originals[:CHANGED])
        )
    )
    more = build(index, source, added)
    change_rows(source)
    changed = build(index, source, added)
    return Measured(passages, first, again, more, changed, cold, warm, questions)


def print_building(rows: Sequence[Measured]) -> None:
    """Print what building has cost."""
    header = ("passages", "run", "s", "CPU s", "passages/s", "peak Pss, MB", "peak Rss, MB", "index, MB")
    table = []
    for row in rows:
        runs = (
            ("new", row.first),
            ("again, nothing has changed", row.again),
            (f"again, {CHANGED:,} passages in a new file", row.more),
            (f"again, {CHANGED:,} passages changed", row.changed),
        )
        for name, run in runs:
            rate = f"{row.passages / run.seconds:,.0f}" if run is row.first else ""
            sizes = (f"{value:,.0f}" for value in (run.pss, run.rss, run.bytes / 1e6))
            table.append((f"{row.passages:,}", name, f"{run.seconds:.1f}", f"{run.cpu:.1f}", rate, *sizes))
    print_rows(header, table)


def print_finding(rows: Sequence[Measured]) -> None:
    """Print what opening and finding cost."""
    times = [f"{what}, {value}" for what in ("CPU ms", "clock ms") for value in ("median", "95 %", "mean")]
    header = ("passages", "opened cold, ms", "warm, ms", "first question cold, ms", *times, "both found, %")
    table: list[Sequence[object]] = []
    figures_by_size = []
    for row in rows:
        rounds = ([statistics.median(getattr(one, kind)) for one in row.questions] for kind in ("cpu", "seconds"))
        figures = [figure for values in rounds for figure in summary(values)]
        figures_by_size.append(figures)
        share = 100 * statistics.fmean(one.is_found for one in row.questions)
        opening = (row.cold["opening"], row.warm["opening"], row.cold["first"])
        table.append((f"{row.passages:,}", *(f"{value:.1f}" for value in (*opening, *figures, share))))
    growth = [f"{last / first:.2f}" for first, last in zip(figures_by_size[0], figures_by_size[-1], strict=True)]
    table.append((f"{rows[-1].passages:,} against {rows[0].passages:,}, times", "", "", "", *growth, ""))
    print_rows(header, table)


def main() -> None:
    """Print the tables."""
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], metavar="PASSAGES")
    options.add_argument("--questions", type=int, default=500)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--folder", type=Path, help="where collections and indexes are kept; else they are removed")
    chosen = options.parse_args()
    print_heading()
    pairs = bridge_pairs(chosen.data)[: chosen.questions]
    originals = contents(chosen.data, (question for question, _ in pairs))
    print(
        f"{len(originals):,} distinct passages; {len(pairs)} questions, {chosen.rounds} rounds, median of a question.\n"
    )
    rows = []
    for passages in chosen.sizes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = chosen.folder / str(passages) if chosen.folder else Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            rows.append(measured(originals, pairs, passages, chosen.rounds, folder))
        print(f"{passages:,} passages are done.", file=sys.stderr, flush=True)
    print_building(rows)
    print_finding(rows)


if __name__ == "__main__":
    main()
