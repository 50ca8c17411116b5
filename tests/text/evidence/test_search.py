"""The search for evidence of any shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.passages import named_passages

from rechain.errors import QuestionError
from rechain.schema import Passage, Question
from rechain.text.candidates import Candidate, Candidates, CandidateSettings
from rechain.text.evidence.features import FEATURES, prior, weigh
from rechain.text.evidence.search import find_evidence

BRIDGE = {
    "Zimbelot": "Zimbelot is an opera by Corvin Maltese.",
    "Corvin Maltese": "Corvin Maltese was a composer who died in Ostrela.",
    "Ostrela Fair": "The fair of Ostrela is held in June.",
    "Harbour": "The harbour has two piers and a lighthouse.",
}
FILMS = {
    "Velvet Anchor": "Velvet Anchor is a film directed by Ivo Brandt.",
    "Ivo Brandt": "Ivo Brandt, born in 1931, made films.",
    "Paper Comet": "Paper Comet is a film directed by Lena Osterman.",
    "Lena Osterman": "Lena Osterman, born in 1944, made films.",
    "Harbour": "The harbour has two piers and a lighthouse.",
}
WHICH_FILM = "Which film has the director who was born first, Velvet Anchor or Paper Comet?"


def question(passages: dict[str, str], asked: str, answer: str, hops: int | None = None) -> Question:
    rows = [Passage(id=title, title=title, text=text) for title, text in passages.items()]
    return Question(id="q", question=asked, answer=answer, hops=hops, passages=rows)


def titles(found: Candidates, candidate: Candidate) -> list[str]:
    return [found.question.passages[place].title for place in candidate.passages]


def best(found: Candidates) -> Candidate:
    assert found.evidence is not None
    return found.chains[int(np.argmax(found.evidence @ prior()))]


def of(found: Candidates, *wanted: str) -> Candidate:
    (one,) = (chain for chain in found.chains if set(titles(found, chain)) == set(wanted))
    return one


def test_a_bridge_is_a_chain_whose_last_passage_holds_the_answer() -> None:
    found = find_evidence(question(BRIDGE, "Where did the composer of Zimbelot die?", "Ostrela"))
    chain = best(found)
    assert (chain.shape, titles(found, chain)) == ("chain", ["Zimbelot", "Corvin Maltese"])
    assert [link.entity for link in chain.links] == ["Corvin Maltese"]


def test_two_lines_of_evidence_are_a_graph_that_says_which_passages_its_links_join() -> None:
    found = find_evidence(question(FILMS, WHICH_FILM, "Velvet Anchor"))
    graph = of(found, "Velvet Anchor", "Ivo Brandt", "Paper Comet", "Lena Osterman")
    places = titles(found, graph)
    joined = {frozenset((places[before], places[after])) for before, after in graph.between}
    assert graph.shape == "graph"
    assert joined == {frozenset(("Velvet Anchor", "Ivo Brandt")), frozenset(("Paper Comet", "Lena Osterman"))}
    assert [link.between for link in graph.links] == list(graph.between)


def test_passages_without_links_are_side_by_side_as_the_question_names_them() -> None:
    found = find_evidence(question(FILMS, "Is Paper Comet older than Velvet Anchor?", "Velvet Anchor"))
    both = of(found, "Paper Comet", "Velvet Anchor")
    assert (both.shape, titles(found, both)) == ("parallel", ["Paper Comet", "Velvet Anchor"])


@pytest.mark.parametrize("hops", [None, 1, 2])
def test_entities_that_the_data_names_need_not_be_those_of_every_link(hops: int | None) -> None:
    texts = ["Polonium was found by Curie.", "Curie was born in Warsaw.", "Rain in Warsaw."]
    passages = named_passages(texts, {"Polonium": "PO", "Curie": "MC"})
    asked = Question(id="q", question="Where?", answer="Warsaw", question_entities=["PO"], hops=hops, passages=passages)
    found = find_evidence(asked)
    assert found.evidence is not None and len(found.evidence) == len(found.chains)
    assert found.names_entities == (hops == 1)


def test_one_passage_may_suffice() -> None:
    found = find_evidence(question(BRIDGE, "Where did Corvin Maltese die?", "Ostrela"))
    assert (best(found).shape, titles(found, best(found))) == ("single", ["Corvin Maltese"])


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_a_given_number_of_passages_is_kept(hops: int) -> None:
    found = find_evidence(question(BRIDGE, "Where did the composer of Zimbelot die?", "Ostrela", hops))
    assert {len(chain.passages) for chain in found.chains} == {hops}


def test_each_set_of_passages_is_a_candidate_once() -> None:
    found = find_evidence(question(FILMS, WHICH_FILM, "Velvet Anchor"))
    sets = [frozenset(chain.passages) for chain in found.chains]
    assert len(sets) == len(set(sets))


def test_chains_of_three_are_found_among_hundreds_of_passages() -> None:
    ladder = {
        "Quorvath": "Quorvath is a novel by Tamsin Eldergrove.",
        "Tamsin Eldergrove": "Tamsin Eldergrove was married to Bela Korwin.",
        "Bela Korwin": "Bela Korwin was born in Ostrela.",
    }
    others = {f"Parish {n}": f"Parish {n} has a church, a mill and {n} houses." for n in range(500)}
    found = find_evidence(question(others | ladder, "Where was the husband of the author of Quorvath born?", "Ostrela"))
    chain = of(found, *ladder)
    assert (chain.shape, titles(found, chain)) == ("chain", list(ladder))


def test_the_limit_keeps_the_best() -> None:
    asked = question(BRIDGE, "Where did the composer of Zimbelot die?", "Ostrela")
    found = find_evidence(asked, CandidateSettings(limit=3))
    assert len(found.chains) == 3 and found.is_cut
    assert titles(found, best(found)) == ["Zimbelot", "Corvin Maltese"]


def test_errors_say_why_there_is_no_evidence() -> None:
    with pytest.raises(QuestionError, match="no passage holds the answer 'Paris'"):
        find_evidence(question(BRIDGE, "Where did the composer of Zimbelot die?", "Paris"))
    with pytest.raises(QuestionError, match="4 passages cannot make a chain of 5"):
        find_evidence(question(BRIDGE, "Where did the composer of Zimbelot die?", "Ostrela", 5))


@given(order=st.permutations(list(FILMS)))
def test_the_order_of_the_passages_changes_no_evidence(order: list[str]) -> None:
    def rows(found: Candidates) -> dict[frozenset[str], list[float]]:
        assert found.evidence is not None
        pairs = zip(found.chains, found.evidence.tolist(), strict=True)
        return {frozenset(titles(found, chain)): row for chain, row in pairs}

    first = rows(find_evidence(question(FILMS, WHICH_FILM, "Velvet Anchor")))
    other = rows(find_evidence(question({title: FILMS[title] for title in order}, WHICH_FILM, "Velvet Anchor")))
    assert first.keys() == other.keys()
    for passages, row in first.items():
        assert other[passages] == pytest.approx(row)


def test_candidates_that_are_described_again_have_the_same_evidence() -> None:
    found = find_evidence(question(BRIDGE, "Where did the composer of Zimbelot die?", "Ostrela"))
    number = found.chains.index(of(found, "Zimbelot", "Corvin Maltese"))
    again = weigh(found)
    assert found.evidence is not None
    assert dict(zip(FEATURES, again[number], strict=True)) == pytest.approx(
        dict(zip(FEATURES, found.evidence[number], strict=True))
    )
