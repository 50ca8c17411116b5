"""The links between the passages of a question."""

from hypothesis import example, given
from hypothesis import strategies as st

from rechain.schema import Link, Mention, Passage
from rechain.text.linking.graph import DEFAULT_MIN_WEIGHT, LinkGraph
from rechain.text.linking.linkers import DEFAULT_LINKERS
from rechain.text.passage_views import PassageView


def views(*passages: tuple[str, str]) -> list[PassageView]:
    return [PassageView(Passage(id=f"p{n}", title=title, text=text)) for n, (title, text) in enumerate(passages)]


def links(graph: LinkGraph, after: int) -> list[tuple[int, Link]]:
    return [(edge.before, edge.link) for edge in graph.edges(after)]


def strongest(one: tuple[str, str], two: tuple[str, str], **options: object) -> Link:
    return links(LinkGraph(views(one, two), 0.0, **options), 1)[0][1]


def test_for_the_same_words_a_title_weighs_more_than_a_part_than_a_name_than_a_word() -> None:
    other = ("", "a song of Quorvath")
    ranked = [
        strongest(other, ("Quorvath", "He sang.")),
        strongest(other, ("Quorvath Hall", "A hall.")),
        strongest(other, ("", "old Quorvath")),
        strongest(other, ("", "an old quorvath")),
    ]
    assert [link.kind for link in ranked] == ["title", "title part", "name", "word"]
    weights = [link.weight for link in ranked]
    assert weights == sorted(set(weights), reverse=True)


def test_a_capitalised_pair_weighs_more_than_one_of_its_words() -> None:
    pair = strongest(("", "by Anton Quorvath"), ("", "for Anton Quorvath"))
    word = strongest(("", "by Anton Quorvath"), ("", "for Karl Quorvath"))
    assert (pair.entity, word.entity) == ("Anton Quorvath", "Quorvath")
    assert pair.weight > word.weight


def test_common_words_and_weak_links_make_no_link() -> None:
    pair = views(("", "The city has a river."), ("", "The river is in the city."))
    assert links(LinkGraph(pair, DEFAULT_MIN_WEIGHT), 1) == []
    rare = views(("", "old Quorvath"), ("", "a Quorvath"))
    assert len(links(LinkGraph(rare, 9.0), 1)) == 1
    assert links(LinkGraph(rare, 9.5), 1) == []


def test_edges_come_strongest_first_and_reading_them_twice_gives_the_same() -> None:
    others = (("U", "u"), ("V", "v"), ("W", "w"))  # entries: what many parts of documents share would not link
    graph = LinkGraph(views(("", "Quorvath"), ("", "quorvath"), ("Quorvath", "x"), ("", "of Quorvath"), *others), 0.0)
    found = links(graph, 3)
    assert [before for before, _ in found] == [2, 0, 1]
    assert [link.weight for _, link in found] == sorted((link.weight for _, link in found), reverse=True)
    assert links(graph, 3) == found


def test_a_pair_of_passages_keeps_as_many_different_names_as_asked() -> None:
    pair = views(("", "Quorvath and Zimbelot and Ostrelan"), ("", "Ostrelan or Zimbelot or Quorvath"))
    for wanted in (1, 2, 3):
        assert len(links(LinkGraph(pair, DEFAULT_MIN_WEIGHT, links_a_pair=wanted), 1)) == wanted


def test_one_name_found_in_several_ways_is_one_link() -> None:
    pair = views(("Anton Quorvath", "Anton Quorvath sang."), ("", "of Anton Quorvath"))
    found = links(LinkGraph(pair, DEFAULT_MIN_WEIGHT, links_a_pair=5), 1)
    assert [(link.entity, link.kind) for _, link in found] == [("Anton Quorvath", "title")]


def test_all_given_entities_link_however_many_names_are_kept() -> None:
    mentions = [Mention(entity=f"gene:{n}", start=n, end=n + 1) for n in range(4)]
    pair = [PassageView(Passage(id=str(n), text="a b c d", mentions=mentions)) for n in range(2)]
    assert len(links(LinkGraph(pair, DEFAULT_MIN_WEIGHT), 1)) == 4


def test_only_the_linkers_asked_for_are_used() -> None:
    pair = views(("Quorvath", "Old Zimbelot sang."), ("", "Quorvath and Zimbelot"))
    kinds = {
        name: {link.kind for _, link in links(LinkGraph(pair, 0.0, frozenset({name}), links_a_pair=9), 1)}
        for name in DEFAULT_LINKERS
    }
    assert kinds["titles"] == {"title"}
    assert kinds["names"] <= {"name", "word"}
    assert kinds["names"]
    assert kinds["anchors"] == kinds["identifiers"] == set()


names = st.sampled_from(["Zuvok", "Brimla", "Quorth", "zuvok", "brimla", "of the"])
phrases = st.lists(names, min_size=1, max_size=5).map(" ".join)


@given(st.lists(st.tuples(st.one_of(st.just(""), phrases), phrases), min_size=2, max_size=4), st.integers(0, 1))
@example([("", "Zuvok zuvok"), ("", "Zuvok Zuvok")], 0)
@example([("", "of Zuvok Brimla"), ("Zuvok Brimla Quorth", "of the")], 1)
def test_links_to_an_end_do_not_depend_on_which_ends_were_asked_for(passages: list[tuple[str, str]], end: int) -> None:
    alone = LinkGraph(views(*passages), DEFAULT_MIN_WEIGHT, ends=[end])
    assert links(alone, end) == links(LinkGraph(views(*passages), DEFAULT_MIN_WEIGHT), end)


@given(st.lists(st.tuples(st.one_of(st.just(""), phrases), phrases), min_size=2, max_size=4))
def test_links_are_the_same_from_either_side(passages: list[tuple[str, str]]) -> None:
    graph = LinkGraph(views(*passages), DEFAULT_MIN_WEIGHT)
    weights = {(edge.before, after): edge.weight for after in range(len(passages)) for edge in graph.edges(after)}
    assert weights == {(after, before): weight for (before, after), weight in weights.items()}


@given(st.lists(st.tuples(st.one_of(st.just(""), phrases), phrases), min_size=2, max_size=4), st.integers(1, 3))
def test_links_found_once_serve_chains_of_every_length(passages: list[tuple[str, str]], number: int) -> None:
    shared = LinkGraph(views(*passages), DEFAULT_MIN_WEIGHT, most_partners=2)
    for kept in (number, 1, number):  # what was kept for one length is not kept for another
        alone = LinkGraph(views(*passages), DEFAULT_MIN_WEIGHT, links_a_pair=kept, most_partners=2)
        graph = shared.with_links_a_pair(kept)
        for after in range(len(passages)):
            keys = [edge.key for edge in graph.edges(after)]
            assert keys == [edge.key for edge in alone.edges(after)]
            for allowed in (frozenset([0]), frozenset([0, 1])):
                left = [(edge.before, edge.key) for edge in graph.edges(after, allowed, keys[:1])]
                assert left == [(edge.before, edge.key) for edge in alone.edges(after, allowed, keys[:1])]
                assert all(before in allowed and key not in keys[:1] for before, key in left)
