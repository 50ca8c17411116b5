"""The graph: who stands where, which lines there are, and where the way is interrupted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.recoverer import Recoverer
from rechain.schema import Chain, Gold, GoldChain, Link, Passage, Question
from rechain.text.candidates import CandidateSettings
from rechain.web.chains import ChainList
from rechain.web.link_graph import MOST_ROWS, Graph, GraphView

SETTINGS = CandidateSettings()


def graph(question: Question, number: int | None = 0, gold: Gold | None = None, top: int = 99) -> GraphView:
    chains = ChainList(question, Recoverer("lexical", top=top).recover(question).chains, SETTINGS)
    chain = None if number is None or not len(chains) else chains.at(number)
    return Graph(chains, chain, gold).view()


def ids(view: GraphView) -> list[list[str]]:
    return [[node.id for node in column] for column in view.columns]


def kinds(view: GraphView) -> list[str]:
    return [line.kind for line in view.lines]


def test_a_chain_runs_from_left_to_right(bridge_question: Question) -> None:
    view = graph(bridge_question)
    assert [column[0].id for column in (view.columns[0], view.columns[2])] == ["opera", "composer"]
    assert [node.step for column in view.columns for node in column if node.step] == [1, 2]
    assert view.starts_lower and view.link == "Anton Quillfeather"
    assert kinds(view)[-1] == "chain" and view.gap is None
    (line,) = [line for line in view.lines if line.kind == "chain"]
    assert (line.x, line.width, line.path) == ("28%", "44%", ""), "straight across, between the outer columns"


def test_every_passage_leads_to_the_best_candidate_through_it(bridge_question: Question) -> None:
    chains = ChainList(bridge_question, Recoverer("lexical", top=99).recover(bridge_question).chains, SETTINGS)
    for node in [node for column in graph(bridge_question, 1).columns for node in column]:
        assert node.chain == next((n for n, way in enumerate(chains.ways) if node.id in way), None)


def test_gold_is_dashed_where_its_order_is_known(bridge_question: Question) -> None:
    passages = ["opera", "composer", "city"]
    for one, dashed in (
        (GoldChain(passages=passages), 2),
        (GoldChain(passages=passages, ordered=False), 0),
        (GoldChain(passages=passages[:2], ordered=False), 1),
        (GoldChain(passages=passages, shape="parallel"), 0),
        (GoldChain(passages=["opera", "gone"]), 0),
    ):
        view = graph(bridge_question, gold=Gold(id="q1", chains=[one]))
        assert kinds(view).count("gold") == dashed, one
        assert {node.id for column in view.columns for node in column if node.is_gold} == set(one.passages) - {"gone"}


@pytest.mark.parametrize(
    ("asked", "answer", "kept", "gap"),
    [
        ("Zorilla", "Nowhere", ("opera", "city"), "No passage holds the answer."),
        ("it", "Prague", ("opera", "city"), "No passage holds a name of the question."),
        ("Zorilla", "Prague", ("opera", "city"), "The link is missing"),
        ("Zorilla", "Prague", ("opera", "composer"), "Links lead from the names"),
    ],
)
def test_without_a_chain_it_shows_where_the_way_is_interrupted(
    bridge_question: Question, asked: str, answer: str, kept: tuple[str, ...], gap: str
) -> None:
    passages = [passage for passage in bridge_question.passages if passage.id in kept]
    fields = {"question": f"where was {asked}", "answer": answer, "hops": 4, "passages": passages}
    view = graph(bridge_question.model_copy(update=fields))
    assert view.gap is not None and view.gap.startswith(gap)
    assert ("gap" in kinds(view)) == gap.startswith("The link")
    assert {node.id for node in view.words} == set(kept)


def test_links_are_drawn_where_there_is_no_chain(bridge_question: Question) -> None:
    view = graph(bridge_question.model_copy(update={"answer": "Nowhere"}))
    assert "link" in kinds(view) and view.columns[2] == []
    (composer,) = [node for column in view.columns for node in column if node.id == "composer"]
    assert ("Anton Quillfeather", "Zorilla") in composer.links


def test_a_chain_of_passages_that_are_not_there_is_drawn_as_far_as_it_is(bridge_question: Question) -> None:
    link = Link(entity="x", kind="name", weight=1.0, mentions=(None, None))
    chain = Chain(passages=["gone", "composer"], links=[link], score=1.0)
    view = Graph(ChainList(bridge_question, [chain], SETTINGS), chain, None).view()
    assert "chain" not in kinds(view)
    assert view.columns[2][0].id == "composer"


def crowd(number: int) -> Question:
    makers = [
        Passage(id=f"m{n}", title=f"Zorin Mak{n:02}", text=f"Zorin Mak{n:02} left Prague.") for n in range(number)
    ]
    works = [Passage(id=f"w{n}", title=f"Work {n}", text=f"A work by Zorin Mak{n:02}.") for n in range(number)]
    return Question(id="q", question="Where is it?", answer="Prague", hops=2, passages=[*works, *makers])


def test_of_many_passages_those_that_matter_are_drawn() -> None:
    view = graph(crowd(15), number=3)
    assert max(map(len, ids(view))) <= MOST_ROWS
    assert sum(view.undrawn) + sum(map(len, view.columns)) == len(view.words) == 30
    assert {node.step for column in view.columns for node in column} >= {1, 2}


@given(st.integers(1, 12), st.integers(0, 40), st.booleans())
def test_lines_lie_within_the_graph_and_end_at_passages(number: int, shown: int, has_gold: bool) -> None:
    question = crowd(number)
    gold = Gold(id="q", chains=[GoldChain(passages=["w0", "m0"])]) if has_gold else None
    chains = ChainList(question, [], SETTINGS)
    chain = chains.at(shown) if shown < len(chains) else None
    view = Graph(chains, chain, gold).view()
    height = float(view.height.removesuffix("rem"))
    for line in view.lines:
        left, width = float(line.x.removesuffix("%")), float(line.width.removesuffix("%"))
        top, tall = float(line.y.removesuffix("rem")), float(line.height.removesuffix("rem"))
        assert left >= 0 and left + width <= 100 and top >= 0 and top + tall <= height
    drawn = {node.id for column in view.columns for node in column}
    assert all(ends <= drawn for ends in view.numbers)
    if chain is not None:
        joined = {frozenset((chain.passages[one], chain.passages[two])) for one, two in chain.between}
        assert joined <= view.numbers.keys()


def test_no_passage_holds_a_yes_or_a_no(bridge_question: Question) -> None:
    assert not graph(bridge_question).judges
    asked: dict[str, object] = {"question": "Was Anton Quillfeather born in Prague?", "answer": "yes"}
    assert graph(bridge_question.model_copy(update=asked)).judges
    asked |= {"question": "Is Zorilla older than Mumbo?", "passages": bridge_question.passages[-1:]}
    assert graph(bridge_question.model_copy(update=asked)).gap == "No passage holds what the answer judges."
