"""A passage as linking sees it, and where its sentences begin and end."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.schema import Mention, Passage
from rechain.text.languages import idf, rarities
from rechain.text.passage_views import (
    PassageView,
    SentenceOverlaps,
    blank_lines,
    find_identifiers,
    find_lines,
    find_sentences,
    identifier,
    stretches,
)
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


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in find_sentences(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!  Three?\nFour", ["One.", "Two!", "Three?", "Four"]),
        ("It cost 3.5 pounds. (Or more.) [Yes.]", ["It cost 3.5 pounds.", "(Or more.) [Yes.]"]),
        ("He met e.g. a man. and left.", ["He met e.g. a man. and left."]),
        (
            "Cities, e.g. Rome. It closed at 5 p.m. They left.",
            ["Cities, e.g. Rome.", "It closed at 5 p.m.", "They left."],
        ),
        (
            'He said "Go." Then "Stay" was said. "No," he said.',
            ['He said "Go."', 'Then "Stay" was said.', '"No," he said.'],
        ),
        ('William E. "Bill" Myers and "J.B." Bard met.', ['William E. "Bill" Myers and "J.B." Bard met.']),
        ("**Note.** Keep it dry. _Never_ wash it.", ["**Note.**", "Keep it dry.", "_Never_ wash it."]),
        ("One. ", ["One. "]),
        ("", [""]),
    ],
)
def test_sentences_of_prose_end_before_a_capital_a_bracket_or_a_quote(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Es ist so. Übrigens nicht.", ["Es ist so.", "Übrigens nicht."]),
        ("C'est tout. École fermée.", ["C'est tout.", "École fermée."]),
        ("Он ушёл. Она осталась.", ["Он ушёл.", "Она осталась."]),
        ("Sie beginnt am 14. Mai 2023 in z. B. Hotels, d.h. Unterkünften.", None),
        ("他来了。她走了！真的？是；好", ["他来了。", "她走了！", "真的？", "是；", "好"]),
        ("他说：“走吧。”她走了。\n", ["他说：“走吧。”", "她走了。\n"]),
        ("هل جاء؟ نعم جاء. ذهب", ["هل جاء؟", "نعم جاء.", "ذهب"]),
        ("वह आया। वह गया।", ["वह आया।", "वह गया।"]),
    ],
)
def test_sentences_of_other_languages(text: str, sentences: list[str] | None) -> None:
    assert cut(text) == (sentences or [text])


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# Travel\nWho travels\n\nAsk first", ["# Travel", "Who travels", "Ask first"]),
        ("You need:\n- a card\n  * a pin\n+ a form", ["You need:", "- a card", "* a pin", "+ a form"]),
        (
            "1. Open it.\n2. Press Start.\n   1. Wait.\n10. Close",
            ["1. Open it.", "2. Press Start.", "1. Wait.", "10. Close"],
        ),
        ("| City | Rate |\n|---|---|\n| Rome | 90 |", ["| City | Rate |", "|---|---|", "| Rome | 90 |"]),
        ("Phone: 030 12\nFax: 030 13", ["Phone: 030 12", "Fax: 030 13"]),
        ("第一章 概述\n本手册介绍", ["第一章 概述", "本手册介绍"]),
    ],
)
def test_headings_items_rows_and_short_lines_are_sentences_of_their_own(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences


def test_prose_that_is_wrapped_by_hand_stays_whole() -> None:
    text = "Employees who travel abroad on behalf of the company ask their\nManager for approval, and\nfile a report."
    assert cut(text) == [text]


def test_block_tags_of_html_end_a_sentence_and_cells_do_not() -> None:
    text = "<h2>Rates</h2><p>See below</p>\n<tr><td>Rome</td><td>90</td></tr><tr><td>Bonn<br/>Wien</td></tr>"
    assert cut(text) == [
        "<h2>Rates</h2>",
        "<p>See below</p>",
        "<tr><td>Rome</td><td>90</td></tr>",
        "<tr><td>Bonn<br/>",
        "Wien</td></tr>",
    ]


@given(st.text('aA1.!?。” \n-#|<br>()"', max_size=40))
def test_sentences_follow_one_another_and_leave_out_nothing_but_blanks(text: str) -> None:
    spans = find_sentences(text)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (start, end), (after, _) in pairwise(spans):
        assert start < end <= after
        assert not text[end:after].strip()


@pytest.mark.parametrize(
    "text", ["." + " " * 100_000, "a" + " \n" * 50_000, "<br>" * 50_000, '."' * 50_000, "\n" * 100_000]
)
def test_no_text_takes_more_than_its_length(text: str) -> None:
    """Were any expression quadratic, this would take minutes."""
    assert find_sentences(text)


def test_rows_without_a_mark_before_the_first_cell_are_sentences_of_their_own() -> None:
    rows = [
        "Merrow, Station Yard 1, near the harbour | 9:00-19:00 | Amara Lofthouse | South",
        "lower desk   10:00   none",
    ]
    assert cut("\n".join((*rows, "closed rooms"))) == [*rows, "closed rooms"]


def test_lines_are_alike_but_for_their_numbers() -> None:
    assert list(find_lines("Page 3 of 12\n  Some text.\n\nPage 4")) == ["Page 0 of 0", "Some text.", "Page 0"]


def test_prose_and_a_text_of_one_line_have_none() -> None:
    assert list(find_lines("A text of one line.")) == []
    assert list(find_lines("word " * 40 + "\nshort")) == ["short"]


def test_lines_are_blanked_in_place() -> None:
    assert blank_lines("Page 3\nText", {"Page 0"}.__contains__) == "      \nText"
