"""Titles, whole and in part."""

import pytest

from rechain.candidates import find_candidates
from rechain.linking.graph import LinkGraph
from rechain.linking.linkers import Context
from rechain.linking.titles import TITLE, TITLE_PART, phrases
from rechain.schema import Passage, Question
from rechain.text.passages import PassageView
from rechain.text.rarity import idf, phrase_idf


def views(*passages: tuple[str, str]) -> list[PassageView]:
    return [PassageView(Passage(id=str(n), title=title, text=text)) for n, (title, text) in enumerate(passages)]


def links(*passages: tuple[str, str], after: int = 0) -> list[tuple[int, str, str]]:
    """From where, of which kind and called what the links by title to a passage are, strongest first."""
    graph = LinkGraph(views(*passages), 0.0, frozenset({"titles"}), links_a_pair=9)
    return [(edge.before, edge.link.kind, edge.key.strip()) for edge in graph.edges(after)]


def whole(*passages: tuple[str, str], after: int = 0) -> list[tuple[int, str]]:
    return [(before, name) for before, kind, name in links(*passages, after=after) if kind == "title"]


def test_the_phrases_to_look_for_are_the_titles_without_their_suffix() -> None:
    passages = views(("Mercury (planet)", "x"), ("", "y"), ("St. Louis", "z"))
    nothing_else = 100.0  # no part of a title weighs as much
    assert list(phrases(Context(passages, range(3), nothing_else))) == [" mercury ", " st louis "]


def test_words_of_titles_are_looked_for_where_they_weigh_enough_and_stand_at_an_end() -> None:
    passages = views(("The Quillfeather", "x"), ("Zorn", "y"))
    assert set(phrases(Context(passages, [0], 7.0))) == {" the quillfeather ", " zorn ", " quillfeather "}


@pytest.mark.parametrize(
    ("title", "text", "name"),
    [
        ("Anton Quillfeather", "An opera by Anton Quillfeather.", "anton quillfeather"),
        ("Anton Quillfeather", "by ANTON  quillfeather", "anton quillfeather"),
        ("Dvořák", "a work by Dvorak", "dvorak"),
        ("Mercury (planet)", "close to Mercury", "mercury"),
        ("St. Louis", "born in St Louis", "st louis"),
        ("東京", "彼は東京に住む", "東 京"),
    ],
)
def test_a_title_that_stands_in_another_passage_links_the_two(title: str, text: str, name: str) -> None:
    passages = ("", text), (title, "It is something.")
    assert whole(*passages) == [(1, name)]
    assert whole(*passages, after=1) == [(0, name)]


@pytest.mark.parametrize(
    ("title", "text"), [("Louis", "in Louisiana"), ("Las Vegas", "Las, said Juan of Vegas"), ("", "any text")]
)
def test_a_title_is_found_only_as_its_whole_words_in_a_row(title: str, text: str) -> None:
    assert whole((title, "It is something."), ("", text)) == []


def test_a_title_does_not_link_two_other_passages_that_hold_it() -> None:
    passages = ("", "in Prague"), ("Prague", "Prague lies"), ("", "from Prague")
    assert whole(*passages, after=0) == [(1, "prague")]
    assert sorted(whole(*passages, after=1)) == [(0, "prague"), (2, "prague")]


def test_a_title_that_two_passages_have_links_them() -> None:
    assert whole(("Prague", "one"), ("Prague (album)", "two")) == [(1, "prague")]


def test_a_word_of_a_title_links_as_a_part() -> None:
    passages = ("Tropicana Las Vegas", "A hotel."), ("", "He ran the Tropicana."), ("", "an old Tropicana")
    assert links(*passages, after=1) == [(0, "title part", "tropicana")]
    assert sorted(links(*passages)) == [(1, "title part", "tropicana"), (2, "title part", "tropicana")]


def test_the_bracketed_suffix_has_no_parts() -> None:
    assert links(("Mercury (planet)", "It."), ("", "a planet")) == []


def test_a_whole_title_weighs_more_than_a_part_of_it() -> None:
    passages = views(("Anton Quillfeather", "He."), ("", "by Anton Quillfeather"), ("", "by Quillfeather"))
    by_passage = {edge.before: edge.weight for edge in LinkGraph(passages, 0.0, frozenset({"titles"})).edges(0)}
    assert by_passage == {
        1: TITLE.bonus + phrase_idf(["anton", "quillfeather"]),
        2: TITLE_PART.bonus + idf("quillfeather"),
    }
    assert by_passage[1] > by_passage[2]


def test_a_part_of_a_document_is_linked_by_its_own_heading() -> None:
    passages = [
        Passage(id="a", title="Handbook > Travel", text="Trips are booked with the Zeldanor Desk."),
        Passage(id="b", title="Handbook > Offices > Zeldanor Desk", text="It is in Quorvath, on the river."),
    ]
    question = Question(id="q", question="Where are trips booked?", answer="Quorvath", passages=passages)
    (chain,) = find_candidates(question).chains
    assert (chain.links[0].entity, chain.links[0].kind) == ("Zeldanor Desk", "title")
