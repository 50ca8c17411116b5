"""The full-text search of LanceDB next to that of our index (tantivy): speed, and what is found, over the same words.

    pip install lancedb
    python benchmarks/lance.py ../shared/data --debian OUT_FOLDER

HotpotQA's collection and its bridge questions, and the documents and questions of benchmarks/debian, as in found.py.
Both engines get the same folded words, with positions, and the same queries: the words of question and answer, and the
searches by which rechain finds. Counting is what links are weighed by: how many passages contain a name. LanceDB
reads a dataset in a local folder, which is the best case; on object storage every cold read is a request.
"""

import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lancedb
import orjson
import pyarrow
from found import Sought, debian, hotpotqa, is_found
from lancedb.index import FTS
from lancedb.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

from rechain.index import Index, find_passages
from rechain.index.engine import Ask, Condition, Hit, read_passage
from rechain.schema import Passage
from rechain.system.files import short_hash
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

MOST = 12
BATCH = 2_000


def rows(index: Index) -> Iterator[pyarrow.RecordBatch]:
    """Yield the passages of an index with their folded words."""
    names = list(index)
    for first in range(0, len(names), BATCH):
        passages = index.named(names[first : first + BATCH])
        views = [PassageView(passage) for passage in passages]
        yield pyarrow.RecordBatch.from_pydict(
            {
                "id": [one.id for one in passages],
                "words": [f"{view.title.joined}|{view.text.joined}" for view in views],
                "names": [" ".join("_".join(name.split()) for name in view.names) for view in views],
                "record": [orjson.dumps(one.model_dump(exclude_defaults=True)) for one in passages],
            }
        )


class LanceShard:
    """Answers the searches of an index from a table of LanceDB."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def search(self, asks: Sequence[Ask]) -> list[list[Hit]]:
        """Return the best passages for each query; those that should come first are searched apart."""
        return [self._search(ask) for ask in asks]

    def _search(self, ask: Ask) -> list[Hit]:
        if any(not condition.values for condition in ask.must) or not (ask.words or ask.must):
            return []
        if [condition.field for condition in ask.must] == ["id"]:
            ids = ", ".join("'" + value.replace("'", "''") + "'" for value in ask.must[0].values)
            return self._hits(self._table.search().where(f"id IN ({ids})").limit(ask.limit), False)
        hits: dict[bytes, Hit] = {}
        for is_preferred in (True, False) if ask.prefer else (False,):
            conditions = (*ask.must, *([ask.prefer] if is_preferred and ask.prefer else []))
            query: Any = MatchQuery(" ".join(ask.words), "words")
            if conditions:
                required = [(Occur.MUST, required_query(condition)) for condition in conditions]
                query = BooleanQuery([*([(Occur.SHOULD, query)] if ask.words else []), *required])
            for hit in self._hits(self._table.search(query, query_type="fts").limit(ask.limit), is_preferred):
                hits.setdefault(hit.record, hit)
        return list(hits.values())[: ask.limit]

    def _hits(self, search: Any, is_preferred: bool) -> list[Hit]:
        found = search.select(["id", "record"]).to_list()
        return [Hit(row.get("_score", 0.0), short_hash(row["id"]), is_preferred, row["record"]) for row in found]


def required_query(condition: Condition) -> Any:
    """Return what a passage must contain."""
    if condition.field == "name":
        return MatchQuery(" ".join(value.replace(" ", "_") for value in condition.values), "names", boost=0.0)
    phrases = [PhraseQuery(value, "words") for value in condition.values]
    return phrases[0] if len(phrases) == 1 else BooleanQuery([(Occur.SHOULD, one) for one in phrases])


def load(folder: Path, index: Index) -> Any:
    """Return a table of LanceDB with the passages of an index and a full-text index of their words."""
    table = lancedb.connect(folder).create_table("passages", pyarrow.Table.from_batches(rows(index)))
    start = time.perf_counter()
    config = FTS(
        with_position=True,
        base_tokenizer="whitespace",
        stem=False,
        remove_stop_words=False,
        lower_case=False,
        ascii_folding=False,
    )
    for column in ("words", "names"):
        table.create_index(column, config=config)
    seconds = time.perf_counter() - start
    print(f"LanceDB {lancedb.__version__}: {len(index)} passages, {len(index) / seconds:.0f} a second into its index")
    return table


def by_words(search: Callable[[Sequence[Ask]], list[list[Hit]]], sought: Sought) -> list[Passage]:
    """Return the best passages by the words of question and answer."""
    texts = (sought.question.question, sought.question.answer)
    words = tuple(dict.fromkeys(word for text in texts for word in Text(text).terms))
    (hits,) = search([Ask(words, limit=MOST)])
    return [read_passage(hit.record) for hit in hits]


def by_rechain(index: Index, sought: Sought) -> list[Passage]:
    """Return the passages that rechain finds in an index."""
    (passages,) = find_passages(index, [sought.question])
    return passages


def measure(name: str, questions: Sequence[Sought], find: Callable[[Sought], list[Passage]]) -> None:
    """Print how much of the evidence is found, and how fast."""
    start, cpu = time.perf_counter(), time.process_time()
    found = [find(one) for one in questions]
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    parts = [
        is_found(piece, passages) for one, passages in zip(questions, found, strict=True) for piece in one.evidence
    ]
    print(
        f"  {name:<8} {len(questions) / seconds:6.0f} questions/s, {1000 * cpu / len(questions):5.1f} ms of CPU time, "
        f"{100 * sum(parts) / len(parts):.1f} % of the evidence among {MOST}",
        flush=True,
    )


def measure_counts(name: str, questions: Sequence[Sought], count: Callable[[str], int]) -> None:
    """Print how fast names are counted, those of the answers."""
    names = [" ".join(Text(one.question.answer).words[:3]) for one in questions]
    start = time.perf_counter()
    total = sum(map(count, filter(None, names)))
    print(f"  {name:<8} {len(names) / (time.perf_counter() - start):6.0f} counts/s, {total} in all", flush=True)


def compare(place: Path, questions: Sequence[Sought], folder: Path) -> None:
    """Print the figures of both over one collection."""
    index, other = Index(place), Index(place)
    table = load(folder / place.name, index)
    lance = LanceShard(table)
    other.search = lance.search  # type: ignore[method-assign]
    for round_ in range(2):  # the first reads the files
        print(f"  round {round_ + 1}, by the words of question and answer; as rechain finds")
        for name, one in (("tantivy", index), ("LanceDB", other)):
            measure(name, questions, partial(by_words, one.search))
            measure(name, questions, partial(by_rechain, one))

    def count(name: str) -> int:
        query = PhraseQuery(name, "words")
        return len(table.search(query, query_type="fts").select(["id"]).limit(len(index)).to_arrow())

    measure_counts("tantivy", questions[:200], lambda name: index.count_name(f" {name} "))
    measure_counts("LanceDB", questions[:200], count)


def main() -> None:
    """Print the comparison of both collections."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--debian", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compare(*debian(options.debian, folder / "debian.index"), folder)
        place, questions = hotpotqa(options.data, folder / "hotpotqa.index", 1_000)
        compare(place, [one for one in questions if one.kind.endswith("bridge")], folder)


if __name__ == "__main__":
    main()
