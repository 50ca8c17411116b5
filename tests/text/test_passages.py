"""A passage as linking sees it."""

import pytest

from rechain.schema import Mention, Passage
from rechain.text.passages import PassageView
from rechain.text.words import phrase


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
    assert read.title_words == {"dvorak"}


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


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!  Three?\nFour", ["One.", "Two!", "Three?", "Four"]),
        ("It cost 3.5 pounds. (Or more.) [Yes.]", ["It cost 3.5 pounds.", "(Or more.) [Yes.]"]),
        ("He met e.g. a man. and left.", ["He met e.g. a man. and left."]),
        ("没有。句号。", ["没有。句号。"]),
        ("One. ", ["One. "]),
    ],
)
def test_sentences_end_before_a_capital_or_a_bracket(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in view(text).sentences] == sentences


def test_every_character_stands_in_a_sentence() -> None:
    read = view("One.  Two. Three")
    assert read.sentences == [(0, 4), (6, 10), (11, 16)]
    assert [read.sentence_at(place) for place in (0, 3, 6, 9, 11, 15)] == [0, 0, 1, 1, 2, 2]
    assert [read.sentence_at(place) for place in (4, 5, 10)] == [0, 0, 1]  # the blanks after a sentence are its own
