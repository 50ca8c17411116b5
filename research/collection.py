"""What the statistics of a collection add: python research/collection.py DATA [--words LOGS] [--workers N].

DrugHop open, whole chain with links, with and without the file of passages as a collection: the parts of the lexical
rule in turn, and the default model. With --words, instead: what the default model would reach if the rarity of words
came from the collection too, the fixed table being so many passages more. LOGS is what benchmarks/logs/build.py filled;
its halves fit and dev are read. Nothing is drawn at random but the bootstrap's samples, with seed 0.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import exp, log
from pathlib import Path

from common import (
    MUSIQUE_HOPS,
    Pair,
    bridge_pairs,
    drughop_pairs,
    musique_pairs,
    parser,
    percent,
    print_heading,
    print_rows,
    two_wiki_pairs,
)
from logged import is_exact

from rechain.evaluation.judging import judge, summarise
from rechain.evaluation.statistics import expected_calibration_error
from rechain.formats.datasets import read_questions
from rechain.formats.datasets.questions import read_collection
from rechain.formats.datasets.records import read_by_id
from rechain.recoverer import Recoverer
from rechain.schema import Gold, Question
from rechain.scoring.interface import Contributions, Lexical, Model
from rechain.text import languages
from rechain.text.candidates import Candidates
from rechain.text.collection import PassageCollection
from rechain.text.passage_views import PassageView

RULES = (
    ("pairs in one sentence", "mentions"),
    ("pairs in one sentence", "mentions", "nearness"),
    ("pairs in one sentence", "mentions", "collection"),
    ("pairs in one sentence", "mentions", "nearness", "collection"),
)
"""parts of the lexical rule where the data names entities"""
TABLE_PASSAGES = (100, 1000, 10000)
"""passages of the collection that the fixed table counts for"""
FIXED = languages._table()
"""the rarities of words that come with the package, and that of all others"""
HOTPOTQA = 600
"""questions of HotpotQA open"""


class Parts:
    """The lexical rule with some of its parts."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def score(self, candidates: Candidates) -> list[Contributions]:
        """Return these parts of every chain's score."""
        return [{name: parts[name] for name in self._names} for parts in Lexical().score(candidates)]


def drughop_rows(data: Path, workers: int) -> Iterator[Sequence[object]]:
    """Yield a row for every rule and model."""
    pairs = drughop_pairs(data)
    collection = read_collection(data / "drughop/passages.jsonl.gz")

    def row(name: str, model: str | Model, corpus: PassageCollection | None) -> Sequence[object]:
        recoverer = Recoverer(model, corpus=corpus)
        chains = recoverer.recover_many([question for question, _ in pairs], workers=workers)
        judged = [judge(one[0] if one else None, gold) for one, (_, gold) in zip(chains, pairs, strict=True)]
        confident = [(one.confidence, one.correct) for one in judged if one.confidence is not None]
        error = expected_calibration_error(confident)
        of = "no" if corpus is None else "yes"
        return name, of, percent(summarise(judged)["chain accuracy"]), "" if error is None else f"{error:.3f}"

    for rule in RULES:
        yield row(f"lexical: {', '.join(rule)}", Parts(rule), collection)
    for corpus in (None, collection):
        yield row("default", "default", corpus)


def collection_of(questions: Iterable[Question]) -> PassageCollection:
    """Return the passages of questions, each once, as a collection."""
    texts = {(passage.title, passage.text): passage for question in questions for passage in question.passages}
    return PassageCollection({str(number): passage for number, passage in enumerate(texts.values())})


def use_words_of(collection: PassageCollection, table_passages: int) -> None:
    """Let the rarity of words come from a collection, in all of the package; the table counts for some passages."""
    known, rarest = FIXED
    terms = frozenset().union(*(PassageView(passage).terms for passage in collection.values()))
    whole = collection.passages + table_passages

    def idf(word: str) -> float:
        by_table = table_passages * exp(-known.get(word, rarest))
        return min(log(whole / (collection.count_word(word) + by_table)), rarest)

    use_table({word: idf(word) for word in terms | known.keys()})


def use_table(idf: dict[str, float]) -> None:
    """Let words have other rarities, in all of the package."""
    languages._table = lambda: (idf, FIXED[1])  # type: ignore[assignment]
    languages.words_below.cache_clear()


def word_rows(data: Path, logs: Path) -> Iterator[Sequence[object]]:
    """Yield how often the default model has exactly the right passages, with the table and with collections' words."""
    for name, parts in word_sets(data, logs):
        row: list[object] = [name, sum(len(pairs) for pairs, _ in parts)]
        for table_passages in (None, *TABLE_PASSAGES):
            right = 0
            for pairs, collection in parts:
                if table_passages is None:
                    use_table(FIXED[0])
                else:
                    use_words_of(collection, table_passages)
                chains = Recoverer().recover_many([question for question, _ in pairs])
                right += sum(is_exact((*pair, one)) for pair, one in zip(pairs, chains, strict=True))
            row.append(f"{100 * right / row[1]:.1f}")  # type: ignore[operator]
        yield row


def word_sets(data: Path, logs: Path) -> Iterator[tuple[str, list[tuple[list[Pair], PassageCollection]]]]:
    """Yield every set of questions in parts, each with the collection that its passages come from."""
    two_wiki = data / "2wiki/train_500.json.gz"
    yield "2Wiki, chains", [(two_wiki_pairs(data), collection_of(read_questions(two_wiki)))]
    musique = [pair for kind in MUSIQUE_HOPS for pair in musique_pairs(data, kind)]
    yield "MuSiQue, linear", [(musique, collection_of(read_questions(data / "musique/train_100.json.gz")))]
    by_set: dict[str, list[Pair]] = defaultdict(list)
    for half in ("fit", "dev"):
        gold = read_by_id(logs / f"gold.{half}.jsonl", Gold)
        for question in read_questions(logs / f"questions.{half}.jsonl"):
            by_set[question.id.rpartition("-")[0]].append((question, gold[question.id]))
    sets = [(pairs, collection_of(question for question, _ in pairs)) for pairs in by_set.values()]
    supported = ("supported", "partly")
    kept = [([pair for pair in pairs if pair[1].verdict in supported], collection) for pairs, collection in sets]
    yield "our logs, fit and dev, a collection a set", kept
    files = [data / f"hotpotqa/{name}.json.gz" for name in ("open", "blind")]
    passages = collection_of(question for file in files for question in read_questions(file))
    yield "HotpotQA open, bridge", [(bridge_pairs(data)[:HOTPOTQA], passages)]


def main() -> None:
    """Print the table of DrugHop, or that of words."""
    options = parser(__doc__)
    options.add_argument("--words", type=Path, metavar="LOGS")
    options.add_argument("--workers", type=int, default=0)
    given = options.parse_args()
    print_heading()
    if given.words:
        header = ("questions", "number", "fixed table", *(f"table as {number:,}" for number in TABLE_PASSAGES))
        print_rows(header, word_rows(given.data, given.words))
    else:
        header = ("model", "collection", "chain accuracy, %", "calibration error")
        print_rows(header, drughop_rows(given.data, given.workers))


if __name__ == "__main__":
    main()
