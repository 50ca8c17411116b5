"""Whether vectors find more: right passages and chains from an index without and with them, and what they cost.

    python research/vectors.py ../shared/data LOGS [--others 10000] [--parts hotpotqa musique documents]

HotpotQA: the bridge questions of train_300, which is no part of the published figures, in a collection of their own
passages and of `--others` more of open. MuSiQue: its own passages. Documents: LOGS is what benchmarks/logs/build.py
filled; the passages of all sets are one collection, and questions are those of the halves fit and dev that have right
passages. Questions are stripped of their passages; an index is asked without and with its vectors.
"""

import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import orjson
from common import MUSIQUE_HOPS, Pair, bridge_pairs, musique_pairs, parser, percent, print_heading, print_rows
from retrieval import bare, holds_all, passages_in, renamed

from rechain.evaluation.judging import judge
from rechain.evaluation.statistics import mean_with_interval
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_by_id
from rechain.index import BuildSettings, FindSettings, Index, build_index, find_passages
from rechain.index.vectors import NAMES, VECTORS
from rechain.models import BundledEncoder
from rechain.recoverer import Recoverer
from rechain.schema import Gold, Passage
from rechain.system.tensors import Array

DEPTHS = (12, 30)
PARTS = ("hotpotqa", "musique", "documents")


class Timed:
    """An encoder that counts its texts and its processor time."""

    def __init__(self) -> None:
        self._encoder = BundledEncoder(device="cpu")
        self.texts, self.seconds = 0, 0.0

    @property
    def name(self) -> str:
        """That of the encoder."""
        return self._encoder.name

    def __call__(self, texts: Sequence[str]) -> Array:
        """Return vectors."""
        start = time.process_time()
        vectors = self._encoder(texts)
        self.seconds += time.process_time() - start
        self.texts += len(texts)
        return vectors


class Outcome(NamedTuple):
    """What came of some questions, one number a question."""

    held: dict[int, list[float]]
    """whether all right passages are among so many"""
    exact: list[float]
    """whether the best chain is right"""
    milliseconds: float
    """of processor time that finding took, a question"""


def main() -> None:
    """Print the tables that were asked for."""
    options = parser(__doc__)
    options.add_argument("logs", type=Path)
    options.add_argument("--others", type=int, default=10_000)
    options.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    chosen = options.parse_args()
    print_heading()
    embed = Timed()
    embed(["warm"])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if "documents" in chosen.parts:
            compare("Documents, fit and dev", *documents(chosen.logs, place, embed), embed)
        if "musique" in chosen.parts:
            compare("MuSiQue train_100, linear", *musique(chosen.data, place, embed), embed)
        if "hotpotqa" in chosen.parts:
            compare("HotpotQA train_300, bridge", *hotpotqa(chosen.data, chosen.others, place, embed), embed)


def index_of(place: Path, passages: Iterable[Passage], embed: Timed) -> Index:
    """Build an index with vectors, and print what they cost."""
    file = place.with_suffix(".jsonl")
    with file.open("wb") as out:
        for passage in passages:
            out.write(
                orjson.dumps({"id": passage.title or "untitled", "title": passage.title, "text": passage.text}) + b"\n"
            )
    embed.texts, embed.seconds = 0, 0.0
    start = time.process_time()
    info = build_index([file], place, BuildSettings(vectors=True), embed=embed).info
    whole = time.process_time() - start
    size = sum(size for name, size in info.files.items() if name.endswith((VECTORS, NAMES)))
    start = time.perf_counter()
    index = Index(place)
    index.nearest(embed(["warm"]), 1)
    opened = time.perf_counter() - start
    print(
        f"{place.name}: {info.passages} passages, {embed.texts / embed.seconds:.0f} embedded a second of one core, "
        f"{(whole - embed.seconds) / info.passages * 1e6:.0f} µs a passage for all else, {size / info.passages:.0f} "
        f"bytes a passage, open in {opened * 1e3:.0f} ms\n",
        flush=True,
    )
    return index


def hotpotqa(data: Path, others: int, place: Path, embed: Timed) -> tuple[Index, list[Pair]]:
    """Return the bridge questions of train_300, and their passages with others of open in one index."""
    own = {(p.title, p.text): p for p in passages_in(data, "hotpotqa/train_300.json.gz")}
    more = (p for p in passages_in(data, "hotpotqa/open.json.gz") if (p.title, p.text) not in own)
    index = index_of(place / "hotpotqa", [*own.values(), *islice(more, others)], embed)
    return index, renamed(bridge_pairs(data, "train_300"), index)


def musique(data: Path, place: Path, embed: Timed) -> tuple[Index, list[Pair]]:
    """Return the linear questions of MuSiQue, and all its passages in one index."""
    index = index_of(place / "musique", passages_in(data, "musique/train_100.json.gz"), embed)
    return index, renamed([pair for kind in MUSIQUE_HOPS for pair in musique_pairs(data, kind)], index)


def documents(logs: Path, place: Path, embed: Timed) -> tuple[Index, list[Pair]]:
    """Return the questions about documents that have right passages, and all sets of documents in one index."""
    pairs: list[Pair] = []
    distinct: dict[tuple[str, str], Passage] = {}
    for half in ("fit", "dev"):
        gold = read_by_id(logs / f"gold.{half}.jsonl", Gold)
        for question in read_questions(logs / f"questions.{half}.jsonl"):
            distinct.update({(passage.title, passage.text): passage for passage in question.passages})
            if gold[question.id].chains:
                pairs.append((question, gold[question.id]))
    index = index_of(place / "documents", distinct.values(), embed)
    return index, renamed(pairs, index)


def ask(index: Index, pairs: Sequence[Pair], embed: Timed | None) -> Outcome:
    """Return what is found without vectors, or with them."""
    index = Index(index.folder)
    if embed is None:
        index.info = index.info._replace(vectors=None)
    questions, golds = [bare(question) for question, _ in pairs], [gold for _, gold in pairs]
    start = time.process_time()
    found = find_passages(index, questions, FindSettings(max(DEPTHS)), embed)
    spent = time.process_time() - start
    held = {
        depth: [holds_all([p.id for p in of[:depth]], gold) for of, gold in zip(found, golds, strict=True)]
        for depth in DEPTHS
    }
    recovered = Recoverer(corpus=index).recover_many(questions)
    judged = [judge(one[0] if one else None, gold) for one, gold in zip(recovered, golds, strict=True)]
    exact = [float(one.correct and one.ordered is not False) for one in judged]
    return Outcome(held, exact, spent / len(pairs) * 1e3)


def compare(name: str, index: Index, pairs: Sequence[Pair], embed: Timed) -> None:
    """Print what is found without vectors and with them, and for how many questions that differs."""
    before, after = ask(index, pairs, None), ask(index, pairs, embed)
    print(f"{name}: {len(pairs)} questions, {len(index)} passages\n")
    rows = []
    for way, one in (("without", before), ("with", after)):
        shares = [percent(mean_with_interval(values)) for values in (*one.held.values(), one.exact)]
        rows.append((way, *shares, f"{one.milliseconds:.1f}"))
    rows.append(
        ("won, lost", *map(changes, before.held.values(), after.held.values()), changes(before.exact, after.exact), "")
    )
    print_rows(("vectors", *(f"right passages among {depth}, %" for depth in DEPTHS), "chains, %", "ms"), rows)


def changes(before: Sequence[float], after: Sequence[float]) -> str:
    """Return how many questions are better and worse."""
    pairs = list(zip(before, after, strict=True))
    return f"+{sum(b > a for a, b in pairs)}, -{sum(b < a for a, b in pairs)}"


if __name__ == "__main__":
    main()
