"""What the search engine finds, and in what order."""

from pathlib import Path

import pytest
from tests.index.collections import Row, build, row, write

from rechain.errors import InputError
from rechain.index.engine import Ask, Condition, Engine, read_passage
from rechain.system.files import short_hash


def engine_of(tmp_path: Path, rows: list[Row]) -> Engine:
    info = build(write(tmp_path / "rows.jsonl", rows), tmp_path / "index").info
    return Engine(tmp_path / "index" / info.generation / "engine")


def ids(engine: Engine, ask: Ask) -> list[str]:
    return [read_passage(hit.record).id for hit in engine.search([ask])[0]]


ROWS = [
    row("harbour", "A harbour of stone.", "Harbour"),
    row("pier", "The pier of the harbour harbour harbour.", "Pier (of wood)"),
    row("cole", "Ada Cole built it.", "Ada Cole"),
    row("marsh", "Cole, said Ada, built it for Tom Marsh.", "Tom Marsh"),
]


def test_passages_with_most_of_the_words_come_first(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ROWS)
    assert ids(engine, Ask(("harbour", "pier"), limit=5)) == ["pier", "harbour"]
    assert ids(engine, Ask(("harbour", "pier"), limit=1)) == ["pier"]
    assert ids(engine, Ask(("nothing",), limit=5)) == []


def test_conditions_have_to_be_fulfilled(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ROWS)
    built = ("built",)
    assert ids(engine, Ask(built, (Condition("phrase", ("ada cole",)),))) == ["cole"]
    assert set(ids(engine, Ask(built, (Condition("phrase", ("ada cole", "tom marsh")),)))) == {"cole", "marsh"}
    assert ids(engine, Ask(built, (Condition("name", ("tom marsh", "no title")),))) == ["marsh"]
    assert ids(engine, Ask(built, (Condition("name", ("pier",)),))) == ["pier"]  # without its suffix
    assert ids(engine, Ask((), (Condition("id", ("pier", "cole")),))) == sorted(("pier", "cole"), key=short_hash)
    assert ids(engine, Ask(built, (Condition("phrase", ("ada",)), Condition("name", ("tom marsh",))))) == ["marsh"]


@pytest.mark.parametrize("ask", [Ask(()), Ask(("built",), (Condition("name", ()),)), Ask((), (Condition("id", ()),))])
def test_an_ask_for_nothing_finds_nothing(tmp_path: Path, ask: Ask) -> None:
    assert engine_of(tmp_path, ROWS).search([ask]) == [[]]


def test_preferred_passages_come_first_with_the_score_of_their_words(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ROWS)
    plain = {hit.record: hit.score for hit in engine.search([Ask(("harbour",))])[0]}
    (hits,) = engine.search([Ask(("harbour",), prefer=Condition("phrase", ("stone",)))])
    assert [hit.is_preferred for hit in hits] == [True, False]
    assert read_passage(hits[0].record).id == "harbour"
    assert [hit.score for hit in hits] == pytest.approx([plain[hit.record] for hit in hits], abs=2e-3)


@pytest.mark.parametrize("limit", [1, 5, 12, 100, 300])
def test_ties_come_in_an_order_that_only_their_ids_decide(tmp_path: Path, limit: int) -> None:
    """More are tied than fit into what the engine is first asked for."""
    rows = [row(f"p{number}", "The same words in every passage.") for number in range(200)]
    expected = sorted((str(one["id"]) for one in rows), key=short_hash)[:limit]
    assert ids(engine_of(tmp_path / "one", rows), Ask(("same",), limit=limit)) == expected
    assert ids(engine_of(tmp_path / "two", rows[::-1]), Ask(("same",), limit=limit)) == expected


def test_better_passages_come_before_ties(tmp_path: Path) -> None:
    rows = [row(f"p{number}", "A pier in every passage.") for number in range(100)]
    rows[57] = row("best", "pier pier pier")
    found = ids(engine_of(tmp_path, rows), Ask(("pier",), limit=3))
    assert found == ["best", *sorted((f"p{n}" for n in range(100) if n != 57), key=short_hash)[:2]]


def test_counts_are_of_passages(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ROWS)
    assert (engine.count("phrase", "harbour"), engine.count("phrase", "ada cole")) == (2, 1)
    assert (engine.count("name", "pier"), engine.count("entity", "x")) == (1, 0)


def test_no_phrase_reaches_from_title_to_text(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, [row("one", "Marsh built it.", "Tom")])
    assert ids(engine, Ask((), (Condition("phrase", ("tom marsh",)),))) == []


def test_what_is_no_part_of_an_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no readable part of an index"):
        Engine(tmp_path)
