"""Build the table of document frequencies that ships with the package.

    python research/build_idf.py ../shared/data

Counted once a passage: HotpotQA open and train_300, and DrugHop's passages. Nothing of the blind sets, MuSiQue or
2Wiki. Words in fewer than MIN_COUNT passages are left out, so that the table says the same of a rare name whether or
not its passages were counted.
"""

import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson

from rechain.formats.datasets import read_questions
from rechain.formats.datasets.records import read_by_id
from rechain.schema import Passage, Question
from rechain.text.passage_views import PassageView

MIN_COUNT = 5
TABLE = Path(__file__).parent.parent / "src/rechain/data/idf.json.gz"


def passages(data: Path) -> Iterator[Passage]:
    """Yield every distinct passage that is counted."""
    seen: set[tuple[str, str]] = set()
    for name in ("open", "train_300"):
        for question in read_questions(data / f"hotpotqa/{name}.json.gz"):
            assert isinstance(question, Question)
            for passage in question.passages:
                if (passage.title, passage.text) not in seen:
                    seen.add((passage.title, passage.text))
                    yield passage
    yield from read_by_id(data / "drughop/passages.jsonl.gz", Passage).values()


def main(data: Path) -> None:
    """Count, and write the table."""
    counts: Counter[str] = Counter()
    total = 0
    for passage in passages(data):
        counts.update(PassageView(passage).vocabulary)
        total += 1
    kept = {word: n for word, n in sorted(counts.items()) if n >= MIN_COUNT}
    table = {"passages": total, "min_count": MIN_COUNT, "counts": kept}
    TABLE.write_bytes(gzip.compress(orjson.dumps(table), mtime=0))
    print(f"{total} passages, {len(kept)} words, {TABLE.stat().st_size >> 10} KB: {TABLE}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
