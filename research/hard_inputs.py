"""How long the inputs take that once were slow: long passages, odd texts, many plain texts, long queues of labels.

    python research/hard_inputs.py

No test asserts these seconds, since a busy machine would fail it: a figure that has grown much is looked for here.
Start-up times are in speed.py, candidates of growing questions in speed.py and growth.py. Needs no data.
"""

import json
import tempfile
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

from common import print_heading, print_rows, seconds, spread

from rechain.evaluation.statistics import kappa_with_interval
from rechain.formats.datasets import read_questions
from rechain.labels.queue import Queue
from rechain.labels.store import Label, LabelStore
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question
from rechain.text.evidence.search import find_evidence
from rechain.text.label_units import Unit
from rechain.text.words import Text, strip_suffix
from rechain.web.forms import MOST_CHARACTERS

REPEATS = 3
QUESTIONS = 6000
PLAIN_TEXTS = 10_000
ODD_TEXTS = {
    "200,000 blanks": "a" + " " * 200_000 + "b)",
    "200,000 accents": "a" + "\u0301\u0316" * 100_000,
    "215,040 symbols": "".join(map(chr, range(0x2000, 0x2E00))) * 60,
}
Cases = dict[str, Callable[[], object]]


def unit(question: str, passage: int) -> Unit:
    """Return a pair to label."""
    return Unit(question=question, passages=(str(passage),), entities=("a", "b"))


def label_cases(folder: Path) -> Cases:
    """Return the queue of an annotator who has done half of the questions, and how far two annotators agree."""
    ids = [f"q{number}" for number in range(QUESTIONS)]
    store = LabelStore(folder / "labels.sqlite")
    done = [unit(name, passage) for name in ids[: QUESTIONS // 2] for passage in (1, 2)]
    store.add([Label(annotator="anna", unit=one, value="yes") for one in done])
    one, two = ["yes", "no", "unsure"] * QUESTIONS, ["yes", "no", "no"] * QUESTIONS
    items = [str(number // 3) for number in range(3 * QUESTIONS)]
    queue = Queue(store, overlap=0.2)

    def following(queue: Queue) -> str | None:
        return queue.next_question(
            "anna", "pairs", ids, lambda name, labels: [u for p in (1, 2) if (u := unit(name, p)) not in labels]
        )

    following(queue)
    return {
        f"label queue: first question of {QUESTIONS}, half of them done": lambda: following(Queue(store, overlap=0.2)),
        "label queue: the next": lambda: following(queue),
        f"agreement: kappa with its interval, {QUESTIONS} questions": lambda: kappa_with_interval(one, two, items),
    }


def evidence_cases() -> Cases:
    """Return questions of very many passages: with one title, in one long ring of links, and each very long."""

    def asked(passages: Iterable[tuple[str, str]], hops: int | None = None) -> Question:
        rows = [Passage(id=str(number), title=title, text=text) for number, (title, text) in enumerate(passages)]
        text = "Is Zimbelot as old as the composer of Quorvath?"
        return Question(id="q", question=text, answer="Ostrela", passages=rows, hops=hops)

    alike = asked(("Zimbelot", f"Zimbelot was seen in Ostrela in {n}.") for n in range(5000))
    names = [f"Name{n} Maker{n}" for n in range(500)]
    texts = [f"{one} knew {two}. {'Ostrela is near.' * (n % 50 == 0)}" for n, (one, two) in enumerate(pairwise(names))]
    ring = list(zip(names, texts, strict=False))
    long = asked((f"T{n}", "Zimbelot was born in Ostrela, where Corvin Maltese lived. " * 3500) for n in range(20))
    return {
        "evidence: 5,000 passages of one title": lambda: find_evidence(alike),
        "evidence: 3 of 500 passages": lambda: find_evidence(asked(ring, hops=3)),
        "evidence: 4 of 500 passages": lambda: find_evidence(asked(ring, hops=4)),
        "evidence: 20 passages of 200,000 characters": lambda: find_evidence(long),
    }


def request_cases() -> Cases:
    """Return the questions of a request, of the most characters that one may have, that take longest."""
    recoverer = Recoverer()
    rows = "".join(f"| Town {n} | {n} | {7 * n % 1000} euros | {1900 + n % 120} |\n" for n in range(9000))
    numbers = " ".join(map(str, range(50_000)))
    prose = "".join(f"Name{n % 700} saw Name{n % 900} at place {n % 50} near lake{n % 1100}. " for n in range(6000))
    said = " ".join(f"Name{n} Maker{n} never met king{n} of lake{n}." for n in range(500))

    def recovering(text: str, answer: str, passages: int) -> Callable[[], object]:
        size = (MOST_CHARACTERS - len(answer) - 1000) // passages
        texts = [part for n in range(passages) if (part := text[n * size : (n + 1) * size].strip())]
        return lambda: recoverer.recover("How many euros did Name3 pay?", answer, texts)

    return {
        "request: 20 tables": recovering(rows, "It cost 77 euros in 1950.", 20),
        "request: 20 passages of numbers": recovering(numbers, f"It was {', '.join(map(str, range(0, 999, 9)))}.", 20),
        "request: a long answer, one passage": recovering(prose, said, 1),
        "request: a long answer, 2,000 passages": recovering(prose, said, 2000),
        "request: 2,000 passages": recovering(prose, "lake7", 2000),
    }


def reading_cases(folder: Path) -> Cases:
    """Return a passage of 5 MB, full of what JSON escapes, as a line and in an array, read and recovered."""
    short = {"id": "p", "title": "", "text": "Short."}
    record = {"id": "q", "question": "Who?", "answer": "Anton", "passages": [short]}
    long = record | {
        "id": "long",
        "passages": [short | {"text": 'Anton "said" \\ {so}. ' * 250_000}, short | {"id": "s"}],
    }
    line, array = folder / "line.jsonl", folder / "array.json"
    line.write_text(json.dumps(long) + "\n")
    array.write_text(json.dumps([record, long]))
    recoverer = Recoverer()
    (question,) = read_questions(line)
    recoverer.recover(record)  # loads the model
    return {
        "read: a passage of 5 MB as a JSON line": lambda: list(read_questions(line)),
        "read: a passage of 5 MB in a JSON array": lambda: list(read_questions(array)),
        "recover: a passage of 5 MB": lambda: recoverer.recover(question),
        f"recover: {PLAIN_TEXTS} plain texts, none with the answer": lambda: recoverer.recover(
            "Who?", "Nobody", ["Some text."] * PLAIN_TEXTS
        ),
    }


def main() -> None:
    """Print the table."""
    print_heading()
    cases: Cases = {f"words: {name}": lambda text=text: Text(strip_suffix(text)) for name, text in ODD_TEXTS.items()}  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        cases |= evidence_cases() | request_cases() | reading_cases(Path(folder)) | label_cases(Path(folder))
        rows = [(name, spread([seconds(work) for _ in range(REPEATS)], "{:.3f}")) for name, work in cases.items()]
    print_rows(("what", f"seconds, median (range) of {REPEATS}"), rows)


if __name__ == "__main__":
    main()
