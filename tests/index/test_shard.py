"""What one part of an index finds, and in what order."""

from pathlib import Path

import pytest
from tests.index.collections import Row, build, row, write

from rechain.errors import InputError
from rechain.index.index import read_passage
from rechain.index.shard import Ask, Condition, LocalShard
from rechain.system.files import short_hash


def shard_of(tmp_path: Path, rows: list[Row]) -> LocalShard:
    info = build(write(tmp_path / "rows.jsonl", rows), tmp_path / "index").info
    return LocalShard(tmp_path / "index" / info.generation / "shard-0")


def ids(shard: LocalShard, ask: Ask) -> list[str]:
    return [read_passage(hit.record).id for hit in shard.search([ask])[0]]


ROWS = [
    row("harbour", "A harbour of stone.", "Harbour"),
    row("pier", "The pier of the harbour harbour harbour.", "Pier (of wood)"),
    row("cole", "Ada Cole built it.", "Ada Cole"),
    row("marsh", "Cole, said Ada, built it for Tom Marsh.", "Tom Marsh"),
]


def test_passages_with_most_of_the_words_come_first(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, ROWS)
    assert ids(shard, Ask(("harbour", "pier"), limit=5)) == ["pier", "harbour"]
    assert ids(shard, Ask(("harbour", "pier"), limit=1)) == ["pier"]
    assert ids(shard, Ask(("nothing",), limit=5)) == []


def test_conditions_have_to_be_fulfilled(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, ROWS)
    built = ("built",)
    assert ids(shard, Ask(built, (Condition("phrase", ("ada cole",)),))) == ["cole"]
    assert set(ids(shard, Ask(built, (Condition("phrase", ("ada cole", "tom marsh")),)))) == {"cole", "marsh"}
    assert ids(shard, Ask(built, (Condition("name", ("tom marsh", "no title")),))) == ["marsh"]
    assert ids(shard, Ask(built, (Condition("name", ("pier",)),))) == ["pier"]  # without its suffix
    assert ids(shard, Ask((), (Condition("id", ("pier", "cole")),))) == sorted(("pier", "cole"), key=short_hash)
    assert ids(shard, Ask(built, (Condition("phrase", ("ada",)), Condition("name", ("tom marsh",))))) == ["marsh"]


@pytest.mark.parametrize("ask", [Ask(()), Ask(("built",), (Condition("name", ()),)), Ask((), (Condition("id", ()),))])
def test_an_ask_for_nothing_finds_nothing(tmp_path: Path, ask: Ask) -> None:
    assert shard_of(tmp_path, ROWS).search([ask]) == [[]]


def test_preferred_passages_come_first_with_the_score_of_their_words(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, ROWS)
    plain = {hit.record: hit.score for hit in shard.search([Ask(("harbour",))])[0]}
    (hits,) = shard.search([Ask(("harbour",), prefer=Condition("phrase", ("stone",)))])
    assert [hit.is_preferred for hit in hits] == [True, False]
    assert read_passage(hits[0].record).id == "harbour"
    assert [hit.score for hit in hits] == pytest.approx([plain[hit.record] for hit in hits], abs=2e-3)


@pytest.mark.parametrize("limit", [1, 5, 12, 100, 300])
def test_ties_come_in_an_order_that_only_their_ids_decide(tmp_path: Path, limit: int) -> None:
    """More are tied than fit into what the engine is first asked for."""
    rows = [row(f"p{number}", "The same words in every passage.") for number in range(200)]
    expected = sorted((str(one["id"]) for one in rows), key=short_hash)[:limit]
    assert ids(shard_of(tmp_path / "one", rows), Ask(("same",), limit=limit)) == expected
    assert ids(shard_of(tmp_path / "two", rows[::-1]), Ask(("same",), limit=limit)) == expected


def test_better_passages_come_before_ties(tmp_path: Path) -> None:
    rows = [row(f"p{number}", "A pier in every passage.") for number in range(100)]
    rows[57] = row("best", "pier pier pier")
    found = ids(shard_of(tmp_path, rows), Ask(("pier",), limit=3))
    assert found == ["best", *sorted((f"p{n}" for n in range(100) if n != 57), key=short_hash)[:2]]


def test_counts_are_of_passages(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, ROWS)
    conditions = [
        Condition("phrase", ("harbour",)),
        Condition("phrase", ("ada cole",)),
        Condition("name", ("pier",)),
        Condition("entity", ("x",)),
    ]
    assert shard.count(conditions) == [2, 1, 1, 0]


def test_no_phrase_reaches_from_title_to_text(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, [row("one", "Marsh built it.", "Tom")])
    assert ids(shard, Ask((), (Condition("phrase", ("tom marsh",)),))) == []


def test_what_is_no_part_of_an_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no readable part of an index"):
        LocalShard(tmp_path)
