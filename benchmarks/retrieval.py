"""Chains from a whole collection: what is found of the right passages, the chains recovered from it, and how fast.

    python benchmarks/retrieval.py ../shared/data [--questions 600] [--speed 400] [--parts found chains …]

HotpotQA: the passages of open and blind in one collection, the unambiguous bridge questions of open, stripped of their
own passages. BM25 is that of the same search engine, on the words of question and answer. MuSiQue and 2Wiki: their own
passages in one collection each. Speed is that of the whole command, with retrieval and with given passages in turn.
Nothing is drawn at random but the bootstrap's samples, with seed 0. No setting was chosen on open's gold: how many
passages are looked at was chosen on train_300, which is not measured here.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import orjson
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
    ratios,
    recover_with,
    spread,
    two_wiki_pairs,
)

from rechain.evaluation.judging import judge
from rechain.evaluation.statistics import mean_with_interval
from rechain.formats.datasets import read_questions
from rechain.index import FindSettings, Index, build_index, find_passages
from rechain.index.engine import Ask, read_passage
from rechain.recoverer import Recoverer
from rechain.schema import Gold, Passage, Question
from rechain.text.words import Text

DEPTHS = (12, 30, 50)
"""passages looked at"""
BM25_DEPTHS = (30, 50, 200)
ROUNDS = 3
PARTS = ("found", "chains", "others", "drughop", "speed")

Find = Callable[[Question], list[Passage]]


def main() -> None:
    """Print the tables that were asked for."""
    options = parser(__doc__)
    options.add_argument("--questions", type=int, help="how many of HotpotQA's; else all")
    options.add_argument("--speed", type=int, default=400, help="questions of a timed command")
    options.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    chosen = options.parse_args()
    print_heading()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        passages = passages_in(chosen.data, "hotpotqa/open.json.gz", "hotpotqa/blind.json.gz")
        hotpotqa = index_of(place / "hotpotqa", passages)
        pairs = bridge_pairs(chosen.data)[: chosen.questions]
        if "found" in chosen.parts:
            depth_table(hotpotqa, pairs)
        if "chains" in chosen.parts:
            chains_table("HotpotQA open, unambiguous bridge", pairs, hotpotqa)
        if "others" in chosen.parts:
            other_tables(chosen.data, place)
        if "drughop" in chosen.parts:
            drughop_table(chosen.data, place)
        if "speed" in chosen.parts:
            speed_table(hotpotqa, pairs[: chosen.speed], place)


def passages_in(data: Path, *names: str) -> list[Passage]:
    """Return the different passages of some files of questions."""
    distinct: dict[tuple[str, str], Passage] = {}
    for name in names:
        for question in read_questions(data / name):
            distinct.update({(p.title, p.text): p for p in question.passages if (p.title, p.text) not in distinct})
    return list(distinct.values())


def index_of(place: Path, passages: Iterable[Passage]) -> Index:
    """Build an index of passages, whose ids are their titles, numbered if they are not unique."""
    file = place.with_suffix(".jsonl")
    with file.open("wb") as out:
        for passage in passages:
            out.write(orjson.dumps({"id": passage.title, "title": passage.title, "text": passage.text}) + b"\n")
    build = build_index([file], place)
    print(f"{place.name}: {build.info.passages} passages, stamp {build.info.stamp}\n")
    return Index(place)


def bare(question: Question) -> Question:
    """Return a question without its passages."""
    return question.model_copy(update={"passages": []})


def depth_table(index: Index, pairs: Sequence[Pair]) -> None:
    """Print for how many questions all right passages are among the first that are found."""
    settings = FindSettings(max(DEPTHS))
    ways: list[tuple[str, Sequence[int], Find]] = [
        ("rechain", DEPTHS, lambda question: find_passages(index, [bare(question)], settings)[0]),
        ("BM25, question and answer", BM25_DEPTHS, lambda question: by_words(index, question)),
    ]
    print(f"Both right passages among those looked at, %, {len(pairs)} questions\n")
    for name, depths, find in ways:
        ids_of_questions = [[passage.id for passage in find(question)] for question, _ in pairs]
        golds = [gold for _, gold in pairs]
        contains_all = [
            [holds_all(ids[:depth], gold) for ids, gold in zip(ids_of_questions, golds, strict=True)]
            for depth in depths
        ]
        row = [percent(mean_with_interval(of_depth)) for of_depth in contains_all]
        print_rows(("", *map(str, depths)), [(name, *row)])


def by_words(index: Index, question: Question) -> list[Passage]:
    """Return the best passages by the words of question and answer alone."""
    words = dict.fromkeys((*Text(question.question).terms, *Text(question.answer).terms))
    (hits,) = index.search([Ask(tuple(words), limit=max(BM25_DEPTHS))])
    return [read_passage(hit.record) for hit in hits]


def holds_all(ids: Sequence[str], gold: Gold) -> float:
    """Return 1 where all passages of a right chain are among some."""
    return float(any(set(chain.passages) <= set(ids) for chain in gold.chains))


class Right(NamedTuple):
    """For how many questions the best chain has the right passages (and links), and has them in order."""

    chains: str
    in_order: str


def right(recoverer: Recoverer, pairs: Sequence[Pair]) -> Right:
    """Recover the chain of every question and judge it."""
    recovered = recoverer.recover_many([question for question, _ in pairs], workers=os.cpu_count() or 1)
    judged = [judge(chains[0] if chains else None, gold) for chains, (_, gold) in zip(recovered, pairs, strict=True)]
    ordered = [one.correct and one.ordered is not False for one in judged]
    return Right(percent(mean_with_interval([one.correct for one in judged])), percent(mean_with_interval(ordered)))


def chains_table(name: str, pairs: Sequence[Pair], index: Index) -> None:
    """Print how many chains are right: from the collection, and among the passages that come with the questions."""
    rows = []
    for model in ("default", "lexical"):
        from_index = right(Recoverer(model, corpus=index), [(bare(question), gold) for question, gold in pairs])
        rows.append((name, len(pairs), model, *from_index, *right(Recoverer(model), pairs)))
    columns = ("from the collection, %", "in order, %", "given passages, %", "in order, %")
    print_rows(("questions", "number", "model", *columns), rows)


def other_tables(data: Path, place: Path) -> None:
    """Print the same for MuSiQue and 2Wiki."""
    linear = [pair for kind in MUSIQUE_HOPS for pair in musique_pairs(data, kind)]
    index = index_of(place / "musique", passages_in(data, "musique/train_100.json.gz"))
    chains_table("MuSiQue train_100, linear", renamed(linear, index), index)
    pairs = two_wiki_pairs(data)
    index = index_of(place / "2wiki", passages_in(data, "2wiki/train_500.json.gz"))
    chains_table("2Wiki train_500, chains", renamed(pairs, index), index)


def renamed(pairs: Sequence[Pair], index: Index) -> list[Pair]:
    """Return questions and gold whose passages have the ids of the collection."""
    names = {(index[name].title, index[name].text): name for name in index}
    return [rename(question, gold, names) for question, gold in pairs]


def rename(question: Question, gold: Gold, names: dict[tuple[str, str], str]) -> Pair:
    """Return a question and its gold with the ids of the collection."""
    new = {passage.id: names[passage.title, passage.text] for passage in question.passages}
    passages = {new[p.id]: p.model_copy(update={"id": new[p.id]}) for p in question.passages}
    chains = [chain.model_copy(update={"passages": [new[name] for name in chain.passages]}) for chain in gold.chains]
    return question.model_copy(update={"passages": list(passages.values())}), gold.model_copy(update={"chains": chains})


def drughop_table(data: Path, place: Path) -> None:
    """Print DrugHop with the whole file of passages as the collection."""
    build_index([data / "drughop/passages.jsonl.gz"], place / "drughop")
    index = Index(place / "drughop")
    pairs = drughop_pairs(data)
    stripped = [(without_ids(question), gold) for question, gold in pairs]
    rows = []
    for model in ("default", "lexical"):
        recoverer = Recoverer(model, corpus=index)
        rows.append((model, right(recoverer, pairs).chains, right(recoverer, stripped).chains))
    looked_at = [find_passages(index, [question])[0] for question, _ in stripped]
    among = mean(holds_all([p.id for p in ps], gold) for ps, (_, gold) in zip(looked_at, stripped, strict=True))
    print(f"DrugHop open, {len(pairs)} questions; {mean(map(len, looked_at)):.1f} passages are found a question, ")
    print(f"a right chain's are among them for {100 * among:.1f} %\n")
    print_rows(("model", "passages named by id, %", "passages found, %"), rows)


def without_ids(question: Question) -> Question:
    """Return a question that does not say among which passages its chain is."""
    fields = {name: value for name, value in question.model_dump().items() if name != "passage_ids"}
    return Question.model_validate({**fields, "passages": []})


def speed_table(index: Index, pairs: Sequence[Pair], place: Path) -> None:
    """Print how many questions a second the whole command takes with retrieval, and with given passages.

    The questions are the same but for their passages: once they say that chains have two, as HotpotQA's do, once not.
    """
    rows = []
    for name, left_out in (("two passages a chain", set()), ("2, 3 or 4 passages a chain", {"hops"})):
        with_passages, log = place / "given.jsonl", place / "log.jsonl"
        write(with_passages, (q.model_dump(exclude_defaults=True, exclude=left_out) for q, _ in pairs))
        write(log, (q.model_dump(exclude_defaults=True, exclude={"passages", *left_out}) for q, _ in pairs))
        times: dict[str, list[float]] = {"given": [], "found": []}
        for _ in range(ROUNDS):
            times["given"].append(
                recover_with("local", with_passages, "--out", place / "a.jsonl", "--overwrite").seconds
            )
            searched = recover_with("local", log, "--corpus", index.folder, "--out", place / "b.jsonl", "--overwrite")
            times["found"].append(searched.seconds)
        rates = [spread([len(pairs) / seconds for seconds in times[way]], "{:.1f}") for way in ("given", "found")]
        rows.append((name, *rates, spread(ratios(times["given"], times["found"]), "{:.2f}")))
    print(f"{len(pairs)} questions, the whole command with start-up, {ROUNDS} rounds in turn\n")
    print_rows(("", "given passages, questions/s", "from the collection, questions/s", "ratio"), rows)


def write(path: Path, records: Iterator[dict[str, object]]) -> None:
    """Write JSON lines."""
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))


if __name__ == "__main__":
    main()
