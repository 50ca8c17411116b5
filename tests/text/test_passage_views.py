"""A passage as linking sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.schema import Mention, Passage
from rechain.text.passage_views import PassageView, SentenceOverlaps, find_identifiers, identifier, stretches
from rechain.text.rarity import idf, rarities
from rechain.text.words import Text, phrase


def view(text: str, title: str = "", mentions: list[Mention] | None = None) -> PassageView:
    return PassageView(Passage(id="p", title=title, text=text, mentions=mentions or []))


def test_the_title_is_read_without_its_bracketed_suffix() -> None:
    assert view("It orbits.", "Mercury (planet)").title.words == ["mercury"]


@pytest.mark.parametrize(
    ("wanted", "held"),
    [("Mercury", True), ("the SUN", True), ("planet", False), ("mercury it", False), ("orbit", False)],
)
def test_a_phrase_is_held_by_title_or_text_but_not_across_them(wanted: str, held: bool) -> None:
    assert (phrase(wanted) in view("It orbits the sun.", "Mercury (planet)").joined) is held


def test_the_vocabulary_is_the_distinct_words_of_title_and_text() -> None:
    read = view("The planet, the SUN", "Dvořák (x)")
    assert read.vocabulary == {"the", "planet", "sun", "dvorak"}


def test_given_mentions_are_gathered_by_entity_in_order() -> None:
    mentions = [Mention(entity=e, start=at, end=at + 1) for e, at in (("b", 2), ("a", 0), ("b", 4))]
    read = view("x y z", mentions=mentions)
    assert read.given == {"b": [(2, 3), (4, 5)], "a": [(0, 1)]}
    assert read.mentions("b") == [(2, 3), (4, 5)]
    assert read.mentions("c") == []


def test_identifiers_count_as_mentions_where_the_data_gives_none() -> None:
    text = "DB00072 binds P04637."
    assert view(text).mentions("drug:DB00072") == [(0, 7)]
    given = view(text, mentions=[Mention(entity="protein:P04637", start=14, end=20)])
    assert given.mentions("drug:DB00072") == []
    assert given.mentions("protein:P04637") == [(14, 20)]


def test_every_character_stands_in_a_sentence() -> None:
    read = view("One.  Two. Three")
    assert read.sentences == [(0, 4), (6, 10), (11, 16)]
    places = [0, 3, 6, 9, 11, 15, 4, 5, 10]
    mentions = [Mention(entity="e", start=place, end=place + 1) for place in places]
    with_mentions = view("One.  Two. Three", mentions=mentions)
    # the blanks after a sentence belong to it
    assert with_mentions.sentences_with("e") == [0, 0, 1, 1, 2, 2, 0, 0, 1]


# ---- sentences beside a question

TEXT = "The Zimbelot sang. The SANG of Quorvath, of Quorvath! It slept. Zimbelot sang of New Ostrela."


def sentences(asked: str = "Who sang of a Zimbelot?") -> SentenceOverlaps:
    return SentenceOverlaps(PassageView(Passage(id="p", text=TEXT)), rarities(Text(asked)))


def test_every_sentence_holds_some_of_the_question_each_word_once() -> None:
    assert sentences().overlaps == pytest.approx(
        [
            idf("zimbelot") + idf("sang"),
            idf("sang") + idf("of"),
            0,
            idf("zimbelot") + idf("sang") + idf("of"),
        ]
    )


@pytest.mark.parametrize(("name", "best"), [(" zimbelot ", 3), (" quorvath ", 1), (" it ", 2), (" ostrela ", 3)])
def test_the_best_sentence_with_a_name_holds_most_of_the_question(name: str, best: int) -> None:
    asked = sentences()
    assert asked.best_with((name,)) == asked.overlaps[best]
    assert asked.best_with((name,)) == asked.overlaps[best]  # once more, from what is kept


def test_names_are_whole_words_within_a_sentence() -> None:
    assert sentences().best_with((" zimbe ",)) == 0
    assert sentences().best_with((" sang the ",)) == 0


def test_the_sentences_that_hold_one_of_some_phrases() -> None:
    asked = sentences()
    assert asked.holding([" zimbelot "]) == [0, 3]
    assert asked.holding([" nobody ", " new ostrela ", " quorvath "]) == [1, 3]
    assert asked.best_with((" zimbelot ", " quorvath ")) == asked.overlaps[3]
    assert (asked.holding([" nobody "]), asked.best_with((" nobody ",))) == ([], 0)


def test_only_a_very_long_sentence_is_parted_and_no_name_is_lost_between_parts() -> None:
    long = " ".join(f"w{number}" for number in range(1000))
    view = PassageView(Passage(id="p", text=f"It slept. A {long}. It slept."))
    first, *parts, last = stretches(view)
    assert (first, last) == (view.sentences[0], view.sentences[2])
    assert (parts[0][0], parts[-1][1]) == view.sentences[1]
    texts = [view.passage.text[start:end] for start, end in parts]
    assert max(map(len, texts)) <= 300
    assert all(any(f"w{number} w{number + 1}" in text for text in texts) for number in range(999))
    short = PassageView(Passage(id="p", text=TEXT))
    assert list(stretches(short)) == short.sentences


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("DB00072", "drug:DB00072"),
        (" DB00072\n", "drug:DB00072"),
        ("P04637", "protein:P04637"),
        ("Q9Y6K9", "protein:Q9Y6K9"),
        ("A0A024R1R8", "protein:A0A024R1R8"),
        ("___MASK12___", "mask:___MASK12___"),
        ("DB0007", None),
        ("DB000721", None),
        ("db00072", None),
        ("DB00072 and", None),
        ("Prague", None),
        ("", None),
    ],
)
def test_a_text_that_is_one_identifier_has_an_entity_id(text: str, entity: str | None) -> None:
    assert identifier(text) == entity


def test_identifiers_are_found_with_their_offsets() -> None:
    text = "DB00072 binds P04637; (DB00072) not XDB00072 or DB00072x."
    assert find_identifiers(text) == {"drug:DB00072": [(0, 7), (23, 30)], "protein:P04637": [(14, 20)]}


def test_every_kind_begins_an_entity_id() -> None:
    found = find_identifiers("DB00072 P04637 ___MASK1___")
    assert {entity.partition(":")[0] for entity in found} == {"drug", "protein", "mask"}


@given(st.lists(st.sampled_from(["DB00072", "P04637", "___MASK3___", "Q9Y6K9", "é", "東", " ", "-", "x", "(", "1"])))
def test_offsets_cut_out_the_identifier(pieces: list[str]) -> None:
    text = "".join(pieces)
    for entity, spans in find_identifiers(text).items():
        for start, end in spans:
            assert text[start:end] == entity.partition(":")[2]
            assert identifier(text[start:end]) == entity
