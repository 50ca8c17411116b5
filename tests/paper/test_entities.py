"""One entity for one thing: which names are merged, which stand for themselves, and which are dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.paper.entities import DROPPED, merge, without_overlaps
from rechain.text.linking.linkers import Entity


def entity(name: str, kind: str = "name", holders: tuple[int, ...] = (0, 1), weight: float = 8.0) -> Entity:
    given = kind in ("mention", "identifier")
    return Entity(name if given else f" {name} ", kind, weight, holders)  # type: ignore[arg-type]


def groups(*found: Entity, passages: int = 10) -> dict[str, list[str]]:
    """Return the names of every merged entity, and of those that were dropped."""
    merged, numbers = merge(found, passages)
    together: dict[str, list[str]] = {}
    for one, number in zip(found, numbers, strict=True):
        whole = "" if number == DROPPED else merged[number].name.strip()
        together.setdefault(whole, []).append(f"{one.kind} {one.name.strip()}")
    return together


def test_equal_names_of_several_finders_are_one_entity() -> None:
    merged, numbers = merge(
        [entity("kristin davis", "title", (0, 2), 16.0), entity("kristin davis", "name", (0, 1), 12.0)], passages=10
    )
    (one,) = merged
    assert (one.name, one.weight, one.holders) == (" kristin davis ", 16.0, {0, 1, 2})
    assert numbers == [0, 0]


def test_a_part_of_one_name_is_that_name_and_the_heaviest_comes_first() -> None:
    found = (
        entity("quill", "word", (0, 1), 7.5),
        entity("prague", "title", (1, 2), 20.0),
        entity("anton", "title part", (0, 3), 9.0),
        entity("anton quillfeather", "title", (0, 1), 16.0),
        entity("quillfeather", "name", (0, 1), 9.0),
    )
    assert groups(*found) == {
        "quill": ["word quill"],  # no word of another name
        "prague": ["title prague"],
        "anton quillfeather": ["title part anton", "title anton quillfeather", "name quillfeather"],
    }
    merged, _ = merge(found, 10)
    assert [one.name.strip() for one in merged] == ["prague", "anton quillfeather", "quill"]
    assert merged[1].holders == {0, 1, 3}


def test_a_title_within_a_longer_name_stands_for_itself() -> None:
    found = [entity("sex and the city", "title"), entity("sex and the city 2", "title"), entity("city", "title part")]
    assert groups(*found) == {
        "sex and the city": ["title sex and the city"],
        "sex and the city 2": ["title sex and the city 2"],
        "city": ["title part city"],  # of two titles: which, it does not say
    }


def test_a_part_of_a_part_is_the_whole() -> None:
    found = [entity("new"), entity("new york"), entity("new york city")]
    assert groups(*found) == {"new york city": ["name new", "name new york", "name new york city"]}


@pytest.mark.parametrize(("held_by", "passages", "is_dropped"), [(2, 10, False), (3, 10, True), (4, 20, False)])
def test_a_part_that_many_passages_hold_is_dropped(held_by: int, passages: int, is_dropped: bool) -> None:
    part, whole = entity("john", "title part", tuple(range(held_by))), entity("john smith", "title")
    assert ("" in groups(part, whole, passages=passages)) == is_dropped


def test_a_name_of_its_own_is_kept_however_many_passages_hold_it() -> None:
    assert groups(entity("prague", "name", tuple(range(9)))) == {"prague": ["name prague"]}


def test_entities_that_the_data_names_are_not_compared_by_their_names() -> None:
    found = [entity("gene:7", "mention"), entity("gene:77", "mention"), entity("gene", "word")]
    assert len(groups(*found)) == 3


def test_of_mentions_that_overlap_the_longest_counts() -> None:
    assert without_overlaps([(3, 1), (3, 2), (4, 1), (7, 1)]) == {(3, 2), (7, 1)}
    assert without_overlaps([(3, 2), (4, 2)]) == {(3, 2)}
    assert without_overlaps([]) == set()


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4))))
def test_no_word_is_counted_twice_and_each_that_is_mentioned_touches_one_that_counts(
    spans: list[tuple[int, int]],
) -> None:
    kept = without_overlaps(spans)
    words = [word for start, length in kept for word in range(start, start + length)]
    assert len(words) == len(set(words))
    assert all(not set(range(start, start + length)).isdisjoint(words) for start, length in spans)


WORDS = st.lists(st.sampled_from(["anton", "quill", "new", "york", "city"]), min_size=1, max_size=3).map(" ".join)
KINDS = st.sampled_from(["title", "title part", "name", "word"])


@given(st.lists(st.builds(entity, WORDS, KINDS, st.sets(st.integers(0, 5), min_size=2).map(tuple)), max_size=12))
def test_no_passage_holds_an_entity_that_none_of_its_names_has(found: list[Entity]) -> None:
    merged, numbers = merge(found, passages=6)
    held: dict[int, set[int]] = {}
    for one, number in zip(found, numbers, strict=True):
        if number != DROPPED:
            held.setdefault(number, set()).update(one.holders)
            assert one.name in merged[number].name
    assert held == {number: set(one.holders) for number, one in enumerate(merged)}
    weights = [one.weight for one in merged]
    assert weights == sorted(weights, reverse=True)
