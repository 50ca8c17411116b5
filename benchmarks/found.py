"""How much of the right evidence is among the passages that an index finds, and how long that takes.

    python benchmarks/found.py ../shared/data --debian OUT_FOLDER [--before /path/to/another/checkout/src]

HotpotQA: bridge and comparison questions of open without their passages, from one collection of open and blind. Debian:
the questions of benchmarks/debian and the folder that its get.py filled; a piece of evidence is found if a passage
contains the letters and digits of its quote. Articles: the passages of training sets (2Wiki, MuSiQue, HotpotQA), each
an article of a newspaper and a day, which depend on a hash, and questions about two to four of them that are made of
every third word of one sentence of each, "Who or what is described by The Harbour Courier as …, and by … as …?". The
sentences share a name, the answer, or the answer is "yes". BM25 is that of the same engine over the words of question
and answer.

With --before another version of the package is measured in the same run; it builds its own indexes.
"""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from hashlib import blake2b
from importlib import import_module
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import orjson

with suppress(ImportError):  # of versions before 2026-11-20
    sys.modules["rechain.index.engine"] = import_module("rechain.index.shard")

from retrieval import by_words, index_of, passages_in

from rechain.evaluation.gold import read_gold
from rechain.evaluation.judging import is_unambiguous
from rechain.formats.datasets import read_questions
from rechain.index import FindSettings, Index, build_index, find_passages
from rechain.schema import Passage, Question

HOTPOTQA = ("hotpotqa/train_914.jsonl.gz", "hotpotqa/train_300.json.gz")
MOST = 12
"""passages that are looked at: those that the models are given"""
PAPERS = [
    f"The {place} {kind}"
    for place in ("Harbour", "Northern", "Capital", "Prairie", "Island")
    for kind in ("Courier", "Ledger", "Observer", "Wire")
]
MONTHS = [date(2023, month, 1).strftime("%B") for month in range(1, 13)]


class Sought(NamedTuple):
    """A question, and its evidence: of each piece the passages that are right, or the letters of a quote."""

    kind: str
    question: Question
    evidence: Sequence[frozenset[str] | str]


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text.casefold()))


def hotpotqa(data: Path, place: Path, most: int) -> tuple[Path, list[Sought]]:
    """Return an index of HotpotQA, and its questions."""
    index_of(place, passages_in(data, "hotpotqa/open.json.gz", "hotpotqa/blind.json.gz"))
    file, questions = data / "hotpotqa/open.json.gz", []
    for kind in ("bridge", "comparison"):
        of_kind = list(read_questions(file, only=[kind]))
        golds = read_gold(file, of_kind)
        pairs = [(one, golds[one.id]) for one in of_kind if kind != "bridge" or is_unambiguous(one, golds[one.id])]
        for question, gold in pairs[:most]:
            evidence = [frozenset([name]) for name in gold.chains[0].passages]
            questions.append(Sought(f"HotpotQA, {kind}", question.model_copy(update={"passages": []}), evidence))
    return place, questions


def debian(folder: Path, place: Path) -> tuple[Path, list[Sought]]:
    """Return an index of documents of Debian, and the questions about them."""
    start = time.perf_counter()
    build = build_index([folder], place)
    rate = build.info.passages / (time.perf_counter() - start)
    print(f"Debian: {build.info.passages} passages, {rate:.0f} indexed a second in one process\n")
    rows = map(orjson.loads, (Path(__file__).parent / "debian/questions.jsonl").read_bytes().splitlines())
    return place, [
        Sought(
            f"Debian, {row['kind'] if row['kind'] in ('two', 'paraphrase') else 'others'}",
            Question(id=row["id"], question=row["question"], answer=row["answer"], passages=[]),
            [letters(piece["quote"]) for piece in row["evidence"]],
        )
        for row in rows
    ]


def articles(data: Path, place: Path, most: int) -> tuple[Path, list[Sought]]:
    """Return an index of articles of newspapers, and questions about several of them."""
    passages = passages_in(data, "2wiki/train_500.json.gz", "musique/train_100.json.gz", *HOTPOTQA)
    rows = [{**row_of(passage), "id": f"a{number}"} for number, passage in enumerate(passages)]
    file = place.with_suffix(".jsonl")
    file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    build_index([file], place)
    return place, list(islice(questions_about(rows), most))


def row_of(passage: Passage) -> dict[str, str]:
    """Return a passage as the article of a newspaper."""
    number = int.from_bytes(blake2b(f"{passage.title}\n{passage.text}".encode(), digest_size=8).digest())
    month, day = 1 + number % 12, 1 + number // 12 % 28
    paper = PAPERS[number // 336 % len(PAPERS)]
    return {
        "title": passage.title,
        "text": passage.text,
        "source": paper,
        "published_at": f"2023-{month:02}-{day:02}T08:00:00+00:00",
    }


def questions_about(rows: Sequence[dict[str, str]]) -> Iterator[Sought]:
    """Yield questions whose evidence is sentences of two to four articles that contain one name."""
    holders: dict[str, list[tuple[dict[str, str], str]]] = {}
    names = {row["title"] for row in rows if len(row["title"].split()) > 1}
    for row in rows:
        for sentence in row["text"].split(". ")[1:]:
            words = sentence.split()
            spans = {" ".join(words[i : i + n]).strip(",.;") for i in range(len(words)) for n in (2, 3)}
            for name in (spans & names) - {row["title"]}:
                if len(words) > 14 and (not holders.get(name) or holders[name][-1][0] is not row):
                    holders.setdefault(name, []).append((row, sentence))
    random = Random(0)
    several = sorted(name for name, of_name in holders.items() if len(of_name) > 1)
    random.shuffle(several)
    for number, name in enumerate(several):
        chosen = random.sample(holders[name], min(2 + number % 3, len(holders[name])))
        claims = []
        for row, sentence in chosen:
            words = sentence.replace(name, "").split()
            kept = sorted(random.sample(range(len(words)), len(words) // 3))
            year, month, day = row["published_at"][:10].split("-")
            when = f" on {MONTHS[int(month) - 1]} {int(day)}, {year}" if number % 2 else ""
            claims.append((f"{row['source']}{when}", " ".join(words[n] for n in kept).strip(",.;")))
        if number % 3 == 2:
            kind, answer = "Articles, yes or no", "Yes"
            parts = [f"{'did' if n else 'Did'} {who} report that {what}" for n, (who, what) in enumerate(claims)]
            text = ", and ".join(parts) + "?"
        else:
            kind, answer = "Articles, a name", name
            text = f"Who or what is described {', and '.join(f'by {who} as {what}' for who, what in claims)}?"
        question = Question(id=f"articles-{number}", question=text, answer=answer, passages=[])
        yield Sought(kind, question, [frozenset([row["id"]]) for row, _ in chosen])


def is_found(piece: frozenset[str] | str, passages: Iterable[Passage]) -> bool:
    """Return whether a piece of evidence is among passages."""
    if isinstance(piece, str):
        return any(piece in letters(f"{passage.title} {passage.text}") for passage in passages)
    return any(passage.id in piece for passage in passages)


def measure(place: Path, questions: Sequence[Sought]) -> None:
    """Print the figures of one index."""
    index, settings = Index(place), FindSettings(MOST)
    kinds: dict[str, list[tuple[float, ...]]] = {}
    for sought in questions:
        start = time.process_time()
        (passages,) = find_passages(index, [sought.question], settings)
        seconds = time.process_time() - start
        plain = by_words(index, sought.question)[:MOST]
        found = [is_found(piece, passages) for piece in sought.evidence]
        words = [is_found(piece, plain) for piece in sought.evidence]
        row = (sum(found), sum(words), len(found), all(found), all(words), 1000 * seconds)
        kinds.setdefault(sought.kind, []).append(row)
    for kind, rows in kinds.items():
        one, other, whole, every, other_every, time_ = map(sum, zip(*rows, strict=True))
        shares = [100 * one / whole, 100 * every / len(rows), 100 * other / whole, 100 * other_every / len(rows)]
        print(f"| {kind} | {len(rows)} | {' | '.join(f'{share:.1f}' for share in shares)} | {time_ / len(rows):.1f} |")
    sys.stdout.flush()


def main(options: Namespace) -> None:
    """Print a table of each version."""
    if options.before and not options.is_inner:
        environment = {**os.environ, "PYTHONPATH": options.before}
        subprocess.run([sys.executable, *sys.argv, "--inner"], env=environment, check=True)
    print(f"\n{'before' if options.is_inner else 'now'}\n")
    print("| questions | number | evidence, % | all of it, % | BM25: evidence | all of it | CPU ms |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.indexes or Path(temporary)
        if "articles" in options.parts:
            measure(*articles(options.data, folder / "articles", options.questions))
        if "debian" in options.parts:
            measure(*debian(options.debian, folder / "debian"))
        if "hotpotqa" in options.parts:
            measure(*hotpotqa(options.data, folder / "hotpotqa", options.questions))


def arguments() -> Any:
    """Return the options of the command line."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--debian", type=Path, help="the folder that benchmarks/debian/get.py filled")
    parser.add_argument("--questions", type=int, default=1_000, help="of each kind of HotpotQA's, and of the articles'")
    parser.add_argument("--parts", nargs="+", default=["articles", "debian", "hotpotqa"])
    parser.add_argument("--indexes", type=Path, help="where indexes are kept; else they are removed")
    parser.add_argument("--before", help="the folder src of another version, which is measured as well")
    parser.add_argument("--inner", dest="is_inner", action="store_true", help="measure one version")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
