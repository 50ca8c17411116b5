"""How fast reading and candidates are on one core, against spaCy's PhraseMatcher, and how cost grows.

    python benchmarks/speed.py ../shared/data

Needs spaCy (pip install 'rechain[spacy]'), but no model of it. Every figure is repeated; ratios are of one run.
"""

import gc
import json
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import (
    alternated,
    bridge_pairs,
    candidates_of,
    data_folder,
    print_heading,
    print_rows,
    ratios,
    seconds,
    spread,
)

from rechain.formats.datasets import read_questions
from rechain.schema import Passage, Question
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import find_candidates
from rechain.text.linking import DEFAULT_LINKERS, DEFAULT_MIN_WEIGHT, LINKERS, LinkGraph
from rechain.text.linking.linkers import Context
from rechain.text.passage_views import PassageView

REPEATS = 7
LINKED = 400
LARGE_FILE_BYTES = 600_000_000


def tails_of(question: Question, views: Sequence[PassageView]) -> list[int]:
    """Return the numbers of the passages with the answer."""
    answer = AnswerMatcher(question)
    return [number for number, view in enumerate(views) if answer.is_held_by(view)]


def link(questions: Sequence[Question]) -> None:
    """Find the links to the passages with the answer, as for chains of two."""
    for question in questions:
        views = [PassageView(passage) for passage in question.passages]
        LinkGraph(views, DEFAULT_MIN_WEIGHT, DEFAULT_LINKERS - {"identifiers"}, ends=tails_of(question, views))


def phrases_of(question: Question) -> list[str]:
    """Return the phrases that `link` searches: titles, pairs of capitalised words, rare words and words of titles."""
    views = [PassageView(passage) for passage in question.passages]
    context = Context(views, tails_of(question, views), DEFAULT_MIN_WEIGHT)
    return sorted({phrase.strip() for name in ("titles", "names") for phrase in LINKERS[name].phrases(context)})


def link_with_spacy(questions: Sequence[Question], phrases: Sequence[Sequence[str]]) -> None:
    """Search the same phrases, which are given, with spaCy's tokeniser and PhraseMatcher."""
    import spacy
    from spacy.matcher import PhraseMatcher

    pipeline = spacy.blank("en")
    for question, of_question in zip(questions, phrases, strict=True):
        matcher = PhraseMatcher(pipeline.vocab, attr="LOWER")
        matcher.add("names", [pipeline.make_doc(phrase) for phrase in of_question])
        for passage in question.passages:
            matcher(pipeline.make_doc(f"{passage.title}\n{passage.text}"))


def crowded(passages: int, hops: int) -> Question:
    """Return a question of many passages that all share one rare name; every tenth contains the answer."""
    texts = (
        f"The Quellmarine {n % 7} sailed past Zandvoortje {n} and Borkumsiel {n % 50} before it met the Kraantje. "
        f"{'It was Amaranthe.' if n % 10 == 0 else ''} " + "Plain words fill the rest of this passage. " * 8
        for n in range(passages)
    )
    return Question(
        id="crowded",
        question="What did the Quellmarine meet?",
        answer="Amaranthe",
        hops=hops,
        passages=[Passage(id=str(n), title=f"Zandvoortje {n}", text=text) for n, text in enumerate(texts)],
    )


def growth() -> Iterator[tuple[object, ...]]:
    """Yield time and memory of C for growing numbers of passages."""
    for hops in (2, 3, 4):
        base: tuple[float, float] | None = None
        for passages in (10, 100, 1000):
            question = crowded(passages, hops)
            took = min(seconds(lambda q=question: find_candidates(q)) for _ in range(5))  # type: ignore[misc]
            tracemalloc.start()
            find_candidates(question)
            peak = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
            base = (took, peak) if passages == 100 else base
            ratio = f"{took / base[0]:.1f}, {peak / base[1]:.1f}" if base else ""
            yield hops, passages, f"{1000 * took:.1f}", f"{peak:.1f}", ratio


def read_large_file(questions: Path) -> tuple[float, float, float]:
    """Write a HotpotQA-style array of 600 MB; return its size in MB, seconds to read it, and peak memory in MB."""
    read = (
        "import resource, sys, time; from rechain.formats.datasets import read_questions; start = time.perf_counter();"
        "n = sum(1 for _ in read_questions(sys.argv[1])); print(time.perf_counter() - start,"
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    records = [_hotpotqa(question) for question in read_questions(questions)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.json"
        with path.open("w") as file:
            file.write("[")
            while file.tell() < LARGE_FILE_BYTES:
                file.write(",\n".join(records) + ",")
            file.write(records[0] + "]")
        size = path.stat().st_size / 1e6
        output = subprocess.run([sys.executable, "-c", read, str(path)], capture_output=True, text=True, check=True)
    took, memory = map(float, output.stdout.split())
    return size, took, memory


def _hotpotqa(question: Question) -> str:
    context = [[passage.title, [passage.text]] for passage in question.passages]
    return json.dumps(
        {"_id": question.id, "question": question.question, "answer": question.answer, "context": context}
    )


def main() -> None:
    """Print the tables."""
    data = data_folder()
    print_heading()
    questions = [question for question, _ in bridge_pairs(data)]
    gc.collect()
    gc.freeze()
    rates = [len(questions) / seconds(lambda: list(candidates_of(questions))) for _ in range(REPEATS)]
    some = questions[:LINKED]
    phrases = [phrases_of(question) for question in some]
    ours, theirs = alternated([lambda: link(some), lambda: link_with_spacy(some, phrases)], REPEATS)
    rows = [
        (f"candidates, {len(questions)} unambiguous bridge questions of open, questions/s", spread(rates)),
        (f"linking alone, {LINKED} of them, questions/s", spread([LINKED / t for t in ours])),
        ("the same with spaCy's PhraseMatcher, questions/s", spread([LINKED / t for t in theirs])),
        ("ratio of the two, run by run", spread(ratios(theirs, ours), "{:.1f}")),
    ]
    size, took, memory = read_large_file(data / "hotpotqa/train_300.json.gz")
    rows.append((f"reading a HotpotQA-style array of {size:.0f} MB, MB/s", f"{size / took:.0f}"))
    rows.append(("peak memory of that, MB", f"{memory:.0f}"))
    imports = [seconds(lambda: _python("import rechain")) - seconds(lambda: _python("")) for _ in range(REPEATS)]
    helps = [seconds(lambda: _python("-m", "rechain.cli.main", "--help")) for _ in range(REPEATS)]
    rows.append(("import rechain, ms", spread([1000 * t for t in imports])))
    rows.append(("rechain --help, ms", spread([1000 * t for t in helps])))
    print_rows(("what, one core", f"median (range) of {REPEATS}"), rows)
    print("How the cost of C grows (a question whose passages all share one rare name; limit of 1,000 chains):\n")
    header = ("hops", "passages", "ms, best of 5", "peak memory, MB", "time and memory, in those of 100 passages")
    print_rows(header, growth())


def _python(*arguments: str) -> None:
    flag = () if arguments[0] == "-m" else ("-c",)
    subprocess.run([sys.executable, *flag, *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main()
