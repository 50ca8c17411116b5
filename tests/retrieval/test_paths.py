"""How passages are weighed by the path to the answer on which they lie, worked by hand."""

import orjson
import pytest

from rechain.retrieval.paths import Pool
from rechain.retrieval.shard import Hit


def hit(name: str, title: str, text: str, score: float, order: int = 0) -> Hit:
    return Hit(score, order, False, orjson.dumps({"id": name, "title": title, "text": text}))


PRAGUE = {" prague "}


HEAD = hit("head", "Zorilla", "An opera by Anton Quillfeather.", 9.0)
END = hit("end", "Anton Quillfeather", "Born in Prague.", 1.0)
WORDY = hit("wordy", "Operas", "Opera opera opera.", 10.0)
LONE = hit("lone", "Rain", "It rains.", 2.0)


def test_a_link_is_worth_as_much_as_a_rare_word() -> None:
    pool = Pool(PRAGUE)
    pool.add([HEAD, END, WORDY, LONE])
    # head and end: 9 + 1 + 10 for the title; wordy: 10 + 1; lone: 2 + 1
    assert [passage.id for passage in pool.select(4)] == ["head", "end", "wordy", "lone"]
    assert [passage.id for passage in pool.select(2)] == ["head", "end"]


def test_without_a_link_words_decide() -> None:
    pool = Pool(PRAGUE)
    pool.add([hit("head", "Zorilla", "An opera.", 9.0, 1), END, WORDY])
    # wordy and end: 10 + 1, head: 9 + 1
    assert [passage.id for passage in pool.select(3)] == ["wordy", "end", "head"]


def test_a_passage_that_is_found_twice_counts_once_with_its_greatest_score() -> None:
    pool = Pool(PRAGUE)
    pool.add([END, HEAD, END._replace(score=5.0)])
    assert len(pool.select(9)) == 2
    assert [view.passage.id for view in pool.best([HEAD, END], 1)] == ["head"]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_where_nothing_holds_the_answer_passages_with_most_words_are_ends(most: int) -> None:
    pool = Pool(PRAGUE)
    pool.add([HEAD, WORDY, LONE])
    assert pool.ends == 0
    assert [view.passage.id for view in pool.best_ends(most)] == ["wordy", "head", "lone"][:most]


def test_nothing_is_selected_from_nothing() -> None:
    assert Pool(PRAGUE).select(5) == []


def test_equal_passages_come_in_their_order() -> None:
    pool = Pool(PRAGUE)
    pool.add([hit("b", "", "rain", 1.0, 2), hit("a", "", "snow", 1.0, 1)])
    assert [passage.id for passage in pool.select(2)] == ["a", "b"]


def test_a_part_of_a_document_is_linked_by_its_own_heading() -> None:
    pool = Pool(PRAGUE)
    part = hit("part", "Handbook > Offices > Quillfeather Desk", "It is in Prague.", 1.0)
    naming = hit("naming", "Handbook > Travel", "Trips are booked with the Quillfeather Desk.", 3.0)
    pool.add([part, naming, hit("wordy", "Handbook > Costs", "Trips and trips.", 9.0)])
    assert {passage.id for passage in pool.select(2)} == {"part", "naming"}
