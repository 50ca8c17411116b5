"""What is labelled: answers, and the pairs of entities on candidate chains."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from rechain.evaluation.gold import candidate_as_gold
from rechain.schema import GoldChain, Mention, Passage, Question
from rechain.text.candidates import Candidate, CandidateSettings, find_candidates
from rechain.text.label_units import THE_QUESTION, Unit, Units, find_units


def pair(passage: str, one: str, two: str) -> Unit:
    return Unit(question="MH_1", passages=(passage,), entities=(one, two))


def test_an_answer_is_labelled_as_a_whole_and_a_pair_has_no_order() -> None:
    assert pair("0", "b", "a") == pair("0", "a", "b")
    assert hash(pair("0", "b", "a")) == hash(pair("0", "a", "b"))
    assert (pair("0", "b", "a").mode, Unit(question="q").mode) == ("pairs", "answers")


@pytest.mark.parametrize(
    ("passages", "entities"),
    [((), ("a", "b")), (("1",), ()), (("1",), ("a",)), (("1", "2"), ("a", "b")), ((" ",), "ab")],
)
def test_entities_must_fit_the_passages(passages: tuple[str, ...], entities: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Unit(question="q", passages=passages, entities=entities)


def test_pairs_stand_once_in_order_of_first_use_with_the_chains_that_share_them(medhop: Question) -> None:
    units = Units(find_candidates(medhop))
    assert [candidate_as_gold(units, number) for number in (0, 1)] == [
        GoldChain(passages=["0", "1", "2"], links=["protein:P12345", "protein:Q23456"]),
        GoldChain(passages=["0", "3", "2"], links=["protein:P99999", "protein:Q23456"]),
    ]
    assert units.pairs == {
        pair("0", "drug:DB00001", "protein:P12345"): [0],
        pair("1", "protein:P12345", "protein:Q23456"): [0],
        pair("2", "protein:Q23456", "drug:DB00002"): [0, 1],
        pair("0", "drug:DB00001", "protein:P99999"): [1],
        pair("3", "protein:P99999", "protein:Q23456"): [1],
    }
    assert list(units.pairs)[2] == units.pairs_of[0][2] == units.pairs_of[1][2]
    assert units.in_order(units.pairs_of[0][2]) == ("protein:Q23456", "drug:DB00002")
    assert units.name("protein:Q23456") == "protein:Q23456"


def test_a_link_of_words_is_shown_as_it_stands_in_the_text(bridge_question: Question) -> None:
    units = find_units(bridge_question)
    assert [unit.entities for unit in units.pairs_of[0]] == [
        ("", "anton quillfeather"),
        ("Prague", "anton quillfeather"),
    ]
    assert units.name("anton quillfeather") == "Anton Quillfeather"
    assert units.name(THE_QUESTION) == "the question"
    assert units.name("Prague") == "Prague"
    assert units.links(0) == ["Anton Quillfeather"]


def two_entities(text: str, *mentioned: str) -> Passage:
    mentions = [Mention(entity=entity, start=n, end=n + 1) for n, entity in enumerate(mentioned)]
    return Passage(id=text, text=text + " with some more words", mentions=mentions)


@pytest.mark.parametrize(("first", "start"), [(("x:2", "l:1"), "x:2"), (("l:1",), "x:1")], ids=["mentioned", "first"])
def test_a_chain_starts_from_the_entity_that_its_head_mentions(first: tuple[str, ...], start: str) -> None:
    passages = [two_entities("head", *first), two_entities("tail", "l:1", "y:1")]
    question = Question(
        id="q", question="?", answer="y", question_entities=["x:1", "x:2"], answer_entity="y:1", passages=passages
    )
    assert find_units(question).pairs_of[0][0].entities == ("l:1", start)


@pytest.mark.parametrize("names", [("DB00001", "P12345"), ("drug:DB00001", "P12345"), ("P12345", "db00001")])
def test_pairs_are_found_however_their_entities_are_written(medhop: Question, names: tuple[str, str]) -> None:
    units = find_units(medhop)
    assert units.pairs_named("0", *names) == [pair("0", "drug:DB00001", "protein:P12345")]
    assert units.pairs_named("1", *names) == []


def test_a_question_without_candidates_has_no_units(medhop: Question) -> None:
    units = find_units(medhop, CandidateSettings(hops=8))
    assert (units.pairs, units.pairs_of, units.question) == ({}, [], medhop)


def test_pairs_wait_only_while_a_chain_of_theirs_may_be_right(medhop: Question) -> None:
    units = find_units(medhop)
    assert [units.pairs_of[0][2], units.pairs_of[1][2]] == [units.pairs_of[0][2]] * 2  # both end alike
    first, second = units.pairs_of[0][0], units.pairs_of[0][1]
    assert units.waiting({}) == list(units.pairs)
    after = units.waiting({first: "no"})
    assert second not in after and set(units.pairs_of[1]) <= set(after)
    assert units.waiting({first: "unsure"}) == [pair for pair in units.pairs if pair != first]
    assert units.waiting({units.pairs_of[0][2]: "no"}) == []


def test_candidates_of_other_shapes_have_no_pairs(bridge_question: Question) -> None:
    found = find_candidates(bridge_question)
    other = [Candidate((1,), (), 0.0, "single"), Candidate((0, 2), (), 0.0, "parallel")]
    units = Units(replace(found, chains=[*found.chains, *other]))
    last = len(units.pairs_of) - 1
    assert candidate_as_gold(units, last - 1) == GoldChain(shape="single", passages=["composer"])
    assert candidate_as_gold(units, last) == GoldChain(shape="parallel", passages=["opera", "city"])
    assert units.pairs_of[-2:] == [[], []]
    assert units.pairs == Units(found).pairs


def test_a_graph_has_no_pairs(films_question: Question) -> None:
    units = find_units(films_question.model_copy(update={"hops": 4}))
    (graph,) = units.candidates.chains
    assert (graph.shape, units.pairs, units.links(0)) == ("graph", {}, [])
    assert set(graph.passages) == {0, 1, 2, 3}


def test_what_no_one_would_call_evidence_is_not_labelled() -> None:
    passages = [
        Passage(id="a", title="Zimbelot", text="Zimbelot is an opera by Corvin Maltese."),
        Passage(id="b", title="Corvin Maltese", text="Corvin Maltese died in Ostrela."),
        Passage(id="c", title="Rain", text="Rain falls in autumn."),
    ]
    question = Question(id="q", question="Where did the composer of Zimbelot die?", answer="Ostrela", passages=passages)
    units = find_units(question)
    assert [chain.passages for chain in units.candidates.chains] == [(0, 1), (1,)]
