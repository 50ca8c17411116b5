"""How passages are weighed by the path on which they lie: by words, worked by hand, or by the entities of the data."""

from collections.abc import Callable, Sequence

import orjson
import pytest

from rechain.index import FindSettings, Index, find_passages
from rechain.index.engine import Hit
from rechain.index.paths import Pool
from rechain.recoverer import Recoverer
from rechain.schema import Mention, Passage, Question


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


def passage(name: str, *entities: str) -> Passage:
    text = " ".join(entities)
    mentions, start = [], 0
    for entity in entities:
        mentions.append(Mention(entity=entity, start=start, end=start + len(entity)))
        start += len(entity) + 1
    return Passage(id=name, text=text, mentions=mentions)


@pytest.fixture
def index(make_index: Callable[[Sequence[Passage]], Index]) -> Index:
    return make_index(
        [
            passage("head", "drug:A", "gene:X"),
            passage("middle", "gene:X", "drug:C"),
            passage("tail", "drug:C", "gene:Y"),
            passage("dead end", "drug:A", "gene:Z"),
            passage("of another kind", "gene:X", "gene:Y"),
            passage("far", "drug:Q", "gene:R"),
        ]
    )


def question(**fields: object) -> Question:
    whole = {
        "id": "q",
        "question": "interacts_with A?",
        "answer": "Y",
        "question_entities": ["drug:A"],
        "answer_entity": "gene:Y",
        "hops": 3,
        "link_types": ["gene", "drug"],
        "passages": [],
        **fields,
    }
    return Question.model_validate(whole)


def test_passages_on_a_path_of_entities_are_found(index: Index) -> None:
    (found,) = find_passages(index, [question()])
    assert {passage.id for passage in found} == {"head", "middle", "tail"}


def test_the_chain_is_recovered_from_them(index: Index) -> None:
    (chain,) = Recoverer("lexical", corpus=index).recover(question())
    assert chain.passages == ["head", "middle", "tail"]
    assert [link.entity for link in chain.links] == ["gene:X", "drug:C"]


def test_without_types_any_entity_links(index: Index) -> None:
    (found,) = find_passages(index, [question(hops=2, link_types=None)])
    assert {passage.id for passage in found} == {"head", "of another kind"}


@pytest.mark.parametrize(
    "fields",
    [
        {"question_entities": ["drug:none"]},
        {"answer_entity": "gene:none"},
        {"question_entities": []},
        {"answer_entity": None},
        {"answer_entity": "gene:R"},
    ],
)
def test_words_find_passages_where_no_path_of_entities_does(index: Index, fields: dict[str, object]) -> None:
    asked = question(**fields)
    by_words = asked.model_copy(update={"question_entities": [], "answer_entity": None})
    (found,) = find_passages(index, [asked])
    assert "tail" in {passage.id for passage in found}
    assert [found] == find_passages(index, [by_words])


def test_one_passage_mentions_the_entities_of_question_and_answer_alike(
    make_index: Callable[[Sequence[Passage]], Index],
) -> None:
    index = make_index([passage("both", "drug:A", "gene:Y"), passage("one", "drug:A"), passage("other", "gene:Y")])
    asked = question(hops=1, link_types=None)
    (found,) = find_passages(index, [asked])
    assert [one.id for one in found] == ["both"]
    assert Recoverer("lexical", corpus=index).recover(asked)[0].passages == ["both"]


def test_as_many_passages_as_are_asked_for_lie_on_paths(make_index: Callable[[Sequence[Passage]], Index]) -> None:
    heads = [passage(f"head {n}", "drug:A", "gene:X") for n in range(70)]
    index = make_index([*heads, passage("tail", "gene:X", "gene:Y")])
    asked = [question(hops=2, link_types=["gene"])]
    for settings, most in ((None, 60), (FindSettings(), 60), (FindSettings(5), 5), (FindSettings(100), 71)):
        assert len(find_passages(index, asked, settings)[0]) == most


def test_rarer_links_come_first(make_index: Callable[[Sequence[Passage]], Index]) -> None:
    common = [passage(f"common {n}", "drug:A", "gene:common") for n in range(5)]
    index = make_index(
        [*common, passage("rare", "drug:A", "gene:rare"), passage("tail", "gene:Y", "gene:rare", "gene:common")]
    )
    (found,) = find_passages(index, [question(hops=2, link_types=["gene"])])
    assert [one.id for one in found[:2]] == ["rare", "tail"]
