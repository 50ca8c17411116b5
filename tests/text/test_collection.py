import pytest

from rechain.schema import Mention, Passage
from rechain.text.collection import PassageCollection

CURIE = Passage(id="p1", title="Marie Curie", text="Marie Curie found radium. Curie won twice.")
PIERRE = Passage(id="p2", title="Pierre Curie", text="He married marie curie, who was Marie.")
PLANET = Passage(id="p3", title="Mercury (planet)", text="It is a planet.")
METAL = Passage(id="p4", title="Mercury (element)", text="A liquid metal, unlike radium.")


def collection(*passages: Passage) -> PassageCollection:
    return PassageCollection({passage.id: passage for passage in passages})


@pytest.fixture
def four() -> PassageCollection:
    return collection(CURIE, PIERRE, PLANET, METAL)


def test_is_the_passages_by_id(four: PassageCollection) -> None:
    assert list(four) == ["p1", "p2", "p3", "p4"]
    assert four["p3"] is PLANET
    assert four.passages == len(four) == 4


def test_counts_a_word_once_a_passage_in_title_or_text(four: PassageCollection) -> None:
    assert [four.count_word(word) for word in ("curie", "radium", "mercury", "planet", "gold")] == [2, 2, 2, 1, 0]


def test_counts_pairs_of_characters_in_scripts_without_blanks() -> None:
    one = collection(Passage(id="p", text="北京大学"))
    assert [one.count_word(word) for word in ("北京", "大学", "京学")] == [1, 1, 0]


def test_counts_a_name_where_its_words_stand_in_a_row(four: PassageCollection) -> None:
    assert four.count_name(" marie curie ") == 2
    assert four.count_name(" curie marie ") == 0  # " … curie who was marie ": both words, not in a row
    assert four.count_name(" radium ") == 2
    assert four.count_name(" marie gold ") == 0


def test_no_name_reaches_from_the_title_into_the_text(four: PassageCollection) -> None:
    assert four.count_name(" curie marie curie ") == 0


def test_counts_titles_whatever_their_suffix(four: PassageCollection) -> None:
    assert four.count_title(" mercury ") == 2
    assert four.count_title(" curie ") == 0


def test_counts_given_entities_or_identifiers_once_a_passage() -> None:
    given = Passage(
        id="p1",
        text="Aspirin, aspirin and DB00072.",
        mentions=[Mention(entity="drug:a", start=0, end=7), Mention(entity="drug:a", start=9, end=16)],
    )
    found = Passage(id="p2", text="DB00072 and DB00072.")
    both = collection(given, found)
    assert both.count_entity("drug:a") == 1
    assert both.count_entity("drug:DB00072") == 1  # where mentions are given, they decide
    assert both.count_entity("drug:b") == 0


def test_the_stamp_does_not_depend_on_the_order_of_the_passages() -> None:
    assert collection(CURIE, PIERRE, PLANET).stamp == collection(PLANET, CURIE, PIERRE).stamp
    assert len(collection(CURIE).stamp) == 16


@pytest.mark.parametrize(
    "other",
    [
        CURIE.model_copy(update={"id": "p5"}),
        CURIE.model_copy(update={"title": "Curie"}),
        CURIE.model_copy(update={"text": "Marie Curie found polonium."}),
        CURIE.model_copy(update={"mentions": [Mention(entity="person:1", start=0, end=11)]}),
    ],
)
def test_the_stamp_changes_with_any_content(other: Passage) -> None:
    assert collection(other, PIERRE).stamp != collection(CURIE, PIERRE).stamp
    assert collection(CURIE).stamp != collection(CURIE, PIERRE).stamp


def test_an_empty_collection_counts_nothing() -> None:
    empty = collection()
    assert empty.passages == empty.count_word("a") == empty.count_name(" a b ") == empty.count_entity("e") == 0
