"""The linkers and their registry; and which passages hold which phrases, compared with a plain search."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.schema import LinkKind, Mention, Passage, Question
from rechain.text.candidates import CandidateSettings, find_candidates
from rechain.text.languages import MAX_PHRASE_IDF, idf, phrase_idf
from rechain.text.linking import DEFAULT_LINKERS, DEFAULT_MIN_WEIGHT, KINDS, LINKERS
from rechain.text.linking.graph import LinkGraph
from rechain.text.linking.linkers import (
    MENTION,
    NAME,
    TITLE,
    TITLE_PART,
    WORD,
    Context,
    Entity,
    find_entities,
    find_holders,
    name_weight,
)
from rechain.text.passage_views import PassageView
from rechain.text.words import phrase


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
    assert list(LINKERS["titles"].phrases(Context(passages, range(3), nothing_else))) == [" mercury ", " st louis "]


def test_words_of_titles_are_looked_for_where_they_weigh_enough_and_stand_at_an_end() -> None:
    passages = views(("The Quillfeather", "x"), ("Zorn", "y"))
    assert set(LINKERS["titles"].phrases(Context(passages, [0], 7.0))) == {
        " the quillfeather ",
        " zorn ",
        " quillfeather ",
    }


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


def context(*texts: str) -> Context:
    return Context(views(*(("", text) for text in texts)), range(len(texts)), DEFAULT_MIN_WEIGHT)


def pairs(text: str) -> list[str]:
    return [phrase for phrase in LINKERS["names"].phrases(context(text)) if phrase.count(" ") == 3]


def shared(*texts: str, words: int) -> list[Entity]:
    """What links some texts, of one word or two."""
    return [
        entity for entity in find_entities([LINKERS["names"]], context(*texts)) if len(entity.name.split()) == words
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("An opera by Anton Quillfeather.", [" anton quillfeather "]),
        ("by Anton Zorn Quillfeather", [" anton zorn ", " zorn quillfeather "]),
        ("by Anton and Quillfeather", []),
        ("by anton quillfeather", []),
        ("Anton Quillfeather met Anton Quillfeather", [" anton quillfeather "]),
        ("In The end", []),
    ],
)
def test_two_capitalised_words_in_a_row_are_looked_for(text: str, wanted: list[str]) -> None:
    assert pairs(text) == wanted


def test_a_capitalised_pair_links_the_passages_that_hold_it_capitalised() -> None:
    (entity,) = shared("by Anton Quillfeather", "ANTON QUILLFEATHER died", "the anton quillfeather", words=2)
    assert (entity.name, entity.kind, entity.holders) == (" anton quillfeather ", "name", [0, 1])


def test_a_pair_of_one_passage_links_nothing() -> None:
    assert shared("by Anton Quillfeather", "by Anton", "by Quillfeather", words=2) == []


def test_the_rarest_word_of_a_name_counts_in_full_and_the_others_by_half() -> None:
    high, low = sorted((idf("anton"), idf("river")), reverse=True)
    assert name_weight([low, high]) == pytest.approx(NAME.bonus + min(high + low / 2, MAX_PHRASE_IDF))
    assert name_weight([idf("xqzvorn"), idf("xqzvarn")]) == NAME.bonus + MAX_PHRASE_IDF


def test_a_rare_word_that_both_capitalise_is_a_name() -> None:
    (entity,) = shared("Old Quillfeather", "a Quillfeather", words=1)
    assert (entity.name, entity.kind, entity.holders) == (" quillfeather ", "name", [0, 1])
    assert entity.weight == NAME.bonus + idf("quillfeather")


def test_a_rare_word_that_one_does_not_capitalise_is_a_mere_word() -> None:
    kinds = {e.kind: e for e in shared("a quillfeather", "one Quillfeather", "no Quillfeather", words=1)}
    assert kinds["name"].holders == [1, 2]
    assert kinds["word"].holders == [0, 1, 2]
    assert kinds["word"].weight == WORD.bonus + idf("quillfeather")


def test_a_number_alone_is_no_name() -> None:
    assert shared("in 31415", "of 31415", words=1) == []


def mentioning(number: int, text: str, *entities: tuple[str, str], title: str = "") -> PassageView:
    mentions = [Mention(entity=e, start=text.index(name), end=text.index(name) + len(name)) for e, name in entities]
    return PassageView(Passage(id=f"p{number}", title=title, text=text, mentions=mentions))


def anchors(*views: PassageView) -> dict[str, Entity]:
    return {entity.name: entity for entity in LINKERS["anchors"].find(Context(views, range(len(views)), 0.0), {})}


def test_an_entity_that_two_passages_mention_is_found_whatever_it_is_called_there() -> None:
    one, two = mentioning(0, "p53 acts", ("gene:1", "p53")), mentioning(1, "TP53 rests", ("gene:1", "TP53"))
    assert anchors(one, two)["gene:1"].holders == [0, 1]


def test_an_entity_of_one_passage_links_nothing() -> None:
    assert anchors(mentioning(0, "p53 acts", ("gene:1", "p53")), mentioning(1, "p53 rests", ("gene:2", "p53"))) == {}


def test_several_mentions_in_one_passage_count_once() -> None:
    text = "p53 and TP53"
    assert anchors(mentioning(0, text, ("gene:1", "p53"), ("gene:1", "TP53")), mentioning(1, "none here")) == {}


def test_a_passage_holds_the_entity_that_is_its_title_or_id() -> None:
    anchor = mentioning(0, "She lives in Prague now", ("Prague", "Prague"), ("p2", "She"))
    entities = anchors(anchor, mentioning(1, "A city.", title="Prague"), mentioning(2, "A woman."))
    assert entities["Prague"].holders == [0, 1]
    assert entities["p2"].holders == [0, 2]


def test_data_without_mentions_gives_nothing() -> None:
    assert anchors(mentioning(0, "Prague", title="Prague"), mentioning(1, "Prague", title="Prague")) == {}


def test_the_weight_is_that_of_a_given_entity_plus_the_rarity_of_its_name() -> None:
    one, two = mentioning(0, "the river", ("e", "river")), mentioning(1, "the river", ("e", "river"))
    entity = anchors(one, two)["e"]
    assert entity.weight == MENTION.bonus + idf("river")
    assert (entity.kind, entity.is_given) == ("mention", True)


def test_an_identifier_in_two_passages_is_found() -> None:
    (entity,) = LINKERS["identifiers"].find(
        context("DB00072 binds P04637", "P04637 acts", "DB00073 rests, not XP04637"), {}
    )
    assert (entity.name, entity.kind, entity.holders) == ("protein:P04637", "identifier", [0, 1])
    assert entity.is_given


def test_masks_link_as_well() -> None:
    (entity,) = LINKERS["identifiers"].find(context("___MASK3___ binds", "on ___MASK3___"), {})
    assert entity.name == "mask:___MASK3___"


def chain_question(answer: str, passages: list[Passage]) -> Question:
    return Question(id="q", question="interacts_with DB00001?", answer=answer, hops=2, passages=passages)


def test_identifiers_link_where_the_answer_is_one() -> None:
    passages = [Passage(id="a", text="DB00001 binds P04637"), Passage(id="b", text="P04637 binds DB00072")]
    (chain,) = find_candidates(chain_question("DB00072", passages), CandidateSettings(linkers=["identifiers"])).chains
    (link,) = chain.links
    assert (link.entity, link.kind, link.mentions) == ("protein:P04637", "identifier", ((14, 20), (0, 6)))


def test_an_identifier_link_tells_its_offsets_also_where_other_mentions_are_given() -> None:
    given = [Mention(entity="drug:x", start=0, end=7)]
    passages = [
        Passage(id="a", text="DB00001 binds P04637", mentions=given),
        Passage(id="b", text="P04637 binds DB00072"),
    ]
    (chain,) = find_candidates(chain_question("DB00072", passages)).chains
    assert chain.links[0].mentions == ((14, 20), (0, 6))


def test_linkers_have_the_names_that_settings_give() -> None:
    assert set(LINKERS) == {"anchors", "identifiers", "titles", "names", "nouns", "runs", "spacy"}
    assert set(LINKERS) - DEFAULT_LINKERS == {"spacy"}


def test_every_kind_of_link_that_files_hold_is_made_and_explained() -> None:
    assert set(KINDS) == set(get_args(LinkKind))
    assert all(kind.meaning for kind in KINDS.values())


def test_linkers_of_one_kind_agree_on_what_it_weighs() -> None:
    assert all(KINDS[kind.name] == kind for linker in LINKERS.values() for kind in linker.kinds)


def test_kinds_are_ranked_title_part_name_word_and_given_entities_above_all() -> None:
    kinds = ["mention", "title", "title part", "name", "word"]
    assert [KINDS[kind].bonus for kind in kinds] == sorted((KINDS[kind].bonus for kind in kinds), reverse=True)
    assert len({KINDS[kind].bonus for kind in kinds}) == 5
    assert KINDS["identifier"].bonus == KINDS["mention"].bonus


def test_phrases_are_found_at_whole_words_in_title_or_text() -> None:
    read = views(("Car", "A caravan"), ("", "a van"), ("", "Caravan and car"))
    assert find_holders([" car ", " van ", " caravan ", " bus "], read) == {
        " car ": [0, 2],
        " van ": [1],
        " caravan ": [0, 2],
    }


def test_no_phrase_reaches_from_title_to_text_or_from_one_passage_to_the_next() -> None:
    assert find_holders([" a b ", " b c "], views(("a", "b"), ("c", "x"))) == {}


def test_phrases_that_overlap_are_all_found() -> None:
    wanted = [" a b ", " b c ", " b ", " a b c "]
    assert find_holders(wanted, views(("", "a b c"))) == {name: [0] for name in wanted}


def test_nothing_wanted_gives_nothing() -> None:
    assert find_holders([], views(("", "a b"))) == {}
    assert find_holders([" a "], []) == {}


words = st.lists(st.sampled_from(["a", "b", "ab", "é", "東", "ß", "🎻", "."]), min_size=1, max_size=6).map(" ".join)


@given(st.lists(words, max_size=5), st.lists(st.tuples(words, words), max_size=5))
def test_the_scan_finds_what_a_plain_search_finds(wanted: list[str], passages: list[tuple[str, str]]) -> None:
    phrases = [p for p in map(phrase, wanted) if p]
    read = views(*passages)
    plain = {p: [n for n, view in enumerate(read) if p in view.joined] for p in phrases}
    assert find_holders(phrases, read) == {p: holders for p, holders in plain.items() if holders}
