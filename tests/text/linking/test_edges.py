"""One link between two passages: its name, its offsets."""

import pytest

from rechain.schema import LinkKind, Mention, Passage
from rechain.text.linking.graph import Edge
from rechain.text.linking.linkers import Entity
from rechain.text.passage_views import PassageView


def view(text: str, title: str = "", *mentions: Mention) -> PassageView:
    return PassageView(Passage(id="p", title=title, text=text, mentions=list(mentions)))


def edge(name: str, first: PassageView, second: PassageView, kind: LinkKind = "name") -> Edge:
    return Edge(Entity(name, kind, 9.0, [0, 1]), 0, 1, first, second)


@pytest.mark.parametrize(
    ("one", "two", "key"),
    [
        ("by Anton Zorn Quillfeather", "Old Anton Zorn Quillfeather died", " anton zorn quillfeather "),
        ("by Anton Zorn", "by Zorn", " zorn "),
        ("by Anton Zorn", "by anton Zorn", " zorn "),
        ("by Anton zorn", "by Anton zorn", " zorn "),
        ("Anton Zorn", "Anton Zorn", " anton zorn "),
        ("Anton Zorn Abel", "Karl Zorn Abel", " zorn abel "),
        ("Zorn of York", "Zorn of York", " zorn "),
    ],
)
def test_a_name_is_widened_to_the_whole_of_what_both_share(one: str, two: str, key: str) -> None:
    assert edge(" zorn ", view(one), view(two)).key == key
    assert edge(" zorn ", view(two), view(one)).key == key


def test_a_pair_is_widened_on_both_sides() -> None:
    text = "the Anton Karl Zorn Abel of"
    assert edge(" karl zorn ", view(text), view(text)).key == " anton karl zorn abel "


def test_a_title_and_a_given_entity_are_not_widened() -> None:
    text = "the Anton Zorn Abel"
    assert edge(" zorn ", view(text), view(text, "Zorn"), "title").key == " zorn "
    assert edge("drug:zorn", view(text), view(text), "mention").key == "drug:zorn"


def test_a_link_says_where_the_name_stands_in_both_texts() -> None:
    one, two = "An opera by Antón Zorn.", "ANTON ZORN was born."
    link = edge(" zorn ", view(one), view(two)).link
    assert (link.entity, link.kind, link.weight) == ("Antón Zorn", "name", 9.0)
    assert link.mentions == ((12, 22), (0, 10))


def test_a_name_in_the_title_alone_has_no_mention() -> None:
    link = edge(" zorn ", view("He was born.", "Zorn (man)"), view("by Zorn"), "title").link
    assert (link.entity, link.mentions) == ("Zorn", (None, (3, 7)))


def test_a_given_link_has_the_first_given_mention_of_each_passage() -> None:
    first = view("p53, TP53", "", Mention(entity="gene:1", start=5, end=9), Mention(entity="gene:1", start=0, end=3))
    second = view("about it", "gene:1")
    link = edge("gene:1", first, second, "mention").link
    assert (link.entity, link.mentions) == ("gene:1", ((5, 9), None))


def test_the_name_is_what_the_linker_found_and_not_widened() -> None:
    found = edge(" zorn ", view("Anton Zorn"), view("by Anton Zorn"))
    assert (found.name, found.key) == (" zorn ", " anton zorn ")


@pytest.mark.parametrize(
    ("titled", "comes", "leads"),
    [
        (None, False, False),  # no title at all
        (frozenset({0}), True, False),
        (frozenset({1}), False, True),
        (frozenset({0, 1}), True, False),
        (frozenset({1, 7}), False, True),
    ],
)
def test_a_title_links_from_its_passage_or_to_it(titled: frozenset[int] | None, comes: bool, leads: bool) -> None:
    found = Edge(Entity(" zorn ", "title", 9.0, [0, 1], titled), 0, 1, view("Zorn"), view("Zorn"))
    assert (found.comes_from_title, found.leads_to_title) == (comes, leads)
